"""Time as the engine sees it: one source for due times, event times and leases, so that tests can drive it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.core.instants import SECOND, Instant, Micros


class Alarm(Protocol):
    """Something that was arranged for later."""

    def cancel(self) -> None:
        """Let the alarm never ring; does nothing if it has."""
        ...


class Clock(Protocol):
    """Tells an engine the time and rings alarms: the machine's clock, or a virtual one in tests."""

    def now(self) -> Instant:
        """The present, in microseconds since the epoch."""
        ...

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back at or after `when`, in the loop."""
        ...


class SystemClock:
    """The machine's wall clock, with alarms in the running loop."""

    def now(self) -> Instant:
        """The machine's time, in microseconds since the epoch."""
        return time.time_ns() // 1000

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back from the running loop."""
        # A loop's timer may wake a little early: never earlier than `when`, so that what is due is due.
        delay = max(0, when - self.now()) / SECOND
        return asyncio.get_running_loop().call_later(delay, callback)


class StoreClock:
    """The time of a shared store: this machine's steady clock, set by the answers to heartbeats.

    So due times, leases and event times are the same on all nodes, whatever their own clocks show. `wall` counts only until
    the first heartbeat was answered; both give nanoseconds.
    """

    def __init__(self, *, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self._steady = steady
        self._offset: Micros = wall() // 1000 - self.steady()
        self._floor: Instant = 0
        self._is_synchronised = False

    def steady(self) -> Micros:
        """Microseconds since some moment; never set, never going back."""
        return self._steady() // 1000

    def now(self) -> Instant:
        """The store's time. Never goes back: after a correction that would make it, it stands still for a while."""
        return max(self._floor, self.steady() + self._offset)

    def synchronise(self, asked: Micros, answered: Micros, store_time: Instant) -> None:
        """Set the clock by the store's time, which was read between two moments of the steady clock."""
        offset = store_time - (asked + answered) // 2
        # What the way to the store and back may explain is no reason to change anything.
        if self._is_synchronised and abs(offset - self._offset) <= (answered - asked) // 2:
            return
        if self._is_synchronised:
            self._floor = self.now()  # before the offset: another thread may be reading
        self._offset = offset
        self._is_synchronised = True

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back from the running loop."""
        return asyncio.get_running_loop().call_later(max(0, when - self.now()) / SECOND, callback)
