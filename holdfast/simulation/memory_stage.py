"""Nodes that share one database in memory, where everything goes wrong that PostgreSQL can do to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.core.instants import SECOND, Instant
from holdfast.simulation.monitor import Monitor
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import LIGHT, MAY_HAPPEN, FaultAction, Faults, Point, Rates
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.tables import Changes, Tables

if TYPE_CHECKING:
    from holdfast.simulation.world import World
    from holdfast.store.contract import Store

Decide: TypeAlias = Callable[[Point], FaultAction]

LATENCIES: Final = (0, 0, 100, 100, 1_000, 8_000)
"""Microseconds for which a node waits at each point: whoever waits shorter goes first."""
MOST_CRASHES: Final = 12
TROUBLE_SECONDS: Final = 90
"""After so much virtual time nothing goes wrong any more, so that every run ends."""

_CRASH: Final = {FaultAction.CRASH: 0.02}
_DURABLE: Final = (
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
"""Before and after everything that is durable."""
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
"""What goes wrong in a run, and how often."""


def never(_point: Point) -> FaultAction:
    """Nothing goes wrong."""
    return FaultAction.NONE


def at_random(random: Random, rates: Rates) -> Decide:
    """Faults at these rates."""

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


class CrashAt:
    """One crash, at the durable point of this number. `count` tells how many points there were."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, point: Point) -> FaultAction:
        """Crash where it is time."""
        if point not in _DURABLE:
            return FaultAction.NONE
        self.count += 1
        return FaultAction.CRASH if self.count == self.number else FaultAction.NONE


class MemoryStage:
    """One database for all nodes of a world."""

    def __init__(self, world: World, decide: Decide, *, is_slow: bool) -> None:
        self.monitor = Monitor()
        self._world = world
        self._decide = decide
        self._is_slow = is_slow
        self._database = MemoryDatabase(self._wait)
        self._database.tables = WatchedTables(self.monitor)
        self._observer = MemoryStore(self._database, node="observer")
        self._crashes = 0
        self._broken_until: Instant = 0
        self._calm_at = world.loop.now + TROUBLE_SECONDS * SECOND

    def make_store(self, node: str) -> Store:
        """A handle with faults."""
        return MemoryStore(self._database, node=node, faults=Faults(self._choose, self._delay))

    def bury(self, node: str) -> None:
        """Its transactions are rolled back, its locks are free."""
        self._database.crash(node)

    def clear(self) -> None:
        """Nothing is open but in memory."""

    def drop_transactions(self, node: str) -> None:
        """They are rolled back; the node finds out when it goes on."""
        self._database.drop_transactions(node)

    def break_until(self, when: Instant) -> None:
        """Every call of a node fails until then; and nobody has reason to take another's work."""
        self.monitor.may_rob = False
        self._broken_until = when

    async def catch_up(self) -> None:
        """The monitor sees each commit before anybody else does."""

    async def find_observer(self) -> Store | None:
        """A handle without faults."""
        await self._observer.open()
        return self._observer

    @asynccontextmanager
    async def examine(self) -> AsyncIterator[Store]:
        """The same handle."""
        yield self._observer

    # --- what the database asks ---

    async def _wait(self, _point: str) -> None:
        loop = self._world.loop
        await loop.pause(self._world.random.choice(LATENCIES) if self._is_slow else 0)

    def _choose(self, point: str, node: str) -> FaultAction:
        world = self._world
        if world.is_over or world.loop.now > self._calm_at:
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
    """The committed rows; every commit is shown to the monitor."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor

    def apply(self, changes: Changes) -> None:
        """A commit."""
        super().apply(changes)
        self._monitor.note_commit(
            changes.executions.values(), (turn for turns in changes.histories.values() for turn in turns)
        )
