"""Time as the engine sees it: one source for due times, event times and leases, so that tests can drive it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.core.instants import SECOND, Instant


class Alarm(Protocol):
    """Something that was arranged for later."""

    def cancel(self) -> None:
        """Forget it."""
        ...


class Clock(Protocol):
    """A source of time."""

    def now(self) -> Instant:
        """The present."""
        ...

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back at or after `when`, in the loop."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        """Microseconds since the epoch."""
        return time.time_ns() // 1000

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call back from the running loop."""
        # A loop's timer may wake a little early: never earlier than `when`, so that what is due is due.
        delay = max(0, when - self.now()) / SECOND
        return asyncio.get_running_loop().call_later(delay, callback)
