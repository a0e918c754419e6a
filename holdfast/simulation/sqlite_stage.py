"""One node after the other on one SQLite file. A crash leaves the file and its log as they are at that moment."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.core.instants import SECOND, Instant
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.simulation.monitor import Monitor
from holdfast.store.contract import (
    Claim,
    Claimed,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    LooseWrite,
    RequestRow,
    Store,
    Transaction,
    TurnWrite,
)
from holdfast.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from holdfast.simulation.world import World

MOST_CRASHES: Final = 30
TROUBLE_SECONDS: Final = 90
_SUFFIXES: Final = ("", "-wal")


class Place(StrEnum):
    """Before and after everything that is durable, and what leads up to it."""

    BEGINS = "before begin"
    BEGUN = "after begin"
    CLAIMED = "after claim"
    WRITES = "before write"
    WRITTEN = "after write"
    COMMITS = "before commit"
    COMMITTED = "after commit"
    DELIVERS = "before deliver"
    DELIVERED = "after deliver"
    UPDATES = "before an update"
    UPDATED = "after an update"


class Mishap(StrEnum):
    """What can happen there."""

    NONE = "none"
    CRASH = "crash"
    FAIL = "fail"
    """StoreUnavailable: the disk is full, say."""
    APPLIED = "applied"
    """OutcomeUnknown, and it was committed."""
    LOST = "lost"
    """OutcomeUnknown, and it was not committed."""
    LATE = "late"
    """OutcomeUnknown, and it is committed only now. A server can be late; a file cannot."""


Decide: TypeAlias = Callable[[Place], Mishap]
_MAY_FAIL: Final = frozenset({Place.BEGINS, Place.WRITES, Place.COMMITS, Place.DELIVERS, Place.UPDATES})


def never(_place: Place) -> Mishap:
    """Nothing goes wrong."""
    return Mishap.NONE


class CrashAt:
    """One crash, at the place of this number. `count` tells how many places there were."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, _place: Place) -> Mishap:
        """Crash where it is time."""
        self.count += 1
        return Mishap.CRASH if self.count == self.number else Mishap.NONE


def at_random(random: Random, crashes: float, failures: float) -> Decide:
    """Mishaps at these rates."""

    def decide(place: Place) -> Mishap:
        draw = random.random()
        if draw < crashes:
            return Mishap.CRASH
        if draw < crashes + failures and place in _MAY_FAIL:
            return random.choice((Mishap.FAIL, Mishap.APPLIED, Mishap.LOST)) if place is Place.COMMITS else Mishap.FAIL
        return Mishap.NONE

    return decide


class SqliteStage:
    """The file, and whoever owns it now."""

    def __init__(self, world: World, folder: Path, decide: Decide) -> None:
        self.monitor = Monitor()
        self.world = world
        self._folder = folder
        self._decide = decide
        self._stores: dict[str, SqliteStore] = {}
        self._path = folder / "simulated-0.db"
        self._crashes = 0
        self._calm_at = world.loop.now + TROUBLE_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """The file as the last owner left it, with mishaps."""
        store = self._stores[node] = SqliteStore(self._path, clock=self._read_clock)
        return PointedStore(store, self, node)

    def bury(self, node: str) -> None:
        """Keep what the disk holds at this moment; the next owner finds that."""
        store = self._stores.pop(node)
        self._crashes += 1
        kept = self._folder / f"simulated-{self._crashes}.db"
        for suffix in _SUFFIXES:
            source = Path(f"{self._path}{suffix}")
            if source.exists():
                shutil.copyfile(source, f"{kept}{suffix}")
        self._path = kept
        store.abandon()

    def clear(self) -> None:
        """A run that failed left its stores as they were."""
        for store in self._stores.values():
            store.abandon()

    def drop_transactions(self, node: str) -> None:
        """A file gives up on nobody."""

    def break_until(self, when: Instant) -> None:
        """One node alone has nothing to take from others."""

    async def catch_up(self) -> None:
        """The monitor sees each commit before anybody else does."""

    async def find_observer(self) -> Store | None:
        """Whoever owns the file, without mishaps."""
        for node in self.world.nodes.values():
            if node.is_open:
                return self._stores[node.name]
        return None

    @asynccontextmanager
    async def examine(self) -> AsyncIterator[Store]:
        """The file, opened anew."""
        store = SqliteStore(self._path, clock=self._read_clock)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def reach(self, place: Place, node: str) -> Mishap:
        """A place where something may happen. A crash never returns."""
        if self.world.is_over or self.world.loop.now > self._calm_at or node not in self.world.nodes:
            return Mishap.NONE
        mishap = self._decide(place)
        if mishap is Mishap.CRASH and self._crashes >= MOST_CRASHES:
            return Mishap.NONE
        if mishap is not Mishap.NONE:
            self.world.note(f"{mishap} {place} on {node}")
        if mishap is Mishap.CRASH:
            self.world.kill(node)
            await self.world.loop.create_future()
        if mishap is Mishap.FAIL:
            raise StoreUnavailable(f"Expected to reach the disk, but it failed {place}. Try again.")
        return mishap

    def _read_clock(self) -> Instant:
        return self.world.loop.now


class PointedStore:
    """A store whose durable operations are places for mishaps; every commit is shown to the monitor."""

    def __init__(self, store: SqliteStore, stage: SqliteStage, node: str) -> None:
        self._store = store
        self._stage = stage
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def begin(self) -> Transaction:
        await self._stage.reach(Place.BEGINS, self._node)
        transaction = PointedTransaction(await self._store.begin(), self._stage, self._node)
        await self._stage.reach(Place.BEGUN, self._node)
        return transaction

    async def was_committed(self, transaction: Transaction) -> bool:
        assert isinstance(transaction, PointedTransaction)  # noqa: S101 - it began here
        return transaction.is_committed

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        await self._stage.reach(Place.DELIVERS, self._node)
        accepted = await self._store.deliver(rows)
        await self._stage.reach(Place.DELIVERED, self._node)
        return accepted

    async def set_status(self, org: str, execution_id: str, expected_version: int, row: ExecutionRow) -> bool:
        await self._stage.reach(Place.UPDATES, self._node)
        is_done = await self._store.set_status(org, execution_id, expected_version, row)
        if is_done:
            self._stage.monitor.note_commit([row], [])
        await self._stage.reach(Place.UPDATED, self._node)
        return is_done


class PointedTransaction:
    """A transaction of such a store."""

    def __init__(self, transaction: Transaction, stage: SqliteStage, node: str) -> None:
        self._transaction = transaction
        self._stage = stage
        self._node = node
        self._written: list[TurnWrite] = []
        self.is_committed = False

    async def claim(self, claim: Claim) -> Claimed:
        claimed = await self._transaction.claim(claim)
        await self._reach(Place.CLAIMED)
        return claimed

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        return await self._transaction.read_history(after)

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        return await self._transaction.read_rows(execution_ids)

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return await self._transaction.read_latest(org, workflow_id)

    async def read_request(self, org: str, kind: str, key: str, now: Instant) -> RequestRow | None:
        return await self._transaction.read_request(org, kind, key, now)

    async def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        await self._reach(Place.WRITES)
        lost = await self._transaction.write(turns, loose)
        self._written.extend(turn for turn in turns if turn.row.execution_id not in lost)
        await self._reach(Place.WRITTEN)
        return lost

    async def commit(self) -> None:
        mishap = await self._reach(Place.COMMITS)
        if mishap is Mishap.LOST:
            await self._transaction.rollback()
        else:
            await self._transaction.commit()
            self.is_committed = True
            histories = (turn.history for turn in self._written if turn.history is not None)
            self._stage.monitor.note_commit([turn.row for turn in self._written], histories)
        if mishap in (Mishap.LOST, Mishap.APPLIED):
            raise OutcomeUnknown("Expected to hear of the commit, but the disk is silent. Ask was_committed.")
        await self._reach(Place.COMMITTED)

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def _reach(self, place: Place) -> Mishap:
        try:
            return await self._stage.reach(place, self._node)
        except StoreUnavailable:
            await self._transaction.rollback()
            raise
