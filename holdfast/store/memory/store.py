"""The store in memory: one handle per node, any number of them on one database."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.store.contract import (
    Counts,
    DeadLetterRow,
    ExecutionRow,
    Filter,
    HistoryRow,
    InboxRow,
    NodeRow,
    Transaction,
)
from holdfast.store.memory.checks import check_tables
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import Faults, Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Changes, Tables, View, is_closed
from holdfast.store.memory.transaction import MemoryTransaction


class MemoryStore:
    """A node's handle on a database in memory.

    Several on one database are several nodes on one PostgreSQL: the same locks, the same visibility, and waits in the same
    places. An `exclusive` one has its database to itself and waits at commits only.
    """

    def __init__(
        self,
        database: MemoryDatabase | None = None,
        *,
        node: str = "node",
        faults: Faults | None = None,
        exclusive: bool = False,
    ) -> None:
        self.database = database if database is not None else MemoryDatabase()
        self._connection = Connection(self.database, node, faults, is_exclusive=exclusive)
        self._exclusive = exclusive

    @property
    def exclusive(self) -> bool:
        return self._exclusive

    async def open(self) -> None:
        self._connection.open()

    async def close(self) -> None:
        self._connection.close()

    # --- batches ---

    async def begin(self) -> Transaction:
        await self._connection.reach(Point.BEGIN)
        return MemoryTransaction(self._connection)

    async def was_committed(self, transaction: Transaction) -> bool:
        if not isinstance(transaction, MemoryTransaction):
            raise StoreError("Expected a transaction of a store in memory, but it is another's. Ask the store it is of.")
        while True:
            try:
                await self._connection.reach(Point.WAS_COMMITTED)
            except StoreUnavailable:
                self._connection.check_usable()  # a broken connection is mended; a dead node asks no more
                continue
            return await transaction.was_committed()

    # --- writing outside of batches ---

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """Put envelopes into inboxes; `transaction` tells how that meets a closing turn."""
        session = Session(self._connection)
        tables, locks = self.database.tables, session.locks
        with session.statement():
            await session.reach(Point.DELIVER_LOCK)
            for org, execution_id in sorted({(row.org, row.execution_id) for row in rows}):
                if execution_id in tables.executions:
                    await session.wait_until(partial(locks.try_share, session, (org, execution_id)))
            accepted = [self._is_open(row.org, row.execution_id) for row in rows]
            await session.reach(Point.DELIVER_INSERT)
            session.put_inbox(row for row, is_open in zip(rows, accepted, strict=True) if is_open)
        await session.finish(Point.DELIVER_COMMIT, Point.DELIVERED)
        return accepted

    def _is_open(self, org: str, execution_id: str) -> bool:
        row = self.database.tables.executions.get(execution_id)
        return row is not None and row.org == org and not is_closed(row)

    async def discard_dead_letters(self, org: str, ids: Collection[int]) -> int:
        return len(await self._take_dead_letters(org, ids))

    async def requeue_dead_letters(self, org: str, ids: Collection[int]) -> int:
        return len(await self._take_dead_letters(org, ids, requeue=True))

    async def _take_dead_letters(self, org: str, ids: Collection[int], *, requeue: bool = False) -> list[DeadLetterRow]:
        """DELETE ... RETURNING: who comes second waits for the first and finds nothing."""
        session, stored = Session(self._connection), self.database.tables.dead_letters
        with session.statement():
            await session.reach(Point.READ)
            for row_id in sorted(set(ids)):
                await session.wait_until(partial(session.locks.try_key, session, ("dead letter", row_id)))
            taken = [stored[row_id] for row_id in sorted(set(ids)) if row_id in stored and stored[row_id].org == org]
            session.changes.discarded.update(row.id for row in taken)
            if requeue:
                session.put_inbox(InboxRow(row.org, row.execution_id, row.workflow_id, row.body) for row in taken)
        await session.finish(Point.UPDATE, Point.UPDATED)
        return taken

    async def set_status(self, org: str, execution_id: str, expected_version: int, row: ExecutionRow) -> bool:
        session = Session(self._connection)
        with session.statement():
            await session.reach(Point.READ)
            await session.wait_until(lambda: session.locks.try_update(session, (org, execution_id)))
            stored = self.database.tables.executions.get(execution_id)
            is_expected = stored is not None and stored.org == org and stored.state_version == expected_version
            if is_expected:
                session.changes.put_execution(row)
        await session.finish(Point.UPDATE, Point.UPDATED)
        return is_expected

    # --- reading outside of batches ---

    async def _committed(self) -> Tables:
        await self._connection.reach(Point.READ)
        return self.database.tables

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        row = (await self._committed()).executions.get(execution_id)
        return row if row is not None and row.org == org else None

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return View(await self._committed(), Changes()).latest((org, workflow_id))

    async def list_executions(self, query: Filter) -> list[ExecutionRow]:
        rows = (await self._committed()).executions.values()
        return heapq.nlargest(query.limit, (row for row in rows if _matches(row, query)), key=_by_id)

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        return View(await self._committed(), Changes()).history(execution_id, after)[:limit]

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        rows = (await self._committed()).histories.get(execution_id)
        return rows[-1] if rows else None

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        rows = (await self._committed()).dead_letters.values()
        return heapq.nsmallest(limit, (row for row in rows if row.org == org and row.id > after), key=lambda row: row.id)

    async def find_next_due(self, skip: Collection[str]) -> Instant | None:
        skipped = frozenset(skip)
        due = (await self._committed()).due
        return next((at for at, execution_id, _ in due if execution_id not in skipped), None)

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        living = frozenset(alive)
        rows = (await self._committed()).executions.values()
        orphans = (row for row in rows if row.node and not living.issuperset(row.node.split(",")) and not is_closed(row))
        return heapq.nsmallest(limit, (row for row in orphans if row.execution_id > after), key=_by_id)

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        rows = (await self._committed()).executions.values()
        blocked = (row for row in rows if row.status == Status.BLOCKED and row.execution_id > after)
        return heapq.nsmallest(limit, blocked, key=_by_id)

    async def count(self) -> Counts:
        tables = await self._committed()
        by_status = Counter(row.status for row in tables.executions.values() if not is_closed(row))
        return Counts(dict(by_status), len(tables.due), len(tables.inbox), len(tables.dead_letters))

    async def check(self) -> list[str]:
        return check_tables(await self._committed())

    # --- nodes ---

    async def beat(self, node: NodeRow) -> None:
        await self._connection.reach(Point.BEAT)
        self.database.tables.nodes[node.node] = node

    async def list_nodes(self) -> list[NodeRow]:
        nodes = (await self._committed()).nodes
        return [nodes[name] for name in sorted(nodes)]

    async def leave(self, node: str) -> None:
        await self._connection.reach(Point.BEAT)
        self.database.tables.nodes.pop(node, None)

    def on_wake(self, callback: Callable[[], None]) -> None:
        self._connection.listeners.append(callback)

    async def wake(self) -> None:
        await self._connection.linger(Point.WAKE)
        for other in self.database.others(self._connection):
            other.hear()


def _matches(row: ExecutionRow, query: Filter) -> bool:
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
