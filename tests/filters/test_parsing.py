"""The filter language: what it accepts, what it means, and that errors point at the place."""

from __future__ import annotations

import pytest

from holdfast import FilterError
from holdfast.filters.evaluating import holds
from holdfast.filters.parser import parse_filter, parse_order
from holdfast.filters.syntax import Attribute, AttributeKind, Column, Field, Order, Value

STATE = AttributeKind.STATE
EXECUTION: dict[Field, Value] = {
    Column.STATUS: "running",
    Column.WORKFLOW: "order",
    Column.WORKFLOW_ID: "order-7",
    Column.EXECUTION_ID: "e1",
    Column.QUEUE: "default",
    Column.CREATED: 1_767_225_600_000_000,  # 2026-01-01
    Attribute(STATE, "amount"): "n65000312",  # 120 is 0.12e3
    Attribute(STATE, "region"): "seu",
    Attribute(AttributeKind.METADATA, "customer"): "ann",
    Attribute(AttributeKind.REFERENCE): "1200345",
    Attribute(AttributeKind.PART, "policy"): "P-1",
}


def _selects(text: str) -> bool:
    return holds(parse_filter(text), EXECUTION.get)


@pytest.mark.parametrize(
    "text",
    [
        "status = 'running'",
        'STATUS = "running" and state.amount > 100',
        "status IN ('failed', 'running') AND NOT workflow_id STARTS WITH 'test-'",
        "workflow_id starts with 'order-'",
        "NOT (status = 'failed' OR status = 'blocked')",
        "status = 'failed' OR state.region = 'eu' AND state.amount <= 120",
        "state.amount = 120.0 AND state.amount != 5 AND state.amount NOT IN (1, 2)",
        "state.amount >= 1.2e2 AND state.amount < 120.5",
        "HAS reference AND reference = '1200345' AND reference.policy = 'P-1'",
        "HAS closed OR NOT HAS closed",
        "created >= '2026-01-01' AND created < '2026-01-01T00:00:01+00:00'",
        "NOT closed < '2030-01-01' AND NOT closed >= '2020-01-01'",
        "metadata.customer = 'ann' AND state.\"region\" STARTS WITH 'e'",
        "queue = 'default' AND execution_id = 'e1' AND workflow <> 'other'",
        "NOT state.missing = 1 AND NOT state.missing != 1",
        "state.region > 'a' AND NOT state.region > 5 AND NOT state.amount > 'a'",
    ],
)
def test_filter_selects(text: str) -> None:
    assert _selects(text)
    assert not _selects(f"NOT ({text})")


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("", 0, "status"),
        ("status", 6, "STARTS WITH"),
        ("colour = 'red'", 0, "state.<key>"),
        ("status = running", 9, "single quotes"),
        ("status = 'runing'", 9, "completed"),
        ("status == 'running'", 8, "text"),
        ("status = 'running' AND", 22, "state.<key>"),
        ("(status = 'running'", 19, "parenthesis"),
        ("status = 'running')", 18, "AND, OR or the end"),
        ("state = 1", 6, "state.key"),
        ("state.amount > null", 15, "HAS"),
        ("state.amount LIKE 'x'", 13, "STARTS WITH"),
        ("workflow > 'a'", 9, "STARTS WITH"),
        ("created > 'yesterday'", 10, "2026-11-18"),
        ("status IN ()", 11, "single quotes"),
        ("status = 'running", 9, "Close the text"),
        ("state.amount > 5; DROP TABLE executions", 16, "operator"),
        ("state.a = 'x' && state.b = 1", 14, "AND"),
        (f"state.{'k' * 256} = 1", 6, "255"),
        (f"metadata.a = '{'v' * 501}'", 13, "500"),
    ],
)
def test_filter_error_points_at_the_place_and_says_what_is_allowed(text: str, position: int, said: str) -> None:
    with pytest.raises(FilterError, match="Expected where to have") as caught:
        parse_filter(text)

    assert caught.value.position == position
    assert said in caught.value.message
    assert caught.value.message.splitlines()[2].index("^") == min(position, 40) + 2


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 51 + "HAS closed",
        "(" * 2000 + "HAS closed" + ")" * 2000,
        "state.a IN (" + ", ".join(map(str, range(501))) + ")",
        "status = 'running' OR " * 600 + "HAS closed",
    ],
)
def test_filter_is_bounded_in_depth_and_size(text: str) -> None:
    with pytest.raises(FilterError, match="at most"):
        parse_filter(text)


def test_filter_that_is_no_text_is_refused() -> None:
    with pytest.raises(FilterError, match="to be text"):
        parse_filter(5)  # type: ignore[arg-type]
    with pytest.raises(FilterError, match="Unicode"):
        parse_filter("status = 'a\0b'")


def test_order_has_a_field_and_a_direction() -> None:
    assert parse_order("created") == Order(Column.CREATED, is_descending=False)
    assert parse_order("state.amount DESC") == Order(Attribute(STATE, "amount"), is_descending=True)
    assert parse_order("closed asc") == Order(Column.CLOSED, is_descending=False)


@pytest.mark.parametrize("text", ["foo", "workflow", "", "status desc"])
def test_order_by_another_field_is_refused_with_those_that_it_takes(text: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_order(text)

    assert "created, closed, state.<key>, metadata.<key>, reference or reference.<part>" in refused.value.message
    assert "workflow_id" not in refused.value.message


@pytest.mark.parametrize("text", ["", "workflow", "state", "state.a up", "state.a desc, created", "metadata."])
def test_order_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="Expected order_by"):
        parse_order(text)
