"""Nodes that share a schema on a real server, with the same pauses and faults as those that share memory.

Points of the memory store are found again where the same has happened: locks are had, rows are written but not committed,
the commit is durable. Wake-ups go straight from node to node, so that virtual time can wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from psycopg.rows import namedtuple_row

from holdfast.core import codec
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store.contract import Claim, Claimed, Store, Transaction, TurnWrite, UnroutedWrite
from holdfast.store.memory.faults import FaultAction, Point, SimulatedCrash
from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.transaction import PostgresTransaction, State
from holdfast.store.postgres.urls import parse_url
from tests.postgres.access import connect
from tests.rules.world import Commit, Nodes, nothing_fails

TABLES = ("executions", "timers", "inbox", "dead_letters", "requests")
ONLOOKER = "onlooker"
LATE = 0.05
"""Seconds for which a server that is late is still at it."""


class PostgresNodes(Nodes):
    """Engines on one schema, and one virtual clock."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.stores: dict[str, WatchedPostgres] = {}

    def make_store(self, node: str, *, exclusive: bool) -> Store:
        """With one transaction at a time: a node that dies in a batch does nothing beside it."""
        store = self.stores[node] = WatchedPostgres(self, node)
        return store

    async def open_onlooker(self) -> Store:
        store = WatchedPostgres(self, ONLOOKER)
        await store.open()
        return store

    async def snapshot(self) -> dict[str, list[Any]]:
        schema = parse_url(self.url).schema
        with connect(self.url) as connection:
            connection.row_factory = namedtuple_row
            found: dict[str, list[Any]] = {
                table: connection.execute(f'SELECT * FROM "{schema}".{table} ORDER BY 1, 2, 3').fetchall()
                for table in TABLES
            }
            turns = connection.execute(
                f'SELECT execution_id, body, schema FROM "{schema}".events JOIN "{schema}".executions ON id = execution '
                "ORDER BY execution, first"
            ).fetchall()
        found["events"] = [
            (execution_id, type(event).__name__)
            for execution_id, body, version in turns
            for event in codec.decode_events(bytes(body), version)
        ]
        return found

    async def kill(self, node: str) -> None:
        self.stores.pop(node)
        await self.engines.pop(node).crash()

    def wake_others(self, sender: WatchedPostgres, why: WakeReason) -> None:
        """Those who hear."""
        for store in list(self.stores.values()):
            if store is not sender and store.choose(Point.WAKE) is FaultAction.NONE:
                store.hear(why)


class WatchedPostgres(PostgresStore):
    """One node's way to the server."""

    def __init__(self, nodes: PostgresNodes, node: str) -> None:
        super().__init__(parse_url(f"{nodes.url}&lanes=1"), clock=nodes.clock.now)
        self.nodes = nodes
        self.node = node

    def choose(self, point: Point) -> FaultAction:
        return self.nodes.faults.get(self.node, nothing_fails)(point, self.node)

    async def reach(self, point: Point) -> FaultAction:
        """Come to a point; only what the caller must carry out is returned."""
        if self.node != ONLOOKER:
            await self.nodes.gate(point)
        action = self.choose(point)
        if action is FaultAction.FAIL:
            raise StoreUnavailable(f"Expected to reach the database, but the connection broke at {point}. Try again.")
        if action is FaultAction.CRASH:
            self.abandon()
            raise SimulatedCrash(self.node, point)
        return action

    def hear(self, why: WakeReason) -> None:
        self._receive_wake_up(why)

    async def begin(self) -> Transaction:
        await self.reach(Point.BEGIN)
        transaction = await WatchedTransaction.begin(self._batches, self._in_flight_connections)
        assert isinstance(transaction, WatchedTransaction)
        transaction.store = self
        return transaction

    async def was_committed(self, transaction: Transaction) -> bool:
        await self.reach(Point.WAS_COMMITTED)
        return await super().was_committed(transaction)

    async def _write(self, doing: str, work: Callable[[Connection], Any]) -> Any:
        if doing != "deliver to":
            return await super()._write(doing, work)
        action = FaultAction.NONE

        async def work_and_wait(connection: Connection) -> Any:
            nonlocal action
            result = await work(connection)
            action = await self.reach(Point.DELIVER_COMMIT)
            if action is FaultAction.LOST_UNKNOWN:
                connection.terminate()
            return result

        await self.reach(Point.DELIVER_LOCK)
        result = await super()._write(doing, work_and_wait)
        if action is FaultAction.APPLIED_UNKNOWN:
            raise OutcomeUnknown("Expected to hear of the commit, but the connection broke. Look whether it happened.")
        return result

    async def wake(self, why: WakeReason) -> None:
        if self.node != ONLOOKER:
            await self.nodes.gate(Point.WAKE)
        self.nodes.wake_others(self, why)


class WatchedTransaction(PostgresTransaction):
    """Its transaction."""

    store: WatchedPostgres

    def __init__(self, connections: Connections, connection: Connection, marks: Connections) -> None:
        super().__init__(connections, connection, marks)
        self._commit_shown = Commit()

    async def claim(self, claim: Claim) -> Claimed:
        await self._reach(Point.CLAIM_LOCK)
        claimed = await super().claim(claim)
        await self._reach(Point.CLAIM_READ)
        return claimed

    async def write(self, turns: Sequence[TurnWrite], loose: UnroutedWrite) -> set[str]:
        await self.store.nodes.come_by(self.store.node)
        for point in (Point.WRITE_ESCALATE, Point.WRITE_VERSIONS):
            await self._reach(point)
        lost = await super().write(turns, loose)
        for point in (Point.WRITE_INSERTS, Point.WRITE_ROWS):
            await self._reach(point)
        self._commit_shown.add(turns, loose, lost)
        return lost

    async def commit(self) -> None:
        action = await self._reach(Point.COMMIT)
        if action is FaultAction.LOST_UNKNOWN:
            self._connection.terminate()
        if action is FaultAction.LATE_UNKNOWN and self._has_written:
            await self._commit_late()
        await super().commit()
        self._show()
        if action is FaultAction.APPLIED_UNKNOWN:
            self._doubt()
        await self._reach(Point.COMMITTED)

    async def _commit_late(self) -> None:
        connection, self._connection = self._connection, await self._connections.connect()
        self.transaction_id = self.transaction_id or await connection.fetchval(self._sql["read_transaction_id"])
        self._connection.terminate()

        async def finish() -> None:
            await asyncio.sleep(LATE)
            await connection.execute("COMMIT")
            connection.terminate()

        self.late = asyncio.ensure_future(finish())
        self._show()

    def _show(self) -> None:
        if not self._commit_shown.is_empty and self.store.node != ONLOOKER:
            self.store.nodes.commits.append(self._commit_shown)

    def _doubt(self) -> None:
        """The commit took place, but nobody knows: the server has to be asked."""
        if self.transaction_id is not None:
            self._state = State.DOUBTFUL
        raise OutcomeUnknown("Expected to hear of the commit, but the connection broke. Ask was_committed.")

    async def _reach(self, point: Point) -> FaultAction:
        try:
            return await self.store.reach(point)
        except StoreUnavailable:
            await self.rollback()
            raise
