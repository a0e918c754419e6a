"""What the tests of the rules stand on: engines in virtual time, nodes that share a database, and what goes wrong there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.ids import DEFAULT_ORG
from holdfast.store.contract import Store, Transaction, TurnWrite, UnroutedWrite
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import Decide, FaultAction, Faults, Point, SimulatedCrash
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.transaction import MemoryTransaction
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import InboxRow
from holdfast.testing import TestEngine, VirtualClock
from tests.engine import hooks
from tests.eventually import PATIENCE, eventually

# --- one process ---


class World:
    """One database of one test, on each store in turn, and the engines that are opened on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engines: list[TestEngine] = []

    async def open(
        self,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        **options: Any,
    ) -> TestEngine:
        """An open engine; `restart` lets it die and come back."""
        engine = TestEngine(options.pop("url", self.url), workflows=workflows, activities=activities, **options)
        self._engines.append(engine)
        await engine.open()
        return engine

    def copy_file(self, name: str) -> str:
        """What would be found if the power failed now, as the URL of another database."""
        path = Path(self.url.removeprefix("sqlite:///"))
        copy = path.with_name(f"{name}.db")
        for suffix in ("", "-wal", "-in-flight"):
            if (found := path.with_name(path.name + suffix)).exists():
                shutil.copy(found, copy.with_name(copy.name + suffix))
        return f"sqlite:///{copy}"

    async def close(self) -> None:
        """The test is over: what it left must be whole."""
        for engine in self._engines:
            if not engine.is_open:
                continue
            problems = await engine.store.check()
            await engine.shutdown()
            assert problems == []


# --- several nodes ---


class Nodes:
    """Engines that share one database in memory as nodes share PostgreSQL, and one virtual clock."""

    def __init__(self) -> None:
        self.gate = Admission()
        self.database = MemoryDatabase(self.gate)
        self.clock = VirtualClock()
        self.engines: dict[str, TestEngine] = {}
        self.faults: dict[str, Decide] = {}
        self.commits: list[Commit] = []
        self._pauses: dict[str, asyncio.Event] = {}
        self._paused: set[str] = set()

    async def open(
        self,
        node: str,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        *,
        exclusive: bool = False,
        **options: Any,
    ) -> TestEngine:
        """An engine of that name. What goes wrong for it is up to `faults[node]`."""
        engine = TestEngine(
            self.make_store(node, exclusive=exclusive),
            workflows=workflows,
            activities=activities,
            node=node,
            clock=self.clock,
            auto_advance=False,
            **options,
        )
        self.engines[node] = engine
        await engine.open()
        return engine

    def make_store(self, node: str, *, exclusive: bool) -> Store:
        """A node's way to the database, with what goes wrong on it."""
        faults = Faults(lambda point, node: self.faults.get(node, nothing_fails)(point, node))
        return WatchedStore(self, node, faults, exclusive=exclusive)

    async def open_onlooker(self) -> Store:
        """Another way, on which nothing goes wrong."""
        store = MemoryStore(self.database, node="onlooker")
        await store.open()
        return store

    async def snapshot(self) -> dict[str, list[Any]]:
        """Everything that is committed, nodes aside."""
        return snapshot(self.database)

    def pause(self, node: str) -> None:
        """Let the node's next batch stand still between its claim and its writes, holding what it has claimed."""
        self._pauses[node] = asyncio.Event()

    async def paused(self, node: str) -> None:
        """Wait until it stands still."""
        await eventually(lambda: node in self._paused)

    def resume(self, node: str) -> None:
        """Let it go on."""
        self._pauses.pop(node).set()

    async def come_by(self, node: str) -> None:
        """Where a batch comes by before it writes."""
        pause = self._pauses.get(node)
        if pause is not None:
            self._paused.add(node)
            try:
                await pause.wait()
            finally:
                self._paused.discard(node)

    async def put_into_inbox(self, execution_id: str, envelope: AnyEnvelope, org: str = DEFAULT_ORG) -> None:
        """Let an envelope arrive as from a turn of another node, which does not ask whether the receiver is open."""
        await self.put_row(InboxRow(org, execution_id, "", codec.encode(envelope)))

    async def put_row(self, *rows: InboxRow) -> None:
        """Let envelopes arrive at once, as they are addressed."""
        store = await self.open_onlooker()
        transaction = await store.begin()
        await transaction.write([], UnroutedWrite(outgoing=list(rows)))
        await transaction.commit()
        await store.wake(WakeReason.WORK)
        await store.close()

    async def reached(self, point: Point) -> None:
        """Wait until somebody waits at a point that is shut."""
        await eventually(lambda: self.gate.is_awaited(point))

    async def died(self, node: str) -> None:
        """Wait until a node has met a fault that it does not survive."""
        assert type(await hooks.wait_for_fault(self.engines[node], PATIENCE)) is SimulatedCrash

    async def kill(self, node: str) -> None:
        """The process of a node is gone; the others hear nothing of it."""
        self.database.crash(node)
        await self.engines.pop(node).crash()

    async def take_over(self) -> None:
        """Let time pass until the leases of the dead have run out."""
        await self.clock.advance(seconds=20)

    async def close(self) -> None:
        """The test is over: what it left must be whole."""
        self.faults.clear()
        self.gate.open_all()
        for node in list(self._pauses):
            self.resume(node)
        for engine in self.engines.values():
            await engine.shutdown()
        store = await self.open_onlooker()
        problems = await store.check()
        await store.close()
        assert problems == [], problems


def nothing_fails(_point: str, _node: str) -> FaultAction:
    return FaultAction.NONE


def hear_nothing(point: str, _node: str) -> FaultAction:
    """No wake-up arrives: until its next heartbeat the node does only what it is asked."""
    return FaultAction.LOSE if point == Point.WAKE else FaultAction.NONE


def once(point: Point, action: FaultAction) -> Decide:
    """A fault that happens the first time a node comes to a point, and never again."""
    left = [action]

    def decide(at: str, _node: str) -> FaultAction:
        return left.pop() if at == point and left else FaultAction.NONE

    return decide


class Admission:
    """Where nodes wait for the database: whoever comes to a point that is shut waits until it is opened."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._shut: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, int] = {}

    def shut(self, point: Point) -> None:
        self._shut[point] = asyncio.Event()

    def open(self, point: Point) -> None:
        self._shut.pop(point).set()

    def open_all(self) -> None:
        for point in list(self._shut):
            self._shut.pop(point).set()

    def is_awaited(self, point: Point) -> bool:
        """Whether somebody waits there."""
        return self._waiting.get(point, 0) > 0

    async def __call__(self, point: str) -> None:
        await asyncio.sleep(0)
        event = self._shut.get(point)
        if event is not None:
            self._waiting[point] = self._waiting.get(point, 0) + 1
            try:
                await event.wait()
            finally:
                self._waiting[point] -= 1
        self.passed.append(point)


# --- what was committed ---


def snapshot(database: MemoryDatabase) -> dict[str, list[Any]]:
    """Everything that is committed, nodes aside."""
    tables = database.tables
    return {
        "executions": list(tables.executions.values()),
        "events": [
            (execution_id, type(event).__name__)
            for execution_id, turns in tables.histories.items()
            for turn in turns
            for event in codec.decode_events(turn.body, turn.schema)
        ],
        "timers": [timer for timers in tables.timers.values() for timer in timers.values()],
        "inbox": list(tables.inbox.values()),
        "dead_letters": list(tables.dead_letters.values()),
        "requests": list(tables.requests.values()),
    }


class Commit:
    """One transaction that was committed: what it wrote, lost turns left out."""

    def __init__(self) -> None:
        self.turns: list[TurnWrite] = []
        self.loose = UnroutedWrite()

    def add(self, turns: Sequence[TurnWrite], loose: UnroutedWrite, lost: set[str]) -> None:
        """It may write several times."""
        self.turns += [turn for turn in turns if turn.row.execution_id not in lost]
        for name in loose.__struct_fields__:
            if isinstance(rows := getattr(loose, name), list):
                getattr(self.loose, name).extend(rows)

    @property
    def is_empty(self) -> bool:
        loose = self.loose
        return not (self.turns or loose.consumed or loose.outgoing or loose.dead_letters or loose.failed or loose.requests)


class WatchedStore(MemoryStore):
    """A store in memory that tells what each of its transactions wrote, once it is committed."""

    def __init__(self, nodes: Nodes, node: str, faults: Faults, *, exclusive: bool) -> None:
        super().__init__(nodes.database, node=node, faults=faults, exclusive=exclusive)
        self._nodes = nodes

    async def begin(self) -> Transaction:
        await self._connection.reach(Point.BEGIN)
        return WatchedTransaction(self._nodes, self._connection)


class WatchedTransaction(MemoryTransaction):
    """Its transaction."""

    def __init__(self, nodes: Nodes, connection: Connection) -> None:
        super().__init__(connection)
        self._nodes = nodes
        self._commit = Commit()

    async def write(self, turns: Sequence[TurnWrite], loose: UnroutedWrite) -> set[str]:
        await self._nodes.come_by(self._session.connection.node)
        lost = await super().write(turns, loose)
        self._commit.add(turns, loose, lost)
        return lost

    async def commit(self) -> None:
        await super().commit()
        if not self._commit.is_empty:
            self._nodes.commits.append(self._commit)
