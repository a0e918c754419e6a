"""Allow-lists: which hosts, ports and schemes a pattern permits, and which texts are no patterns."""

from __future__ import annotations

import pytest

from holdfast.connectors.allow_lists import make_allow_list
from holdfast.connectors.urls import parse_url
from holdfast.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("pattern", "permitted", "refused"),
    [
        (
            "api.example.com",
            ["https://api.example.com", "http://API.example.com./x", "https://api.example.com:443"],
            ["https://api.example.com:8443", "https://example.com", "https://evil-api.example.com", "https://api.example.com.evil.net"],
        ),
        ("https://api.example.com", ["https://api.example.com/a"], ["http://api.example.com"]),
        ("api.example.com:8443", ["https://api.example.com:8443", "http://api.example.com:8443"], ["https://api.example.com"]),
        ("api.example.com:*", ["https://api.example.com:1", "http://api.example.com"], ["http://example.com:1"]),
        (
            "*.example.com",
            ["https://a.example.com", "https://a.b.example.com"],
            ["https://example.com", "https://evilexample.com", "https://a.example.com.net", "https://a.example.com:444"],
        ),
        ("*", ["https://anything.test", "http://8.8.8.8", "http://[2606:4700::1]/"], ["http://anything.test:8080"]),
        ("8.8.8.8", ["http://8.8.8.8"], ["http://8.8.8.9", "http://[::ffff:808:808]"]),
        ("[2606:4700:0::1]:81", ["http://[2606:4700::1]:81"], ["http://[2606:4700::1]"]),
    ],
)  # fmt: skip
def test_pattern_permits_what_it_says(pattern: str, permitted: list[str], refused: list[str]) -> None:
    allow = make_allow_list([pattern])

    assert [url for url in permitted if not allow.permits(parse_url(url).origin)] == []
    assert [url for url in refused if allow.permits(parse_url(url).origin)] == []


@pytest.mark.parametrize(
    "entry",
    ["", "ftp://a.example", "https://a.example/path", "a.example:0", "a.example:70000", "a.*.example", "**", "*example.com",
     "user@a.example", "a b", "0x7f.1", "127.1", "https://", "bücher.example", None],
)  # fmt: skip
def test_text_that_is_no_pattern_is_refused(entry: str) -> None:
    with pytest.raises(InvalidConfiguration, match="Expected allow="):
        make_allow_list([entry])


def test_empty_list_and_text_in_place_of_a_list_are_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="it is empty"):
        make_allow_list([])
    with pytest.raises(InvalidConfiguration, match=r"allow=\['api.example.com'\]"):
        make_allow_list("api.example.com")
