"""Conversions: string, number, from json and to json."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.functions.conversions import CONVERSIONS
from holdfast.feel.running import Run
from holdfast.feel.values import Range, Value


def evaluate(expression: str, /, **variables: Value) -> Value:
    return feel.evaluate(expression, variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("string(1.1)", "1.1"),
        ("string(-5)", "-5"),
        ("string(100000000000000000000)", "100000000000000000000"),
        ("string(10**20)", "100000000000000000000"),
        ("string(10**-20)", "0.00000000000000000001"),
        ("string(decimal(2.5, 2))", "2.50"),
        ("string(-1 * 0)", "0"),
        ("string(true)", "true"),
        ('string("a \\"b\\"")', 'a "b"'),
        ("string([])", "[]"),
        ("string({})", "{}"),
        ('string([1, "foo", true, null, [2]])', '[1, "foo", true, null, [2]]'),
        ('string({a: "foo", b: {c: [1, 2]}})', '{a: "foo", b: {c: [1, 2]}}'),
        ('string({foo bar: 1, "{": 2, "a\\"b": 3, "": 4})', '{foo bar: 1, "{": 2, "a\\"b": 3, "": 4}'),
        ('string(["a\\"b", "c\\\\d"])', '["a\\"b", "c\\\\d"]'),
        ("string([1..5])", "[1..5]"),
        ("string((1..5])", "(1..5]"),
        ('string(["a".."z"))', '["a".."z")'),
        ('string(date("2012-12-25"))', "2012-12-25"),
        ('string(time("10:30:00+02:00"))', "10:30:00+02:00"),
        ('string(@"2018-12-08T10:30:11@Australia/Melbourne")', "2018-12-08T10:30:11@Australia/Melbourne"),
        ('string(duration("P1DT2H"))', "P1DT2H"),
        ('string(duration("P1Y2M"))', "P1Y2M"),
        ('string([date("2012-12-25"), duration("P1D")])', "[2012-12-25, P1D]"),
        ("string(function(a) a)", "<function>"),
    ],
)
def test_every_value_has_a_text(text: str, expected: str) -> None:
    assert evaluate(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Range(None, Decimal(5), has_start=False), "<= 5"),
        (Range(None, Decimal(5), end_included=False, has_start=False), "< 5"),
        (Range(Decimal(5), None, has_end=False), ">= 5"),
        (Range(Decimal(5), None, start_included=False, has_end=False), "> 5"),
        (Range(None, Decimal(5)), "[null..5]"),
    ],
)
def test_a_range_with_one_end_is_written_as_a_comparison(value: Range, expected: str) -> None:
    assert evaluate("string(value)", value=value) == expected


def test_the_text_of_null_is_null() -> None:
    assert evaluate("string(null)") is None
    assert evaluate("string(from: null)") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('number("1500.5")', "1500.5"),
        ('number("-1.5e3")', "-1500"),
        ('number(".5")', "0.5"),
        ('number("1,500", ",")', "1500"),
        ('number("1 500.5", " ", ".")', "1500.5"),
        ('number("1.000.000,01", ".", ",")', "1000000.01"),
        ('number("1,000,000", ",", null)', "1000000"),
        ('number("1000000.01", null, ".")', "1000000.01"),
        ('number(from: "1.000.000,01", decimal separator: ",", grouping separator: ".")', "1000000.01"),
        ('number(from: "1,5", decimal separator: ",")', "1.5"),
        ('number("12345678901234567890123456789012345678")', "12345678901234567890123456789012350000"),
    ],
)
def test_a_number_is_read_with_its_separators(text: str, expected: str) -> None:
    assert evaluate(text) == Decimal(expected)


@pytest.mark.parametrize(
    "text",
    [
        'number("foo")',
        'number("")',
        'number(" 1")',
        'number("1_000")',
        'number("Infinity")',
        'number("NaN")',
        'number("1e99999")',
        'number("\u0661")',
        'number("1.5", " ", ",")',
        'number("1,000", ",", ",")',
        'number("1,000", ":", ".")',
        'number("1,000", ",", ":")',
        'number("1.000.000,01", ".")',
        "number(null)",
        "number(123)",
    ],
)
def test_what_is_no_number_is_null(text: str) -> None:
    assert evaluate(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": [true, null, "c"]}', {"a": 1, "b": [True, None, "c"]}),
        ("1", 1),
        ('"2023-06-14"', "2023-06-14"),
        ("0.1", Decimal("0.1")),
        ("1e400", Decimal("1e400")),
        ("1e9999", None),
        ("null", None),
    ],
)
def test_json_is_read_exactly(text: str, expected: Value) -> None:
    assert evaluate("from json(value)", value=text) == expected


@pytest.mark.parametrize("text", ["", "invalid", "{", "NaN", "[1,]", "[" * 100_000])
def test_what_is_no_json_is_null(text: str) -> None:
    warnings: list[feel.FeelWarning] = []

    assert feel.evaluate("from json(value)", {"value": text}, warnings=warnings) is None
    assert "JSON" in str(warnings[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to json({a: 1, b: [1.5, true, null]})", '{"a":1,"b":[1.5,true,null]}'),
        ('to json("a\\"é")', '"a\\"é"'),
        ("to json(null)", "null"),
        ('to json(@"2023-06-14")', '"2023-06-14"'),
        ('to json(@"P3Y")', '"P3Y"'),
        ('to json(@"2025-11-24T10:00:00@Europe/Berlin")', '"2025-11-24T10:00:00+01:00[Europe/Berlin]"'),
        ('to json(@"12025-07-24T10:00:00@Europe/Berlin")', '"12025-07-24T10:00:00+02:00[Europe/Berlin]"'),
        ('to json(@"2025-11-24T10:00:00Z")', '"2025-11-24T10:00:00Z"'),
        ("to json([1..10])", '"[1..10]"'),
        ("to json(function(a) a)", '"<function>"'),
    ],
)
def test_json_is_written_as_camunda_does(text: str, expected: str) -> None:
    assert evaluate(text) == expected


def test_a_list_deeper_than_the_stack_of_python_has_a_text() -> None:
    text = evaluate("string((for i in 1..1300 return [partial[-1]])[-1])")

    assert text == "[" * 1300 + "null" + "]" * 1300


@pytest.mark.parametrize("function", ["string", "to json"])
def test_a_text_that_would_be_endless_is_not_made(function: str) -> None:
    """Forty lists, each with the one before in it twice."""
    with pytest.raises(FeelLimitExceeded):
        evaluate(f"{function}(for i in 1..40 return [partial[-1], partial[-1]])")


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5) | st.integers(-1000, 1000).map(Decimal),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=10,
    )
)
def test_json_comes_back_as_it_was(value: Value) -> None:
    run = Run()
    text = CONVERSIONS["to json"][0].call(run, value)

    assert CONVERSIONS["from json"][0].call(run, text) == value
    assert json.loads(text) == value


@given(
    st.recursive(st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=9)
)
def test_the_text_of_a_list_is_an_expression_of_it(value: Value) -> None:
    if isinstance(value, list):
        assert feel.evaluate(evaluate("string(value)", value=value)) == value
