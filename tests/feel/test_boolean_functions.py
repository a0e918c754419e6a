"""Functions over booleans and nulls, as expressions call them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from holdfast import feel
from holdfast.errors import FeelError


@pytest.mark.parametrize(
    ("text", "expected"), [("not(true)", False), ("not(false)", True), ("not(null)", None), ("not(negand: true)", False)]
)
def test_not_turns_booleans_round_and_leaves_null(text: str, expected: bool | None) -> None:
    assert feel.evaluate(text) is expected


@pytest.mark.parametrize("text", ["not(0)", 'not("true")', "not()", "not([])"])
def test_not_of_anything_else_is_null_with_a_warning(text: str) -> None:
    warnings: list[feel.FeelWarning] = []
    assert feel.evaluate(text, warnings=warnings) is None
    assert warnings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('get or else("this", "default")', "this"),
        ('get or else(null, "default")', "default"),
        ("get or else(null, null)", None),
        ("get or else(false, true)", False),
        ('get or else(missing.entry, "default")', "default"),
        ('get or else(default: "default", value: null)', "default"),
    ],
)
def test_get_or_else_gives_the_default_for_null_alone(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fromAi(toolCall.id)", Decimal(7)),
        ('fromAi(toolCall.id, "the id", "number")', Decimal(7)),
        ('fromAi(toolCall.id, null, "number", {minimum: 1}, {required: false})', Decimal(7)),
        ("fromAi(options: {required: false}, value: toolCall.id)", Decimal(7)),
        ("fromAi(toolCall.name)", None),
        ("fromAi(toolCall.id, 5)", None),
        ("fromAi()", None),
    ],
)
def test_from_ai_gives_the_value_whatever_is_said_of_it(text: str, expected: Any) -> None:
    assert feel.evaluate(text, {"toolCall": {"id": 7}}) == expected


def test_is_defined_can_be_handed_about() -> None:
    assert feel.evaluate("for f in [is defined] return [f(1), f(null)]") == [[True, False]]


def test_assert_gives_the_value_if_the_condition_is_true() -> None:
    assert feel.evaluate("assert(x, x >= 0)", {"x": 4}) == Decimal(4)


@pytest.mark.parametrize("text", ["assert(x, x > 0)", "assert(x, null)", "assert(x, 1)"])
def test_assert_ends_the_evaluation_if_the_condition_is_anything_else(text: str) -> None:
    with pytest.raises(FeelError, match=r"assert\(\)"):
        feel.evaluate(text, {"x": -1})


def test_assert_tells_its_cause() -> None:
    with pytest.raises(FeelError, match="x has to be positive"):
        feel.evaluate('assert(x, x > 0, "x has to be positive")', {"x": -1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("is(1, 1.0)", True),
        ("is(1, true)", False),
        ("is(null, null)", True),
        ('is(@"2012-12-25", @"2012-12-25T00:00:00")', False),
        ('is(@"23:00:50Z", @"23:00:50+00:00")', True),
        ('is(@"2002-04-02T12:00:00-01:00", @"2002-04-02T17:00:00+04:00")', False),
        ('is(@"P1D", @"PT24H")', True),
        ('is(@"P0Y", @"P0D")', False),
        ("is([1, {a: 2}], [1, {a: 2}])", True),
        ("is(value1: 1)", False),
        ("is(value2: 1)", False),
    ],
)
def test_is_tells_whether_both_are_the_same_element(text: str, expected: bool) -> None:
    assert feel.evaluate(text) is expected
