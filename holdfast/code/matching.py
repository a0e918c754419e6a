"""Whether a command that the code issues on replay is the one that history records."""

from __future__ import annotations

from typing import Any, Final

from holdfast.core import commands, events

PAIRS: Final[dict[type[commands.Command], type[events.Event]]] = {
    commands.RunActivity: events.ActivityScheduled,
    commands.CancelActivity: events.ActivityCancelRequested,
    commands.StartTimer: events.TimerStarted,
    commands.CancelTimer: events.TimerCancelled,
    commands.StartChild: events.ChildStarted,
    commands.CancelChild: events.ChildCancelRequested,
    commands.SignalExternal: events.ExternalSignalInitiated,
    commands.RejectSignal: events.SignalRejected,
    commands.RecordSideEffect: events.SideEffectRecorded,
    commands.RecordPatch: events.PatchRecorded,
    commands.Complete: events.WorkflowCompleted,
    commands.Fail: events.WorkflowFailed,
    commands.EndCancelled: events.WorkflowCancelled,
    commands.ContinueAs: events.ContinuedAs,
}
"""Each command and the event that records it. `SetState` and `Block` leave none."""

_COMPARED: Final = ("number", "name", "workflow", "patch")
"""What must be the same. Arguments and due times may differ: code that computes them may be mended, what was recorded counts."""


def matches(command: commands.Command, event: events.Event) -> bool:
    """Whether `event` records `command`."""
    if PAIRS.get(type(command)) is not type(event):
        return False
    return all(getattr(command, field, None) == getattr(event, field, None) for field in _COMPARED)


def describe_command(command: commands.Command) -> str:
    """A command as an error message shows it."""
    return _describe(type(command).__name__, command)


def describe_event(event: events.Event) -> str:
    """A recorded event as an error message shows it."""
    return _describe(type(event).__name__, event)


def _describe(kind: str, value: Any) -> str:
    parts = [repr(getattr(value, field)) for field in ("name", "workflow", "patch") if getattr(value, field, None)]
    number = getattr(value, "number", None)
    return " ".join([kind, *parts, *([f"(number {number})"] if number else [])])
