"""What can go wrong between a node and its database, and when: decided by the simulation, carried out by the store.

Each `Point` is a place where a caller of PostgreSQL waits for the server. There the simulation may let nothing happen, or
choose one of the faults that `MAY_HAPPEN` lists for the point.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias


class Point(StrEnum):
    """A place where a node waits for the database."""

    BEGIN = "begin"
    CLAIM_FIND = "claim.find"
    """Before the executions that have work are looked for."""
    CLAIM_LOCK = "claim.lock"
    """Before rows and ids are locked: another node may have been faster."""
    CLAIM_ROW = "claim.row"
    """One row or id being locked. No waiting."""
    CLAIM_RESOLVE = "claim.resolve"
    """After workflow ids are locked, before their open executions are."""
    CLAIM_READ = "claim.read"
    """After the locks, before the rows are read."""
    READ = "read"
    """Any other reading, inside of a transaction or outside."""
    MARK_IN_FLIGHT = "mark_in_flight"
    """Before a mark that outlives its process is recorded, beside the transaction."""
    WRITE_ESCALATE = "write.escalate"
    """Before a closing turn makes its lock exclusive."""
    WRITE_RECHECK = "write.recheck"
    """Before a closing turn reads the inbox once more."""
    WRITE_SUBSCRIBE = "write.subscribe"
    """Before turns lock what they begin or cease to wait for."""
    WRITE_MATCH = "write.match"
    """After these locks, before what is kept is read."""
    WRITE_VERSIONS = "write.versions"
    WRITE_INSERTS = "write.inserts"
    WRITE_ROWS = "write.rows"
    COMMIT = "commit"
    COMMITTED = "committed"
    """After the commit is durable, before the node hears of it."""
    ROLLBACK = "rollback"
    WAS_COMMITTED = "was_committed"
    DELIVER_LOCK = "deliver.lock"
    DELIVER_INSERT = "deliver.insert"
    DELIVER_COMMIT = "deliver.commit"
    DELIVERED = "delivered"
    UPDATE = "update"
    """A change outside of batches: of a status, of dead letters, by a user's transaction."""
    UPDATED = "updated"
    OFFERS_LOCK = "offers.lock"
    """Before offered activities are locked: another node may have been faster."""
    OFFERS_COMMIT = "offers.commit"
    OFFERS_TAKEN = "offers.taken"
    PURGE_LOCK = "purge.lock"
    PURGE_COMMIT = "purge.commit"
    PURGED = "purged"
    PUBLISH_LOCK = "publish.lock"
    """Before publications are locked, in the outbox or against those who begin to wait."""
    PUBLISH_READ = "publish.read"
    """After these locks, before subscribers are looked for."""
    PUBLISH_WRITE = "publish.write"
    SPREAD = "spread"
    """Before the next subscribers of what has many get it."""
    BEAT = "beat"
    """A node's heartbeat, its leaving or its removal, or the removal of a process's in-flight marks."""
    HOST_LOCK = "host_lock"
    """A node becoming, or ceasing to be, the one who does something."""
    WAKE = "wake"
    """A wake-up on its way to the node named."""


class FaultAction(StrEnum):
    """What happens to a node at a point where it waits for the database."""

    NONE = "none"
    FAIL = "fail"
    """StoreUnavailable: nothing is written, the transaction is rolled back."""
    CRASH = "crash"
    """The node dies here: SimulatedCrash."""
    APPLIED_UNKNOWN = "applied_unknown"
    """OutcomeUnknown, and it was committed."""
    LOST_UNKNOWN = "lost_unknown"
    """OutcomeUnknown, and it was not committed."""
    LATE_UNKNOWN = "late_unknown"
    """OutcomeUnknown; the server is still at it, holds its locks, and commits when the scheduler lets it."""
    SKIP = "skip"
    """The lock is not had, as if another held it."""
    LOSE = "lose"
    """The wake-up never arrives."""
    DELAY = "delay"
    """The wake-up arrives when the scheduler lets it."""


_PLAIN: Final = frozenset({FaultAction.NONE, FaultAction.FAIL, FaultAction.CRASH})
_UNKNOWN: Final = frozenset({FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN})
_AFTERWARDS: Final = frozenset({FaultAction.NONE, FaultAction.CRASH})
_SPECIAL: Final[Mapping[Point, frozenset[FaultAction]]] = {
    Point.CLAIM_ROW: frozenset({FaultAction.NONE, FaultAction.SKIP}),
    Point.WRITE_ESCALATE: _PLAIN | {FaultAction.SKIP},
    Point.WRITE_SUBSCRIBE: _PLAIN | {FaultAction.SKIP},
    Point.PUBLISH_LOCK: _PLAIN | {FaultAction.SKIP},
    Point.COMMIT: _PLAIN | _UNKNOWN | {FaultAction.LATE_UNKNOWN},
    Point.COMMITTED: _AFTERWARDS,
    Point.ROLLBACK: frozenset({FaultAction.NONE}),
    Point.DELIVER_COMMIT: _PLAIN | _UNKNOWN,
    Point.DELIVERED: _AFTERWARDS,
    Point.UPDATE: _PLAIN | _UNKNOWN,
    Point.UPDATED: _AFTERWARDS,
    Point.OFFERS_COMMIT: _PLAIN | _UNKNOWN,
    Point.OFFERS_TAKEN: _AFTERWARDS,
    Point.PURGE_COMMIT: _PLAIN | _UNKNOWN,
    Point.PURGED: _AFTERWARDS,
    Point.WAKE: frozenset({FaultAction.NONE, FaultAction.LOSE, FaultAction.DELAY}),
}
MAY_HAPPEN: Final[Mapping[Point, frozenset[FaultAction]]] = {point: _SPECIAL.get(point, _PLAIN) for point in Point}
"""The faults that each point knows. Every other choice is a mistake of the simulation."""

Rates: TypeAlias = Mapping[Point, Mapping[FaultAction, float]]
Decide: TypeAlias = Callable[[str, str], FaultAction]
"""From the point and the node to what happens."""
Schedule: TypeAlias = Callable[[Callable[[], None]], None]
"""Keeps a callback and calls it some time later."""

LIGHT: Final[Rates] = {
    Point.CLAIM_ROW: {FaultAction.SKIP: 0.05},
    Point.WRITE_SUBSCRIBE: {FaultAction.SKIP: 0.05},
    Point.PUBLISH_LOCK: {FaultAction.SKIP: 0.05},
    Point.SPREAD: {FaultAction.FAIL: 0.02, FaultAction.CRASH: 0.005},
    Point.WRITE_ROWS: {FaultAction.FAIL: 0.01, FaultAction.CRASH: 0.005},
    Point.COMMIT: {
        FaultAction.FAIL: 0.02,
        FaultAction.CRASH: 0.005,
        FaultAction.APPLIED_UNKNOWN: 0.01,
        FaultAction.LOST_UNKNOWN: 0.01,
        FaultAction.LATE_UNKNOWN: 0.01,
    },
    Point.COMMITTED: {FaultAction.CRASH: 0.005},
    Point.DELIVER_COMMIT: {FaultAction.FAIL: 0.02, FaultAction.CRASH: 0.005},
    Point.WAKE: {FaultAction.LOSE: 0.1, FaultAction.DELAY: 0.2},
}
"""Rates at which a run of some thousand turns meets each fault and still gets somewhere."""


class SimulatedCrash(BaseException):
    """The node died. No `except Exception` of the engine may see it; the simulation catches it."""

    def __init__(self, node: str, point: str) -> None:
        super().__init__(f"node '{node}' died at {point}")
        self.node = node
        self.point = point


def call_soon(callback: Callable[[], None]) -> None:
    """The plain scheduler: late means in the loop's next round."""
    asyncio.get_running_loop().call_soon(callback)


class Faults:
    """What goes wrong, as `decide` says. `trace` lists all that did, so that a failing run can be told."""

    def __init__(self, decide: Decide, schedule: Schedule = call_soon) -> None:
        self._decide = decide
        self.schedule = schedule
        self.trace: list[tuple[Point, str, FaultAction]] = []

    @classmethod
    def seeded(cls, source: random.Random, rates: Rates = LIGHT, schedule: Schedule = call_soon) -> Faults:
        """Faults at random, the same for the same seed and the same order of events."""
        for point, actions in rates.items():
            for action in actions:
                _check(point, action)

        def decide(point: str, _node: str) -> FaultAction:
            chances = rates.get(Point(point))
            if not chances:
                return FaultAction.NONE
            draw = source.random()
            for action, chance in chances.items():
                draw -= chance
                if draw < 0:
                    return action
            return FaultAction.NONE

        return cls(decide, schedule)

    def decide(self, point: Point, node: str) -> FaultAction:
        """What happens at this point to this node, now."""
        action = self._decide(point, node)
        if action is not FaultAction.NONE:
            _check(point, action)
            self.trace.append((point, node, action))
        return action


def _check(point: Point, action: FaultAction) -> None:
    if action not in MAY_HAPPEN[point]:
        known = ", ".join(sorted(MAY_HAPPEN[point]))
        raise ValueError(f"Expected one of {known} at {point}, but the simulation chose {action}. Correct its schedule.")
