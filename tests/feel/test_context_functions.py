"""Functions over contexts, as expressions call them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from holdfast import feel
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.functions.contexts import put_nested_value
from holdfast.feel.running import Run

ONE, TWO = Decimal(1), Decimal(2)


def is_null_with_a_warning(text: str) -> bool:
    warnings: list[feel.FeelWarning] = []
    return feel.evaluate(text, warnings=warnings) is None and bool(warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('get value({a: 1}, "a")', ONE),
        ('get value(m: {a: 1}, key: "a")', ONE),
        ('get value(context: {a: 1}, key: "a")', ONE),
        ('get value({a: null}, "a")', None),
        ('get value({x: 1, y: {z: 2}}, ["y", "z"])', TWO),
        ('get value({x: {y: {z: 2}}}, ["x", "y"])', {"z": TWO}),
        ('get value(context: {y: {z: 2}}, keys: ["y", "z"])', TWO),
        ("get value({a: 1}, [])", None),
    ],
)
def test_get_value_takes_a_key_or_a_path_of_keys(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'get value({a: 1}, "b")',
        'get value({a: {b: 3}}, ["b"])',
        'get value({a: {b: 3}}, ["a", "b", "c"])',
        "get value({a: 1}, 123)",
        "get value({a: 1}, null)",
        'get value({a: 1}, ["a", null])',
        'get value(null, "a")',
        'get value("a", "a")',
        'get value(k: "a", m: {a: 1})',
    ],
)
def test_get_value_is_null_where_there_is_none(text: str) -> None:
    assert is_null_with_a_warning(text)


def test_entries_are_given_in_their_order_and_make_the_context_again() -> None:
    entries = [{"key": "b", "value": ONE}, {"key": "a", "value": None}]
    assert feel.evaluate("get entries({b: 1, a: null})") == entries
    assert feel.evaluate("context(get entries({b: 1, a: null}))") == {"b": ONE, "a": None}
    assert feel.evaluate("get entries({})") == []
    assert feel.evaluate("context([])") == {}


def test_a_context_can_be_made_of_one_entry_and_ignores_what_else_is_in_it() -> None:
    assert feel.evaluate('context({key: "a", value: 1, other: 2})') == {"a": ONE}


@pytest.mark.parametrize(
    "text",
    [
        'context([{key: "a", value: 1}, {key: "a", value: 2}])',
        'context({key: "a"})',
        "context({value: 1})",
        "context({key: null, value: 1})",
        "context(1)",
        "context(null)",
        "get entries([1, 2])",
    ],
)
def test_entries_that_do_not_fit_make_no_context(text: str) -> None:
    assert is_null_with_a_warning(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('context put({}, "a", 1)', {"a": ONE}),
        ('context put({a: 1}, "a", null)', {"a": None}),
        ('context put({x: 1, y: {a: 0}}, ["y", "a"], 2)', {"x": ONE, "y": {"a": TWO}}),
        ('context put({x: 1, y: {a: 1}}, ["y", "b"], 2)', {"x": ONE, "y": {"a": ONE, "b": TWO}}),
        ('context put({x: 1}, ["y", "z"], 2)', {"x": ONE, "y": {"z": TWO}}),
        ('context put({x: null}, ["x", "y"], 2)', {"x": {"y": TWO}}),
        ('context put(context: {}, keys: ["a"], value: 1)', {"a": ONE}),
        ('put({}, "a", 1)', {"a": ONE}),
        ('put(context: {}, keys: ["a", "b"], value: 1)', {"a": {"b": ONE}}),
    ],
)
def test_context_put_sets_an_entry_also_deep_inside(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


def test_a_replaced_entry_keeps_its_place() -> None:
    assert list(feel.evaluate('context put({a: 1, b: 2, c: 3}, "b", 4)')) == ["a", "b", "c"]
    assert list(feel.evaluate('context put({a: {d: 1}, b: 2}, ["a", "d"], 4)')) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "context put({}, [], 2)",
        "context put({}, [null], 2)",
        'context put({y: {a: 0}}, ["y", null], 2)',
        'context put({y: {a: 0}}, ["y", "a", "b"], 2)',
        "context put({}, 1, 1)",
        'context put(null, "a", 1)',
        'context put([], "a", 1)',
        'context put({}, "a")',
    ],
)
def test_context_put_is_null_for_keys_that_lead_nowhere(text: str) -> None:
    assert is_null_with_a_warning(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("context merge([{a: 1}, {b: 2}])", {"a": ONE, "b": TWO}),
        ("context merge([{a: 1}, {a: 2}])", {"a": TWO}),
        ("context merge([{a: {x: 1}}, {a: {y: 2}}])", {"a": {"y": TWO}}),
        ("context merge({a: 1})", {"a": ONE}),
        ("context merge({a: 1}, {b: 2}, {a: 2})", {"a": TWO, "b": TWO}),
        ("context merge(contexts: [{a: 1}, {a: 2}])", {"a": TWO}),
        ("put all({a: 1}, {b: 2})", {"a": ONE, "b": TWO}),
        ("put all([{a: 1}, {b: 2}])", {"a": ONE, "b": TWO}),
        ("context merge({a: 1}, 2)", None),
        ("context merge()", None),
        ("context merge([])", {}),
        ("context merge([{a: 1}, 2])", None),
        ("context merge(null)", None),
    ],
)
def test_context_merge_lets_later_entries_win(text: str, expected: Any) -> None:
    assert feel.evaluate(text) == expected


def test_contexts_that_are_given_stay_as_they_are() -> None:
    given = {"a": {"b": ONE}}
    assert feel.evaluate('context put(given, ["a", "b"], 2)', {"given": given}) == {"a": {"b": TWO}}
    assert feel.evaluate("context merge([given, {a: 2}])", {"given": given}) == {"a": TWO}
    assert given == {"a": {"b": ONE}}


def test_long_paths_count_as_steps() -> None:
    with pytest.raises(FeelLimitExceeded):
        put_nested_value(Run(steps=100), {}, ["a"] * 1_000, ONE)
