"""How many activities may run at once: per node and executor, per queue, per activity; and how often per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from holdfast.code.definitions import Activity, Executor
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import SECOND, Instant


class Slots:
    """A counter with an upper bound."""

    __slots__ = ("most", "used")

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    @property
    def is_free(self) -> bool:
        """Whether one more fits."""
        return self.used < self.most


class Rate:
    """A bound on starts per second: each start moves the next allowed one on."""

    __slots__ = ("next_at", "spacing")

    def __init__(self, per_second: float) -> None:
        self.spacing = round(SECOND / per_second)
        self.next_at: Instant = 0

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
        self._waiting: dict[tuple[str, str], deque[tuple[Activity[..., object], ActivityTask]]] = {}

    def know(self, activity: Activity[..., object]) -> None:
        """Note an activity's own bounds."""
        if activity.max_concurrent is not None:
            self._activities[activity.name] = Slots(activity.max_concurrent)
        if activity.rate_per_second is not None:
            self._rates[activity.name] = Rate(activity.rate_per_second)

    def try_admit(self, activity: Activity[..., object], queue: str, now: Instant) -> bool:
        """Take a place if there is one everywhere."""
        slots = self._slots_of(activity, queue)
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

    def release(self, activity: Activity[..., object], queue: str) -> None:
        """Give a place back."""
        for slot in self._slots_of(activity, queue):
            slot.used -= 1

    def enqueue(self, activity: Activity[..., object], task: ActivityTask) -> None:
        """Keep an activity until there is a place."""
        key = (task.event.options.queue, activity.name)
        self._waiting.setdefault(key, deque()).append((activity, task))

    def admit_waiting(self, now: Instant) -> Iterator[tuple[Activity[..., object], ActivityTask]]:
        """Those that may start now, in order of arrival per queue and activity."""
        for key, waiting in list(self._waiting.items()):
            while waiting and self.try_admit(waiting[0][0], key[0], now):
                yield waiting.popleft()
            if not waiting:
                del self._waiting[key]

    def next_rate_at(self, now: Instant) -> Instant | None:
        """When a rate lets the next waiting one start."""
        times = [
            at
            for (_, name), waiting in self._waiting.items()
            if waiting and name in self._rates and (at := self._rates[name].wait_until(now)) is not None
        ]
        return min(times, default=None)

    def withdraw(self, execution_id: str, number: int, attempt: int | None = None) -> bool:
        """Forget one that waits, if it is that attempt; whether it did."""
        for waiting in self._waiting.values():
            for index, (_, task) in enumerate(waiting):
                is_it = task.execution_id == execution_id and task.event.number == number
                if is_it and attempt in (None, task.attempt):
                    del waiting[index]
                    return True
        return False

    @property
    def waiting_count(self) -> int:
        """How many wait."""
        return sum(len(waiting) for waiting in self._waiting.values())

    def clear(self) -> None:
        """Forget all that wait."""
        self._waiting.clear()

    def _slots_of(self, activity: Activity[..., object], queue: str) -> list[Slots]:
        slots = [self._executors[activity.executor]]
        if activity.name in self._activities:
            slots.append(self._activities[activity.name])
        if queue in self._queues:
            slots.append(self._queues[queue])
        return slots
