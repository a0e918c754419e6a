"""Attempts of activities that run on this node, and the alarms that end them when they take too long."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.core.instants import Instant, Micros
from holdfast.core.options import TimeoutKind
from holdfast.engine.activities.limits import is_suspect
from holdfast.engine.clock import call_after

if TYPE_CHECKING:
    from holdfast.activities.definitions import Activity
    from holdfast.core.effects import ActivityTask
    from holdfast.core.payloads import Payload
    from holdfast.engine.activities.attempt import ActivityAttempt
    from holdfast.engine.clock import Alarm, Clock


class RunningAttempt:
    """An attempt that runs, with its task, its alarms and what it reported."""

    __slots__ = (
        "activity",
        "alarms",
        "attempt",
        "beat_alarm",
        "future",
        "has_beaten",
        "has_begun",
        "is_abandoned",
        "is_alone",
        "is_in_thread",
        "saved",
        "started_at",
    )

    def __init__(self, activity: Activity[..., Any], attempt: ActivityAttempt, started_at: Instant = 0) -> None:
        self.activity = activity
        self.attempt = attempt
        self.started_at = started_at
        self.future: asyncio.Task[None] | None = None
        self.alarms: list[Alarm] = []
        self.beat_alarm: Alarm | None = None
        self.has_begun = False
        """Whether its task has taken its first step: one that is cancelled before never runs, not even to free its slot."""
        self.is_in_thread = False
        """Whether its function has been handed to a thread: then it cannot be ended."""
        self.is_abandoned = False
        """Whether its function goes on though its outcome no longer counts, and its place was given to others."""
        self.has_beaten = False
        """Whether the function sent a heartbeat that is still to be noted in the loop."""
        self.is_alone = attempt.task.lost > 0 and is_suspect(attempt.task)
        """Whether it holds the slot for suspects."""
        self.saved: Payload | None = attempt.reported
        """The heartbeat details that were sent last."""

    @property
    def is_current(self) -> bool:
        """Whether the loop runs its task at this moment: not if the task's coroutine is being closed from elsewhere."""
        try:
            return asyncio.current_task() is self.future
        except RuntimeError:  # no loop runs
            return False

    def cancel_alarms(self) -> None:
        """Let none of its alarms ring any more: it has ended."""
        for alarm in self.alarms:
            alarm.cancel()
        if self.beat_alarm is not None:
            self.beat_alarm.cancel()


class BegunAttempts(set[RunningAttempt]):
    """All attempts of a node whose tasks have not ended, also those that are over and go on unheard."""

    def find_unheard(self, execution_id: str) -> list[ActivityTask]:
        """The attempts of an execution whose outcome no longer counts, and whose functions still run here."""
        return [one.attempt.task for one in self if one.is_abandoned and one.attempt.task.execution_id == execution_id]

    def describe_task(self, future: asyncio.Task[Any]) -> str | None:
        """The activity that a task of the loop runs, for people; None if it runs none. May be called in any thread."""
        for running in list(self):
            if running.future is future:
                task = running.attempt.task
                return f"activity '{task.event.name}' of '{task.workflow_id}' (attempt {task.attempt})"
        return None


class AttemptTimeouts:
    """Arms the alarms of running attempts; `expire` is called for one that took too long, with what it exceeded."""

    def __init__(self, clock: Clock, expire: Callable[[RunningAttempt, TimeoutKind], None]) -> None:
        self._clock = clock
        self._expire = expire

    def arm(self, running: RunningAttempt) -> None:
        """Arm every timeout of an attempt that starts now."""
        task = running.attempt.task
        options = task.event.options
        if options.start_to_close_us is not None:
            self._arm(running, options.start_to_close_us, TimeoutKind.START_TO_CLOSE)
        if options.schedule_to_close_us is not None:
            left = task.scheduled_at + options.schedule_to_close_us - self._clock.now()
            self._arm(running, left, TimeoutKind.SCHEDULE_TO_CLOSE)
        if options.heartbeat_us is not None:
            self.arm_beat(running)

    def arm_beat(self, running: RunningAttempt) -> None:
        """Let the time for the next heartbeat begin anew, if the activity is to send any."""
        limit = running.attempt.task.event.options.heartbeat_us
        if limit is None:
            return
        if running.beat_alarm is not None:
            running.beat_alarm.cancel()
        expire = functools.partial(self._expire, running, TimeoutKind.HEARTBEAT)
        running.beat_alarm = call_after(self._clock, limit, expire)

    def _arm(self, running: RunningAttempt, length: Micros, kind: TimeoutKind) -> None:
        running.alarms.append(call_after(self._clock, length, functools.partial(self._expire, running, kind)))
