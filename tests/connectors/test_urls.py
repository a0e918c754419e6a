"""URLs: read strictly, so that the host that is checked is the host that is called."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.urls import Origin, Url, UrlRefused, parse_url


@pytest.mark.parametrize(
    ("text", "authority", "target"),
    [
        ("https://api.example.com", "api.example.com", "/"),
        ("HTTPS://API.Example.com./a?b=c#d", "api.example.com", "/a?b=c"),
        ("http://api.example.com:8080/ä?q=ü", "api.example.com:8080", "/%C3%A4?q=%C3%BC"),
        ("http://api.example.com:80/%2e/a%20b", "api.example.com", "/%2e/a%20b"),
        ("http://[2606:4700:0:0::1]:81/", "[2606:4700::1]:81", "/"),
        ("http://8.8.8.8?x", "8.8.8.8", "/?x"),
        ('http://a.example/"<>', "a.example", "/%22%3C%3E"),
    ],
)
def test_url_is_read(text: str, authority: str, target: str) -> None:
    url = parse_url(text)

    assert (url.origin.authority, url.target) == (authority, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "//api.example.com",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "https:api.example.com",
        "https:///path",
        "https://user@api.example.com",
        "https://user:pass@api.example.com",
        "https://api.example.com@127.0.0.1/",
        "https://api.example.com\\@127.0.0.1/",
        "https://api.example.com#@127.0.0.1\\",
        "https://api.example.com/a b",
        "https://api.example.com/\r\nHost: other",
        "https://api.example.com/\x00",
        "https://api.example\t.com/",
        "https://api.example.com:0/",
        "https://api.example.com:99999/",
        "https://api.example.com:8x/",
        "https://bücher.example/",
        "https://ⓛocalhost/",
        "https://127。0。0。1/",
        "https://a..example/",
        "https://-a.example/",
        "https://a%2eexample/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1.0x7f/",
        "http://1.2.3/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://[v1.a]/",
        "http://a.example/" + "a" * 9000,
        "http://a.example/\ud800",
    ],
)
def test_url_that_could_be_understood_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(UrlRefused):
        parse_url(text)


@given(st.text(max_size=40))
def test_whatever_is_read_stands_in_one_line_and_names_one_host(rest: str) -> None:
    try:
        url = parse_url(f"http://a.example{rest}")
    except UrlRefused:
        return

    assert url.target.isascii()
    assert url.target.isprintable()
    assert " " not in url.target
    assert urlsplit(str(url)).hostname == url.origin.host
    assert parse_url(str(url)) == url


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/b", "https://a.example/b"),
        ("c?x=1", "https://a.example/dir/c?x=1"),
        ("//b.example/", "https://b.example/"),
        ("http://b.example:81", "http://b.example:81/"),
    ],
)
def test_redirect_is_joined_to_where_it_came_from(location: str, expected: str) -> None:
    assert str(Url(Origin("https", "a.example", 443), "/dir/page?q").join(location)) == expected


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "//user@b.example", "/a b", "/\r\n", "http://[::", "javascript:1"]
)
def test_redirect_to_what_is_no_url_is_refused(location: str) -> None:
    with pytest.raises(UrlRefused):
        parse_url("https://a.example/").join(location)
