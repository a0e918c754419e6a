"""The shared database in memory: it injects all faults that nodes on PostgreSQL may meet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from holdfast.core.instants import SECOND, Instant
from holdfast.simulation.monitor import Monitor, SavedMonitor
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import LIGHT, MAY_HAPPEN, FaultAction, Faults, Point, Rates
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.tables import Changes, SavedTables, Tables

if TYPE_CHECKING:
    from holdfast.simulation.world import World
    from holdfast.store.contract import Store

ChooseFault: TypeAlias = Callable[[Point], FaultAction]

LATENCIES: Final = (0, 0, 100, 100, 1_000, 8_000)
"""Microseconds that an operation may take at each fault point; they decide which node goes first."""
MOST_CRASHES: Final = 12
"""After so many crashes nodes crash no more, so that every run ends."""
FAULT_SECONDS: Final = 90
"""After so much virtual time no more faults are injected, so that every run ends."""
NOTICE_SECONDS: Final = 10
"""Within so much virtual time all nodes have noticed that the database went back, and stopped what nobody asks for."""

_CRASH: Final = {FaultAction.CRASH: 0.02}
_DURABLE: Final = (
    Point.MARK_IN_FLIGHT,
    Point.WRITE_VERSIONS,
    Point.WRITE_ROWS,
    Point.COMMIT,
    Point.COMMITTED,
    Point.DELIVER_INSERT,
    Point.DELIVER_COMMIT,
    Point.DELIVERED,
    Point.UPDATE,
    Point.UPDATED,
    Point.OFFERS_COMMIT,
    Point.OFFERS_TAKEN,
)
"""The fault points before and after all durable changes."""
_DOUBT: Final = {FaultAction.APPLIED_UNKNOWN: 0.1, FaultAction.LOST_UNKNOWN: 0.1}

PROFILES: Final[Mapping[str, Rates]] = {
    "light": LIGHT,
    "crashes": dict.fromkeys(_DURABLE, _CRASH),
    "doubt": {
        Point.COMMIT: {**_DOUBT, FaultAction.LATE_UNKNOWN: 0.1, FaultAction.FAIL: 0.05},
        Point.DELIVER_COMMIT: {**_DOUBT, FaultAction.FAIL: 0.1},
        Point.UPDATE: _DOUBT,
    },
    "deaf": {
        Point.WAKE: {FaultAction.LOSE: 0.6, FaultAction.DELAY: 0.3},
        Point.CLAIM_ROW: {FaultAction.SKIP: 0.3},
        Point.WRITE_ESCALATE: {FaultAction.SKIP: 0.3},
    },
    "broken": {point: {FaultAction.FAIL: 0.05} for point in Point if FaultAction.FAIL in MAY_HAPPEN[point]},
    "everything": {
        **dict.fromkeys(_DURABLE, _CRASH),
        Point.COMMIT: {**_DOUBT, FaultAction.LATE_UNKNOWN: 0.05, FaultAction.FAIL: 0.05, FaultAction.CRASH: 0.02},
        Point.DELIVER_COMMIT: {**_DOUBT, FaultAction.CRASH: 0.02},
        Point.WAKE: {FaultAction.LOSE: 0.3, FaultAction.DELAY: 0.3},
        Point.CLAIM_ROW: {FaultAction.SKIP: 0.1},
        Point.READ: {FaultAction.FAIL: 0.02},
    },
}  # fmt: skip
"""Fault rates by the name of the profile."""


def no_fault(_point: Point) -> FaultAction:
    """Choose no fault, whatever the point: the store of an undisturbed run."""
    return FaultAction.NONE


def random_faults(random: Random, rates: Rates) -> ChooseFault:
    """Inject faults at random, at these rates."""

    def decide(point: Point) -> FaultAction:
        chances = rates.get(point)
        if not chances:
            return FaultAction.NONE
        draw = random.random()
        for action, chance in chances.items():
            draw -= chance
            if draw < 0:
                return action
        return FaultAction.NONE

    return decide


class CrashAtPoint:
    """Injects one crash, at the durable fault point of this number; `count` tells how many points were passed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, point: Point) -> FaultAction:
        """The fault for the next point."""
        if point not in _DURABLE:
            return FaultAction.NONE
        self.count += 1
        return FaultAction.CRASH if self.count == self.number else FaultAction.NONE


class Backup(msgspec.Struct, frozen=True):
    """The database at one moment, with what the monitor had seen by then."""

    taken_at: Instant
    tables: SavedTables
    monitor: SavedMonitor


class MemoryBackend:
    """One database in memory for all nodes of a world."""

    def __init__(self, world: World, decide: ChooseFault, *, is_slow: bool) -> None:
        self.monitor = Monitor()
        self._world = world
        self._decide = decide
        self._is_slow = is_slow
        self._database = MemoryDatabase(self._wait)
        self._database.tables = WatchedTables(self.monitor)
        self._observer = MemoryStore(self._database, node="observer")
        self._crashes = 0
        self._broken_until: Instant = 0
        self._restored_at: Instant | None = None
        self.monitor.may_be_ahead = self._may_be_ahead
        self._faults_end_at = world.loop.now + FAULT_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """A node's store on the shared database, with faults."""
        return MemoryStore(self._database, node=node, faults=Faults(self._choose, self._delay))

    def release_dead_node(self, node: str) -> None:
        """Roll back the transactions of a dead node, and free its locks."""
        self._database.crash(node)

    def clear(self) -> None:
        """Do nothing: a database in memory keeps nothing open."""

    def drop_transactions(self, node: str) -> None:
        """Roll back the transactions of a frozen node, which learns of it when it goes on."""
        self._database.drop_transactions(node)

    def break_until(self, when: Instant) -> None:
        """Let every call of a node fail until then; no node may take over from another because of it."""
        self.monitor.may_take_over = False
        self._broken_until = when

    def save(self) -> Backup:
        """A backup of what is committed now."""
        return Backup(self._world.loop.now, self._database.save(), self.monitor.save())

    def restore(self, backup: Backup) -> None:
        """Let the database go back under living nodes; its clients repeat what they were answered since."""
        self._restored_at = self._world.loop.now
        self.monitor.restore(backup.monitor)
        self._database.restore(backup.tables)
        self._world.tell_restored(backup.taken_at)

    def _may_be_ahead(self) -> bool:
        return self._restored_at is not None and self._world.loop.now - self._restored_at < NOTICE_SECONDS * SECOND

    async def catch_up(self) -> None:
        """Return at once: the monitor sees each commit before anybody else."""

    async def find_observer(self) -> Store | None:
        """A store on the shared database, without faults."""
        await self._observer.open()
        return self._observer

    @asynccontextmanager
    async def open_for_checks(self) -> AsyncIterator[Store]:
        """The store without faults, for the checks."""
        yield self._observer

    # --- called by the database ---

    async def _wait(self, _point: str) -> None:
        loop = self._world.loop
        await loop.pause(self._world.random.choice(LATENCIES) if self._is_slow else 0)

    def _choose(self, point: str, node: str) -> FaultAction:
        world = self._world
        if world.is_over or world.loop.now > self._faults_end_at:
            return FaultAction.NONE
        if world.loop.now < self._broken_until and FaultAction.FAIL in MAY_HAPPEN[Point(point)]:
            return FaultAction.FAIL
        action = self._decide(Point(point))
        if action is FaultAction.CRASH:
            if self._crashes >= MOST_CRASHES or node not in world.nodes:
                return FaultAction.NONE
            self._crashes += 1
        if action is not FaultAction.NONE:
            world.note(f"{action} at {point} on {node}")
        if action is FaultAction.CRASH:
            world.kill(node)
        return action

    def _delay(self, callback: Callable[[], None]) -> None:
        loop, random = self._world.loop, self._world.random
        loop.call_later(random.choice((0.0, 0.01, 0.5, 3.0)), callback, context=self._world.outside)


class WatchedTables(Tables):
    """The committed tables; they show every commit to the monitor."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor

    def apply(self, changes: Changes) -> None:
        """Apply a commit, and show it to the monitor."""
        super().apply(changes)
        self._monitor.note_commit(
            changes.executions.values(), (turn for turns in changes.histories.values() for turn in turns)
        )
