"""The cost of a turn must not grow with what is stored: no statement on its way goes through a whole table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.store.queries import widen
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.statements import SQL

MAY_SCAN = {
    "check_pages": "",
    "check_attributes": "attributes",
    "check_executions": "executions",
    "check_histories": "executions",
    "check_histories_without_row": "events executions",
    "check_inbox": "inbox",
    "check_offers": "activities",
    "check_open_twice": "executions",
    "check_leftovers": "pending_fields task_keys task_events",
    "check_pending": "pending nodes",
    "check_publications": "publications",
    "check_schedules": "schedules",
    "check_subscriptions": "subscriptions",
    "check_requests": "requests",
    "check_task_events": "task_events",
    "check_tasks": "tasks",
    "check_timers": "timers",
    "check_definitions": "definitions",
    "check_incidents": "incidents",
    "check_resources": "resources",
    "check_snapshots": "snapshots",
    "count_open": "executions",  # its index of what is open
    "count_queued": "timers inbox dead_letters",
    "find_next_due": "timers",  # its index, up to the first that is not skipped
    "find_next_due_on_routes": "timers",  # the same
    "find_waiting": "inbox",  # in order, until there are enough
    "find_waiting_on_routes": "inbox",  # the same
    "has_waiting_on_routes": "inbox",  # until there is one
    "list_executions": "executions",  # downwards by id, until the page is full
    "list_open_executions": "executions",  # the same, down what is open
    "count_list_executions": "executions",  # the same
    "count_list_open_executions": "executions",  # the same
    "list_executions_by_closing": "executions",  # what its subquery finds along the times of ends, up to a limit
    "count_list_executions_by_closing": "executions",  # the same
    "list_nodes": "nodes",
    "look_at_schedules": "schedules",  # the index of those that wait, until there is one
    "purge_dead_letters": "dead_letters",  # by id, as many as it says
    "read_backlog": "executions inbox",  # what is open, and the inbox: the first of each, up to a limit
    "read_counters": "inbox activities subscriptions pending publications",  # once, when the database is opened
    "read_outbox": "publications",  # in order, until there are enough
    "read_pauses": "pauses",  # when they have changed
    "read_spread": "publications",  # in order, until there is one
}
SETTINGS = re.compile(r"^(BEGIN|COMMIT|ROLLBACK|PRAGMA)")
WIDE = re.compile(r"VALUES \(\?")
TABLES = {
    "attributes",
    "executions",
    "events",
    "timers",
    "inbox",
    "dead_letters",
    "requests",
    "nodes",
    "activities",
    "locks",
    "subscriptions",
    "pending",
    "pending_fields",
    "publications",
    "starts",
    "tasks",
    "task_keys",
    "task_events",
    "schedules",
    "pauses",
    "questions",
    "resources",
    "definitions",
    "incidents",
    "snapshots",
}

STATEMENTS = {name: statement for name, statement in SQL.items() if not SETTINGS.match(statement)}
STATEMENTS |= {f"{name} of 3": widen(statement, 3) for name, statement in STATEMENTS.items() if WIDE.search(statement)}


def make_values(statement: str) -> dict[str, None] | list[None]:
    return dict.fromkeys(re.findall(r":(\w+)", statement)) or [None] * statement.count("?")


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_reads_only_what_it_needs(store: SqliteStore, name: str) -> None:
    statement = STATEMENTS[name]

    plan = store._connections.writer.execute(f"EXPLAIN QUERY PLAN {statement}", make_values(statement)).fetchall()

    scanned = {match[1] for *_, step in plan if (match := re.match(r"SCAN (\w+)", step))}
    assert scanned & TABLES <= set(MAY_SCAN.get(name, "").split())


async def test_of_many_timers_of_one_execution_those_that_end_are_found_by_number(store: SqliteStore) -> None:
    statement = widen(SQL["end_timers"], 3)

    plan = store._connections.writer.execute(f"EXPLAIN QUERY PLAN {statement}", make_values(statement)).fetchall()

    searched = [step for *_, step in plan if step.startswith("SEARCH")]
    assert len(searched) == 2
    assert all("(execution_id=? AND number=?)" in step for step in searched)


@pytest.mark.parametrize(
    ("name", "searched"),
    [
        ("list_executions", "executions_by_execution_id (execution_id>? AND execution_id<?)"),
        ("list_open_executions", "executions_open (execution_id>? AND execution_id<?)"),
        ("list_executions_of_workflow_id", "executions_by_workflow_id (org=? AND workflow_id=?)"),
        ("list_children", "executions_by_parent (parent_id=?)"),
        ("list_executions_by_prefix", "executions_by_workflow_id (org=? AND workflow_id>? AND workflow_id<?)"),
        ("list_executions_by_end", "executions_closed (closed_at>? AND closed_at<?)"),
        ("list_executions_by_attribute", "(org=? AND kind=? AND name=? AND value=? AND execution_id>? AND execution_id<?)"),
        ("list_few_executions", "(org=? AND kind=? AND name=? AND value>? AND value<?)"),
        ("list_few_by_value", "(org=? AND kind=? AND name=? AND value>? AND value<?)"),
        ("list_few_by_closing", "(org=? AND kind=? AND name=? AND value>? AND value<?)"),
        (
            "list_executions_by_value",
            "(org=? AND kind=? AND name=? AND (value,execution_id)>(?,?) AND (value,execution_id)<(?,?))",
        ),
        ("list_executions_by_closing", "executions_closed (closed_at>? AND closed_at<?)"),
    ],
)
async def test_a_list_is_led_by_its_index(store: SqliteStore, name: str, searched: str) -> None:
    plan = store._connections.writer.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", make_values(SQL[name])).fetchall()

    steps = [step for *_, step in plan]
    assert searched in next(step for step in steps if step.startswith("SEARCH"))
    is_sorted = any("ORDER BY" in step for step in steps)
    unsorted = {"list_executions", "list_open_executions", "list_executions_by_attribute", "list_executions_by_value"}
    assert is_sorted == (name not in unsorted)


FILL_SCHEDULES = """
INSERT INTO schedules (org, schedule_id, state, due, is_waiting, route, version, created_at, updated_at, details)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
SELECT 'o', 's' || n, 'active', 1000 + n, 0, 'r', 1, 0, 0, x'7b7d' FROM numbers
"""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("look_at_schedules", {"routes": None, "skip": "[]"}),
        ("look_at_schedules", {"routes": '["r"]', "skip": '[["o", "s1"], ["o", "s2"]]'}),
        ("claim_schedules", {"routes": '["r"]', "skip": "[]", "due_until": 1001, "limit": 10}),
        ("claim_waiting_schedules", {"routes": None, "org": "", "after": "", "limit": 10}),
        ("list_schedules", {"org": "o", "after": "s5", "owner": None, "limit": 5}),
    ],
)
async def test_T4_ten_thousand_schedules_cost_no_more_than_ten(
    store: SqliteStore, name: str, values: dict[str, Any]
) -> None:
    connection = store._connections.writer
    connection.execute(FILL_SCHEDULES)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 10
        return 0

    connection.set_progress_handler(count, 10)
    connection.execute(SQL[name], values).fetchall()
    connection.set_progress_handler(None, 0)

    assert steps < 1000
