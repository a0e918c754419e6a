"""Nodes that share a schema on a real PostgreSQL. What can go wrong, goes wrong between any two of their statements."""

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
from holdfast.simulation.sqlite_stage import Mishap
from holdfast.store.contract import ExecutionRow, LooseWrite, Store, Transaction, TurnWrite
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.drivers import Connection, DriverConnection
from holdfast.store.postgres.statements import quote_name
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.postgres.urls import Address, parse_url

if TYPE_CHECKING:
    from holdfast.simulation.world import World

MOST_CRASHES: Final = 12
TROUBLE_SECONDS: Final = 90
"""After so much virtual time nothing goes wrong any more, so that every run ends."""
COMMIT: Final = "COMMIT"
SHORT_LOCKS: Final = {"lock_timeout": "200ms"}
"""Who waits for a node that stands still waits in vain: time stands still too."""
Decide: TypeAlias = Callable[[str], Mishap]
"""From the statement that comes next to what happens before it; to a commit, also what becomes of it."""


def never(_statement: str) -> Mishap:
    """Nothing goes wrong."""
    return Mishap.NONE


class CrashAt:
    """One crash, before the statement of this number. `count` tells how many there were."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, _statement: str) -> Mishap:
        """Crash where it is time."""
        self.count += 1
        return Mishap.CRASH if self.count == self.number else Mishap.NONE


def at_random(random: Random, crashes: float, cuts: float, doubts: float) -> Decide:
    """Crashes and cut connections before any statement, and commits whose outcome is not heard, at these rates."""

    def decide(statement: str) -> Mishap:
        draw = random.random()
        if draw < crashes:
            return Mishap.CRASH
        if draw < crashes + cuts:
            return Mishap.FAIL
        if statement == COMMIT and draw < crashes + cuts + doubts:
            return random.choice((Mishap.APPLIED, Mishap.LOST, Mishap.LATE))
        return Mishap.NONE

    return decide


class ServerStage:
    """One schema for all nodes of a world."""

    def __init__(self, world: World, address: Address, decide: Decide) -> None:
        self.monitor: Monitor = PatientMonitor(self)
        self.commits: list[asyncio.Task[str]] = []
        """Those that were sent and not yet shown to the monitor, in the order of sending: of two that concern one execution,
        the second was sent after the first took place."""
        self.world = world
        self._address = address
        self._decide = decide
        self._stores: dict[str, StagedStore] = {}
        self._observer: StagedStore | None = None
        self._crashes = 0
        self._broken_until: Instant = 0
        self._calm_at = world.loop.now + TROUBLE_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """A node's own connections, with mishaps."""
        store = self._stores[node] = StagedStore(self._address, self, node)
        return store

    def bury(self, node: str) -> None:
        """Its connections are gone; the server rolls back. A commit that was sent takes place."""
        self._stores.pop(node).abandon()

    def clear(self) -> None:
        """A run that failed left its connections as they were."""
        for store in self._stores.values():
            store.abandon()

    def drop_transactions(self, node: str) -> None:
        """The server gives up on sessions that are idle in a transaction."""
        if node in self._stores:
            self._stores[node].drop_transactions()

    def break_until(self, when: Instant) -> None:
        """Every statement fails until then; and nobody has reason to take another's work."""
        self.monitor.may_rob = False
        self._broken_until = when

    async def catch_up(self) -> None:
        """What the server has committed is visible a moment before it says so."""
        if self.commits:
            await asyncio.wait(self.commits)

    async def find_observer(self) -> Store | None:
        """Connections of nobody's."""
        if self._observer is None:
            observer = StagedStore(self._address, self, "")
            await observer.open()
            self._observer = observer
        return self._observer

    @asynccontextmanager
    async def examine(self) -> AsyncIterator[Store]:
        """The same."""
        store = await self.find_observer()
        assert store is not None  # noqa: S101 - there is always one
        try:
            yield store
        finally:
            await store.close()

    # --- for its connections ---

    @property
    def loop(self) -> ServerLoop:
        """Where it all happens."""
        loop = self.world.loop
        assert isinstance(loop, ServerLoop)  # noqa: S101 - there is no other way to a server
        return loop

    async def reach(self, statement: str, node: str) -> Mishap:
        """Before a statement. A crash never returns; of cut connections the caller must see to."""
        world = self.world
        if world.is_over or world.loop.now > self._calm_at or node not in world.nodes:
            return Mishap.NONE
        if world.loop.now < self._broken_until:
            return Mishap.FAIL
        mishap = self._decide(statement)
        if mishap is Mishap.CRASH and self._crashes >= MOST_CRASHES:
            return Mishap.NONE
        if mishap is not Mishap.NONE:
            world.note(f"{mishap} before {statement} on {node}")
        if mishap is Mishap.CRASH:
            self._crashes += 1
            world.kill(node)
            await world.loop.create_future()
        return mishap

    def name_statement(self, sql: str) -> str:
        """For people."""
        return sql if len(sql) <= len("ROLLBACK") else sql.partition("\n")[0][:60]


class PatientMonitor(Monitor):
    """Judges an attempt once it knows all that whoever began it may have known."""

    def __init__(self, stage: ServerStage) -> None:
        super().__init__()
        self._stage = stage

    def note_attempt(self, info: ActivityInfo, is_second: bool) -> None:
        """An activity begins."""
        if not self._stage.commits:
            super().note_attempt(info, is_second)
            return
        judge = partial(super().note_attempt, info, is_second)

        async def judge_later() -> None:
            await self._stage.catch_up()
            judge()

        _ = self._stage.loop.create_task(judge_later(), context=self._stage.world.outside.copy())


class StagedConnection(DriverConnection):
    """A connection of a node: each statement is a place for mishaps, and every commit is shown to the monitor."""

    stage: ServerStage
    node: str
    sql: Mapping[str, str]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.written: list[TurnWrite] = []
        """What the present transaction wrote."""
        self.replaced: list[ExecutionRow] = []
        self._is_committing = False
        self._is_doomed = False

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """BEGIN, COMMIT, ROLLBACK, and what makes the schema."""
        mishap = await self._reach(query)
        if query != COMMIT:
            if query.startswith("BEGIN"):
                self.written, self.replaced = [], []
            with self.stage.loop.asking(self.node):
                return str(await super().execute(query, *args, timeout=timeout))
        if mishap is Mishap.LOST:
            self.terminate()
        # As sent by the system: it takes place, whatever becomes of the node.
        self._is_committing = True
        before = list(self.stage.commits)
        commit = self.stage.loop.create_task(self._commit(before), context=self.stage.world.outside.copy())
        self.stage.commits.append(commit)
        commit.add_done_callback(self._forget, context=self.stage.world.outside.copy())
        if mishap is not Mishap.LATE:
            with self.stage.loop.asking(self.node):
                await asyncio.wait([commit])
        if mishap in (Mishap.APPLIED, Mishap.LATE):
            self.terminate()
            raise ConnectionResetError("the connection broke during the commit")
        return str(await commit)

    def _forget(self, commit: asyncio.Task[str]) -> None:
        self.stage.commits.remove(commit)
        if not commit.cancelled():
            commit.exception()  # seen: a node that is dead by now asks no more

    async def _commit(self, before: list[asyncio.Task[str]]) -> str:
        try:
            with self.stage.loop.asking(""):
                status = str(await super().execute(COMMIT))
            if before:
                await asyncio.wait(before)
            histories = [turn.history for turn in self.written if turn.history is not None]
            self.stage.monitor.note_commit([*(turn.row for turn in self.written), *self.replaced], histories)
            return status
        finally:
            self._is_committing = False
            if self._is_doomed:
                self.terminate()

    async def _execute(self, query: str, args: Any, limit: int, timeout: float | None, **options: Any) -> Any:
        """Every statement with parameters."""
        await self._reach(query)
        with self.stage.loop.asking(self.node):
            result = await super()._execute(query, args, limit, timeout, **options)  # type: ignore[misc]  # the driver's own
        if result and query == self.sql["replace_execution"]:
            self.replaced.append(ExecutionRow(args[0], args[1], *args[3:]))
        return result

    async def _reach(self, query: str) -> Mishap:
        mishap = await self.stage.reach(self.stage.name_statement(query), self.node)
        if mishap is Mishap.FAIL:
            self.terminate()
            raise ConnectionResetError("the connection broke")
        return mishap

    async def close(self, *, timeout: float | None = None) -> None:
        """In good order."""
        with self.stage.loop.asking(self.node):
            await super().close(timeout=timeout)

    def terminate(self) -> None:
        """Cut it; once a commit that is on its way has arrived."""
        if self._is_committing:
            self._is_doomed = True
        else:  # the system closes the socket, also of a node that is dead
            self.stage.world.outside.copy().run(super().terminate)


class StagedConnections(Connections):
    """Connections of one node."""

    def __init__(self, stage: ServerStage, node: str, *args: Any) -> None:
        super().__init__(*args)
        self.stage = stage
        self.node = node
        self._made: list[Connection] = []
        self._settings = {**self._settings, **SHORT_LOCKS}
        self.connection_class = type("OwnConnection", (StagedConnection,), {"stage": stage, "node": node, "sql": self.sql})

    async def connect(self, *, name: str = "holdfast", **settings: str) -> Connection:
        """A mishap may come before it too."""
        mishap = await self.stage.reach("connect", self.node)
        if mishap is Mishap.FAIL:
            raise StoreUnavailable(f"Expected to connect to {self.address.shown}, but it is out of reach. Try again.")
        with self.stage.loop.asking(self.node):
            connection = await super().connect(name=name, **settings)
        self._made.append(connection)
        return connection

    def abandon(self) -> None:
        """The system takes all, also those that were made for one purpose."""
        super().abandon()
        for connection in self._made:
            connection.terminate()

    def drop_transactions(self) -> None:
        """Cut those that are in the midst of one."""
        for connection in self._in_use:
            if not connection.is_closed() and connection.is_in_transaction():
                connection.terminate()


class StagedStore(PostgresStore):
    """A node's store."""

    def __init__(self, address: Address, stage: ServerStage, node: str) -> None:
        self.make_connections = lambda *args: StagedConnections(stage, node, *args)
        super().__init__(address, clock=lambda: stage.world.loop.now)

    async def begin(self) -> Transaction:
        return await StagedTransaction.begin(self._batches)

    def drop_transactions(self) -> None:
        """From the server's side."""
        for connections in (self._batches, self._connections):
            assert isinstance(connections, StagedConnections)  # noqa: S101 - made above
            connections.drop_transactions()


class StagedTransaction(PostgresTransaction):
    """Remembers on its connection what was written."""

    async def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        lost = await super().write(turns, loose)
        connection = self._connection
        assert isinstance(connection, StagedConnection)  # noqa: S101 - a staged store has no other
        connection.written.extend(turn for turn in turns if turn.row.execution_id not in lost)
        return lost


# --- the schema of a run -------------------------------------------------------------------------------------------------


def make_address(url: str) -> Address:
    """A schema that nobody has, beside the one that the URL names."""
    address = parse_url(url)
    return msgspec.structs.replace(address, schema=f"{address.schema[:30]}_simulation_{secrets.token_hex(8)}")


def remove_schema(address: Address) -> None:
    """See that the schema is not there: before a run, so that a server out of reach is told as such; and after it."""
    asyncio.run(_remove_schema(address))


async def _remove_schema(address: Address) -> None:
    async with Connections(address, 1).use("remove a schema of") as connection:
        await connection.execute("SET client_min_messages TO warning")
        await connection.execute(f"DROP SCHEMA IF EXISTS {quote_name(address.schema)} CASCADE")
        await connection.close()
