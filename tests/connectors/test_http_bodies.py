"""Bodies as values: what services say about a body cannot make reading it slow, nor raise."""

from __future__ import annotations

from base64 import b64encode
from encodings.aliases import aliases
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.http_bodies import make_value
from holdfast.connectors.http_reading import HttpResponse

CHARSETS = sorted({*aliases, *aliases.values(), "punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape"})


def read_body(content_type: str, body: bytes) -> Any:
    return make_value(HttpResponse(200, (("Content-Type", content_type),), body))["body"]


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_charset_of_python_gives_a_text_or_base64_in_time(charset: str) -> None:
    body = b"abc-" + b"a" * 600_000

    begin = process_time()
    found = read_body(f"text/plain; charset={charset}", body)

    assert isinstance(found, str)
    assert process_time() - begin < 2


@pytest.mark.parametrize("charset", ["punycode", "undefined", "utf-7", "unicode_escape", "hex", "zlib", "", "a\0b", "é"])
def test_body_in_a_charset_that_is_not_known_is_base64(charset: str) -> None:
    assert read_body(f"text/plain; charset={charset}", b"abc") == b64encode(b"abc").decode()


@pytest.mark.parametrize(
    "content_type",
    [
        'text/plain; a="' + ";" * 1_000_000,
        "text/plain" + '; a="b' * 200_000,
        "text/plain" + " ;" * 500_000,
        "text/plain; " + "a" * 1_000_000,
        "text/plain; charset*=punycode''abc-" + "a" * 1_000_000,
    ],
    ids=["open quote", "many quotes", "nothing", "long name", "name by another charset"],
)
def test_long_content_type_is_read_in_time(content_type: str) -> None:
    begin = process_time()
    found = read_body(content_type, b"abc")

    assert found == "abc"
    assert process_time() - begin < 2


@given(st.text(max_size=60), st.binary(min_size=1, max_size=20))
def test_reading_a_body_never_raises_for_any_content_type(parameter: str, body: bytes) -> None:
    assert isinstance(read_body(f"text/plain; {parameter}", body), str)
    assert isinstance(read_body(f"text/plain; charset={parameter}", body), str)
