"""Loops that look only at some entries of a list's items: they give what all others give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from holdfast import feel
from holdfast.errors import FeelError

LISTS: dict[str, Any] = {
    "numbers": [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 2}],
    "of many types": [{"a": True, "b": None}, {"a": 0.5, "b": 10**40}, {"a": Decimal("1.10"), "b": float("nan")}],
    "temporal": [{"a": datetime(2030, 1, 1, tzinfo=UTC), "b": timedelta(days=1)}],
    "missing entries": [{"a": 1}, {"b": 2}, {}],
    "no contexts": [1, "x", None, [{"a": 1, "b": 2}], {"a": 1, "b": 2}],
    "deep": [{"a": {"c": 1}, "b": [1, 2]}, {"a": {"c": 2}, "b": []}],
    "empty": [],
    "no list": {"a": 1, "b": 2},
    "nothing": None,
}
BODIES = (
    "x.a",
    "x.a + x.b",
    "x.a * 2 - y",
    "x.a > 1 and x.b = 2",
    "-x.a",
    "x.a = x.b",
    "if x.a = 1 then x else x.b",
    "x",
    "[x, x.a]",
    "x.a.c",
    "x.b[1]",
    "for z in x.b return z",
)
CONDITIONS = (
    "a > 1",
    "a = 1 and b = 2",
    "b = y",
    "a.c = 1",
    "a != null",
    "item.a = 1",
    "item = 1",
    "count(b) = 2",
    "a + b > 3",
    "xs = null",
)


def both(plain: str, other: str, context: dict[str, Any]) -> tuple[Any, Any]:
    """Values and warnings of two expressions."""
    answers = []
    for text in (plain, other):
        warnings: list[feel.FeelWarning] = []
        try:
            value = feel.evaluate(text, context, warnings=warnings)
        except FeelError as error:
            value = str(error)
        answers.append((value, warnings))
    return answers[0], answers[1]


@pytest.mark.parametrize("items", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("body", BODIES)
def test_for_gives_the_same_for_a_list_that_was_taken_in(items: Any, body: str) -> None:
    plain, other = both(
        f"for x in o.xs return {body}", f"for x in {{all: o.xs}}.all return {body}", {"o": {"xs": items}, "y": 2}
    )

    assert plain == other


@pytest.mark.parametrize("items", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_filter_gives_the_same_for_a_list_that_was_taken_in(items: Any, condition: str) -> None:
    plain, other = both(f"xs[{condition}]", f"{{all: xs}}.all[{condition}]", {"xs": items, "y": 2})

    assert plain == other


def test_what_is_chosen_is_taken_in() -> None:
    assert feel.evaluate("xs[a = 1]", {"xs": [{"a": 1, "b": 2.5}]}) == [{"a": Decimal(1), "b": Decimal("2.5")}]
    assert type(feel.evaluate("xs[a = 1].b", {"xs": [{"a": 1, "b": 7}]})[0]) is Decimal


def test_nested_loops_see_their_own_items() -> None:
    context = {"xs": [{"a": 1}, {"a": 2}], "ys": [{"a": 2, "b": 7}, {"a": 3, "b": 8}]}

    assert feel.evaluate("for x in xs return ys[a > x.a].b", context) == [[7, 8], [8]]
    assert feel.evaluate("for x in xs return (for x in ys return x.a)", context) == [[2, 3], [2, 3]]
    assert feel.evaluate("xs[count(ys[a > 2]) = 1].a", context) == [1, 2]


def test_items_that_are_not_taken_in_count_as_steps() -> None:
    with pytest.raises(FeelError, match="took all the steps"):
        feel.evaluate("for x in xs return x.a", {"xs": [{"a": 1}] * 100}, max_steps=50)
    with pytest.raises(FeelError, match="took all the steps"):
        feel.evaluate("xs[a = 1]", {"xs": [{"a": 1}] * 100}, max_steps=50)


def test_variables_of_the_context_are_found_behind_items() -> None:
    assert feel.evaluate("xs[a = limit].a", {"xs": [{"a": 1}, {"a": 2}], "limit": 2}) == [2]
    assert feel.compile("xs[a = limit]").names == {"xs", "a", "limit"}
