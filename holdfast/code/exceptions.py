"""The failing events of a history as the exceptions that workflow code catches: built from history alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.core import commands, events
from holdfast.core.failures import Failure, decode_failure_details
from holdfast.errors import (
    ActivityCancelled,
    ActivityFailed,
    ActivityLost,
    ActivityTimedOut,
    ChildWorkflowCancelled,
    ChildWorkflowFailed,
    ChildWorkflowTerminated,
    ExternalSignalFailed,
    SideEffectFailed,
    StepError,
)


def make_exception(event: events.Event | commands.RecordSideEffect, label: str) -> StepError:
    """The exception of a failing event; `label` names what was asked for."""
    return EXCEPTIONS[type(event)](event, label)


def _from_failure(kind: type[StepError]) -> Callable[[Any, str], StepError]:
    def build(event: Any, label: str) -> StepError:
        failure: Failure = event.failure
        return kind(
            f"Expected {label} to succeed, but it raised {failure.type}: {failure.message}",
            name=label,
            type=failure.type,
            details=decode_failure_details(failure),
            attempt=getattr(event, "attempt", 0),
        )

    return build


EXCEPTIONS: Final[dict[type[Any], Callable[[Any, str], StepError]]] = {
    events.ActivityFailed: _from_failure(ActivityFailed),
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
    events.ChildFailed: _from_failure(ChildWorkflowFailed),
    events.ChildCancelled: lambda _event, label: ChildWorkflowCancelled(
        f"Expected {label} to end with a result, but it was cancelled.", name=label, type="Cancelled"
    ),
    events.ChildTerminated: lambda event, label: ChildWorkflowTerminated(
        f"Expected {label} to end with a result, but it was terminated: {event.reason or 'no reason given'}.",
        name=label,
        type="Terminated",
    ),
    events.ExternalSignalFailed: _from_failure(ExternalSignalFailed),
    commands.RecordSideEffect: _from_failure(SideEffectFailed),
}
