"""Texts for messages: what they count, and what they show of values that refuse to be shown."""

from __future__ import annotations

import pytest

from holdfast.core.safe_texts import count_noun


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 failures"), (1, "1 failure"), (2, "2 failures"), (1000, "1000 failures")]
)
def test_one_thing_is_counted_in_the_singular(number: int, expected: str) -> None:
    assert count_noun(number, "failure") == expected
