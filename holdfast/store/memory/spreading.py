"""What reaches its subscribers in batches, in the statements in which PostgreSQL would do it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.store import matching
from holdfast.store.matching import Waiter
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import StoredSubscription, is_closed
from holdfast.store.publications import PublicationRow, SpreadHead, SubscriptionRow
from holdfast.store.rows import ExecutionRow


class MemorySpreading:
    """The part of a batch's transaction that is about subscribers to be reached."""

    _session: Session

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        with self._session.statement():
            await self._session.reach(Point.READ)
            row = self._hold_spread(skip)
            return None if row is None else SpreadHead(row.id, row.org, row.origin, row.body)

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        with self._session.statement():
            await self._session.reach(Point.SPREAD)
            row = self._hold_spread(skip)
            if row is None:
                return 0
            first, rest = matching.cut_spread(row, limit)
            self._session.changes.publications[row.id] = replace(row, subscribers=rest) if rest else None
            for key in first:
                self._trigger(key, row.body, now)
            return len(first)

    def _hold_spread(self, skip: Collection[int]) -> PublicationRow | None:
        """The first publication that is spread and nobody else is at."""
        for row in self._session.view.all_publications():
            is_left = not row.subscribers or row.id in skip
            if not is_left and self._session.locks.try_key(self._session, ("publication", row.id)):
                return row
        return None

    def _trigger(self, key: matching.NumberKey, body: bytes, at: Instant) -> None:
        one = self._session.view.subscription(key)
        for waiter in () if one is None else self._make_waiter(one):
            self._session.put_triggered(waiter, body, at)

    def _make_waiter(self, one: StoredSubscription) -> Iterator[Waiter]:
        execution, row = self._find_open(one.row), one.row
        if execution is not None:
            yield Waiter(one.id, row.org, row.execution_id, row.number, row.standing, execution.route)

    def _find_open(self, row: SubscriptionRow) -> ExecutionRow | None:
        execution = self._session.view.execution(row.execution_id)
        return execution if execution is not None and execution.org == row.org and not is_closed(execution) else None
