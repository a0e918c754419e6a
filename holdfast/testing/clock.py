"""The virtual clock of tests: time passes only when a test advances it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from holdfast.core.instants import Duration, Instant, from_datetime, to_datetime, to_micros
from holdfast.engine.clock import Alarm
from holdfast.engine.nodes.heartbeat import Heartbeat
from holdfast.errors import InvalidTime
from holdfast.testing.skipper import Skipper

T = TypeVar("T")

DEFAULT_START: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""The time at which a virtual clock starts by default: the same in every run."""
PASSES: Final = 10
"""For how many passes of the loop nothing may happen before an engine counts as at rest: in them the test itself runs."""


class Participant(Protocol):
    """An engine on a virtual clock: time passes only while it is at rest."""

    def is_at_rest(self, *, strictly: bool) -> bool:
        """Whether only time, or a call, can make it go on. `strictly`: no activity runs, however long it takes."""
        ...

    async def come_to_rest(self, *, strictly: bool) -> None:
        """Wait until `is_at_rest` is true, with the same `strictly`."""
        ...

    async def tell_waits(self) -> None:
        """Log what the executions wait for whose results are awaited."""
        ...


class VirtualAlarm:
    """A callback that is scheduled for a moment of virtual time."""

    __slots__ = ("_order", "callback", "is_cancelled", "is_pulse", "not_before", "when")

    def __init__(self, when: Instant, order: int, callback: Callable[[], None], not_before: float = 0.0) -> None:
        self.when = when
        self.not_before = not_before
        """Before which moment of the loop's real time no jump leads to it: others may still act, for which it waits."""
        self.callback = callback
        self.is_cancelled = False
        self.is_pulse = isinstance(getattr(callback, "__self__", None), Heartbeat)
        """Whether it is a node's heartbeat: on a shared store these never end, and nothing has to come of them."""
        self._order = order

    def cancel(self) -> None:
        """Never call back; the clock drops the alarm when its turn comes."""
        self.is_cancelled = True

    def __lt__(self, other: VirtualAlarm) -> bool:
        return (self.when, self._order) < (other.when, other._order)


class VirtualClock:
    """A clock for tests: a month passes in milliseconds, and always in the same way.

        await engine.clock.advance(days=30)

    Time moves from alarm to alarm, in due order; before each step every engine on the clock comes to rest.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now: Instant = from_datetime(start or DEFAULT_START, "the start of virtual time")
        self._heap: list[VirtualAlarm] = []
        self._count = 0
        self._participants: list[Participant] = []
        self._lock = asyncio.Lock()
        self._listeners: list[asyncio.Future[None]] = []
        self._skipper = Skipper(self)

    # --- reading it ---

    def now(self) -> Instant:
        """The present, in microseconds since the epoch; `present` is the same as a date-time."""
        return self._now

    @property
    def present(self) -> datetime:
        """The present as a date-time in UTC; `now` is the same in microseconds."""
        return to_datetime(self._now)

    @property
    def next_due(self) -> datetime | None:
        """When the next alarm rings, or None if nothing waits for time."""
        alarms = self.alarms
        return to_datetime(alarms[0].when) if alarms else None

    @property
    def alarms(self) -> list[VirtualAlarm]:
        """Everything that waits for time, in due order; the heartbeats of nodes aside."""
        return sorted(alarm for alarm in self._heap if not alarm.is_cancelled and not alarm.is_pulse)

    def call_at(self, when: Instant, callback: Callable[[], None], not_before: float = 0.0) -> Alarm:
        """Call back when time has moved to `when`; in the next pass of the loop if it is there already.

        Time does not jump there by itself before `not_before`, in the loop's real time.
        """
        if when <= self._now:
            return asyncio.get_running_loop().call_soon(callback)
        self._count += 1
        alarm = VirtualAlarm(when, self._count, callback, not_before)
        heapq.heappush(self._heap, alarm)
        self.note_change()
        return alarm

    # --- moving it ---

    async def advance(
        self,
        duration: Duration | None = None,
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> int:
        """Let time pass: a timedelta, a number of seconds, or named parts. Returns how many alarms rang on the way.

        The heartbeats of nodes do not count.
        When it returns, everything that this caused has happened. An activity that takes longer than the engine's
        `patience` in real seconds is not waited for: time passes for it as well, so its timeouts do too.
        """
        length = to_micros(0.0 if duration is None else duration, "the time to advance")
        parts = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        return await self._move(self._now + length + to_micros(parts, "the time to advance"))

    async def advance_to(self, when: datetime) -> int:
        """Let time pass until `when`; otherwise as `advance`."""
        target = from_datetime(when, "the time to advance to")
        if target < self._now:
            raise InvalidTime(
                f"Expected to advance to a time in the future, but {when.isoformat()} is before {self.present.isoformat()}. "
                "Time does not go back; start another engine there."
            )
        return await self._move(target)

    async def run_until(self, future: asyncio.Future[T]) -> T:
        """Wait for a future; whenever nothing else can happen meanwhile, time jumps to the next alarm."""
        return await self._skipper.wait_for(future)

    async def settle(self, *, strictly: bool = False) -> None:
        """Wait until every engine on the clock is at rest. Time does not move; `strictly` waits for all activities."""
        while True:
            for participant in list(self._participants):
                await participant.come_to_rest(strictly=strictly)
            if all(participant.is_at_rest(strictly=strictly) for participant in self._participants):
                break
        if not self._participants:
            for _ in range(PASSES):
                await asyncio.sleep(0)

    def step(self) -> bool:
        """Jump to the next alarm and let it ring; whether there was one. Nothing that it causes has happened yet."""
        alarm = self._peek()
        if alarm is None:
            return False
        heapq.heappop(self._heap)
        self._now = max(self._now, alarm.when)
        alarm.is_cancelled = True
        alarm.callback()
        return True

    async def _move(self, target: Instant) -> int:
        async with self._lock:
            rung = 0
            await self.settle()
            while (alarm := self._peek()) is not None and alarm.when <= target:
                self.step()
                rung += not alarm.is_pulse
                await self.settle()
            self._now = max(self._now, target)
            return rung

    def _peek(self) -> VirtualAlarm | None:
        while self._heap and self._heap[0].is_cancelled:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    # --- who lives by it ---

    def attach(self, participant: Participant) -> None:
        """Time moves only while this one is at rest."""
        if participant not in self._participants:
            self._participants.append(participant)

    def detach(self, participant: Participant) -> None:
        """Let time move without waiting for this participant, which has closed or crashed."""
        if participant in self._participants:
            self._participants.remove(participant)
        self.note_change()

    # --- for who moves it ---

    async def wait_for_change(self) -> None:
        """Wait until an alarm is set, somebody leaves, or whoever is moving time is done."""
        if self._lock.locked():
            async with self._lock:
                return
        listener: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._listeners.append(listener)
        await listener

    async def tell_waits(self) -> None:
        """Let each engine that is at rest log what the executions wait for whose results are awaited."""
        for participant in list(self._participants):
            if participant.is_at_rest(strictly=True):
                await participant.tell_waits()

    @property
    def is_shared(self) -> bool:
        """Whether several engines live by it."""
        return len(self._participants) > 1

    @property
    def is_moving(self) -> bool:
        """Whether a test is advancing it right now."""
        return self._lock.locked()

    def note_change(self) -> None:
        """Let whoever moves time look again: an alarm was set or is gone, or somebody has left."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            if not listener.done():
                listener.set_result(None)
