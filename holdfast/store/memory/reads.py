"""Reads outside of batches: each is one statement over what is committed."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.store.contract import Counts, ExecutionFilter
from holdfast.store.memory.tables import Tables, is_closed, may_take
from holdfast.store.rows import DeadLetterRow, ExecutionRow, HistoryRow, InboxRow, Route


def find_execution(tables: Tables, org: str, execution_id: str) -> ExecutionRow | None:
    row = tables.executions.get(execution_id)
    return row if row is not None and row.org == org else None


def list_executions(tables: Tables, query: ExecutionFilter) -> list[ExecutionRow]:
    return heapq.nlargest(query.limit, (row for row in tables.executions.values() if _matches(row, query)), key=_by_id)


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


def _matches(row: ExecutionRow, query: ExecutionFilter) -> bool:
    return (
        row.org == query.org
        and (not query.statuses or row.status in query.statuses)
        and query.workflow in (None, row.workflow)
        and query.workflow_id in (None, row.workflow_id)
        and query.parent_id in (None, row.parent_id)
        and (query.before is None or row.execution_id < query.before)
    )


def _by_id(row: ExecutionRow) -> str:
    return row.execution_id
