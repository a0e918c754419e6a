"""Whether a command that the code issues on replay is the one that history records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from holdfast.core import commands, events
from holdfast.errors import NonDeterminismError

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
"""What must be the same. Arguments and due times may differ: the code that computes them may be fixed, and what was
recorded counts."""


def matches(command: commands.Command, event: events.Event) -> bool:
    """Whether a recorded event is what a command would have been recorded as."""
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


REMEDY: Final = "Bring the old code path back, or guard the change with ctx.patched(), then retry the execution."


def _find_remedy(event: events.Event) -> str:
    """What to do where code does not ask for a recorded event."""
    if isinstance(event, events.PatchRecorded):
        return (
            f"Put ctx.patched({event.patch!r}) or ctx.deprecate_patch({event.patch!r}) back until no open history holds "
            "its record, then retry the execution."
        )
    return REMEDY


class Places(NamedTuple):
    """How a comparison finds out where in the user's code something is."""

    find: Callable[[commands.Command], str]
    """Where a command was asked for."""
    find_waiting: Callable[[], str]
    """Where the code waits."""


def compare(
    who: str,
    issued: Sequence[commands.Command],
    recorded: Sequence[events.Event],
    first: int,
    places: Places,
    deprecated: Collection[str] = (),
) -> None:
    """Raises NonDeterminismError unless the commands issued on replay are the recorded ones, in order.

    `first` is the sequence of the first recorded event. Records of `deprecated` patches may be there or not.
    """
    last = first + len(recorded) - 1
    issued = [one for one in issued if type(one) is not commands.SetState and not _is_patch(one, deprecated)]
    numbered = [
        (sequence, one)
        for sequence, one in enumerate(recorded, first)
        if type(one) not in events.UNASKED and not _is_patch(one, deprecated)
    ]
    for offset, (sequence, event) in enumerate(numbered):
        if offset >= len(issued):
            raise unasked(who, event, sequence, places.find_waiting())
        if not matches(issued[offset], event):
            raise NonDeterminismError(
                f"Expected {who} to ask for {describe_event(event)} again, which is event {sequence} of its "
                f"history, but it asked for {describe_command(issued[offset])}{places.find(issued[offset])}. "
                f"{_find_remedy(event)}"
            )
    if len(issued) > len(numbered):
        extra = issued[len(numbered)]
        raise NonDeterminismError(
            f"Expected {who} to be at rest after event {last} of its history, "
            f"but it asked for {describe_command(extra)}{places.find(extra)}, which history does not hold. {REMEDY}"
        )


def _is_patch(one: Any, patches: Collection[str]) -> bool:
    """Whether a command or an event records one of some patches."""
    return bool(patches) and type(one) in (commands.RecordPatch, events.PatchRecorded) and one.patch in patches


def unasked(who: str, event: events.Event, sequence: int, waiting_place: str) -> NonDeterminismError:
    """History records something that the code did not ask for."""
    waits = f", it waits at {waiting_place}" if waiting_place else ""
    return NonDeterminismError(
        f"Expected {who} to ask for {describe_event(event)} again, which is event {sequence} of its history, "
        f"but it asked for nothing there{waits}. {_find_remedy(event)}"
    )
