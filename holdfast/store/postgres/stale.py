"""Stale work on PostgreSQL: see `holdfast.store.stale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.stale import StaleExecutions, StaleQuery, StaleTasks, to_stale_executions, to_stale_tasks

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections


class StaleReads:
    """Finds open work that nobody has touched for a long time."""

    _connections: Connections

    async def find_stale_executions(self, query: StaleQuery) -> StaleExecutions:
        values = (query.after, query.end, query.scan, query.before, query.org)
        return to_stale_executions(await self._connections.fetch("read", "find_stale_executions", *values), query)

    async def find_stale_tasks(self, query: StaleQuery) -> StaleTasks:
        values = (*query.task_bounds, query.scan, query.before, query.now)
        return to_stale_tasks(await self._connections.fetch("read", "find_stale_tasks", *values), query)
