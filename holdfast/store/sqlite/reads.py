"""What is read without claiming anything: by transactions, and outside of them by the reader's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins

from holdfast.core.instants import Instant
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Counts, ExecutionFilter
from holdfast.store.listing import FEW, Lead, choose_lead, find_bounds, find_end, list_probes
from holdfast.store.rows import (
    BacklogRow,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    RequestKeyId,
    RequestRow,
    Route,
    Waiting,
)
from holdfast.store.sqlite.statements import SQL, as_json

_PROBES: Final = {Lead.PREFIX: "probe_prefix", Lead.END: "probe_closed"}


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
    lead, values = _prepare_list(connection, query)
    return [to_execution_row(row) for row in connection.execute(SQL[lead], values)]


def search_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> ExecutionPage:
    lead, values = _prepare_list(connection, query)
    rows = [to_execution_row(row) for row in connection.execute(SQL[lead], values)]
    end = None
    if len(rows) < query.limit and lead.walk_end is not None and query.scan is not None:
        end = connection.execute(SQL[lead.walk_end], values).fetchone()
    return ExecutionPage(rows, find_end(query, rows, end and end[0]))


def count_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> dict[str, int]:
    lead, values = _prepare_list(connection, query)
    return dict(connection.execute(SQL[f"count_{lead}"], values).fetchall())


def _prepare_list(connection: sqlite3.Connection, query: ExecutionFilter) -> tuple[Lead, dict[str, Any]]:
    """The index that leads, and what its statement takes."""
    values = to_builtins(find_bounds(query))
    values |= {"org": query.org, "workflow": query.workflow, "workflow_id": query.workflow_id, "parent_id": query.parent_id}
    values |= {"limit": query.limit, "scan": -1 if query.scan is None else query.scan, "most": FEW + 1}
    values |= {"metadata": as_json(dict(query.metadata)), "name": None, "value": None}
    values["statuses"] = values["statuses"] and as_json(values["statuses"])

    def probe(statement: str, pair: tuple[str, str] | None = None) -> int:
        asked = values if pair is None else {**values, "name": pair[0], "value": pair[1]}
        (number,) = connection.execute(SQL[statement], asked).fetchone()
        return int(number)

    if query.metadata:
        pairs = list(query.metadata.items())
        rarest = pairs[0] if len(pairs) == 1 else min(pairs, key=lambda pair: probe("probe_attribute", pair))
        values["name"], values["value"] = rarest
    return choose_lead(query, {lead: probe(_PROBES[lead]) for lead in list_probes(query)}), values


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


def read_backlog(connection: sqlite3.Connection, now: Instant, limit: int) -> list[BacklogRow]:
    found = connection.execute(SQL["read_backlog"], {"now": now, "limit": limit})
    return [BacklogRow(Waiting(what), *columns) for what, *columns in found]
