"""What other languages write is refused with a hint at what FEEL writes; names that are near are suggested."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import feel
from holdfast.feel import running
from holdfast.feel.values import Function


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("a == b", 3, "Write = to compare"),
        ("a === b", 3, "Write = to compare"),
        ("== 5", 1, "Write = to compare"),
        ("= a == b", 5, "Write = to compare"),
        ("a !== b", 3, "Write != to compare"),
        ("a <> b", 3, "Write != to compare"),
        ("a => b", 3, "Write >= to compare"),
        ("x => x + 1", 3, "function(x) …"),
        ("(x) => x + 1", 5, "function(x) …"),
        ("a >== b", 3, "Write =, !=, <, <=, > or >= to compare"),
        ("a << b", 3, "Write =, !=, <, <=, > or >= to compare"),
        ("a =< b", 3, "Write <= to compare"),
        ("a ≤ b", 3, "Write <= to compare"),
        ("not a", 1, "Write not(a)"),
        ("not true", 1, "Write not(true)"),
        ('not "a"', 1, "Write not(…)"),
        ("b and not a", 7, "Write not(a)"),
        ("xs[not paid]", 4, "Write not(paid)"),
        ("a not in [1]", 1, "Write not(a in …)"),
        ("a is null", 1, "Write a = null"),
        ("a is not null", 1, "Write a != null"),
        ("order.total is null", 7, "Write total = null"),
        ("f(a) is null", 6, "Write = to compare"),
        ("if a[1] is null then 1 else 2", 9, "Write = to compare"),
        ("a && b", 3, "Write and"),
        ("a || b", 3, "Write or"),
        ("!a", 1, "Write not(…)"),
        ("b and !a", 7, "Write not(…)"),
        ("'single quotes'", 1, "double quotes"),
        ("a = 'x'", 5, "double quotes"),
        ("\u201cquoted\u201d", 1, "double quotes"),
        ("a ? b : c", 3, "if … then … else …"),
        ("(a > 1 ? b : c)", 8, "if … then … else …"),
        ("a % b", 3, "modulo(dividend, divisor)"),
        ("a ^ 2", 3, "write **"),
        ("a -> b", 3, "function(x) …"),
        ("a += 1", 4, "key of a context"),
        ("a ?? b", 1, "get or else"),
        ("(a) AND (b)", 5, "Write and in small letters"),
    ],
)
def test_what_another_language_writes_is_refused_with_a_hint(text: str, column: int, hint: str) -> None:
    with pytest.raises(feel.FeelSyntaxError) as caught:
        feel.compile(text)

    assert hint in caught.value.hint
    assert caught.value.hint in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize("text", ['"x" +', '"x" + "abc', "[1, 2", "if a then b"])
def test_text_that_is_cut_off_is_refused_without_a_hint(text: str) -> None:
    with pytest.raises(feel.FeelSyntaxError) as caught:
        feel.compile(text)

    assert caught.value.hint == ""


@pytest.mark.parametrize("text", ["==5", "=>5", "<> 5", "not a"])
def test_unary_tests_are_refused_with_a_hint_too(text: str) -> None:
    with pytest.raises(feel.FeelSyntaxError) as caught:
        feel.compile_unary_tests(text)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("not a", {"not a": 1}, 1),
        ("a is null", {"a is null": 1}, 1),
        ("order.not paid", {"order": {"not paid": 1}}, 1),
        ("order.is null", {"order": {"is null": 1}}, 1),
        ("{not a: 1, r: not a}.r", {}, 1),
        ("(function(not a) not a)(1)", {}, 1),
        ("[1] instance of function<> -> number", {}, False),
        ("{} instance of context<>", {}, True),
        ('"==" + "&&"', {}, "==&&"),
        ("1 // == !", {}, 1),
        ("`a == b`", {"a == b": 1}, 1),
        ("`not b`", {}, None),
        ("{}.`is null`", {}, None),
        ("not (true)", {}, False),
        ("{f: not, r: f(true)}.r", {}, False),
    ],
)
def test_names_that_are_declared_and_what_looks_alike_still_work(text: str, context: dict[str, Any], expected: Any) -> None:
    assert feel.evaluate(text, context) == expected


# --- names that are near ---


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('string lenght("a")', "there is no function 'string lenght'. Did you mean 'string length'?"),
        ('startsWith("a", "b")', "there is no function 'startsWith'. Did you mean 'starts with'?"),
        ('len("a")', "Did you mean 'string length' or 'count'?"),
        ("discont(1)", "there is no function 'discont'. Did you mean 'discount'?"),
        ("[1][lenght(item) = 1][1]", "there is no function 'lenght'"),
        ("NOT(true)", "Did you mean 'not'?"),
        ("unheard(1)", "there is no function 'unheard'"),
        ("{total: 1}.totl", "the context has no entry 'totl'. Did you mean 'total'?"),
        ("totl + 1", "there is no variable 'totl'. Did you mean 'total'?"),
        ("True", "Did you mean 'true'?"),
        ("total AND total", "Did you mean 'and', in small letters?"),
    ],
)
def test_warning_of_an_unknown_name_suggests_one_that_is_near(text: str, part: str) -> None:
    warnings: list[feel.FeelWarning] = []
    discount = Function("discount", ("n",), lambda _run, arguments: arguments[0])

    assert feel.evaluate(text, {"total": 1, "discount": discount}, warnings=warnings) is None
    assert part in str(warnings[0])


def test_unknown_function_is_refused_when_the_functions_are_told() -> None:
    with pytest.raises(feel.FeelSyntaxError, match="there is no function 'substrin'") as caught:
        feel.compile('1 + substrin("abc", 2)', functions=[])

    assert (caught.value.column, caught.value.hint) == (5, "Did you mean 'substring'?")
    with pytest.raises(feel.FeelSyntaxError, match="Did you mean 'discount'"):
        feel.compile("discont(1)", functions=["discount"])
    with pytest.raises(feel.FeelSyntaxError, match="there is no function 'even odder'"):
        feel.compile_unary_tests("even odder(?)", functions=["odder"])


@pytest.mark.parametrize(
    "text",
    [
        "discount(1)",
        "volume discount(1)",
        "{f: function(x) x, r: f(1)}.r",
        "(function(f) f(1))(abs)",
        "xs[price(item) > 1]",
        "abs(1)",
        "a.b(1)",
    ],
)
def test_functions_that_are_told_defined_or_perhaps_in_items_are_taken(text: str) -> None:
    feel.compile(text, functions=["discount", "volume discount"])


def test_functions_that_an_expression_takes_from_outside_can_be_asked_for() -> None:
    assert feel.compile("discount(abs(1)) + {f: abs, r: f(1)}.r + total").functions == {"discount"}
    assert feel.compile("discount(1)").names == {"discount"}


def test_many_unknown_names_are_not_all_compared() -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate("for i in 1..100 return totl", {"total": 1}, warnings=warnings)

    assert sum("Did you mean" in str(warning) for warning in warnings) == running.MOST_HINTS
    assert len(warnings) == 100
