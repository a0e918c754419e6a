"""Requests: what inputs become on the wire, and what never gets there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.http_failures import CallFailed
from holdfast.connectors.http_requests import HttpInputs, make_request

URL = "https://api.example.com/orders"


def write(*, secrets: dict[str, str] | None = None, method: str = "GET", url: str = URL, **inputs: Any) -> str:
    return make_request(HttpInputs(url, method, **inputs), secrets or {}).encode_head().decode("latin-1")


def refuse(**inputs: Any) -> str:
    with pytest.raises(CallFailed) as caught:
        write(**inputs)
    assert (caught.value.type, caught.value.non_retryable) == ("HttpRefused", True)
    return str(caught.value)


def test_request_says_whom_it_is_for_and_asks_for_no_compression() -> None:
    head = write()

    assert head.startswith("GET /orders HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n")
    assert "Accept-Encoding: identity\r\n" in head
    assert head.endswith("\r\n\r\n")
    assert "Content-Length" not in head


def test_body_is_json_unless_it_is_a_text_or_a_form() -> None:
    def send(body: Any, **headers: str) -> tuple[str, bytes | None]:
        request = make_request(HttpInputs(URL, "post", headers=headers, body=body), {})
        return dict(request.headers)["Content-Type"], request.body

    assert send({"a": [1, "ä"]}) == ("application/json", '{"a":[1,"ä"]}'.encode())
    assert send('{"a": 1}') == ("application/json", b'{"a": 1}')
    assert send("<a/>", **{"Content-Type": "text/xml"}) == ("text/xml", b"<a/>")
    assert send({"a": "b c", "d": None}, **{"Content-Type": "application/x-www-form-urlencoded"})[1] == b"a=b+c"
    assert send(False)[1] == b"false"


def test_length_is_said_where_servers_expect_it() -> None:
    assert "Content-Length: 7\r\n" in write(method="POST", body={"a": 1})
    assert "Content-Length: 0\r\n" in write(method="DELETE")


def test_query_parameters_are_escaped_and_appended() -> None:
    assert write(query_parameters={"q": "a b&c=d#e", "n": 5, "none": None, "many": [1, 2]}).startswith(
        "GET /orders?q=a%20b%26c%3Dd%23e&n=5&many=1&many=2 "
    )
    assert write(url=f"{URL}?x=1#part", query_parameters={"y": True}).startswith("GET /orders?x=1&y=true ")


def test_each_kind_of_authentication_is_written() -> None:
    assert "Authorization: Basic YW5uOnPDpA==\r\n" in write(
        authentication={"type": "basic", "username": "ann", "password": "sä"}
    )
    assert "Authorization: Bearer t1\r\n" in write(authentication={"type": "bearer", "token": "t1"})
    key = {"type": "apiKey", "name": "X-Key", "value": "k 1"}
    assert "X-Key: k 1\r\n" in write(authentication={**key, "apiKeyLocation": "headers"})
    assert write(authentication={**key, "apiKeyLocation": "query"}).startswith("GET /orders?X-Key=k%201 ")
    assert "Authorization" not in write(authentication={"type": "noAuth"})


@pytest.mark.parametrize(
    "authentication",
    [
        "secret",
        {"type": "oauth-client-credentials-flow"},
        {"type": "bearer"},
        {"type": "bearer", "token": ""},
        {"type": "bearer", "token": "a\r\nX: y"},
        {"type": "basic", "username": 5},
        {"type": "basic", "username": "a:b", "password": "c"},
        {"type": "apiKey", "name": "Host", "value": "x"},
        {"type": "apiKey", "name": "a b", "value": "x"},
    ],
)
def test_authentication_that_cannot_be_written_is_refused(authentication: Any) -> None:
    refuse(authentication=authentication)


def test_secrets_are_put_into_headers_and_authentication_alone() -> None:
    secrets = {"TOKEN": "s3cret"}
    mark = "{{secrets.TOKEN}}"

    head = write(secrets=secrets, headers={"X-Key": "a {{ secrets.TOKEN }} b"}, query_parameters={"q": mark})
    assert "X-Key: a s3cret b\r\n" in head
    assert head.count("s3cret") == 1
    assert "Bearer s3cret" in write(secrets=secrets, authentication={"type": "bearer", "token": mark})
    request = make_request(HttpInputs(URL, "POST", body={"a": mark}), secrets)
    assert b"s3cret" not in (request.body or b"")


def test_unknown_secret_is_named_and_refused() -> None:
    assert "'OTHER'" in refuse(headers={"X": "{{secrets.OTHER}}"}, secrets={"TOKEN": "s3cret"})


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nY: b"},
        {"X": "a\nb"},
        {"X": "a\x00"},
        {"X": "a\x7f"},
        {"X": "snow ☃"},
        {"X\r\nY": "b"},
        {"X:": "b"},
        {"": "b"},
        {"ä": "b"},
        {"Host": "other.example"},
        {"content-length": "5"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "upgrade"},
        {"X": {"a": 1}},
        {"X": "a" * 20_000},
        ["X"],
        5,
    ],
)
def test_header_that_could_change_the_request_is_refused(headers: Any) -> None:
    refuse(headers=headers)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3), st.text(max_size=20), st.text(max_size=10))
def test_whatever_the_inputs_are_the_request_has_one_head(headers: dict[str, str], path: str, value: str) -> None:
    inputs = HttpInputs(f"https://api.example.com/{path}", headers=headers, query_parameters={"q": value})
    try:
        head = make_request(inputs, {}).encode_head()
    except CallFailed:
        return

    lines = head.split(b"\r\n")
    assert lines[-2:] == [b"", b""]
    assert all(lines[:-2])
    assert b"\n" not in head.replace(b"\r\n", b"")
    assert re.fullmatch(rb"GET /[!-~]* HTTP/1\.1", lines[0])
    assert [line for line in lines if line.lower().startswith(b"host:")] == [b"Host: api.example.com"]


@pytest.mark.parametrize("method", ["", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:", None, 5])
def test_unknown_method_is_refused(method: Any) -> None:
    assert "method" in refuse(method=method)


def test_refusal_of_a_url_shows_neither_its_query_nor_its_password() -> None:
    message = refuse(url="https://ann:s3cret@api.example.com/x?key=k1")

    assert "s3cret" not in message
    assert "k1" not in message


@pytest.mark.parametrize("url", [None, 5, "", "/orders"])
def test_url_that_is_none_is_refused(url: Any) -> None:
    assert "url" in refuse(url=url)
