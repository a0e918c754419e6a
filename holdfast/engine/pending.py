"""What an open execution waits for, as it is shown: values for people and programs to read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from holdfast.core import payloads
from holdfast.core.failures import Failure
from holdfast.core.lifecycle import Status
from holdfast.core.program import LocalWait, SignalPlace
from holdfast.core.publications import SubscriptionKind
from holdfast.core.shown_values import ShownValue


class FailureInfo(ShownValue, frozen=True):
    """What went wrong. Its text is the type and the message."""

    type: str
    """The name of the exception's class."""
    message: str
    details: Any = None
    """What the exception gave as its details, as JSON values."""
    trace: str = ""
    """Where it was raised, the innermost line last; the last 2,000 characters of it while an activity is tried again."""
    activity: int | None = None
    """The number of the activity that failed and is tried again; None if the execution itself is in trouble."""
    cause: FailureInfo | None = None
    """What led to it, if something did; of an activity that is tried again, without its trace."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class SignalInfo(ShownValue, frozen=True):
    """The signal that an execution received last."""

    name: str
    sequence: int | None = None
    """Its place in the history: the sequence that its sender was told. None where the history was not looked into."""


class ActivityState(StrEnum):
    """Whether an open activity runs, and if not why."""

    RUNNING = "running"
    RETRYING = "waits for its next try"
    WAITS_FOR_PLACE = "waits for a place"
    """Nodes offer it, and none of them has a free slot; or it has a node, where it waits for a slot."""
    NOT_OFFERED = "no node offers it"
    """No living node has the activity and serves its queue."""
    NODE_GONE = "its node is gone"
    """The node that ran it died or left. Another node takes it over, once one that can is there."""


class PendingActivity(ShownValue, frozen=True, kw_only=True):
    """An activity that has not ended."""

    number: int
    """The number of the command that asked for it, as in the history."""
    name: str
    queue: str
    state: ActivityState
    """Seen from another node, one that waits for a slot on its node counts as running until that node's next heartbeat."""
    attempt: int
    """The present attempt, or the next one if that has not begun."""
    failures: int
    """How many attempts have failed so far."""
    scheduled_at: datetime
    """When the workflow asked for it."""
    started_at: datetime | None = None
    """When the present attempt began; known to the node that runs it only."""
    node: str | None = None
    """The node that has it; None while it is on offer or waits for its next try."""
    next_try: datetime | None = None
    """When the next attempt begins, if the last one failed."""
    last_failure: FailureInfo | None = None
    heartbeat: Any = None
    """The details that the function sent last with a heartbeat, as JSON values."""
    place: str | None = None
    """The line of the workflow's code that waits for it, as `file:line`, or the id of the element of a process that does;
    None if no line waits for it alone, or it is not known."""
    label: str = ""
    """What the workflow calls it, by `name=…`; empty if it has no name of its own. Of a process: the name of the task."""
    element: str = ""
    """Of a process: the id of the task whose job it does."""


class PendingTimer(ShownValue, frozen=True, kw_only=True):
    """A timer that has not fired."""

    number: int
    due: datetime
    place: str | None = None
    label: str = ""


class PendingChild(ShownValue, frozen=True, kw_only=True):
    """A child whose end the workflow has not been told."""

    number: int
    workflow: str
    workflow_id: str
    execution_id: str
    """Of its present run, if it continued as another."""
    status: Status | None = None
    """None if it has not begun, or has ended and its parent is about to be told; or beyond the first hundred children."""
    place: str | None = None
    label: str = ""


class PendingExternalSignal(ShownValue, frozen=True, kw_only=True):
    """A signal that the workflow sent to another execution, which has not answered."""

    number: int
    name: str
    workflow_id: str
    place: str | None = None


class PendingTask(ShownValue, frozen=True, kw_only=True):
    """A human task that has not ended. `engine.task` tells who has it."""

    number: int
    task_id: str
    name: str
    due: datetime | None = None
    place: str | None = None


class PendingSubscription(ShownValue, frozen=True, kw_only=True):
    """A wait for a message, an event or a broadcast signal."""

    number: int
    kind: SubscriptionKind
    name: str
    key: str = ""
    """The correlation key of a message."""
    where: Mapping[str, Any] = MappingProxyType({})
    """Fields that an event must have."""
    place: str | None = None
    label: str = ""


class PendingPublication(ShownValue, frozen=True, kw_only=True):
    """A message, an event or a broadcast signal that was sent and is not answered yet."""

    number: int
    kind: SubscriptionKind
    name: str
    place: str | None = None


class PendingIncident(ShownValue, frozen=True, kw_only=True):
    """Something that went wrong at an element of a process, which waits there until somebody corrects it."""

    number: int
    """By which `resolve_incident` finds it."""
    element: str
    """The id of the BPMN element."""
    element_name: str = ""
    kind: str
    message: str


class PendingWork(ShownValue, frozen=True, kw_only=True):
    """Everything that an open execution waits for."""

    activities: tuple[PendingActivity, ...] = ()
    timers: tuple[PendingTimer, ...] = ()
    """The earliest first; with the timeouts of waits."""
    children: tuple[PendingChild, ...] = ()
    signals: tuple[SignalPlace, ...] = ()
    """The signals that its code waits for. Without the code, those that its row names: none while activities run."""
    external_signals: tuple[PendingExternalSignal, ...] = ()
    tasks: tuple[PendingTask, ...] = ()
    """Human tasks that have not ended."""
    subscriptions: tuple[PendingSubscription, ...] = ()
    """What it waits for that is published without naming it, the oldest wait first."""
    publications: tuple[PendingPublication, ...] = ()
    """What it published and has no answer to yet."""
    incidents: tuple[PendingIncident, ...] = ()
    """What went wrong at elements of a process, each of which waits until somebody corrects it."""
    local_waits: tuple[LocalWait, ...] = ()
    """What its code waits for that only its own code can bring: events, queues, locks, futures."""
    is_code_known: bool = False
    """Whether the code was asked: it was in memory, or the node that was asked has it and replayed the history. Else
    `signals` may lack some, `local_waits` is empty and `place` unknown."""


def show_failure(failure: Failure, activity: int | None = None) -> FailureInfo:
    """A recorded failure as it is shown."""
    cause = None if failure.cause is None else show_failure(failure.cause)
    return FailureInfo(failure.type, failure.message, show_payload(failure.details), failure.trace, activity, cause)


def show_payload(payload: payloads.Payload | None) -> Any:
    """A stored value as JSON values; of one that a codec encoded, only that it is encoded."""
    return None if payload is None else payloads.show_value(payload)
