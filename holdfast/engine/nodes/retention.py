"""Retention: closed executions are removed once they have been kept for long enough.

On one node at a time, in small batches with pauses, so that work comes first. Nothing is polled: it wakes when the execution
that has been closed for longest is due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.errors import StoreError

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

LOCK: Final = "retention"
TURN: Final = 30 * SECOND
"""For how long nobody else has a look; renewed with each batch, so that another node goes on if this one dies."""
BATCH: Final = 200
PAUSE: Final = SECOND // 20
"""Between two batches."""


class Retention:
    """Removes what closed longer ago than the window, for as long as the engine is open."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: str,
        window: Micros,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._window = window
        self._spawn = spawn
        self._gathering = min(max(window // 100, SECOND), 60 * SECOND)
        """How long to wait after one round at least, so that a few of a kind are removed together."""
        self._alarm: Alarm | None = None
        self._is_busy = False
        self._ended_meanwhile: Instant | None = None
        self._is_stopped = False
        self.removed = 0
        """How many executions this node has removed."""

    def start(self) -> None:
        """Begin with what is due now."""
        self._ring()

    def stop(self) -> None:
        """Remove no more. A batch that is under way ends by itself."""
        self._is_stopped = True
        if self._alarm is not None:
            self._alarm.cancel()

    def note_end(self, closed_at: Instant) -> None:
        """Executions closed, here or elsewhere: if nothing else was due, they will be."""
        if self._is_busy:
            self._ended_meanwhile = closed_at
        elif self._alarm is None:
            self._arm(closed_at + self._window + 1)

    def _arm(self, when: Instant) -> None:
        if not self._is_stopped:
            self._alarm = self._clock.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if not self._is_busy:
            self._is_busy = True
            self._spawn(self._take_turn())

    async def _take_turn(self) -> None:
        now, self._ended_meanwhile = self._clock.now(), None
        try:
            wake_at = await self._remove(now)
        except StoreError as error:
            log.warning("executions past their retention could not be removed, and are tried again: %s", error)
            wake_at = now + TURN
        self._is_busy = False
        self._rest_until(wake_at)

    def _rest_until(self, wake_at: Instant | None) -> None:
        if wake_at is not None:
            self._arm(wake_at)
        elif self._ended_meanwhile is not None:
            self.note_end(self._ended_meanwhile)

    async def _remove(self, now: Instant) -> Instant | None:
        """Remove one batch if there is any; when to look again."""
        oldest = await self._store.find_oldest_closed()
        if oldest is None:
            return None
        if oldest + self._window >= now:
            return oldest + self._window + 1
        if not self._store.exclusive and not await self._store.take_lock(LOCK, self._node, now, now + TURN):
            return now + TURN  # another node is at it; if that one dies, this one has its turn
        removed = await self._store.purge(now - self._window, BATCH)
        self.removed += removed
        if removed == BATCH:
            return now + PAUSE
        if not self._store.exclusive:
            await self._store.give_lock(LOCK, self._node)
        return now + self._gathering
