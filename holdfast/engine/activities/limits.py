"""How many activities may run at once: per node and executor, per queue, per activity; and how often per second.

Those that ended their process before, as far as can be told, run one at a time beside the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from holdfast.code.definitions import Activity, Executor
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import SECOND, Instant
from holdfast.core.placing import SUSPECT


class Slots:
    """A counter with an upper bound."""

    __slots__ = ("most", "used", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self.waiting = 0
        """How many wait for a place here, or elsewhere for one that they need too."""

    @property
    def is_free(self) -> bool:
        """Whether one more fits."""
        return self.used < self.most

    @property
    def room(self) -> int:
        """How many more may come: no more than can run at once."""
        return self.most - self.used - self.waiting


class Rate:
    """A bound on starts per second: each start moves the next allowed one on."""

    __slots__ = ("most_waiting", "next_at", "spacing", "waiting")

    def __init__(self, per_second: float) -> None:
        self.spacing = round(SECOND / per_second)
        self.next_at: Instant = 0
        self.waiting = 0
        self.most_waiting = max(1, round(per_second))
        """How many may wait before others should be asked: those of a second."""

    @property
    def room(self) -> int:
        """How many more may come."""
        return self.most_waiting - self.waiting

    def wait_until(self, now: Instant) -> Instant | None:
        """When the next start is allowed, or None if it is now."""
        return self.next_at if self.next_at > now else None

    def note(self, now: Instant) -> None:
        """Something started."""
        self.next_at = max(self.next_at, now) + self.spacing


class Admission:
    """Decides whether an activity may start now, and keeps those that may not, in order, by queue and name."""

    def __init__(self, per_executor: Mapping[Executor, int], per_queue: Mapping[str, int]) -> None:
        self._executors = {executor: Slots(most) for executor, most in per_executor.items()}
        self._queues = {queue: Slots(most) for queue, most in per_queue.items()}
        self._activities: dict[str, Slots] = {}
        self._rates: dict[str, Rate] = {}
        self._suspects = Slots(1)
        self._slots: dict[tuple[str, str], list[Slots]] = {}
        self._waiting: dict[tuple[str, str, bool], deque[tuple[Activity[..., object], ActivityTask]]] = {}

    def know(self, activity: Activity[..., object]) -> None:
        """Note an activity's own bounds."""
        if activity.max_concurrent is not None:
            self._activities[activity.name] = Slots(activity.max_concurrent)
        if activity.rate_per_second is not None:
            self._rates[activity.name] = Rate(activity.rate_per_second)

    def try_admit(self, activity: Activity[..., object], task: ActivityTask, now: Instant) -> bool:
        """Take a place if there is one everywhere."""
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

    def release(self, activity: Activity[..., object], task: ActivityTask, *, is_alone: bool) -> None:
        """Give a place back; also that of a suspect, if it still has that."""
        for slot in self._find_slots(activity, task):
            slot.used -= 1
        if is_alone:
            self.release_suspect()

    def release_suspect(self) -> None:
        """A suspect has run alone for long enough: the next one may begin, and it goes on beside that."""
        self._suspects.used -= 1

    def enqueue(self, activity: Activity[..., object], task: ActivityTask) -> None:
        """Keep an activity until there is a place."""
        queue = task.event.options.queue
        self._waiting.setdefault((queue, activity.name, is_suspect(task)), deque()).append((activity, task))
        for bound in self.bounds_of(activity, queue):
            bound.waiting += 1

    def admit_waiting(self, now: Instant) -> Iterator[tuple[Activity[..., object], ActivityTask]]:
        """Those that may start now, in order of arrival per queue and activity."""
        for key, waiting in list(self._waiting.items()):
            while waiting and self.try_admit(*waiting[0], now):
                self._note_gone(waiting[0][0], key[0])
                yield waiting.popleft()
            if not waiting:
                del self._waiting[key]

    def next_rate_at(self, now: Instant) -> Instant | None:
        """When a rate lets the next waiting one start."""
        times = [
            at
            for (_, name, _), waiting in self._waiting.items()
            if waiting and name in self._rates and (at := self._rates[name].wait_until(now)) is not None
        ]
        return min(times, default=None)

    def withdraw(self, execution_id: str, number: int, attempt: int | None = None) -> bool:
        """Forget one that waits, if it is that attempt; whether it did."""
        for waiting in self._waiting.values():
            for index, (activity, task) in enumerate(waiting):
                is_it = task.execution_id == execution_id and task.event.number == number
                if is_it and attempt in (None, task.attempt):
                    self._note_gone(activity, task.event.options.queue)
                    del waiting[index]
                    return True
        return False

    @property
    def waiting_count(self) -> int:
        """How many wait."""
        return sum(len(waiting) for waiting in self._waiting.values())

    @property
    def waiting(self) -> list[ActivityTask]:
        """Those that wait."""
        return [task for waiting in self._waiting.values() for _, task in waiting]

    def clear(self) -> None:
        """Forget all that wait."""
        for (queue, _, _), waiting in self._waiting.items():
            for activity, _ in waiting:
                self._note_gone(activity, queue)
        self._waiting.clear()

    def bounds_of(self, activity: Activity[..., object], queue: str) -> list[Slots | Rate]:
        """Everything that bounds how many of an activity may come here."""
        bounds: list[Slots | Rate] = [self._executors[activity.executor]]
        if activity.name in self._activities:
            bounds.append(self._activities[activity.name])
        if queue in self._queues:
            bounds.append(self._queues[queue])
        if activity.name in self._rates:
            bounds.append(self._rates[activity.name])
        return bounds

    def _find_slots(self, activity: Activity[..., object], task: ActivityTask) -> list[Slots]:
        queue = task.event.options.queue
        slots = self._slots.get((activity.name, queue))
        if slots is None:
            slots = [bound for bound in self.bounds_of(activity, queue) if isinstance(bound, Slots)]
            self._slots[activity.name, queue] = slots
        return slots

    def _note_gone(self, activity: Activity[..., object], queue: str) -> None:
        for bound in self.bounds_of(activity, queue):
            bound.waiting -= 1


def is_suspect(task: ActivityTask) -> bool:
    """Whether an activity may have ended the processes that it was lost with."""
    return task.lost >= SUSPECT


class Room:
    """The places that one batch may give to activities.

    Batches under way at once do not see each other's: then a few more wait here than there is room for.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._given: dict[Slots | Rate, int] = {}

    def take(self, activity: Activity[..., object], queue: str) -> bool:
        """Take a place if there is one."""
        bounds, given = self._admission.bounds_of(activity, queue), self._given
        if any(bound.room <= given.get(bound, 0) for bound in bounds):
            return False
        for bound in bounds:
            given[bound] = given.get(bound, 0) + 1
        return True
