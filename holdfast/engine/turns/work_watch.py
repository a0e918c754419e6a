"""Whether the store may hold work for this node, and when the next timer comes due: what lets the pump sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.core.instants import SECOND, Instant

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock

SHORTEST_PAUSE: Final = SECOND // 1_000
LONGEST_PAUSE: Final = SECOND // 10
LONG_DUE: Final = SECOND
"""A timer that came due longer ago than this should have rung."""


class WorkWatch:
    """Remembers that there may be work, and rings when a timer comes due. `wake` lets somebody look."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self.may_have_work = True
        """Whether inboxes or timers may hold something for this node."""
        self.next_due: Instant | None = None
        """When the next timer comes due, as far as is known."""
        self.due_changes = 0
        """How often a due time was told or looked up."""
        self._alarm: Alarm | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._skips = 0
        """How often in a row other nodes held all that has work."""

    @property
    def looks_soon(self) -> bool:
        """Whether the watch looks again in a moment, since other nodes hold executions that have work."""
        return self._soon is not None

    def look(self) -> None:
        """Note that there may be inbox rows or due timers for this node, and wake a worker that looks for them."""
        self.may_have_work = True
        self._wake()

    def note_due(self, when: Instant) -> None:
        """A timer of an execution will come due at this time: ring then."""
        self.due_changes += 1
        if self.next_due is None or when < self.next_due:
            self.next_due = when
            self._arm()
        elif self.next_due < when - LONG_DUE and self.next_due < self._clock.now() - LONG_DUE:
            self.look()  # the clock was set, or the machine slept, and the alarm does not know of it yet

    def set_next_due(self, found: Instant | None, seen_changes: int) -> None:
        """Arm for the next timer, which was looked up when `due_changes` was as given."""
        if self.due_changes != seen_changes and self.next_due is not None:
            # Another worker told of a timer that this look-up may have missed. Too early does no harm.
            found = self.next_due if found is None else min(found, self.next_due)
        self.due_changes += 1
        self.next_due = found
        self._arm()

    def forget_next_due(self) -> None:
        """What was due is held by another node, or was set since: there is nothing to wait for."""
        self.next_due = None
        self._arm()

    def look_soon(self, *, is_worth_it: bool) -> None:
        """Look again in a moment if other nodes hold what has work here.

        They are quick, or dead, and nobody tells when they let go. By the loop's time: theirs is no matter of the engine's
        clock.
        """
        if not is_worth_it:
            self._skips = 0
        elif self._soon is None:
            pause = min(SHORTEST_PAUSE << min(self._skips, 10), LONGEST_PAUSE)
            self._skips += 1
            self._soon = asyncio.get_running_loop().call_later(pause / SECOND, self._on_soon)

    def cancel(self) -> None:
        """Disarm every alarm: the pump ends."""
        for alarm in (self._alarm, self._soon):
            if alarm is not None:
                alarm.cancel()
        self._alarm = self._soon = None

    def _on_soon(self) -> None:
        self._soon = None
        self.look()

    def _arm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.next_due is not None:
            self._alarm = self._clock.call_at(self.next_due, self.look)
