"""Time as the engine sees it: one source for due times, event times and leases, so that tests can drive it.

Two kinds of time
-----------------
Due times are moments that a *wall clock* shows: the machine's on a store of its own, the store's where nodes share one.
Such a clock may be set, forward or back, and it goes on while the machine sleeps. A loop waits by a *steady clock*, which is
never set, and which may stand still while the machine sleeps. An alarm for a moment (`call_at`) reads its wall clock again
at least every `RECHECK`, and is late by no more than that when the clock was set or the machine slept. It never rings before
its clock shows the moment.

A length of time (`call_after`: a pause, the timeout of an attempt that runs) is over when either clock says so. Then it does
not last for an hour longer because the wall clock was set back by an hour, or because the machine slept for one.

The engine's time may go back. That of one execution never does: see `holdfast.core.turn.take_turn`.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable
from time import time_ns  # the guard puts a slower one into the module
from typing import Final, Protocol

from holdfast.core.instants import SECOND, Instant, Micros

RECHECK: Final = 10 * SECOND
"""After how long at most an alarm looks again at its clock, which may have been set, or gone on while the machine slept."""


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


def call_after(clock: Clock, length: Micros, callback: Callable[[], None]) -> Alarm:
    """Call back when so much time has passed, by the clock or by the loop, whichever comes first."""
    if isinstance(clock, LoopClock):
        return clock.call_after(length, callback)
    return clock.call_at(clock.now() + length, callback)


def _find_steady_clock() -> Callable[[], int]:
    """A clock that is never set, and that counts the time in which the machine sleeps wherever the system has such a one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return functools.partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return functools.partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)
    return time.monotonic_ns


read_steady_clock: Final = _find_steady_clock()
"""Nanoseconds since some moment, by a clock that is never set."""


class LoopClock:
    """A wall clock with alarms in the running loop. It may be set at any time; see the module."""

    def now(self) -> Instant:
        """The present, in microseconds since the epoch: by the machine's clock, unless a subclass knows better."""
        return time_ns() // 1000

    def steady(self) -> Micros:
        """Microseconds since some moment; never set, never going back."""
        return read_steady_clock() // 1000

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back from the running loop once this clock shows `when`; at most `RECHECK` later if the clock is set."""
        return _LoopAlarm(self, when, callback, None)

    def call_after(self, length: Micros, callback: Callable[[], None]) -> Alarm:
        """Call back from the running loop when so much time has passed by this clock, or by the loop's."""
        loop, seconds = asyncio.get_running_loop(), length / SECOND
        if length <= RECHECK:
            return loop.call_later(seconds, callback)
        return _LoopAlarm(self, self.now() + length, callback, loop.time() + seconds)


class _LoopAlarm:
    """An alarm that reads its clock again and again until it shows `when`, or until the loop's time is `ends_at`."""

    __slots__ = ("_callback", "_clock", "_ends_at", "_handle", "_when")

    def __init__(self, clock: LoopClock, when: Instant, callback: Callable[[], None], ends_at: float | None) -> None:
        self._clock = clock
        self._when = when
        self._callback = callback
        self._ends_at = ends_at
        self._handle = self._arm(asyncio.get_running_loop())

    def cancel(self) -> None:
        """Let the alarm never ring; does nothing if it has."""
        self._handle.cancel()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        seconds = min(self._when - self._clock.now(), RECHECK) / SECOND
        if self._ends_at is not None:
            seconds = min(seconds, self._ends_at - loop.time())
        return loop.call_later(max(0.0, seconds), self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        if self._clock.now() >= self._when or (self._ends_at is not None and loop.time() >= self._ends_at):
            self._callback()
        else:  # the loop woke a little early, the clock was set back, or it was only time to look
            self._handle = self._arm(loop)


class SystemClock(LoopClock):
    """The machine's wall clock, with alarms in the running loop."""


class StoreClock(LoopClock):
    """The time of a shared store: this machine's steady clock, set by the answers to heartbeats.

    So due times, leases and event times are the same on all nodes, whatever their own clocks show. `wall` counts only until
    the first heartbeat was answered; both give nanoseconds. If the store's clock is set, this one follows with the next
    heartbeat.
    """

    def __init__(self, *, wall: Callable[[], int] = time_ns, steady: Callable[[], int] = read_steady_clock) -> None:
        self._steady = steady
        self._offset: Micros = wall() // 1000 - self.steady()
        self._is_synchronised = False

    def steady(self) -> Micros:
        """Microseconds since some moment; never set, never going back."""
        return self._steady() // 1000

    def now(self) -> Instant:
        """The store's time, in microseconds since the epoch."""
        return self.steady() + self._offset

    def synchronise(self, asked: Micros, answered: Micros, store_time: Instant) -> None:
        """Set the clock by the store's time, which was read between two moments of the steady clock."""
        offset = store_time - (asked + answered) // 2
        # What the way to the store and back may explain is no reason to change anything.
        if self._is_synchronised and abs(offset - self._offset) <= (answered - asked) // 2:
            return
        self._offset = offset
        self._is_synchronised = True
