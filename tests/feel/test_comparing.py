"""Equality, order, membership and identity of values."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import FeelLimitExceeded
from holdfast.feel.comparing import compare, equal, is_identical, is_in, is_in_range
from holdfast.feel.running import Run
from holdfast.feel.temporal.values import DaysTimeDuration, YearsMonthsDuration
from holdfast.feel.values import Function, Range

ONE, TWO, THREE = Decimal(1), Decimal(2), Decimal(3)


def nest(depth: int, inmost: Any) -> Any:
    value = inmost
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def double(times: int) -> Any:
    """Few objects, but 2**times items."""
    value: Any = ONE
    for _ in range(times):
        value = [value, value]
    return value


# --- equality ---


@pytest.mark.parametrize(
    "value",
    [None, True, False, ONE, "a", [], [None], {}, {"a": [ONE]}, Range(ONE, TWO), date(2020, 1, 1), DaysTimeDuration(5)],
)
def test_a_value_equals_itself_and_no_other_than_null_equals_null(value: Any) -> None:
    assert equal(value, value) is True
    assert equal(value, None) is (value is None)
    assert equal(None, value) is (value is None)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ONE, "1"),
        (True, ONE),
        (False, Decimal(0)),
        ([], Decimal(0)),
        ({}, []),
        (date(2020, 1, 1), ONE),
        (ONE, date(2020, 1, 1)),
        (DaysTimeDuration(0), Decimal(0)),
        (DaysTimeDuration(0), YearsMonthsDuration(0)),
        (Range(ONE, TWO), [ONE, TWO]),
    ],
)
def test_equality_of_different_kinds_has_no_answer(left: Any, right: Any) -> None:
    assert equal(left, right) is None
    assert equal(right, left) is None


def test_numbers_are_equal_by_value_and_not_by_their_digits() -> None:
    assert equal(Decimal(0), Decimal("-0.00")) is True
    assert equal(Decimal(12300), Decimal("1.23E+4")) is True


def test_lists_are_equal_item_by_item() -> None:
    assert equal([ONE, [TWO]], [Decimal("1.0"), [TWO]]) is True
    assert equal([ONE, TWO], [TWO, ONE]) is False
    assert equal([ONE], [ONE, ONE]) is False


def test_contexts_are_equal_whatever_the_order_of_their_entries() -> None:
    assert equal({"a": ONE, "b": {"c": TWO}}, {"b": {"c": TWO}, "a": ONE}) is True
    assert equal({"a": ONE}, {"a": ONE, "b": None}) is False
    assert equal({"a": ONE}, {"b": ONE}) is False


def test_items_of_different_kinds_make_lists_and_contexts_unequal() -> None:
    assert equal([ONE], ["1"]) is False
    assert equal({"a": True}, {"a": ONE}) is False
    assert equal([None], [False]) is False


def test_ranges_are_equal_by_ends_and_inclusion() -> None:
    assert equal(Range(ONE, TWO), Range(Decimal("1.0"), TWO)) is True
    assert equal(Range(ONE, TWO), Range(ONE, TWO, start_included=False)) is False
    assert equal(Range(ONE, TWO), Range(ONE, THREE)) is False
    assert equal(Range(None, TWO, has_start=False), Range(None, TWO)) is False
    assert equal(Range(None, TWO, has_start=False), Range(None, TWO, start_included=False, has_start=False)) is True


def test_a_function_equals_only_itself() -> None:
    first, second = (Function("f", (), lambda run, arguments: None) for _ in range(2))
    assert equal(first, first) is True
    assert equal(first, second) is False
    assert equal([first], [first]) is True
    assert equal(first, ONE) is None


def test_deep_nesting_is_compared_without_recursion() -> None:
    assert equal(nest(20_000, ONE), nest(20_000, ONE)) is True
    assert equal(nest(20_000, ONE), nest(20_000, TWO)) is False
    assert is_identical(nest(20_000, ONE), nest(20_000, ONE)) is True


def test_comparing_what_shares_its_parts_ends_at_the_limit() -> None:
    with pytest.raises(FeelLimitExceeded):
        equal(double(64), double(64))


def test_pairs_inside_of_values_count_as_steps() -> None:
    run = Run(steps=1_000)
    assert equal([ONE] * 500, [ONE] * 500, run) is True
    assert run.steps < 500
    with pytest.raises(FeelLimitExceeded):
        equal([ONE] * 500, [ONE] * 500, run)


# --- order ---


@pytest.mark.parametrize(
    ("less", "greater"),
    [
        (ONE, TWO),
        (Decimal("-0.1"), Decimal(0)),
        ("a", "b"),
        ("Z", "a"),
        ("", "a"),
        ("\uffff", "\U00010000"),
        (date(2019, 12, 31), date(2020, 1, 1)),
        (DaysTimeDuration(1), DaysTimeDuration(2)),
        (YearsMonthsDuration(11), YearsMonthsDuration(12)),
    ],
)
def test_values_of_one_kind_have_an_order(less: Any, greater: Any) -> None:
    assert compare(less, greater) == -1
    assert compare(greater, less) == 1
    assert compare(less, less) == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (None, None),
        (None, ONE),
        (True, False),
        ([ONE], [TWO]),
        ({}, {}),
        (ONE, "1"),
        (ONE, True),
        (date(2020, 1, 1), ONE),
        (DaysTimeDuration(1), YearsMonthsDuration(1)),
        (Range(ONE, TWO), Range(ONE, TWO)),
    ],
)
def test_other_values_have_no_order(left: Any, right: Any) -> None:
    assert compare(left, right) is None
    assert compare(right, left) is None


# --- in ---


@pytest.mark.parametrize(
    ("start_included", "end_included", "inside"),
    [(True, True, [1, 2, 3]), (True, False, [1, 2]), (False, True, [2, 3]), (False, False, [2])],
)
def test_ends_are_in_a_range_only_if_included(start_included: bool, end_included: bool, inside: list[int]) -> None:
    test = Range(ONE, THREE, start_included, end_included)
    assert [number for number in range(5) if is_in(Decimal(number), test)] == inside


def test_a_range_without_a_start_or_an_end_goes_on_forever() -> None:
    below, above = Range(None, TWO, has_start=False), Range(TWO, None, has_end=False)
    assert is_in(Decimal(-1000), below) is True
    assert is_in(THREE, below) is False
    assert is_in(Decimal(1000), above) is True
    assert is_in(ONE, above) is False


def test_a_null_end_leaves_open_what_is_inside_but_not_what_is_outside() -> None:
    assert is_in(TWO, Range(None, THREE)) is None
    assert is_in(TWO, Range(ONE, None)) is None
    assert is_in(Decimal(0), Range(ONE, None)) is False
    assert is_in(Decimal(4), Range(None, THREE)) is False


def test_null_and_values_of_another_kind_are_not_known_to_be_in_a_range() -> None:
    assert is_in(None, Range(ONE, THREE)) is None
    assert is_in(None, Range(None, THREE, has_start=False)) is None
    assert is_in("2", Range(ONE, THREE)) is None


def test_a_range_without_both_ends_is_one_value_or_all_but_one() -> None:
    same = Range(TWO, TWO, has_start=False, has_end=False)
    other = Range(TWO, TWO, start_included=False, end_included=False, has_start=False, has_end=False)
    assert [is_in_range(number, same) for number in (ONE, TWO)] == [False, True]
    assert [is_in_range(number, other) for number in (ONE, TWO)] == [True, False]
    assert is_in_range("2", other) is None
    assert equal(same, other) is False
    assert equal(same, Range(TWO, TWO)) is False


def test_a_value_is_in_a_list_that_has_it_or_a_range_with_it() -> None:
    assert is_in(TWO, [ONE, TWO]) is True
    assert is_in(TWO, [ONE, Range(TWO, THREE)]) is True
    assert is_in(None, [ONE, None]) is True
    assert is_in(TWO, [ONE, Range(THREE, THREE)]) is False
    assert is_in(TWO, []) is False


def test_items_of_another_kind_are_just_not_it_and_ranges_without_an_answer_leave_it_open() -> None:
    assert is_in(True, [False, TWO, "a"]) is False
    assert is_in(TWO, [ONE, Range(ONE, None)]) is None
    assert is_in(TWO, [Range(ONE, None), TWO]) is True


def test_a_list_is_in_a_list_of_lists_and_in_one_equal_to_it() -> None:
    assert is_in([ONE, TWO], [[ONE], [ONE, TWO]]) is True
    assert is_in([ONE, TWO], [ONE, TWO]) is True
    assert is_in([ONE, TWO], [[ONE], [TWO]]) is False


def test_a_range_is_in_a_list_that_has_it() -> None:
    assert is_in(Range(ONE, TWO), [Range(ONE, TWO)]) is True
    assert is_in(Range(ONE, TWO), [Range(ONE, THREE)]) is False


def test_what_is_neither_range_nor_list_has_to_be_equal() -> None:
    assert is_in({"a": ONE}, {"a": ONE}) is True
    assert is_in(ONE, TWO) is False
    assert is_in(ONE, "1") is None


# --- identity ---


def test_identity_of_different_kinds_is_false() -> None:
    assert is_identical(ONE, "1") is False
    assert is_identical(True, ONE) is False
    assert is_identical(None, False) is False
    assert is_identical(DaysTimeDuration(0), YearsMonthsDuration(0)) is False
    assert is_identical(date(2020, 1, 1), "2020-01-01") is False


def test_identity_of_equal_values_is_true_also_inside_of_others() -> None:
    assert is_identical(None, None) is True
    assert is_identical(Decimal("1.0"), ONE) is True
    assert is_identical([{"a": date(2020, 1, 1)}], [{"a": date(2020, 1, 1)}]) is True
    assert is_identical([ONE], [TWO]) is False
    assert is_identical(Range(ONE, TWO), Range(ONE, TWO)) is True
