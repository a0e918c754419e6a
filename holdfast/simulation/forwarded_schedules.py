"""The schedules of a transaction around another one: each call goes to the inner one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core.instants import Instant
from holdfast.store.contract import Transaction
from holdfast.store.rows import Route
from holdfast.store.schedules import ScheduleKey, ScheduleRow


class ForwardedSchedules:
    """What `Scheduling` promises, by the transaction that a subclass is around."""

    def _find_inner(self) -> Transaction:
        raise NotImplementedError

    async def claim_schedules(
        self, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey], limit: int
    ) -> list[ScheduleRow]:
        """As `Scheduling.claim_schedules`, by the inner transaction."""
        return await self._find_inner().claim_schedules(due_until, routes, skip, limit)

    async def claim_waiting_schedules(
        self, routes: Collection[Route] | None, after: ScheduleKey, limit: int
    ) -> list[ScheduleRow]:
        """As `Scheduling.claim_waiting_schedules`, by the inner transaction."""
        return await self._find_inner().claim_waiting_schedules(routes, after, limit)

    async def find_open_ids(self, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """As `Scheduling.find_open_ids`, by the inner transaction."""
        return await self._find_inner().find_open_ids(pairs)

    async def write_schedules(self, rows: Sequence[ScheduleRow]) -> None:
        """As `Scheduling.write_schedules`, by the inner transaction."""
        await self._find_inner().write_schedules(rows)
