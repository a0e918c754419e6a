"""Warnings say where in the expression the part begins that became null."""

from __future__ import annotations

import pytest

from holdfast import dmn, feel
from tests.dmn import models


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1 + missing", "missing"),
        ("[1, 2 + true]", "2 + true"),
        ("1 + 2 * null", "2 * null"),
        ("[1, 10 ** 7000]", "10 ** 7000"),
        ('[1, @"x"]', '@"x"'),
        ("[1, a.b.c]", "a.b.c"),
        ("[1, a.x]", "a.x"),
        ('[1, "x".y]', '"x".y'),
        ('[1, @"2024-01-01".x]', '@"2024-01-01".x'),
        ("[1, for x in a return x.y]", "x.y"),
        ("[1, for x in null return x]", "for x in null"),
        ("[1, for x in null, y in null return x]", "for x in null"),
        ("[1, some x in null satisfies true]", "some x"),
        ("[1, null[1]]", "null[1]"),
        ("[1, [1][2]]", "[1][2]"),
        ("[1, 1 < true]", "1 < true"),
        ("[1, 1 = true]", "1 = true"),
        ("[1, 1 between true and 2]", "1 between"),
        ("[1, 1 in (< true)]", "< true"),
        ("[1, -true]", "-true"),
        ("[1, [1..true]]", "[1..true]"),
        ("[1, 1 instance of unheard of]", "1 instance"),
        ("[1, abs(true)]", "abs(true)"),
        ("[1, abs(n: true)]", "abs(n"),
        ("[1, abs(x: true)]", "abs(x"),
        ("[1, {f: abs, r: f(true)}]", "f(true)"),
        ("[1, {f: abs, r: f(n: true)}]", "f(n"),
        ("[1, {f: function(x) x, r: f()}]", "f()"),
        ("[1, {f: function(x: number) x, r: f(true)}]", "f(true)"),
        ("[1, {f: function(x) x, r: f(y: 1)}]", "f(y"),
        ("[1, (function(x) x + true)(1)]", "x + true"),
        ("[1, 5(1)]", "5(1)"),
        ("[1, sort([abs(2), 1], function(x) x)]", "sort("),
        ("[1, sort([2, true], function(x, y) x < y)]", "x < y"),
        ("[1, true and 2]", "true and"),
        ("[1, 2 or false]", "2 or"),
        ("[1, if 5 then 1 else 2]", "5 then"),
        ("[1, some x in [false, 2] satisfies x]", "some x"),
        ("[1, every x in [true, 3] satisfies x]", "every x"),
        ('[1, [1, 2]["x"]]', '[1, 2]["x"]'),
        ("[1, [1, 2][if item = 1 then true else 5]]", "[1, 2][if"),
        ('[1, 5 in "a"]', '"a"'),
        ("= 1 + missing", "missing"),
    ],
)
def test_warning_has_the_offset_of_its_part(text: str, part: str) -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate(text, {"a": {"b": 1}}, warnings=warnings)

    assert warnings[0].offset == text.index(part)
    assert (warnings[0].line, warnings[0].column) == (1, text.index(part) + 1)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("true and 2", "beside 'and' stands a boolean, not a number"),
        ('if "x" then 1 else 2', "behind 'if' stands a boolean, not a string"),
        ("[1, 2][{}]", "in a filter stands a position or a boolean, not a context"),
        ('5 in "a"', "whether a number is in a string cannot be told"),
    ],
)
def test_what_should_be_true_or_false_and_is_neither_is_told(text: str, warning: str) -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate(text, warnings=warnings)

    assert str(warnings[0]) == warning


@pytest.mark.parametrize("text", ["true and null", "if null then 1 else 2", "[1, 2][null]", "some x in [null] satisfies x"])
def test_null_is_no_wrong_answer(text: str) -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate(text, warnings=warnings)

    assert warnings == []


def test_filter_asks_about_each_item_once() -> None:
    asked: list[object] = []

    def is_asked(item: object) -> bool:
        asked.append(item)
        return item != 2

    assert feel.evaluate("[1, 2, 3][is asked(item)]", {"is asked": is_asked}) == [1, 3]
    assert asked == [1, 2, 3]


def test_warning_has_line_and_column() -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate("1 +\n  (2 +\n missing)", warnings=warnings)
    feel.unary_tests("1,\n< true", 2, warnings=warnings)

    places = [(warning.line, warning.column, warning.offset) for warning in warnings]
    assert places == [(3, 2, 12), (2, 4, 7), (1, 1, 0), (2, 1, 3)]


def test_warning_of_a_decision_has_the_place_in_the_text_of_its_expression() -> None:
    warnings: list[feel.FeelWarning] = []
    model = dmn.load(models.make_xml(models.decision("D", "[1,\n abs(true)]")))

    model.evaluate("D", {}, warnings=warnings)

    assert [(warning.line, warning.column) for warning in warnings] == [(2, 2)]
