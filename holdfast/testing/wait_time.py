"""The time by which callers of a test engine wait: virtual, and moving while they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.core.instants import SECOND
from holdfast.engine.wait_time import Limit, WaitTime

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm
    from holdfast.testing.clock import VirtualClock

T = TypeVar("T")

GRACE: Final = 5.0
"""For how many real seconds at most a caller waits before its limit is over, if nothing else happens."""


class VirtualWaitTime(WaitTime):
    """The time of a virtual clock, which jumps while somebody waits, as it does for results.

    Time jumps to the end of a caller's own limit only after `GRACE` real seconds, or as many as the limit has: until then
    another task of the test may do what the caller waits for.

    Engines that share a clock answer each other by their database, in real time, of which the clock knows nothing: it would
    jump while an answer is on its way. There callers wait in real time, and so they do where only the test moves the clock.
    """

    def __init__(self, clock: VirtualClock, may_advance: Callable[[], bool]) -> None:
        self._clock = clock
        self._may_advance = may_advance

    def read(self) -> float:
        """Seconds since some moment, of virtual time."""
        return self._clock.now() / SECOND if self._is_virtual else super().read()

    def limit(self, seconds: float | None) -> AbstractAsyncContextManager[Limit]:
        """Raises TimeoutError, when it is left, if more virtual time has passed."""
        return _VirtualLimit(self._clock, seconds) if self._is_virtual else super().limit(seconds)

    async def wait(self, future: asyncio.Future[T]) -> T:
        """Wait for a future; whenever nothing else can happen meanwhile, time jumps to the next alarm."""
        return await self._clock.run_until(future) if self._is_virtual else await future

    @property
    def _is_virtual(self) -> bool:
        return self._may_advance() and not self._clock.is_shared


class _VirtualLimit:
    """A limit of virtual time, as `asyncio.timeout` is one of real time."""

    def __init__(self, clock: VirtualClock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._scope = asyncio.timeout(None)
        self._alarm: Alarm | None = None

    async def __aenter__(self) -> Limit:
        await self._scope.__aenter__()
        self.reschedule(None if self._seconds is None else self._clock.now() / SECOND + self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reschedule(None)
        await self._scope.__aexit__(kind, error, trace)

    def reschedule(self, when: float | None) -> None:
        """Let it be over at `when`, in seconds of virtual time; None: never."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._clock.note_change()
            self._alarm = None
        if when is not None:
            grace = min(max(0.0, when - self._clock.now() / SECOND), GRACE)
            not_before = asyncio.get_running_loop().time() + grace
            self._alarm = self._clock.call_at(round(when * SECOND), self._expire, not_before)

    def _expire(self) -> None:
        self._scope.reschedule(asyncio.get_running_loop().time())
