"""The failing events of a history as the exceptions that workflow code catches: built from history alone.

What was recorded before exceptions had the class of the original (`behaviours.TYPED_FAILURES`) is raised as it was then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.core import commands, events
from holdfast.core.failures import Failure, decode_failure_details
from holdfast.core.rebuilt_errors import KnownErrors, rebuild
from holdfast.errors import (
    ActivityCancelled,
    ActivityFailed,
    ActivityLost,
    ActivityTimedOut,
    ChildWorkflowCancelled,
    ChildWorkflowFailed,
    ChildWorkflowTerminated,
    ExternalSignalFailed,
    HumanTaskCancelled,
    MessageKeyTaken,
    PublicationFailed,
    SideEffectFailed,
    StepError,
    SubscriptionFailed,
)


def make_exception(
    event: events.Event | commands.RecordSideEffect, label: str, known: KnownErrors | None = None
) -> StepError:
    """The exception of a failing event; `label` names what was asked for.

    `known`: where the class of the original is looked for; None for executions that began when it was not.
    """
    kind = find_kind(event)
    if kind is None:
        return EXCEPTIONS[type(event)](event, label)
    failure: Failure = getattr(event, "failure")  # noqa: B009 - those in the table have one
    text = f"Expected {label} to succeed, but it raised {failure.type}: {failure.message}"
    attempt: int = getattr(event, "attempt", 0)
    if known is None:
        return kind(text, name=label, type=failure.type, details=decode_failure_details(failure), attempt=attempt)
    return rebuild(kind, text, failure, known, name=label, attempt=attempt)


def find_kind(event: events.Event | commands.RecordSideEffect) -> type[StepError] | None:
    """The class of the exception of an event that holds a failure; None for other events."""
    if type(event) is events.SubscriptionFailed and event.failure.type == MessageKeyTaken.__name__:
        return MessageKeyTaken
    return FAILURES.get(type(event))


FAILURES: Final[dict[type[Any], type[StepError]]] = {
    events.ActivityFailed: ActivityFailed,
    events.ChildFailed: ChildWorkflowFailed,
    events.ExternalSignalFailed: ExternalSignalFailed,
    events.SubscriptionFailed: SubscriptionFailed,
    events.PublicationFailed: PublicationFailed,
    commands.RecordSideEffect: SideEffectFailed,
}
"""The exceptions of events that hold a failure."""


EXCEPTIONS: Final[dict[type[Any], Callable[[Any, str], StepError]]] = {
    events.ActivityTimedOut: lambda event, label: ActivityTimedOut(
        f"Expected {label} to end in time, but its {event.timeout} timeout passed.",
        name=label,
        type=str(event.timeout),
        attempt=event.attempt,
    ),
    events.ActivityCancelled: lambda event, label: ActivityCancelled(
        f"Expected {label} to end with a result, but it was cancelled.",
        name=label,
        type="CancelledError",
        attempt=event.attempt,
    ),
    events.ActivityLost: lambda event, label: ActivityLost(
        f"Expected {label} to end with a result, but after it had begun its process ended, or was shut down, and it is run "
        "at most once: what it did is not known. Find out, for instance by its idempotency key, before you do it again.",
        name=label,
        type="ActivityLost",
        attempt=event.attempt,
    ),
    events.ChildCancelled: lambda _event, label: ChildWorkflowCancelled(
        f"Expected {label} to end with a result, but it was cancelled.", name=label, type="Cancelled"
    ),
    events.TaskCancelled: lambda event, label: HumanTaskCancelled(
        f"Expected {label} to be completed, but {event.by or 'somebody'} cancelled it: {event.reason or 'no reason given'}.",
        name=label,
        type="Cancelled",
        details={"by": event.by, "reason": event.reason},
    ),
    events.ChildTerminated: lambda event, label: ChildWorkflowTerminated(
        f"Expected {label} to end with a result, but it was terminated: {event.reason or 'no reason given'}.",
        name=label,
        type="Terminated",
    ),
}
"""How the exceptions of the other failing events are made."""
