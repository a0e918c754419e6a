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
        ("= 1 + missing", "missing"),
    ],
)
def test_warning_has_the_offset_of_its_part(text: str, part: str) -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate(text, {"a": {"b": 1}}, warnings=warnings)

    assert warnings[0].offset == text.index(part)
    assert (warnings[0].line, warnings[0].column) == (1, text.index(part) + 1)


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
