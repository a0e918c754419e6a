"""What is refused: texts that cannot be parsed, and expressions that would take too much."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import feel

FORMULA = r"^Expected .+, but (?s:.+)\. .+"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("1 +", 1, 4, "an expression"),
        ("1 + * 2", 1, 5, "an expression"),
        ("(1 + 2", 1, 7, "')'"),
        ("[1, 2", 1, 6, "']'"),
        ("{a 1}", 1, 2, "a key"),
        ("{a: 1, a: 2}", 1, 8, "another key"),
        ("if 1 then 2", 1, 12, "'else'"),
        ("for x of y return x", 1, 12, "'in'"),
        ("for 1 in y return x", 1, 5, "a name"),
        ("x.", 1, 3, "a name"),
        ("x instance of 5", 1, 15, "a type"),
        ("x between 1", 1, 12, "'and'"),
        ('"abc', 1, 1, "a closing"),
        ("/* open", 1, 1, "*/"),
        ("1 +\n  $", 2, 3, "an expression"),
        ("f(1, b: 2)", 1, 7, "',' or ')'"),
        ("f(a: 1, 2)", 1, 9, "a named argument"),
        ("@5", 1, 2, "a string"),
        ("", 1, 1, "an expression"),
        ("1 2", 1, 3, "an operator or the end"),
        ("a = b = ", 1, 9, "an expression"),
    ],
)
def test_syntax_error_shows_where_and_what_was_expected(text: str, line: int, column: int, expected: str) -> None:
    with pytest.raises(feel.FeelSyntaxError, match=FORMULA) as caught:
        feel.compile(text)

    assert (caught.value.line, caught.value.column) == (line, column)
    assert expected in caught.value.expected
    assert caught.value.shown.split("\n")[-1] == " " * (column - 1) + "^"


@pytest.mark.parametrize("text", ["> ", "1,", "not(", "not(1", ", 1", "- 1 2", "[1..", "< < 5 6"])
def test_unary_tests_are_refused_as_expressions_are(text: str) -> None:
    with pytest.raises(feel.FeelSyntaxError, match=FORMULA):
        feel.unary_tests(text, 1)


def test_a_very_long_line_is_shown_near_the_error_only() -> None:
    with pytest.raises(feel.FeelSyntaxError) as caught:
        feel.compile("1 + " * 30 + " " * 1000 + ")")

    assert max(map(len, caught.value.shown.split("\n"))) <= 160


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 500 + "]" * 500,
        "-" * 5000 + "1",
        " + ".join(["1"] * 5000),
        "a" + ".b" * 5000,
        "a" + "[1]" * 5000,
        "if a then " * 2000,
        "not(" * 2000 + "true" + ")" * 2000,
        "x instance of " + "list<" * 2000 + "number" + ">" * 2000,
        "1" * 300_000,
    ],
)
def test_texts_that_are_too_deep_or_too_long_are_refused(text: str) -> None:
    with pytest.raises(feel.FeelError, match=FORMULA):
        feel.compile(text)


def test_many_conditions_in_a_row_are_no_depth() -> None:
    assert feel.evaluate(" or ".join(["false"] * 5000)) is False
    assert feel.evaluate(" and ".join(["true"] * 5000)) is True


@pytest.mark.parametrize(
    "text",
    [
        "for i in 1..10000000 return i",
        "count(for a in 1..1000, b in 1..1000, c in 1..1000 return 1)",
        "some x in 1..100000000 satisfies false",
        "{f: function(n) f(n + 1), r: f(1)}.r",
        "{f: function(n) if n = 0 then 0 else f(n - 1) + f(n - 1), r: f(60)}.r",
        'string length({f: function(s, n) if n = 0 then s else f(s + s, n - 1), r: f("ab", 60)}.r)',
        "for i in 1..100000 return partial",
        "for i in 1..2000 return for j in 1..2000 return [1, 2, 3][item > 1]",
    ],
)
def test_expressions_that_would_not_end_are_stopped(text: str) -> None:
    with pytest.raises(feel.FeelLimitExceeded, match=FORMULA):
        feel.evaluate(text)


def test_the_limit_of_steps_can_be_chosen() -> None:
    text = "for i in 1..100 return i"

    assert len(feel.evaluate(text, max_steps=1_000)) == 100
    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate(text, max_steps=50)


@pytest.mark.parametrize("text", [None, 5, b"1 + 1", ["1"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(feel.FeelError, match=FORMULA):
        feel.evaluate(text)


@pytest.mark.parametrize("context", [[1], "a", 5])
def test_what_is_no_context_is_refused(context: Any) -> None:
    with pytest.raises(feel.FeelError, match=FORMULA):
        feel.evaluate("1", context)


def test_a_value_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(feel.FeelError, match=FORMULA):
        feel.evaluate("a", {"a": object()})
