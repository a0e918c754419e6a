"""The schema on a real PostgreSQL server that nodes share. Faults are injected between any two statements."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from holdfast.core.instants import SECOND, Instant
from holdfast.engine.activities.attempt import ActivityInfo
from holdfast.errors import StoreUnavailable
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.server_loop import ServerLoop
from holdfast.simulation.sqlite_backend import InjectedFault
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Store, Transaction, TurnWrite, UnroutedWrite
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.drivers import Connection, DriverConnection
from holdfast.store.postgres.statements import quote_name
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.postgres.urls import DatabaseAddress, parse_url
from holdfast.store.rows import ExecutionRow

if TYPE_CHECKING:
    from holdfast.simulation.world import World

MOST_CRASHES: Final = 12
FAULT_SECONDS: Final = 90
"""After so much virtual time no more faults are injected, so that every run ends."""
COMMIT: Final = "COMMIT"
SHORT_LOCKS: Final = {"lock_timeout": "200ms"}
"""Virtual time does not pass while a statement waits for a lock, so the owner of the lock would never go on."""
ChooseFault: TypeAlias = Callable[[str], InjectedFault]
"""Chooses the fault before the next statement; for a commit, also its outcome."""


def no_fault(_statement: str) -> InjectedFault:
    """Choose no fault, whatever the statement: the server of an undisturbed run."""
    return InjectedFault.NONE


class CrashAtStatement:
    """Injects one crash, before the statement of this number; `count` tells how many statements were sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, _statement: str) -> InjectedFault:
        """The fault for the next statement."""
        self.count += 1
        return InjectedFault.CRASH if self.count == self.number else InjectedFault.NONE


def random_faults(random: Random, crashes: float, cuts: float, doubts: float) -> ChooseFault:
    """Inject crashes, cut connections and commits of unknown outcome at random, at these rates."""

    def decide(statement: str) -> InjectedFault:
        draw = random.random()
        if draw < crashes:
            return InjectedFault.CRASH
        if draw < crashes + cuts:
            return InjectedFault.FAIL
        if statement == COMMIT and draw < crashes + cuts + doubts:
            return random.choice((InjectedFault.APPLIED, InjectedFault.LOST, InjectedFault.LATE))
        return InjectedFault.NONE

    return decide


class ServerBackend:
    """One schema of a PostgreSQL server for all nodes of a world."""

    def __init__(self, world: World, address: DatabaseAddress, decide: ChooseFault) -> None:
        self.monitor: Monitor = DeferredMonitor(self)
        self.commits: list[asyncio.Task[str]] = []
        """Commits that were sent and not yet shown to the monitor, in the order of sending: of two commits that concern one
        execution, the second was sent after the first took place."""
        self.world = world
        self._address = address
        self._decide = decide
        self._stores: dict[str, SimulatedStore] = {}
        self._observer: SimulatedStore | None = None
        self._crashes = 0
        self._broken_until: Instant = 0
        self._faults_end_at = world.loop.now + FAULT_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """A node's store, with its own connections and with faults."""
        store = self._stores[node] = SimulatedStore(self._address, self, node)
        return store

    def release_dead_node(self, node: str) -> None:
        """Cut the connections of a dead node; the server rolls back. A commit that was sent takes place."""
        self._stores.pop(node).abandon()

    def clear(self) -> None:
        """Cut the connections that a failed run left open."""
        for store in self._stores.values():
            store.abandon()

    def drop_transactions(self, node: str) -> None:
        """Cut sessions of a frozen node that are idle in a transaction, as the server's timeout does."""
        if node in self._stores:
            self._stores[node].drop_transactions()

    def break_until(self, when: Instant) -> None:
        """Let every statement fail until then; no node may take over from another because of it."""
        self.monitor.may_take_over = False
        self._broken_until = when

    async def catch_up(self) -> None:
        """Wait for commits that were sent: others may see them before the server has answered."""
        if self.commits:
            await asyncio.wait(self.commits)

    async def find_observer(self) -> Store | None:
        """A store that belongs to no node, without faults."""
        if self._observer is None:
            observer = SimulatedStore(self._address, self, "")
            await observer.open()
            self._observer = observer
        return self._observer

    @asynccontextmanager
    async def open_for_checks(self) -> AsyncIterator[Store]:
        """The store without faults, for the checks."""
        store = await self.find_observer()
        assert store is not None  # noqa: S101 - there is always one
        try:
            yield store
        finally:
            await store.close()

    # --- called by connections ---

    @property
    def loop(self) -> ServerLoop:
        """The world's loop, which waits for the server."""
        loop = self.world.loop
        assert isinstance(loop, ServerLoop)  # noqa: S101 - worlds on a server have this loop
        return loop

    async def reach(self, statement: str, node: str) -> InjectedFault:
        """Pass the fault point before a statement. A crash never returns; other faults are for the caller to carry out."""
        world = self.world
        if world.is_over or world.loop.now > self._faults_end_at or node not in world.nodes:
            return InjectedFault.NONE
        if world.loop.now < self._broken_until:
            return InjectedFault.FAIL
        fault = self._decide(statement)
        if fault is InjectedFault.CRASH and self._crashes >= MOST_CRASHES:
            return InjectedFault.NONE
        if fault is not InjectedFault.NONE:
            world.note(f"{fault} before {statement} on {node}")
        if fault is InjectedFault.CRASH:
            self._crashes += 1
            world.kill(node)
            await world.loop.create_future()
        return fault

    def name_statement(self, sql: str) -> str:
        """A short name of a statement, for messages."""
        return sql if len(sql) <= len("ROLLBACK") else sql.partition("\n")[0][:60]


class DeferredMonitor(Monitor):
    """Checks an attempt once all commits that were sent before it are shown to the monitor."""

    def __init__(self, backend: ServerBackend) -> None:
        super().__init__()
        self._backend = backend

    def note_attempt(self, info: ActivityInfo, is_second: bool) -> None:
        """Check now, or once the commits that were sent are shown, that a starting activity is durable (X4)."""
        if not self._backend.commits:
            super().note_attempt(info, is_second)
            return
        check_attempt = partial(super().note_attempt, info, is_second)

        async def check_later() -> None:
            await self._backend.catch_up()
            check_attempt()

        _ = self._backend.loop.create_task(check_later(), context=self._backend.world.outside.copy())


class SimulatedConnection(DriverConnection):
    """A node's connection with a fault point before each statement; it shows every commit to the monitor."""

    backend: ServerBackend
    node: str
    sql: Mapping[str, str]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.written: list[TurnWrite] = []
        """What the present transaction wrote."""
        self.replaced: list[ExecutionRow] = []
        self._is_committing = False
        self._close_after_commit = False

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Execute a statement without parameters: BEGIN, COMMIT, ROLLBACK, and those that create the schema."""
        fault = await self._reach(query)
        if query != COMMIT:
            if query.startswith("BEGIN"):
                self.written, self.replaced = [], []
            with self.backend.loop.asking(self.node):
                return str(await super().execute(query, *args, timeout=timeout))
        if fault is InjectedFault.LOST:
            self.terminate()
        # It belongs to no node: once sent, a commit takes place even if its node dies.
        self._is_committing = True
        before = list(self.backend.commits)
        commit = self.backend.loop.create_task(self._commit(before), context=self.backend.world.outside.copy())
        self.backend.commits.append(commit)
        commit.add_done_callback(self._forget, context=self.backend.world.outside.copy())
        if fault is not InjectedFault.LATE:
            with self.backend.loop.asking(self.node):
                await asyncio.wait([commit])
        if fault in (InjectedFault.APPLIED, InjectedFault.LATE):
            self.terminate()
            raise ConnectionResetError("the connection broke during the commit")
        return str(await commit)

    def _forget(self, commit: asyncio.Task[str]) -> None:
        self.backend.commits.remove(commit)
        if not commit.cancelled():
            commit.exception()  # retrieved here: a node that is dead by now does not ask

    async def _commit(self, before: list[asyncio.Task[str]]) -> str:
        try:
            with self.backend.loop.asking(""):
                status = str(await super().execute(COMMIT))
            if before:
                await asyncio.wait(before)
            histories = [turn.history for turn in self.written if turn.history is not None]
            self.backend.monitor.note_commit([*(turn.row for turn in self.written), *self.replaced], histories)
            return status
        finally:
            self._is_committing = False
            if self._close_after_commit:
                self.terminate()

    async def _execute(self, query: str, args: Any, limit: int, timeout: float | None, **options: Any) -> Any:
        """Execute a statement with parameters."""
        await self._reach(query)
        with self.backend.loop.asking(self.node):
            result = await super()._execute(query, args, limit, timeout, **options)  # type: ignore[misc]  # the driver's own
        if result and query == self.sql["replace_execution"]:
            self.replaced.append(to_execution_row([*args[:2], *args[3:]]))
        return result

    async def _reach(self, query: str) -> InjectedFault:
        fault = await self.backend.reach(self.backend.name_statement(query), self.node)
        if fault is InjectedFault.FAIL:
            self.terminate()
            raise ConnectionResetError("the connection broke")
        return fault

    async def close(self, *, timeout: float | None = None) -> None:
        """Close the connection cleanly; virtual time stands still until the server has answered."""
        with self.backend.loop.asking(self.node):
            await super().close(timeout=timeout)

    def terminate(self) -> None:
        """Cut the connection; after the answer, if a commit was sent."""
        if self._is_committing:
            self._close_after_commit = True
        else:  # in no node's context: the socket of a dead node is closed too
            self.backend.world.outside.copy().run(super().terminate)


class SimulatedConnections(Connections):
    """The connections of one simulated node."""

    def __init__(self, backend: ServerBackend, node: str, *args: Any) -> None:
        super().__init__(*args)
        self.backend = backend
        self.node = node
        self._made: list[Connection] = []
        self._settings = {**self._settings, **SHORT_LOCKS}
        self.connection_class = type(
            "OwnConnection", (SimulatedConnection,), {"backend": backend, "node": node, "sql": self.sql}
        )

    async def connect(self, *, name: str = "holdfast", **settings: str) -> Connection:
        """Connect, unless a fault is injected before it."""
        fault = await self.backend.reach("connect", self.node)
        if fault is InjectedFault.FAIL:
            raise StoreUnavailable(f"Expected to connect to {self.address.shown}, but it is out of reach. Try again.")
        with self.backend.loop.asking(self.node):
            connection = await super().connect(name=name, **settings)
        self._made.append(connection)
        return connection

    def abandon(self) -> None:
        """Cut all connections, as the system does for a dead process; also those outside the pool."""
        super().abandon()
        for connection in self._made:
            connection.terminate()

    def drop_transactions(self) -> None:
        """Cut the connections that are in a transaction."""
        for connection in self._in_use:
            if not connection.is_closed() and connection.is_in_transaction():
                connection.terminate()


class SimulatedStore(PostgresStore):
    """The store of one simulated node."""

    def __init__(self, address: DatabaseAddress, backend: ServerBackend, node: str) -> None:
        self.make_connections = lambda *args: SimulatedConnections(backend, node, *args)
        super().__init__(address, clock=backend.world.read_clock)

    async def begin(self) -> Transaction:
        return await SimulatedTransaction.begin(self._batches, self._in_flight_connections)

    def drop_transactions(self) -> None:
        """Cut the connections that are in a transaction, as the server's timeout does."""
        for connections in (self._batches, self._connections):
            assert isinstance(connections, SimulatedConnections)  # noqa: S101 - made above
            connections.drop_transactions()


class SimulatedTransaction(PostgresTransaction):
    """A transaction that remembers on its connection what was written, for the monitor."""

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        lost = await super().write(turns, unrouted)
        connection = self._connection
        assert isinstance(connection, SimulatedConnection)  # noqa: S101 - a simulated store has no other
        connection.written.extend(turn for turn in turns if turn.row.execution_id not in lost)
        return lost


# --- the schema of a run -------------------------------------------------------------------------------------------------


def make_address(url: str) -> DatabaseAddress:
    """The address of a new schema with a random name, on the server and database of the URL."""
    address = parse_url(url)
    return msgspec.structs.replace(address, schema=f"{address.schema[:30]}_simulation_{secrets.token_hex(8)}")


def remove_schema(address: DatabaseAddress) -> None:
    """Drop the schema if it exists. Called before a run too, so that a server out of reach is reported as such."""
    asyncio.run(_remove_schema(address))


async def _remove_schema(address: DatabaseAddress) -> None:
    async with Connections(address, 1).use("remove a schema of") as connection:
        await connection.execute("SET client_min_messages TO warning")
        await connection.execute(f"DROP SCHEMA IF EXISTS {quote_name(address.schema)} CASCADE")
        await connection.close()
