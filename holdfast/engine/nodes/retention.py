"""Retention: what has been kept for longer than its window is removed: executions, dead letters, what nobody took in time.

A `Retention` removes one kind of thing, its target. One node at a time does so, under the lock of the target, in small
batches with pauses, so that work comes first. Nothing is polled. A retention asks for the oldest:

- when the engine opens, and from then on when the oldest that it found is due;
- if there was none, one window after a commit of this node, or a wake-up by another, told of something new;
- with a heartbeat, if its last look is longer ago than the window: nobody tells of what was written by a node that died, or
  that has no such retention. What is written after a look is not due within a window of it, so one look per window finds
  everything in time. An exclusive store has no heartbeats, but nobody else writes there either.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Protocol

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.errors import StoreError, StoreFault, StoreUnavailable
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

LOCK_TIME: Final = 30 * SECOND
"""How long the lock is held; each batch renews it, and if this node dies another one goes on when it expires."""
BATCH: Final = 200
"""How many executions or dead letters one transaction removes."""
MOST_NOTED: Final = 10_000
"""How many expiries a node remembers. Whatever else expires is removed with those."""
PAUSE: Final = SECOND // 20
"""How long to wait between two batches."""


@dataclass(frozen=True, slots=True)
class RetentionTarget:
    """One kind of thing that a store keeps and a retention removes."""

    lock: str
    """The name of the lock that the node holds which removes them."""
    noun: str
    """What they are called in the log, in the plural."""
    find_oldest: Callable[[], Awaitable[Instant | None]]
    """Since when the oldest of them is kept; None if there is none."""
    purge: Callable[[Instant, int], Awaitable[int]]
    """Removes those that are kept since before an instant, at most so many; returns how many it removed."""
    is_remembered: bool = False
    """Whether the node itself remembers the oldest, so that finding it asks nothing of the store."""


def closed_executions(store: Store) -> RetentionTarget:
    """Closed executions with their histories, kept since they closed."""
    return RetentionTarget("retention", "executions", store.find_oldest_closed, store.purge)


def dead_letters(store: Store) -> RetentionTarget:
    """Dead letters of all orgs, kept since they were written."""
    return RetentionTarget("dead_letter_retention", "dead letters", store.find_oldest_dead_letter, store.purge_dead_letters)


class KeptPublications:
    """Messages and events of all orgs that are kept until they expire, and are removed then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._expiries: list[Instant] = [0]
        """When those expire that this node has kept, as a heap. 0: an earlier process may have left some."""

    @property
    def target(self) -> RetentionTarget:
        """What a retention removes: those that have expired."""
        return RetentionTarget("kept_retention", "messages and events", self._find_next, self._purge, True)

    def note(self, expires_at: Instant) -> None:
        """Note that something is kept until then, and may be removed after that."""
        if len(self._expiries) < MOST_NOTED or expires_at < self._expiries[0]:
            heappush(self._expiries, expires_at)

    async def _find_next(self) -> Instant | None:
        return self._expiries[0] if self._expiries else None

    async def _purge(self, before: Instant, limit: int) -> int:
        removed = await self._store.purge_pending(before, limit)
        while removed < limit and self._expiries and self._expiries[0] < before:
            heappop(self._expiries)
        return removed


class AnyRetention(Protocol):
    """What begins and ends with an engine, and looks now and then for what has been kept for too long."""

    def start(self) -> None:
        """Start looking, when the engine is open."""
        ...

    def stop(self) -> None:
        """Stop looking. What is under way ends by itself."""
        ...

    def on_heartbeat(self) -> None:
        """Look if the last look is too long ago."""
        ...

    def note_went_back(self) -> None:
        """The database is at an earlier state: look now."""
        ...


class Retention:
    """Removes what its target has kept for longer than the window, for as long as the engine is open."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: str,
        window: Micros,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        target: RetentionTarget,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._window = window
        self._spawn = spawn
        self._target = target
        self._gathering = min(max(window // 100, SECOND), 60 * SECOND)
        """How long to wait after a round at least, so that several things are removed together."""
        self._longest_rest = max(window, LOCK_TIME)
        """How long ago the last look may be when a heartbeat comes."""
        self._alarm: Alarm | None = None
        self._wake_at: Instant = 0
        """For when the alarm is armed."""
        self._looked_at: Instant = 0
        self._batch = BATCH
        """How many one transaction removes: fewer if the store has no room for more."""
        self._is_busy = False
        self._noted_meanwhile: Instant | None = None
        self._is_started = False
        self.removed = 0
        """How many of its target this node has removed."""

    def start(self) -> None:
        """Start removing; what is due now goes at once."""
        self._is_started = True
        self._look()

    def stop(self) -> None:
        """Stop removing. A batch that is under way ends by itself."""
        self._is_started = False
        self._disarm()

    def note(self, at: Instant) -> None:
        """Note that there is something new since then, on this node or another: arms the alarm for it if none is armed.

        Nor does an alarm count that would ring later: the clock was set back since it was armed.
        """
        if self._is_busy:
            self._noted_meanwhile = at
        elif self._alarm is None or self._wake_at > at + max(self._window, LOCK_TIME) + 1:
            self._disarm()
            self._arm(at + self._window + 1)

    def note_went_back(self) -> None:
        """The database is at an earlier state: what was removed may be there again, so look now."""
        self._look()

    def on_heartbeat(self) -> None:
        """Look if the last look is longer ago than the window, for what nobody told of."""
        if not 0 <= self._clock.now() - self._looked_at <= self._longest_rest:  # the clock may have been set back
            self._look()

    def _arm(self, when: Instant) -> None:
        if self._is_started:
            self._wake_at = when
            self._alarm = self._clock.call_at(when, self._look)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _look(self) -> None:
        if self._is_started and not self._is_busy:
            self._disarm()
            self._is_busy = True
            self._spawn(self._remove_batch())

    async def _remove_batch(self) -> None:
        now, self._noted_meanwhile = self._clock.now(), None
        self._looked_at = now
        try:
            wake_at = await self._remove(now)
        except StoreError as error:
            pause = self._shrink_batch(error)
            log.warning(
                "node %s could not remove %s past their retention, and tries again in %d s: %s",
                self._node,
                self._target.noun,
                pause // SECOND,
                error,
                extra=tag(LogEvent.RETENTION_FAILED, node=self._node),
            )
            wake_at = now + pause
        self._is_busy = False
        self._rest_until(wake_at)

    def _shrink_batch(self, error: StoreError) -> Micros:
        """Remove fewer at a time if the store has no room for more: also removing takes some. How long to wait before."""
        if self._batch == 1 or not isinstance(error, StoreUnavailable) or error.fault is not StoreFault.SHORTAGE:
            return LOCK_TIME
        self._batch = max(1, self._batch // 4)
        return SECOND

    def _rest_until(self, wake_at: Instant | None) -> None:
        if wake_at is not None:
            self._arm(wake_at)
        elif self._noted_meanwhile is not None:
            self.note(self._noted_meanwhile)

    async def _remove(self, now: Instant) -> Instant | None:
        """Remove one batch of what is due; returns when to look again, None if the target is empty."""
        store, target = self._store, self._target
        oldest = await target.find_oldest()
        if oldest is None:
            return None
        if oldest + self._window >= now:
            return oldest + self._window + 1
        if not store.exclusive and not await store.take_lock(target.lock, self._node, now, now + LOCK_TIME):
            return now + LOCK_TIME  # another node removes them; if it dies, the lock expires
        batch = self._batch
        removed = await target.purge(now - self._window, batch)
        self.removed += removed
        self._batch = min(2 * batch, BATCH)
        if removed == batch:
            return now + PAUSE
        if not store.exclusive:
            await store.release_lock(target.lock, self._node)
        if target.is_remembered and await target.find_oldest() is None:
            return None
        return now + self._gathering
