"""Functions over lists, as expressions call them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.functions import lists, statistics
from holdfast.feel.running import Run
from holdfast.feel.values import Function


def numbers(*values: int | str) -> list[Decimal]:
    return [Decimal(value) for value in values]


def is_null_with_a_warning(text: str) -> bool:
    warnings: list[feel.FeelWarning] = []
    return feel.evaluate(text, warnings=warnings) is None and bool(warnings)


# --- looking ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list contains([1, 2], 2.0)", True),
        ("list contains([1, null], null)", True),
        ('list contains([1, [2, {a: "b"}]], [2, {a: "b"}])', True),
        ("list contains([1, true], 2)", False),
        ("list contains([[1]], 1)", False),
        ("list contains(null, 1)", None),
        ("count([1, [2, 3]])", Decimal(2)),
        ("count([])", Decimal(0)),
        ("count(5)", Decimal(1)),
        ("index of([1, 2, 3, 2], 2)", numbers(2, 4)),
        ("index of([1, null], null)", numbers(2)),
        ("index of([1], 4)", []),
        ("is empty([])", True),
        ("is empty(list: [1])", False),
    ],
)
def test_items_are_found_by_equality(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min([3, 1, 2])", Decimal(1)),
        ("max(3, 1, 2)", Decimal(3)),
        ("min(list: [3, 1])", Decimal(1)),
        ("max(7)", Decimal(7)),
        ('max("a", "b", "B")', "b"),
        ('min([@"2018-01-01", @"2017-01-01"])', date(2017, 1, 1)),
        ('max(@"P1D", @"PT25H")', feel.DaysTimeDuration(25 * 3600 * 10**9)),
        ("min([])", None),
        ("max([])", None),
    ],
)
def test_least_and_greatest_of_whatever_has_an_order(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    "text", ["min([true, false])", "max([true])", 'min([1, "a"])', "max(1, null)", "min(null)", "max([[1, 2], [3, 4]])"]
)
def test_least_and_greatest_of_what_has_no_order_is_null(text: str) -> None:
    assert is_null_with_a_warning(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all([true, true])", True),
        ("all([])", True),
        ("all([false, null, true])", False),
        ("all(true, null)", None),
        ("all([false, 1])", False),
        ("all(0)", None),
        ("all(null)", None),
        ("any([false, null, true])", True),
        ("any([])", False),
        ("any(false, false)", False),
        ("any(false, null)", None),
        ('any([1, "a"])', None),
    ],
)
def test_all_and_any_know_three_values(text: str, expected: bool | None) -> None:
    assert feel.evaluate(text) is expected


# --- numbers ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum([1, 2, 3])", Decimal(6)),
        ("sum(0.1, 0.2)", Decimal("0.3")),
        ("sum([])", None),
        ("product([2.5, 1, 2.5, 3])", Decimal("18.75")),
        ("product(6)", Decimal(6)),
        ("mean([1, 2, 4, 5])", Decimal(3)),
        ("mean([])", None),
        ("mean([1, 2, 2])", Decimal("1.666666666666666666666666666666667")),
        ("median([8, 2, 5, 3, 4])", Decimal(4)),
        ("median(6, 1, 2, 3)", Decimal("2.5")),
        ("median([])", None),
        ("stddev([2, 4, 7, 5])", Decimal("2.081665999466132735282297706979931")),
        ("mode([3, 6, 1, 9, 6, 1, 3])", numbers(1, 3, 6)),
        ("mode(2.5, 1, 2.50)", numbers("2.5")),
        ("mode([])", []),
    ],
)
def test_numbers_are_summed_up_with_34_digits(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(f'{name}([1, 2, "foo"])' for name in ("sum", "product", "mean", "median", "stddev", "mode")),
        *(f"{name}(null)" for name in ("sum", "product", "mean", "median", "stddev", "mode")),
        *(f"{name}()" for name in ("sum", "product", "mean", "median", "stddev", "mode", "min", "all")),
        "sum([1, true])",
        "stddev([])",
        "stddev(47)",
        "product(9e6144, 10)",
        "sum(9e6144, 9e6144)",
    ],
)
def test_what_is_no_number_makes_the_result_null(text: str) -> None:
    assert is_null_with_a_warning(text)


@given(st.lists(st.decimals(-(10**9), 10**9, places=4), min_size=1))
def test_mean_and_median_lie_between_least_and_greatest(values: list[Decimal]) -> None:
    run = Run()
    for found in (statistics.find_mean(run, *values), statistics.find_median(run, *values)):
        assert found is not None
        assert min(values) <= found <= max(values)


# --- parts and wholes ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sublist([1, 2, 3], 2)", numbers(2, 3)),
        ("sublist([1, 2, 3], 1, 2)", numbers(1, 2)),
        ("sublist([1, 2, 3], -1, 1)", numbers(3)),
        ("sublist([1, 2, 3], -3)", numbers(1, 2, 3)),
        ("sublist([1, 2, 3], 2.9, 1.9)", numbers(2)),
        ("sublist(list: [1, 2, 3], start position: 2, length: 1)", numbers(2)),
        ("append([1], 2, 3)", numbers(1, 2, 3)),
        ("append([1], [2, 3])", [Decimal(1), numbers(2, 3)]),
        ("append([1], [2])", [Decimal(1), numbers(2)]),
        ("append([1], null)", [Decimal(1), None]),
        ("append(1, 2)", numbers(1, 2)),
        ("append(list: [1], items: [2, 3])", numbers(1, 2, 3)),
        ("concatenate([1, 2], [3], [])", numbers(1, 2, 3)),
        ("concatenate([1], 2)", numbers(1, 2)),
        ("concatenate([[1], [2]])", [numbers(1), numbers(2)]),
        ("concatenate(lists: [[1], [2]])", numbers(1, 2)),
        ("concatenate([1, 2], [[3]])", [*numbers(1, 2), numbers(3)]),
        ("insert before([1, 3], 2, 2)", numbers(1, 2, 3)),
        ("insert before([1, 3], -1, 2)", numbers(1, 2, 3)),
        ("insert before([1], 1, null)", [None, Decimal(1)]),
        ("remove([1, 2, 3], 2)", numbers(1, 3)),
        ("remove([1, 2, 3], -3)", numbers(2, 3)),
        ("remove([1], 1)", []),
        ("reverse([1, 2, 3])", numbers(3, 2, 1)),
        ("flatten([[1, 2], [[3]], [], 4])", numbers(1, 2, 3, 4)),
        ("partition([1, 2, 3, 4, 5], 2)", [numbers(1, 2), numbers(3, 4), numbers(5)]),
        ("partition([], 2)", []),
        ("partition([1], 1e30)", [numbers(1)]),
        ("list replace([1, 2, 3], 2, 4)", numbers(1, 4, 3)),
        ("list replace([1, 2, 3], -1.5, 4)", numbers(1, 2, 4)),
        ("list replace([1, 2], 2, null)", [Decimal(1), None]),
        ("list replace([2, 4, 7], function(item, newItem) item < newItem, 5)", numbers(5, 5, 7)),
        ("list replace(list: [1, 2], match: function(item, newItem) item = 2, newItem: 4)", numbers(1, 4)),
    ],
)
def test_lists_are_taken_apart_and_put_together(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(f"sublist([1, 2, 3], {at})" for at in ("0", "4", "-4", "0.5", "9e6144", "null")),
        *(f"sublist([1, 2, 3], 2, {length})" for length in ("0", "3", "-1")),
        *(f"remove([1, 2, 3], {at})" for at in ("0", "4", "-4")),
        *(f"insert before([1, 2, 3], {at}, 5)" for at in ("0", "5", "-4")),
        *(f"list replace([1, 2, 3], {at}, 5)" for at in ("0", "4", "-4", "null", '"2"')),
        "partition([1, 2], 0)",
        "partition([1, 2], -1)",
        "list replace([2, 4], function(item) true, 5)",
        "list replace([2, 4], function(item, newItem) item, 5)",
        "append(null, 1)",
        "concatenate([1], null)",
        "flatten(null)",
        "reverse(null)",
    ],
)
def test_a_position_that_is_not_there_makes_the_result_null(text: str) -> None:
    assert is_null_with_a_warning(text)


def test_lists_that_are_given_stay_as_they_are() -> None:
    items = [Decimal(3), [Decimal(1)], Decimal(2)]
    for text in ("append(xs, 1)", "remove(xs, 1)", "reverse(xs)", "flatten(xs)", "sort(xs, function(x, y) false)"):
        feel.evaluate(text, {"xs": items})
    assert items == [Decimal(3), [Decimal(1)], Decimal(2)]


def test_flattening_goes_as_deep_as_the_list_does() -> None:
    nested: Any = [Decimal(1)]
    for _ in range(20_000):
        nested = [nested]
    assert lists.flatten_list(Run(), nested) == numbers(1)


def test_flattening_what_shares_its_parts_ends_at_the_limit() -> None:
    nested: Any = [Decimal(1)]
    for _ in range(64):
        nested = [nested, nested]
    with pytest.raises(FeelLimitExceeded):
        lists.flatten_list(Run(), nested)


# --- once, more than once ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("distinct values([1, 2, 1.0, 2])", numbers(1, 2)),
        ("distinct values([1, true, 0, false, null, null])", [Decimal(1), True, Decimal(0), False, None]),
        ("distinct values([{a: 1}, {a: 2}, {a: 1.0}])", [{"a": Decimal(1)}, {"a": Decimal(2)}]),
        ('distinct values([@"2020-01-01", @"2020-01-01"])', [date(2020, 1, 1)]),
        ("distinct values([[1], [], [1], []])", [numbers(1), []]),
        ("union([1, 2], [2, 3], [3])", numbers(1, 2, 3)),
        ("union([[1]], [[1], 1])", [numbers(1), Decimal(1)]),
        ("union(lists: [[1, 2], [2, 3]])", numbers(1, 2, 3)),
        ("duplicate values([1, 2, 3, 4, 3, 1, 2])", numbers(1, 2, 3)),
        ("duplicate values([1, null, 2, null])", [None]),
        ("duplicate values([{a: 1}, {a: 1}, {b: 1}])", [{"a": Decimal(1)}]),
        ("duplicate values([1, true])", []),
    ],
)
def test_repetitions_are_found_by_equality_and_keep_their_order(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


def test_many_plain_values_are_made_distinct_within_the_steps() -> None:
    many = [Decimal(number % 1_000) for number in range(100_000)]
    assert len(lists.find_distinct(Run(), many)) == 1_000


# --- order ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sort([3, 1, 5, 4], function(x, y) x > y)", numbers(5, 4, 3, 1)),
        ("sort(list: [3, 1, 2], precedes: function(x, y) x < y)", numbers(1, 2, 3)),
        ('sort(["a", "8", "Aa", "A", "10"], function(x, y) x < y)', ["10", "8", "A", "Aa", "a"]),
        ("sort([], function(x, y) x < y)", []),
        ("sort([1], function(x, y) x < y)", numbers(1)),
    ],
)
def test_sort_orders_as_the_function_says(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize("text", ["sort([1, 2], function(x) true)", "sort([1, 2], function(x, y) 1)", "sort([1, 2], 1)"])
def test_sort_is_null_without_a_function_of_two_that_says_true_or_false(text: str) -> None:
    assert is_null_with_a_warning(text)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_sort_is_stable(pairs: list[tuple[int, int]]) -> None:
    items = [{"key": Decimal(key), "value": Decimal(value)} for key, value in pairs]
    by_key = Function("by key", ("x", "y"), lambda run, given: given[0]["key"] < given[1]["key"])

    assert lists.sort_list(Run(), items, by_key) == sorted(items, key=lambda item: item["key"])


def test_sorting_counts_its_steps() -> None:
    never = Function("never", ("x", "y"), lambda run, given: False)
    with pytest.raises(FeelLimitExceeded):
        lists.sort_list(Run(steps=1_000), numbers(*range(1_000)), never)
