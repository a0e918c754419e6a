"""Reads outside of batches: each is one statement over what is committed."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection
from typing import Any

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.filters.evaluating import holds
from holdfast.filters.syntax import NEWEST_FIRST, Value
from holdfast.store.attributes import read_metadata
from holdfast.store.contract import ExecutionFilter
from holdfast.store.listing import find_end, is_behind, make_page, read_field
from holdfast.store.memory.tables import Tables, is_closed, may_take
from holdfast.store.rows import (
    BacklogRow,
    Counts,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    Route,
    StatusCounts,
    Waiting,
)


def find_execution(tables: Tables, org: str, execution_id: str) -> ExecutionRow | None:
    row = tables.executions.get(execution_id)
    return row if row is not None and row.org == org else None


def list_executions(tables: Tables, query: ExecutionFilter) -> list[ExecutionRow]:
    return search_executions(tables, query).rows


def search_executions(tables: Tables, query: ExecutionFilter) -> ExecutionPage:
    matching = (row for row in tables.executions.values() if _matches(row, query))
    if query.order == NEWEST_FIRST:
        rows = heapq.nlargest(query.limit, (row for row in matching if is_behind(query, row)), key=_by_id)
        return ExecutionPage(rows, find_end(query, rows, None))
    having: list[tuple[Value, str, ExecutionRow]] = []
    lacking: list[ExecutionRow] = []
    for row in matching:
        value = read_field(row, query.order.field)
        if value is None:
            lacking.append(row)
        else:
            having.append((value, row.execution_id, row))
    having.sort(key=lambda one: one[:2], reverse=query.order.is_descending)
    ordered = [row for *_, row in having] + sorted(lacking, key=_by_id, reverse=True)
    rows = [row for row in ordered if is_behind(query, row)][: query.limit]
    return make_page(query, rows)


def count_executions(tables: Tables, query: ExecutionFilter) -> StatusCounts:
    """All are looked at, whatever the filter's `scan`: so no count is given up."""
    return StatusCounts(dict(Counter(str(row.status) for row in list_executions(tables, query))))


def load_last_turn(tables: Tables, execution_id: str) -> HistoryRow | None:
    rows = tables.histories.get(execution_id)
    return rows[-1] if rows else None


def list_inbox(tables: Tables, org: str, execution_id: str, workflow_id: str) -> list[InboxRow]:
    rows = (tables.inbox[row_id] for row_id in sorted(tables.inbox))
    return [
        row
        for row in rows
        if row.org == org
        and (row.execution_id or execution_id) == execution_id
        and (row.execution_id or row.workflow_id == workflow_id)
    ]


def list_dead_letters(tables: Tables, org: str, limit: int, after: int) -> list[DeadLetterRow]:
    rows = (row for row in tables.dead_letters.values() if row.org == org and row.id > after)
    return heapq.nsmallest(limit, rows, key=lambda row: row.id)


def find_next_due(tables: Tables, skip: Collection[str], routes: Collection[Route] | None) -> Instant | None:
    skipped = frozenset(skip)
    wanted = None if routes is None else frozenset(routes)
    for due, execution_id, number in tables.due:
        if execution_id not in skipped and may_take(tables.timers[execution_id][number].route, wanted):
            return due
    return None


def find_settled(tables: Tables, execution_ids: Collection[str]) -> dict[str, bool]:
    rows = ((execution_id, tables.executions.get(execution_id)) for execution_id in execution_ids)
    found = ((execution_id, row) for execution_id, row in rows if row is not None)
    return {one: is_closed(row) for one, row in found if is_closed(row) or row.status == Status.BLOCKED}


def list_orphans(tables: Tables, alive: Collection[str], limit: int, after: str) -> list[ExecutionRow]:
    living, rows = frozenset(alive), tables.executions.values()
    orphans = (row for row in rows if not living.issuperset(row.nodes) and not is_closed(row))
    return heapq.nsmallest(limit, (row for row in orphans if row.execution_id > after), key=_by_id)


def list_held(tables: Tables, node: str, limit: int, after: str) -> list[ExecutionRow]:
    rows = (row for row in tables.executions.values() if row.execution_id > after and not is_closed(row))
    page = heapq.nsmallest(limit, rows, key=_by_id)
    return [row for row in page if node in row.nodes or row is page[-1]]


def list_blocked(tables: Tables, limit: int, after: str) -> list[ExecutionRow]:
    rows = tables.executions.values()
    blocked = (row for row in rows if row.status == Status.BLOCKED and row.execution_id > after)
    return heapq.nsmallest(limit, blocked, key=_by_id)


def count(tables: Tables) -> Counts:
    by_status = Counter(row.status for row in tables.executions.values() if not is_closed(row))
    return Counts(dict(by_status), len(tables.due), len(tables.inbox), len(tables.dead_letters))


def read_backlog(tables: Tables, now: Instant, limit: int) -> list[BacklogRow]:
    """Of each kind the first, grouped."""
    found: list[tuple[tuple[Waiting, str, str | None, Route, str], Instant | None]] = []

    def queue_of(execution_id: str) -> str | None:
        row = tables.executions.get(execution_id)
        return None if row is None else row.queue

    def mark_idle(execution_id: str) -> str:
        row = tables.executions.get(execution_id)
        return str(row.status) if row is not None and row.status in (Status.BLOCKED, Status.PAUSED) else ""

    opened = heapq.nsmallest(limit, (row for row in tables.executions.values() if not is_closed(row)), key=_by_id)
    found += [((Waiting.OPEN, row.org, row.queue, "", str(row.status)), row.created_at) for row in opened]
    waiting = [tables.inbox[row_id] for row_id in tables.arrivals[:limit]]
    found += [
        ((Waiting.INBOX, row.org, queue_of(row.execution_id), row.route, mark_idle(row.execution_id)), row.at or None)
        for row in waiting
    ]
    due = [tables.timers[execution_id][number] for at, execution_id, number in tables.due if at <= now][:limit]
    found += [
        ((Waiting.DUE, row.org, queue_of(row.execution_id), row.route, mark_idle(row.execution_id)), row.due) for row in due
    ]
    offered = [row for row in tables.offers.values() if row.node is None][:limit]
    found += [((Waiting.OFFERED, row.org, None, row.route, ""), None) for row in offered]
    counts = Counter(key for key, _ in found)
    oldest: dict[Any, Instant] = {}
    for key, at in found:
        if at is not None:
            oldest[key] = min(at, oldest.get(key, at))
    return [BacklogRow(*key, number, oldest.get(key)) for key, number in counts.items()]


def _matches(row: ExecutionRow, query: ExecutionFilter) -> bool:
    return (
        row.org == query.org
        and (not query.statuses or row.status in query.statuses)
        and query.workflow in (None, row.workflow)
        and query.workflow_id in (None, row.workflow_id)
        and query.parent_id in (None, row.parent_id)
        and row.workflow_id.startswith(query.workflow_id_prefix or "")
        and _is_within(row.created_at, query.created_after, query.created_before)
        and _is_within(row.closed_at, query.closed_after, query.closed_before)
        and (not query.metadata or query.metadata.items() <= dict(read_metadata(row.details)).items())
        and (query.where is None or holds(query.where, lambda field: read_field(row, field)))
    )


def _is_within(at: Instant | None, first: Instant | None, end: Instant | None) -> bool:
    if first is None and end is None:
        return True
    return at is not None and (first is None or at >= first) and (end is None or at < end)


def _by_id(row: ExecutionRow) -> str:
    return row.execution_id
