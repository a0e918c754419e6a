"""What is read without claiming anything: by transactions, and outside of them by the reader's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import CLOSED
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Counts, ExecutionFilter
from holdfast.store.rows import DeadLetterRow, ExecutionRow, HistoryRow, InboxRow, RequestKeyId, RequestRow, Route
from holdfast.store.sqlite.statements import SQL, as_json

_BEHIND_ALL: Final = "\U0010ffff"
"""A text that is greater than any execution id."""


# --- one thing ------------------------------------------------------------------------------------------------------------


def find_execution(connection: sqlite3.Connection, org: str, execution_id: str) -> ExecutionRow | None:
    row = connection.execute(SQL["find_execution"], (org, execution_id)).fetchone()
    return None if row is None else to_execution_row(row)


def count_waiting(connection: sqlite3.Connection, execution_ids: Iterable[str], limit: int) -> dict[str, int]:
    """How many inbox rows wait for each of these execution ids, counted up to a limit."""
    counted = ((key, connection.execute(SQL["count_waiting"], (key, limit)).fetchone()[0]) for key in execution_ids)
    return {key: number for key, number in counted if number}


def find_latest(connection: sqlite3.Connection, org: str, workflow_id: str) -> ExecutionRow | None:
    row = connection.execute(SQL["read_latest"], (org, workflow_id)).fetchone()
    return None if row is None else to_execution_row(row)


def find_requests(
    connection: sqlite3.Connection, keys: Collection[RequestKeyId], now: Instant
) -> dict[RequestKeyId, RequestRow]:
    found = ((key, connection.execute(SQL["read_request"], (*key, now)).fetchone()) for key in keys)
    return {key: RequestRow(*row) for key, row in found if row is not None}


def find_next_due(connection: sqlite3.Connection, skip: Collection[str], routes: Collection[Route] | None) -> Instant | None:
    if routes is None:
        row = connection.execute(SQL["find_next_due"], (as_json(list(skip)),)).fetchone()
    else:
        values = {"skip": as_json(list(skip)), "routes": as_json(list(routes))}
        row = connection.execute(SQL["find_next_due_on_routes"], values).fetchone()
    return None if row is None else int(row[0])


def find_oldest_closed(connection: sqlite3.Connection) -> Instant | None:
    (closed_at,) = connection.execute(SQL["find_oldest_closed"]).fetchone()
    return None if closed_at is None else int(closed_at)


def find_oldest_dead_letter(connection: sqlite3.Connection) -> Instant | None:
    row = connection.execute(SQL["find_oldest_dead_letter"]).fetchone()
    return None if row is None else int(row[0])


# --- histories ------------------------------------------------------------------------------------------------------------


def read_histories(connection: sqlite3.Connection, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
    """The history of each execution behind the sequence given."""
    histories: dict[str, list[HistoryRow]] = {execution_id: [] for execution_id in after}
    for row in connection.execute(SQL["read_events"], (as_json(dict(after)),)):
        histories[row[0]].append(HistoryRow(*row))
    return histories


def load_history(connection: sqlite3.Connection, execution_id: str, after: int, limit: int | None) -> list[HistoryRow]:
    values = {"execution_id": execution_id, "after": after, "limit": -1 if limit is None else limit}
    return [HistoryRow(*row) for row in connection.execute(SQL["read_events_page"], values)]


def load_last_turn(connection: sqlite3.Connection, execution_id: str) -> HistoryRow | None:
    row = connection.execute(SQL["read_last_events"], (execution_id,)).fetchone()
    return None if row is None else HistoryRow(*row)


# --- lists ----------------------------------------------------------------------------------------------------------------


def list_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> list[ExecutionRow]:
    """By whichever index leads to the fewest rows."""
    if query.workflow_id is not None:
        statement = SQL["list_executions_of_workflow_id"]
    elif query.parent_id is not None:
        statement = SQL["list_children"]
    elif query.statuses and CLOSED.isdisjoint(query.statuses):
        statement = SQL["list_open_executions"]
    else:
        statement = SQL["list_executions"]
    values = {
        "org": query.org,
        "workflow": query.workflow,
        "workflow_id": query.workflow_id,
        "parent_id": query.parent_id,
        "statuses": as_json(list(query.statuses)) if query.statuses else None,
        "before": _BEHIND_ALL if query.before is None else query.before,
        "limit": query.limit,
    }
    return [to_execution_row(row) for row in connection.execute(statement, values)]


def list_orphans(connection: sqlite3.Connection, alive: Collection[str], limit: int, after: str) -> list[ExecutionRow]:
    values = {"alive": as_json(list(alive)), "limit": limit, "after": after}
    return [to_execution_row(row) for row in connection.execute(SQL["list_orphans"], values)]


def list_held(connection: sqlite3.Connection, node: str, limit: int, after: str) -> list[ExecutionRow]:
    values = {"node": node, "limit": limit, "after": after}
    return [to_execution_row(row) for row in connection.execute(SQL["list_held"], values)]


def list_blocked(connection: sqlite3.Connection, limit: int, after: str) -> list[ExecutionRow]:
    return [to_execution_row(row) for row in connection.execute(SQL["list_blocked"], {"limit": limit, "after": after})]


def list_inbox(connection: sqlite3.Connection, org: str, execution_id: str, workflow_id: str, limit: int) -> list[InboxRow]:
    asked = {"org": org, "execution_id": execution_id, "workflow_id": workflow_id, "limit": limit}
    return [InboxRow(*row) for row in connection.execute(SQL["list_inbox"], asked)]


def list_dead_letters(connection: sqlite3.Connection, org: str, limit: int, after: int) -> list[DeadLetterRow]:
    return [DeadLetterRow(*row) for row in connection.execute(SQL["list_dead_letters"], (org, after, limit))]


def find_settled(connection: sqlite3.Connection, execution_ids: Collection[str]) -> dict[str, bool]:
    rows = connection.execute(SQL["find_settled"], (as_json(list(execution_ids)),))
    return {execution_id: bool(is_closed) for execution_id, is_closed in rows}


def count(connection: sqlite3.Connection) -> Counts:
    executions = dict(connection.execute(SQL["count_open"]).fetchall())
    timers, inbox, dead_letters = connection.execute(SQL["count_queued"]).fetchone()
    return Counts(executions, timers, inbox, dead_letters)
