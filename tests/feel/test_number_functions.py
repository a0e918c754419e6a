"""The functions of numbers, exact to 34 digits."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.feel.functions.numbers import NUMERIC
from holdfast.feel.running import Run
from holdfast.feel.values import NUMBERS, Value

SMALL = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=10)
ANY = st.builds(
    lambda digits, exponent: NUMBERS.plus(Decimal(digits).scaleb(exponent, Context(prec=60, Emax=9999, Emin=-9999))),
    st.integers(-(10**34) + 1, 10**34 - 1),
    st.integers(-6176, 6100),
).filter(Decimal.is_finite)


def evaluate(expression: str, /, **variables: Value) -> Value:
    return feel.evaluate(expression, variables)


def call(name: str, *arguments: Value) -> Value:
    return NUMERIC[name][0].call(Run(), *arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decimal(1/3, 2)", "0.33"),
        ("decimal(1.5, 0)", "2"),
        ("decimal(2.5, 0)", "2"),
        ("decimal(0.515, 2)", "0.52"),
        ("decimal(1/3, 2.5)", "0.33"),
        ("decimal(1250, -2)", "1200"),
        ('decimal(2.5, 0, "half_up")', "3"),
        ("floor(1.5)", "1"),
        ("floor(-1.56, 1)", "-1.6"),
        ("ceiling(-1.5)", "-1"),
        ("ceiling(1.56, 1)", "1.6"),
        ("round up(1.121, 2)", "1.13"),
        ("round up(-5.5, 0)", "-6"),
        ("round up(5.1)", "6"),
        ("round down(-1.126, 2)", "-1.12"),
        ("round half up(-5.5, 0)", "-6"),
        ("round half up(1.121, 2)", "1.12"),
        ("round half down(5.5, 0)", "5"),
        ("round half down(-1.126, 2)", "-1.13"),
    ],
)
def test_numbers_are_rounded_by_their_modes(text: str, expected: str) -> None:
    assert evaluate(text) == Decimal(expected)


def test_rounding_keeps_the_zeros_that_were_asked_for() -> None:
    assert str(evaluate("decimal(2.5, 2)")) == "2.50"


def test_zero_has_no_sign() -> None:
    assert str(evaluate("ceiling(-0.3)")) == "0"
    assert str(evaluate("round down(-0.3, 0)")) == "0"


@pytest.mark.parametrize(
    "name", ["decimal", "floor", "ceiling", "round up", "round down", "round half up", "round half down"]
)
def test_a_scale_is_within_what_a_number_can_have(name: str) -> None:
    assert evaluate(f"{name}(5.5, 6176)") == Decimal("5.5")
    assert evaluate(f"{name}(5.5, -6111)") in {0, Decimal("1E+6111")}
    assert evaluate(f"{name}(5.5, 6177)") is None
    assert evaluate(f"{name}(5.5, -6112)") is None
    assert evaluate(f"{name}(5.5, 10**300)") is None


def test_an_unknown_mode_is_null() -> None:
    assert evaluate('decimal(2.5, 0, "sideways")') is None


def test_a_mode_may_say_that_there_is_nothing_to_round() -> None:
    assert evaluate('decimal(2.0, 0, "UNNECESSARY")') == Decimal(2)
    assert evaluate('decimal(2.50, 1, "unnecessary")') == Decimal("2.5")
    assert evaluate('decimal(2.5, 0, "UNNECESSARY")') is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("modulo(10, 4)", "2"),
        ("modulo(-12, 5)", "3"),
        ("modulo(12, -5)", "-3"),
        ("modulo(-12, -5)", "-2"),
        ("modulo(10.1, 4.5)", "1.1"),
        ("modulo(-10.1, 4.5)", "3.4"),
        ("modulo(10**33, 7)", str(10**33 % 7)),
        ("modulo(10**300, 7)", str(10**300 % 7)),
        ("modulo(0 - 10**300, 7)", str(-(10**300) % 7)),
    ],
)
def test_modulo_has_the_sign_of_the_divisor_and_all_digits(text: str, expected: str) -> None:
    assert evaluate(text) == Decimal(expected)


def test_what_has_no_value_is_null() -> None:
    for text in ("modulo(1, 0)", "sqrt(-1)", "log(0)", "log(-1)", "exp(100000)"):
        assert evaluate(text) is None


def test_functions_are_exact_to_34_digits() -> None:
    assert str(evaluate("sqrt(2)")) == "1.414213562373095048801688724209698"
    assert str(evaluate("exp(1)")) == "2.718281828459045235360287471352662"
    assert str(evaluate("log(10)")) == "2.302585092994045684017991454684364"
    assert str(evaluate("abs(-1234567890123456789012345678901234)")) == "1234567890123456789012345678901234"


def test_only_whole_numbers_are_odd_or_even() -> None:
    assert [evaluate(f"odd({number})") for number in ("1", "-1", "2", "1.5", "10**40")] == [True, True, False, False, False]
    assert [evaluate(f"even({number})") for number in ("1", "-2", "0", "2.5", "10**40")] == [False, True, True, False, True]


def test_a_random_number_is_less_than_one() -> None:
    assert feel.evaluate("random number()", random=lambda _: 0) == 0
    assert feel.evaluate("random number()", random=lambda bits: (1 << bits) - 1) < 1
    assert feel.evaluate("random number()", random=lambda bits: 1 << (bits - 1)) == Decimal("0.5")
    assert evaluate("random number()") is None


@given(SMALL, SMALL.filter(bool))
def test_modulo_is_what_floor_leaves(dividend: Decimal, divisor: Decimal) -> None:
    exact, by = Fraction(dividend), Fraction(divisor)

    assert Fraction(call("modulo", dividend, divisor)) == exact - by * floor(exact / by)


@given(ANY, ANY.filter(bool))
def test_modulo_of_anything_is_no_larger_than_the_divisor(dividend: Decimal, divisor: Decimal) -> None:
    result = call("modulo", dividend, divisor)

    assert result.is_finite()
    assert abs(Fraction(result)) <= abs(Fraction(divisor))


@given(ANY)
def test_a_number_is_between_its_floor_and_its_ceiling(number: Decimal) -> None:
    below, above = call("floor", number), call("ceiling", number)

    assert below <= number <= above
    assert below == below.to_integral_value()
    assert Fraction(above) - Fraction(below) in {0, 1}


@given(ANY, st.integers(-6111, 6176))
def test_rounding_never_fails_within_the_range_of_scales(number: Decimal, scale: int) -> None:
    for name in ("decimal", "round up", "round down", "round half up", "round half down"):
        assert not call(name, number, Decimal(scale)).is_nan()
