"""What an activity's function can ask about the attempt it runs in."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.core import payloads
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import to_datetime
from holdfast.core.payloads import Payload
from holdfast.errors import HoldfastError


class ActivityInfo(msgspec.Struct, frozen=True):
    """Where an activity's function is being run, and the how-manyeth time."""

    org: str
    activity: str
    number: int
    attempt: int
    workflow: str
    workflow_id: str
    execution_id: str
    scheduled_at: datetime
    heartbeat_details: Any
    """What the attempt before reported last, if anything."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this one activity: what to give to services that dedupe."""
        return f"{self.execution_id}/{self.number}"


class Attempt:
    """One running attempt: what the function may ask, and what the runner needs to end it."""

    __slots__ = ("cancel_requested", "is_over", "on_beat", "reported", "task")

    def __init__(self, task: ActivityTask, on_beat: Callable[[Attempt], None]) -> None:
        self.task = task
        self.on_beat = on_beat
        self.reported: Payload | None = task.heartbeat
        self.cancel_requested = False
        self.is_over = False
        """Whether its outcome no longer counts: cancelled, timed out or handed back."""

    def info(self) -> ActivityInfo:
        """What the function may know."""
        task = self.task
        details = None if task.heartbeat is None else payloads.decode(task.heartbeat, Any, "heartbeat details")
        return ActivityInfo(
            task.org,
            task.event.name,
            task.event.number,
            task.attempt,
            task.workflow,
            task.workflow_id,
            task.execution_id,
            to_datetime(task.scheduled_at),
            details,
        )

    def beat(self, details: Any) -> None:
        """The function is alive. Raises CancelledError if nobody waits for it any more."""
        if self.cancel_requested or self.is_over:
            raise asyncio.CancelledError("the activity was cancelled")
        if details is not None:
            self.reported = payloads.encode(details, f"the heartbeat details of activity '{self.task.event.name}'")
        self.on_beat(self)


current: contextvars.ContextVar[Attempt] = contextvars.ContextVar("holdfast_attempt")


def activity_info() -> ActivityInfo:
    """About the activity that is being run; only inside one."""
    return _current().info()


def heartbeat(details: Any = None) -> None:
    """Say that the activity is alive, and keep `details` for its next attempt.

    Raises asyncio.CancelledError when the workflow no longer waits for the activity: let it through, after cleaning up.
    """
    _current().beat(details)


def is_cancelled() -> bool:
    """Whether the workflow no longer waits for the activity; for sync functions, which cannot be interrupted."""
    attempt = _current()
    return attempt.cancel_requested or attempt.is_over


def _current() -> Attempt:
    try:
        return current.get()
    except LookupError:
        raise HoldfastError(
            "Expected to be called inside a running activity, but none is running here. "
            "Activities in processes cannot report; use executor='thread'."
        ) from None
