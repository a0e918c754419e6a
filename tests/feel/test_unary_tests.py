"""What tests of a value make of null, and of what they say about `?` themselves. DMN 7.3.3."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import feel


@pytest.mark.parametrize(
    "tests",
    [
        'contains(?, "VIP")',
        'not(contains(?, "a"))',
        'contains(?, "a"), "b"',
        'contains(?, "a") and > 3',
        'if contains(?, "a") then true else null',
        "?",
        "not(?)",
        "? + 1",
        "? > 5",
        "odd(?)",
        "not(odd(?))",
        "upper case(?)",
        "? in [1..5]",
        "list contains(?, 1)",
        "every i in ? satisfies i > 1",
        "[?..5]",
        "[1..5]",
        "< 5",
        "not(< 5)",
        "?.name",
    ],
)
def test_test_of_null_that_comes_to_null_is_not_met(tests: str) -> None:
    assert feel.unary_tests(tests, None) is None


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ("-", True),
        ("null", True),
        ("not(null)", False),
        ("? = null", True),
        ("? != null", False),
        ("= null", True),
        ("!= null", False),
        ("1, null", True),
        ('contains(?, "a"), null', True),
        ('? = null or contains(?, "a")', True),
        ("[1, null]", True),
        ("[1, 2]", False),
        ('"a"', False),
        ('not("a")', True),
        ("get or else(?, 5) = 5", True),
        ("is defined(?)", False),
        ("missing", True),
        ('[contains(?, "a")]', False),
        ('list contains(["a", null], ?)', True),
        ('contains(?, "a") = null', True),
        ("? instance of string", False),
    ],
)
def test_test_of_null_that_comes_to_an_answer_gives_it(tests: str, expected: bool) -> None:
    assert feel.unary_tests(tests, None) is expected


@pytest.mark.parametrize(
    ("tests", "value", "expected"),
    [
        ('contains(?, "a")', ["a"], True),
        ('contains(?, "a")', [None], None),
        ("count(?) > 1", [1, 2], True),
        ("?.name", {"name": None}, None),
        ("?.name", {"name": True}, True),
        ("upper case(?)", "A", True),
        ("not(null)", 1, True),
        ("null in (? = null)", 3, True),
    ],
)
def test_test_with_a_question_mark_answers_itself_where_it_is_boolean(tests: str, value: Any, expected: bool | None) -> None:
    assert feel.unary_tests(tests, value) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('null in contains(?, "a")', None),
        ('null in (contains(?, "a"), 1)', None),
        ('null in [contains(?, "a"), 1]', False),
        ('null in (contains(?, "a"), null)', True),
        ("null in (? = null)", True),
        ("null in null", True),
        ("5 in ? < 10", True),
        ("5 in ? < 3", False),
        ("5 in ? + 1 = 6", True),
        ("5 in (? + 1) = 6", True),
        ("5 in ? between 1 and 10", True),
        ("5 in ? in [1..10]", True),
        ("5 in ? < 10 and true", True),
        ("5 in odd(?)", True),
        ("5 in [1..10] = true", True),
        ("5 in (1, 5) = true", True),
        ("5 in < 10", True),
        ("2 in [1..5] and 7 in [1..5]", False),
    ],
)
def test_test_behind_in_may_be_about_the_question_mark(text: str, expected: bool | None) -> None:
    assert feel.evaluate(text) is expected
