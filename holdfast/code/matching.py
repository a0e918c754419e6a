"""Whether a command that the code issues on replay is the one that history records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.core import commands, events
from holdfast.core.failures import RECORDED_TRACE
from holdfast.errors import NonDeterminismError

PAIRS: Final[dict[type[commands.Command], type[events.Event]]] = {
    commands.RunActivity: events.ActivityScheduled,
    commands.CancelActivity: events.ActivityCancelRequested,
    commands.StartTimer: events.TimerStarted,
    commands.CancelTimer: events.TimerCancelled,
    commands.StartChild: events.ChildStarted,
    commands.CancelChild: events.ChildCancelRequested,
    commands.SignalExternal: events.ExternalSignalInitiated,
    commands.Subscribe: events.Subscribed,
    commands.Unsubscribe: events.Unsubscribed,
    commands.DeclinePublication: events.PublicationDeclined,
    commands.PublishMessage: events.MessagePublished,
    commands.SendEvent: events.EventSent,
    commands.Broadcast: events.SignalBroadcast,
    commands.CreateTask: events.TaskCreated,
    commands.EndTask: events.TaskEnded,
    commands.CompleteUpdate: events.UpdateCompleted,
    commands.FailUpdate: events.UpdateFailed,
    commands.RejectSignal: events.SignalRejected,
    commands.RecordSideEffect: events.SideEffectRecorded,
    commands.RecordPatch: events.PatchRecorded,
    commands.Complete: events.WorkflowCompleted,
    commands.Fail: events.WorkflowFailed,
    commands.EndCancelled: events.WorkflowCancelled,
    commands.ContinueAs: events.ContinuedAs,
}
"""Each command that code gives, and the event that records it. `SetState` and `Block` leave none."""

_COMPARED: Final = ("number", "name", "workflow", "patch", "kind", "update")
"""What must be the same. Arguments and due times may differ: the code that computes them may be fixed, and what was
recorded counts."""


def matches(command: commands.Command, event: events.Event) -> bool:
    """Whether a recorded event is what a command would have been recorded as."""
    if PAIRS.get(type(command)) is not type(event):
        return False
    return all(getattr(command, field, None) == getattr(event, field, None) for field in _COMPARED)


class _Deed(NamedTuple):
    """What code did, in the words of who wrote it: `call` and `ctx.run('charge')`."""

    verb: str
    what: str = ""

    def tell(self, verbs: Mapping[str, str], number: str = "") -> str:
        """The deed with its verb in another form."""
        return " ".join(part for part in (verbs.get(self.verb, self.verb), self.what, number) if part)


_PAST: Final = {
    "call": "called",
    "start": "started",
    "cancel": "cancelled",
    "refuse": "refused",
    "answer": "answered",
    "return": "returned",
    "raise": "raised",
    "end": "ended",
    "record": "recorded",
}
_DEEDS: Final[dict[type[events.Event], Callable[[Any], _Deed]]] = {
    events.ActivityScheduled: lambda one: _Deed("call", f"ctx.run({one.name!r})"),
    events.ActivityCancelRequested: lambda one: _Deed("cancel", f"the activity number {one.number}"),
    events.TimerStarted: lambda _: _Deed("start", "a timer (ctx.sleep, or a timeout)"),
    events.TimerCancelled: lambda one: _Deed("cancel", f"the timer number {one.number}"),
    events.ChildStarted: lambda one: _Deed("start", f"the child workflow {one.workflow!r}"),
    events.ChildCancelRequested: lambda one: _Deed("cancel", f"the child number {one.number}"),
    events.ExternalSignalInitiated: lambda one: _Deed(
        "call", f"ctx.signal_external_workflow({one.workflow_id!r}, {one.name!r})"
    ),
    events.Subscribed: lambda one: _Deed("call", f"ctx.wait_for_{one.kind}({one.name!r})"),
    events.Unsubscribed: lambda one: _Deed("end", f"the wait number {one.number}"),
    events.PublicationDeclined: lambda one: _Deed("refuse", f"what came for the wait number {one.number}"),
    events.MessagePublished: lambda one: _Deed("call", f"ctx.send_message({one.name!r}, {one.key!r})"),
    events.EventSent: lambda one: _Deed("call", f"ctx.send_event({one.name!r})"),
    events.SignalBroadcast: lambda one: _Deed("call", f"ctx.broadcast_signal({one.name!r})"),
    events.TaskCreated: lambda one: _Deed("call", f"ctx.human_task({one.name!r})"),
    events.TaskEnded: lambda one: _Deed("cancel", f"the human task number {one.number}"),
    events.UpdateCompleted: lambda one: _Deed("answer", f"the update that is event {one.update}"),
    events.UpdateFailed: lambda one: _Deed("refuse", f"the update that is event {one.update}"),
    events.SignalRejected: lambda one: _Deed("refuse", f"the value of signal {one.name!r}"),
    events.SideEffectRecorded: lambda _: _Deed("call", "ctx.side_effect(…)"),
    events.PatchRecorded: lambda one: _Deed("call", f"ctx.patched({one.patch!r})"),
    events.WorkflowCompleted: lambda _: _Deed("return"),
    events.WorkflowFailed: lambda one: _Deed("raise", one.failure.type),
    events.WorkflowCancelled: lambda _: _Deed("end", "as cancelled"),
    events.ContinuedAs: lambda one: _Deed("call", f"ctx.continue_as(…) for workflow {one.workflow!r}"),
}
"""What code did that led to an event; the command that the event records has the fields that are told."""


def _describe(one: commands.Command | events.Event) -> _Deed:
    kind: Any = PAIRS.get(type(one), type(one))  # type: ignore[arg-type]  # an event is no key
    tell = _DEEDS.get(kind)
    return _Deed("record", f"{kind.__name__}, as only a process does,") if tell is None else tell(one)


def _number(one: Any) -> str:
    return f"(number {one.number})" if getattr(one, "number", None) else ""


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
    """Where a command was asked for; with the name of the workflow's function if only that is known."""
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
            raise _disagree(who, event, sequence, issued[offset], places.find(issued[offset]))
    if len(issued) > len(numbered):
        extra = issued[len(numbered)]
        place = places.find(extra)
        raise _with_place(
            f"Expected {who} to be at rest after event {last} of its history, "
            f"but it {_describe(extra).tell(_PAST)} at {place}, which history does not hold. {REMEDY}",
            place,
        )


def _is_patch(one: Any, patches: Collection[str]) -> bool:
    """Whether a command or an event records one of some patches."""
    return bool(patches) and type(one) in (commands.RecordPatch, events.PatchRecorded) and one.patch in patches


def unasked(who: str, event: events.Event, sequence: int, waiting_place: str) -> NonDeterminismError:
    """History records something that the code did not ask for."""
    waits = f", it waits at {waiting_place}" if waiting_place else ""
    return _with_place(
        f"Expected {who} to {_describe(event).tell({})} again, which is event {sequence} of its history, "
        f"but it did nothing there{waits}. {_find_remedy(event)}",
        waiting_place,
    )


def _disagree(who: str, event: events.Event, sequence: int, command: commands.Command, place: str) -> NonDeterminismError:
    """History records one thing, and the code did another."""
    recorded, issued = _describe(event), _describe(command)
    is_told_apart = recorded != issued  # else only their numbers differ
    expected = recorded.tell({}, "" if is_told_apart else _number(event))
    done = issued.tell(_PAST, "" if is_told_apart else _number(command))
    return _with_place(
        f"Expected {who} to {expected} again, which is event {sequence} of its history, but it {done} at {place}. "
        f"{_find_remedy(event)}",
        place,
    )


def _with_place(message: str, place: str) -> NonDeterminismError:
    """The error with a line of the user's code for its trace: that of the comparison has only lines of Holdfast."""
    error = NonDeterminismError(message)
    vars(error)[RECORDED_TRACE] = place
    return error
