"""One attempt of an activity, and what its function can ask and report while it runs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import to_datetime
from holdfast.core.payloads import Payload
from holdfast.engine.loop_calls import refuse_running_loop
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.activities.definitions import Activity
    from holdfast.engine.sync_verbs import SyncVerbs
    from holdfast.engine.verbs import Verbs


class ActivityInfo(msgspec.Struct, frozen=True):
    """Which activity of which execution a function runs for, and in which attempt."""

    org: str
    activity: str
    number: int
    attempt: int
    workflow: str
    workflow_id: str
    execution_id: str
    scheduled_at: datetime
    heartbeat_details: Any
    """The last heartbeat details of the attempt before; None if it reported none."""
    idempotency_key: str = ""
    """The same for all attempts of this activity, and never that of other work, also if the database goes back to an earlier
    state: give it to services that deduplicate requests."""
    metadata: Mapping[str, str] = MappingProxyType({})
    """Texts that the execution was started with."""
    headers: Mapping[str, str] = MappingProxyType({})
    """Trace context and the like, which the execution hands on."""
    element_id: str = ""
    """Of the job of a process, whose id is `workflow`: the id of its task in the diagram."""
    element_name: str = ""
    """Of the job of a process: what the diagram calls its task."""
    task_headers: Mapping[str, str] = MappingProxyType({})
    """Of the job of a process: the headers of its task (`zeebe:taskHeaders`)."""

    @property
    def client(self) -> Verbs:
        """The verbs of the engine that runs an async activity, to be awaited: start, signal and ask about executions.

        Calls are no part of the activity's result: give them a `request_id`, or a `workflow_id`, since it may run again. In
        a sync activity it is what `sync_client` gives.
        """
        found: Verbs = _current().find_client()
        return found

    @property
    def sync_client(self) -> SyncVerbs:
        """The verbs for a sync activity, in whose thread each blocks until it is done. Raises WrongEventLoop elsewhere."""
        refuse_running_loop()
        found: SyncVerbs = _current().find_client()
        return found


class ActivityAttempt:
    """One running attempt: what its function may ask, and what the runner needs to end it."""

    __slots__ = ("cancel_requested", "find_client", "is_over", "on_beat", "reported", "task")

    def __init__(
        self, task: ActivityTask, on_beat: Callable[[ActivityAttempt], None], find_client: Callable[[], Any]
    ) -> None:
        self.task = task
        self.on_beat = on_beat
        self.find_client = find_client
        """The verbs of the engine, for the thread that asks."""
        self.reported: Payload | None = task.heartbeat
        self.cancel_requested = False
        self.is_over = False
        """Whether its outcome no longer counts: it was cancelled, timed out or handed back."""

    def bind_input(self, activity: Activity[..., Any]) -> Payload:
        """What the function is to be called with; of the variables of a job, what it has parameters for.

        Raises InvalidArguments if some have none.
        """
        event = self.task.event
        return event.input if event.options.job is None else activity.signature.bind_variables(event.input)

    def info(self) -> ActivityInfo:
        """What `activity_info()` answers inside the function."""
        task, job = self.task, self.task.event.options.job
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
            task.idempotency_key,
            dict(task.metadata),
            dict(task.headers),
            "" if job is None else job.element,
            "" if job is None else task.event.label,
            {} if job is None else dict(job.headers),
        )

    def beat(self, details: Any) -> None:
        """Note that the function is alive. Raises CancelledError if no workflow waits for it any more."""
        if self.cancel_requested or self.is_over:
            if not self.is_over:
                self.on_beat(self)  # it has until its next heartbeat to clean up
            raise asyncio.CancelledError("the activity was cancelled")
        if details is not None:
            self.reported = payloads.encode(details, f"the heartbeat details of activity '{self.task.event.name}'")
        self.on_beat(self)


current: contextvars.ContextVar[ActivityAttempt] = contextvars.ContextVar("holdfast_attempt")


def activity_info() -> ActivityInfo:
    """Which activity the calling function runs for. Raises HoldfastError outside of an activity."""
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


def _current() -> ActivityAttempt:
    try:
        return current.get()
    except LookupError:
        raise HoldfastError(
            "Expected to be called inside a running activity, but none is running here. "
            "Activities in processes cannot report; use executor='thread'."
        ) from None
