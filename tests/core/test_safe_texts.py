"""Texts for messages: what they count, and what they show of values that refuse to be shown."""

from __future__ import annotations

import pytest

from holdfast.core.safe_texts import count_noun, is_plain_text, make_plain_text


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 failures"), (1, "1 failure"), (2, "2 failures"), (1000, "1000 failures")]
)
def test_one_thing_is_counted_in_the_singular(number: int, expected: str) -> None:
    assert count_noun(number, "failure") == expected


@pytest.mark.parametrize(("text", "plain"), [("a\0b", "a\ufffdb"), ("a\ud800b", "a\ufffdb"), ("aü😀\n", "aü😀\n"), ("", "")])
def test_texts_are_made_such_that_every_database_holds_them(text: str, plain: str) -> None:
    assert make_plain_text(text) == plain
    assert is_plain_text(text) == (text == plain)
    assert is_plain_text(plain)
