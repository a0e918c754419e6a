"""Timers of a program. Cancelling is logical: the number is the token, and a fire without its open timer is stale."""

from __future__ import annotations

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import TimerSet, Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant


def record_timer(turn: Turn, command: commands.StartTimer) -> events.TimerStarted:
    """A point in time is awaited. One in the past is due now."""
    turn.started_timers.append(TimerSet(command.number, command.due))
    return events.TimerStarted(number=command.number, due=command.due)


def record_timer_cancel(turn: Turn, command: commands.CancelTimer) -> events.TimerCancelled | None:
    """It is awaited no longer."""
    if command.number not in turn.execution.timers:
        return None
    turn.ended_timers.append(command.number)
    return events.TimerCancelled(number=command.number)


def decide_due(turn: Turn, envelope: envelopes.TimerDue) -> events.TimerFired | None:
    """A due timer fires if it is still open."""
    turn.ended_timers.append(envelope.number)
    if envelope.number not in turn.execution.timers:
        turn.changed = True  # so that the stale row goes
        return None
    return events.TimerFired(number=envelope.number)


def evolve_started(execution: Execution, event: events.TimerStarted, _now: Instant) -> None:
    """It is open."""
    execution.timers[event.number] = event.due


def evolve_ended(execution: Execution, event: events.TimerFired | events.TimerCancelled, _now: Instant) -> None:
    """It is open no longer."""
    execution.timers.pop(event.number, None)
