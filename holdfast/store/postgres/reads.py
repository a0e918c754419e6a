"""Reads outside of batches: they see what is committed and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Counts, ExecutionFilter
from holdfast.store.rows import DeadLetterRow, ExecutionRow, HistoryRow, InboxRow, Route

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections

_OPEN: Final = frozenset({Status.RUNNING, Status.SUSPENDED, Status.BLOCKED, Status.PAUSED})


def to_histories(asked: Iterable[str], rows: Iterable[Any]) -> dict[str, list[HistoryRow]]:
    """History rows by execution; one without any has an empty list."""
    histories: dict[str, list[HistoryRow]] = {execution_id: [] for execution_id in asked}
    for row in rows:
        histories[row[0]].append(HistoryRow(*row))
    return histories


class Reads:
    """Every question that is no part of a batch."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def _fetch(self, name: str, *values: Any) -> list[Any]:
        return await self._connections.fetch("read", name, *values)

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        rows = await self._fetch("find_execution", org, execution_id)
        return to_execution_row(rows[0]) if rows else None

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        rows = await self._fetch("read_latest", org, workflow_id)
        return to_execution_row(rows[0]) if rows else None

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        statuses = [str(Status(one)) for one in query.statuses] or None
        values = (query.org, query.before, statuses, query.workflow, query.limit)
        if query.workflow_id is not None:
            rows = await self._fetch("list_executions_of_workflow_id", *values, query.workflow_id, query.parent_id)
        elif query.parent_id is not None:
            rows = await self._fetch("list_children", *values, query.parent_id)
        elif statuses is not None and _OPEN.issuperset(query.statuses):
            rows = await self._fetch("list_open_executions", *values)
        else:
            rows = await self._fetch("list_executions", *values)
        return [to_execution_row(row) for row in rows]

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        return [HistoryRow(*row) for row in await self._fetch("read_events_page", execution_id, after, limit)]

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        rows = await self._fetch("read_last_events", execution_id)
        return HistoryRow(*rows[0]) if rows else None

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        return [InboxRow(*row) for row in await self._fetch("list_inbox", org, execution_id, workflow_id, limit)]

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        return [DeadLetterRow(*row) for row in await self._fetch("list_dead_letters", org, limit, after)]

    async def find_next_due(self, skip: Collection[str], routes: Collection[Route] | None = None) -> Instant | None:
        mine = ["", *routes] if routes is not None else [route for (route,) in await self._fetch("list_routes")]
        due: Instant | None = (await self._fetch("find_next_due", mine, list(skip)))[0][0]
        return due

    async def find_settled(self, execution_ids: Collection[str]) -> dict[str, bool]:
        return dict(await self._fetch("find_settled", list(execution_ids)))

    async def find_oldest_closed(self) -> Instant | None:
        at: Instant | None = (await self._fetch("find_oldest_closed"))[0][0]
        return at

    async def find_oldest_dead_letter(self) -> Instant | None:
        rows = await self._fetch("find_oldest_dead_letter")
        return rows[0][0] if rows else None

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_orphans", list(alive), limit, after)]

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_held", node, limit, after)]

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_blocked", limit, after)]

    async def count(self) -> Counts:
        by_status: dict[str, int] = dict(await self._fetch("count_open"))
        ((timers, inbox, dead_letters),) = await self._fetch("count_queued")
        return Counts(by_status, timers, inbox, dead_letters)
