"""Timers of a program. Cancelling is logical: the number is the token, and a fire without its open timer is stale."""

from __future__ import annotations

from holdfast.core import commands, envelopes, events, human_tasks
from holdfast.core.effects import TimerSet, Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.unused import add, put


def record_timer(turn: Turn, command: commands.StartTimer) -> events.TimerStarted:
    """Start a timer. One whose time has passed is due now; others are rounded up to the resolution of timers.

    A length of time counts from what the clock shows. That is earlier than the time of the execution if the clock was set
    back: then the event tells when the timer is due by the time of the execution, which `turn.find_time` makes true.
    """
    lead = 0 if command.is_date else turn.lead
    due = round_due(turn, command.due - lead)
    turn.started_timers = add(turn.started_timers, (TimerSet(command.number, due),))
    return events.TimerStarted(number=command.number, due=due + lead, label=command.label)


def round_due(turn: Turn, due: Instant) -> Instant:
    """A due time, rounded up to the resolution of timers unless it has passed."""
    resolution = turn.limits.timer_resolution
    return due + -due % resolution if resolution and due > turn.clock else due


def record_timer_cancel(turn: Turn, command: commands.CancelTimer) -> events.TimerCancelled | None:
    """The workflow waits for a timer no longer: end it, if it is open."""
    if command.number not in turn.execution.timers:
        return None
    turn.end_timers((command.number,))
    return events.TimerCancelled(number=command.number)


def decide_due(turn: Turn, envelope: envelopes.TimerDue) -> events.TimerFired | events.TaskReminded | None:
    """A due timer fires if it is still open. One under the number of a human task is about the dates of that."""
    task = turn.execution.tasks.get(envelope.number)
    if task is not None:
        return human_tasks.decide_due(turn, task, envelope.due)
    turn.end_timers((envelope.number,))
    if envelope.number not in turn.execution.timers:
        turn.changed = True  # so that the stale row goes
        return None
    return events.TimerFired(number=envelope.number)


def evolve_started(execution: Execution, event: events.TimerStarted, _now: Instant) -> None:
    """The timer is open until it fires or is cancelled."""
    execution.timers[event.number] = event.due
    if event.label:
        execution.timer_labels = put(execution.timer_labels, event.number, event.label)


def evolve_ended(execution: Execution, event: events.TimerFired | events.TimerCancelled, _now: Instant) -> None:
    """The timer is open no longer."""
    execution.timers.pop(event.number, None)
    if execution.timer_labels:
        execution.timer_labels.pop(event.number, None)
