"""The SQLite file that one node at a time owns. A crash leaves the file and its log as they are at that moment."""

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
from holdfast.simulation.forwarded_schedules import ForwardedSchedules
from holdfast.simulation.monitor import Monitor
from holdfast.store.contract import Claim, Claimed, Store, Transaction, TurnWrite, UnroutedWrite
from holdfast.store.nodes import InFlightMark
from holdfast.store.once import KeyedCall
from holdfast.store.pauses import RowChange
from holdfast.store.publications import (
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    SpreadHead,
    StartSubscriptionRow,
)
from holdfast.store.rows import ExecutionRow, HistoryRow, InboxRow, RequestKeyId, RequestRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tasks import TaskKey, TaskRow

if TYPE_CHECKING:
    from holdfast.simulation.world import World

MOST_CRASHES: Final = 30
"""After so many crashes nodes crash no more, so that every run ends."""
FAULT_SECONDS: Final = 90
"""After so much virtual time no more faults are injected, so that every run ends."""
_SUFFIXES: Final = ("", "-wal", "-in-flight")


class FaultPoint(StrEnum):
    """Where faults are injected: before and after durable changes, and between the steps of a transaction."""

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


class InjectedFault(StrEnum):
    """A fault that is injected at a fault point."""

    NONE = "none"
    CRASH = "crash"
    FAIL = "fail"
    """StoreUnavailable, as if the disk were full."""
    APPLIED = "applied"
    """OutcomeUnknown, and it was committed."""
    LOST = "lost"
    """OutcomeUnknown, and it was not committed."""
    LATE = "late"
    """OutcomeUnknown, and the commit takes place afterwards. Only servers have this fault, not files."""


ChooseFault: TypeAlias = Callable[[FaultPoint], InjectedFault]
_MAY_FAIL: Final = frozenset(
    {FaultPoint.BEGINS, FaultPoint.WRITES, FaultPoint.COMMITS, FaultPoint.DELIVERS, FaultPoint.UPDATES}
)


def no_fault(_point: FaultPoint) -> InjectedFault:
    """Choose no fault, whatever the point: the file of an undisturbed run."""
    return InjectedFault.NONE


class CrashAtFaultPoint:
    """Injects one crash, at the fault point of this number; `count` tells how many points were passed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, _point: FaultPoint) -> InjectedFault:
        """The fault for the next point."""
        self.count += 1
        return InjectedFault.CRASH if self.count == self.number else InjectedFault.NONE


def random_faults(random: Random, crashes: float, failures: float) -> ChooseFault:
    """Inject crashes and failures at random, at these rates."""

    def decide(point: FaultPoint) -> InjectedFault:
        draw = random.random()
        if draw < crashes:
            return InjectedFault.CRASH
        if draw < crashes + failures and point in _MAY_FAIL:
            return (
                random.choice((InjectedFault.FAIL, InjectedFault.APPLIED, InjectedFault.LOST))
                if point is FaultPoint.COMMITS
                else InjectedFault.FAIL
            )
        return InjectedFault.NONE

    return decide


class SqliteBackend:
    """The SQLite file of a world, and the store of the node that owns it."""

    def __init__(self, world: World, folder: Path, decide: ChooseFault) -> None:
        self.monitor = Monitor()
        self.world = world
        self._folder = folder
        self._decide = decide
        self._stores: dict[str, SqliteStore] = {}
        self._path = folder / "simulated-0.db"
        self._crashes = 0
        self._faults_end_at = world.loop.now + FAULT_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """A store on the file as the last owner left it, with faults."""
        store = self._stores[node] = SqliteStore(self._path, clock=self._read_clock)
        return FaultInjectingStore(store, self, node)

    def release_dead_node(self, node: str) -> None:
        """Copy the file and its log as they are at the crash, for the next owner."""
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
        """Close the stores that a failed run left open."""
        for store in self._stores.values():
            store.abandon()

    def drop_transactions(self, node: str) -> None:
        """Do nothing: a file does not drop transactions."""

    def break_until(self, when: Instant) -> None:
        """Do nothing: outages are not simulated on files."""

    async def catch_up(self) -> None:
        """Return at once: the monitor sees each commit before anybody else."""

    async def find_observer(self) -> Store | None:
        """The store of the node that owns the file, without faults; None if no node is open."""
        for node in self.world.nodes.values():
            if node.is_open:
                return self._stores[node.name]
        return None

    @asynccontextmanager
    async def open_for_checks(self) -> AsyncIterator[Store]:
        """A new store on the file, for the checks."""
        store = SqliteStore(self._path, clock=self._read_clock)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def reach(self, point: FaultPoint, node: str) -> InjectedFault:
        """Pass a fault point; returns the fault that the caller must carry out. A crash never returns."""
        if self.world.is_over or self.world.loop.now > self._faults_end_at or node not in self.world.nodes:
            return InjectedFault.NONE
        fault = self._decide(point)
        if fault is InjectedFault.CRASH and self._crashes >= MOST_CRASHES:
            return InjectedFault.NONE
        if fault is not InjectedFault.NONE:
            self.world.note(f"{fault} {point} on {node}")
        if fault is InjectedFault.CRASH:
            self.world.kill(node)
            await self.world.loop.create_future()
        if fault is InjectedFault.FAIL:
            raise StoreUnavailable(f"Expected to reach the disk, but it failed {point}. Try again.")
        return fault

    def _read_clock(self) -> Instant:
        return self.world.read_clock()


class FaultInjectingStore:
    """A store with fault points around its durable operations; it shows every commit to the monitor."""

    def __init__(self, store: SqliteStore, backend: SqliteBackend, node: str) -> None:
        self._store = store
        self._backend = backend
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def begin(self) -> Transaction:
        await self._backend.reach(FaultPoint.BEGINS, self._node)
        transaction = FaultInjectingTransaction(await self._store.begin(), self._backend, self._node)
        await self._backend.reach(FaultPoint.BEGUN, self._node)
        return transaction

    async def was_committed(self, transaction: Transaction) -> bool:
        assert isinstance(transaction, FaultInjectingTransaction)  # noqa: S101 - it began here
        return transaction.is_committed

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        await self._backend.reach(FaultPoint.DELIVERS, self._node)
        accepted = await self._store.deliver(rows)
        await self._backend.reach(FaultPoint.DELIVERED, self._node)
        return accepted

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        await self._backend.reach(FaultPoint.UPDATES, self._node)
        is_done = await self._store.set_status(org, execution_id, expected_version, row, call)
        if is_done:
            self._backend.monitor.note_commit([row], [])
        await self._backend.reach(FaultPoint.UPDATED, self._node)
        return is_done

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        made: list[ExecutionRow] = []

        def note(row: ExecutionRow) -> ExecutionRow | None:
            changed = change(row)
            made[:] = [] if changed is None else [changed]
            return changed

        await self._backend.reach(FaultPoint.UPDATES, self._node)
        is_done = await self._store.change_open(org, target, note, call, by_workflow_id=by_workflow_id)
        if is_done and made:
            self._backend.monitor.note_commit(made, [])
        await self._backend.reach(FaultPoint.UPDATED, self._node)
        return is_done


class FaultInjectingTransaction(ForwardedSchedules):
    """A transaction with fault points; it shows its commit to the monitor."""

    def __init__(self, transaction: Transaction, backend: SqliteBackend, node: str) -> None:
        self._transaction = transaction
        self._backend = backend
        self._node = node
        self._written: list[TurnWrite] = []
        self.is_committed = False

    def _find_inner(self) -> Transaction:
        return self._transaction

    async def claim(self, claim: Claim) -> Claimed:
        claimed = await self._transaction.claim(claim)
        await self._reach(FaultPoint.CLAIMED)
        return claimed

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        return await self._transaction.read_history(after)

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        return await self._transaction.read_snapshots(execution_ids)

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        return await self._transaction.read_rows(execution_ids)

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        return await self._transaction.count_waiting(execution_ids, limit)

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return await self._transaction.read_latest(org, workflow_id)

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        return await self._transaction.read_requests(keys, now)

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        return await self._transaction.lock_offers(keys)

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        return await self._transaction.lock_tasks(keys)

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        return await self._transaction.mark_in_flight(process, slot, versions)

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        await self._reach(FaultPoint.WRITES)
        lost = await self._transaction.write(turns, unrouted)
        self._written.extend(turn for turn in turns if turn.row.execution_id not in lost)
        await self._reach(FaultPoint.WRITTEN)
        return lost

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        return await self._transaction.read_starts(names, org)

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        return await self._transaction.read_outbox(limit, skip)

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        await self._reach(FaultPoint.WRITES)
        answers = await self._transaction.publish(items, now)
        await self._reach(FaultPoint.WRITTEN)
        return answers

    async def drop_publications(self, ids: Sequence[int]) -> None:
        await self._transaction.drop_publications(ids)

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        return await self._transaction.read_kept_messages(ids)

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        return await self._transaction.read_unstarted(names, now, limit, after)

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        return await self._transaction.find_spread(skip)

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        await self._reach(FaultPoint.WRITES)
        put = await self._transaction.spread(limit, now, skip)
        await self._reach(FaultPoint.WRITTEN)
        return put

    async def commit(self) -> None:
        fault = await self._reach(FaultPoint.COMMITS)
        if fault is InjectedFault.LOST:
            await self._transaction.rollback()
        else:
            await self._transaction.commit()
            self.is_committed = True
            histories = (turn.history for turn in self._written if turn.history is not None)
            self._backend.monitor.note_commit([turn.row for turn in self._written], histories)
        if fault in (InjectedFault.LOST, InjectedFault.APPLIED):
            raise OutcomeUnknown("Expected to hear of the commit, but its outcome is unknown. Ask was_committed.")
        await self._reach(FaultPoint.COMMITTED)

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def _reach(self, point: FaultPoint) -> InjectedFault:
        try:
            return await self._backend.reach(point, self._node)
        except StoreUnavailable:
            await self._transaction.rollback()
            raise
