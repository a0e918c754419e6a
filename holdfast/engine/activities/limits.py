"""Limits on activities: how many run at once per executor, queue and activity, and how many start per second.

Suspects, which may have ended the processes that they were lost with, run one at a time beside the others.

A sync function cannot be ended. If it goes on after its attempt timed out or was cancelled, its thread is *abandoned*: it
no longer counts against the threads of the node, so that others take its place, but still against the limits of its
activity and its queue, since it may still use what they protect. Of each activity at most `MOST_ABANDONED` threads are
replaced like that; from then on no attempt of it starts here before one of them has ended, and other nodes are offered it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holdfast.activities.definitions import Activity, Executor
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import SECOND, Instant
from holdfast.core.placing import SUSPECT
from holdfast.engine.clock import call_after

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock

MOST_ABANDONED: Final = 8
"""How many threads of one activity may go on unheard before no more attempts of it start on the node."""
ActivityKey: TypeAlias = tuple[str, int]
"""Which activity: (execution id, number)."""
QueueKey: TypeAlias = tuple[str, str, bool]
"""Those that wait in one line: (queue, name of the activity, whether they are suspects)."""


HELD: Final[QueueKey] = ("", "", False)
"""The line of those whose queue is paused: none of them starts, and they count against no limit."""


class RateAlarm:
    """Calls back when a rate limit allows the next queued activity to start. One alarm at a time."""

    def __init__(self, clock: Clock, slots: ActivitySlots, on_due: Callable[[], None]) -> None:
        self._clock = clock
        self._slots = slots
        self._on_due = on_due
        self._alarm: Alarm | None = None

    def set(self) -> None:
        """Set the alarm, if an activity waits for a rate limit and none is set."""
        now = self._clock.now()
        at = self._slots.next_rate_at(now)
        if at is not None and self._alarm is None:
            self._alarm = call_after(self._clock, at - now, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._on_due()

    def cancel(self) -> None:
        """Let the alarm, if one is set, not ring."""
        if self._alarm is not None:
            self._alarm.cancel()


class SlotLimit:
    """An upper bound on activities that run at once, with the number of those that run and wait."""

    __slots__ = ("most", "used", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self.waiting = 0
        """How many wait for this or another of their limits."""

    @property
    def is_free(self) -> bool:
        """Whether one more activity may start."""
        return self.used < self.most

    @property
    def room(self) -> int:
        """How many more activities this node may take on: no more than can run at once."""
        return self.most - self.used - self.waiting


class RateLimit:
    """An upper bound on starts per second: each start postpones the next allowed one."""

    __slots__ = ("most_waiting", "next_at", "spacing", "waiting")

    def __init__(self, per_second: float) -> None:
        self.spacing = round(SECOND / per_second)
        self.next_at: Instant = 0
        self.waiting = 0
        self.most_waiting = max(1, round(per_second))
        """How many may wait before other nodes should run them: those of one second."""

    @property
    def room(self) -> int:
        """How many more activities this node may take on."""
        return self.most_waiting - self.waiting

    def wait_until(self, now: Instant) -> Instant | None:
        """When the next start is allowed, or None if it is now."""
        if self.next_at <= now:
            return None
        self.next_at = min(self.next_at, now + self.spacing)  # it is later than that only if the clock was set back
        return self.next_at

    def note(self, now: Instant) -> None:
        """Note that an activity of this kind started now, which counts against the rate."""
        self.next_at = max(self.next_at, now) + self.spacing


class WaitingAttempt(NamedTuple):
    """An attempt that waits for a slot, with the alarms that end its wait."""

    activity: Activity[..., object]
    task: ActivityTask
    alarms: Sequence[Alarm] = ()

    @property
    def key(self) -> ActivityKey:
        """Which activity it is an attempt of."""
        return self.task.execution_id, self.task.event.number

    @property
    def queue_key(self) -> QueueKey:
        """The line in which the attempt waits for its slot."""
        return self.task.event.options.queue, self.activity.name, is_suspect(self.task)


class ActivitySlots:
    """Decides whether an activity may start now, and queues those that may not, in order, by queue and name."""

    def __init__(self, per_executor: Mapping[Executor, int], per_queue: Mapping[str, int]) -> None:
        self._executors = {executor: SlotLimit(most) for executor, most in per_executor.items()}
        self._queues = {queue: SlotLimit(most) for queue, most in per_queue.items()}
        self._activities: dict[str, SlotLimit] = {}
        self._rates: dict[str, RateLimit] = {}
        self._suspects = SlotLimit(1)
        self._slots: dict[tuple[str, str], list[SlotLimit]] = {}
        self._waiting: dict[QueueKey, OrderedDict[ActivityKey, WaitingAttempt]] = {}
        self._queue_keys: dict[ActivityKey, QueueKey] = {}
        """In which line each activity waits that waits for a slot."""
        self._abandoned: Counter[str] = Counter()
        """How many threads of each activity are abandoned, by its name."""
        self.exhausted: set[str] = set()
        """The names of activities of which no attempt may start, because too many of their threads are abandoned."""

    def register(self, activity: Activity[..., object]) -> None:
        """Take over the limits that an activity declares."""
        if activity.max_concurrent is not None:
            self._activities[activity.name] = SlotLimit(activity.max_concurrent)
        if activity.rate_per_second is not None:
            self._rates[activity.name] = RateLimit(activity.rate_per_second)

    def try_admit(self, activity: Activity[..., object], task: ActivityTask, now: Instant) -> bool:
        """Take a slot of each limit that applies to an activity, or none; whether they were taken."""
        if activity.name in self.exhausted:
            return False
        slots = self._find_slots(activity, task)
        if task.lost and is_suspect(task):
            slots = [*slots, self._suspects]
        if not all(slot.is_free for slot in slots):
            return False
        rate = self._rates.get(activity.name)
        if rate is not None:
            if rate.wait_until(now) is not None:
                return False
            rate.note(now)
        for slot in slots:
            slot.used += 1
        return True

    def release(
        self, activity: Activity[..., object], task: ActivityTask, *, is_alone: bool, is_abandoned: bool = False
    ) -> None:
        """Free the slots of an activity; `is_alone`: also the slot for suspects; `is_abandoned`: see `abandon`."""
        for slot in self._find_slots(activity, task):
            slot.used -= 1
        if is_abandoned:
            self._executors[activity.executor].used += 1  # it was free already
            self._count_abandoned(activity.name, -1)
        if is_alone:
            self.release_suspect()

    def abandon(self, activity: Activity[..., object]) -> None:
        """A thread goes on though its attempt is over: another may take its place."""
        self._executors[activity.executor].used -= 1
        self._count_abandoned(activity.name, 1)

    def count_abandoned(self, name: str) -> int:
        """How many threads of an activity go on though their attempts are over."""
        return self._abandoned[name]

    def _count_abandoned(self, name: str, change: int) -> None:
        self._abandoned[name] += change
        if self._abandoned[name] >= MOST_ABANDONED:
            self.exhausted.add(name)
        else:
            self.exhausted.discard(name)
        if not self._abandoned[name]:
            del self._abandoned[name]

    def release_suspect(self) -> None:
        """Free the slot for suspects: the next one may start beside the one that runs."""
        self._suspects.used -= 1

    def enqueue(self, waiting: WaitingAttempt) -> None:
        """Queue an attempt until its slots are free. An earlier attempt of its activity that waits still is dropped."""
        self.withdraw(*waiting.key)
        queue_key = self._queue_keys[waiting.key] = waiting.queue_key
        self._waiting.setdefault(queue_key, OrderedDict())[waiting.key] = waiting
        for limit in self.limits_of(waiting.activity, queue_key[0]):
            limit.waiting += 1

    def hold(self, waiting: WaitingAttempt) -> None:
        """Keep an attempt whose queue is paused, until all that wait are asked for anew."""
        self.withdraw(*waiting.key)
        self._queue_keys[waiting.key] = HELD
        self._waiting.setdefault(HELD, OrderedDict())[waiting.key] = waiting

    def admit_waiting(self, now: Instant) -> Iterator[tuple[Activity[..., object], ActivityTask]]:
        """Take slots for queued activities, in order of arrival per queue and activity, and yield those that may start."""
        for queue_key, line in list(self._waiting.items()):
            while line and queue_key != HELD:
                first = next(iter(line.values()))
                if not self.try_admit(first.activity, first.task, now):
                    break
                self._remove(first)
                yield first.activity, first.task

    def next_rate_at(self, now: Instant) -> Instant | None:
        """When a rate limit allows the next queued activity to start; None if none waits for one."""
        times = [
            at
            for (_, name, _), waiting in self._waiting.items()
            if waiting and name in self._rates and (at := self._rates[name].wait_until(now)) is not None
        ]
        return min(times, default=None)

    def withdraw(self, execution_id: str, number: int, attempt: int | None = None) -> bool:
        """Remove an activity from the queue, if that attempt is there; whether it was."""
        key = (execution_id, number)
        queue_key = self._queue_keys.get(key)
        if queue_key is None:
            return False
        waiting = self._waiting[queue_key][key]
        if attempt not in (None, waiting.task.attempt):
            return False
        self._remove(waiting)
        return True

    def is_waiting(self, execution_id: str, number: int) -> bool:
        """Whether an activity waits in this process for a free slot."""
        return (execution_id, number) in self._queue_keys

    @property
    def waiting_count(self) -> int:
        """How many activities wait in this process for a free slot."""
        return len(self._queue_keys)

    @property
    def waiting(self) -> list[ActivityTask]:
        """The activities that wait for a slot, or for their queue to be resumed, in no particular order."""
        return [one.task for line in self._waiting.values() for one in line.values()]

    @property
    def queued(self) -> list[ActivityTask]:
        """Those of the waiting that could start if there were a slot."""
        return [one.task for key, line in self._waiting.items() if key != HELD for one in line.values()]

    def clear(self) -> None:
        """Remove all activities from the queue."""
        for line in list(self._waiting.values()):
            for waiting in list(line.values()):
                self._remove(waiting)

    def limits_of(self, activity: Activity[..., object], queue: str) -> list[SlotLimit | RateLimit]:
        """All limits that apply to an activity in a queue."""
        limits: list[SlotLimit | RateLimit] = [self._executors[activity.executor]]
        if activity.name in self._activities:
            limits.append(self._activities[activity.name])
        if queue in self._queues:
            limits.append(self._queues[queue])
        if activity.name in self._rates:
            limits.append(self._rates[activity.name])
        return limits

    def _find_slots(self, activity: Activity[..., object], task: ActivityTask) -> list[SlotLimit]:
        queue = task.event.options.queue
        slots = self._slots.get((activity.name, queue))
        if slots is None:
            slots = [limit for limit in self.limits_of(activity, queue) if isinstance(limit, SlotLimit)]
            self._slots[activity.name, queue] = slots
        return slots

    def _remove(self, waiting: WaitingAttempt) -> None:
        """Take an attempt out of its line, and let none of its alarms ring: they would keep it in memory, too."""
        queue_key = self._queue_keys.pop(waiting.key)
        line = self._waiting[queue_key]
        del line[waiting.key]
        if not line:
            del self._waiting[queue_key]
        for alarm in waiting.alarms:
            alarm.cancel()
        for limit in self.limits_of(waiting.activity, queue_key[0]) if queue_key != HELD else ():
            limit.waiting -= 1


def is_suspect(task: ActivityTask) -> bool:
    """Whether an activity was lost with its process so often that it may have ended them."""
    return task.lost >= SUSPECT


class FreeSlots:
    """The free slots that one batch may give to the activities which its turns schedule.

    Batches that are under way at once do not see each other's: then a few activities more are queued here.
    """

    def __init__(self, slots: ActivitySlots) -> None:
        self._slots = slots
        self._given: dict[SlotLimit | RateLimit, int] = {}

    def take(self, activity: Activity[..., object], queue: str) -> bool:
        """Take a slot of each limit that applies to an activity, or none; whether they were taken."""
        if activity.name in self._slots.exhausted:
            return False
        limits, given = self._slots.limits_of(activity, queue), self._given
        if any(limit.room <= given.get(limit, 0) for limit in limits):
            return False
        for limit in limits:
            given[limit] = given.get(limit, 0) + 1
        return True
