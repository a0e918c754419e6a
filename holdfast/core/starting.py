"""Starts that take effect later, and the deadlines that are set when an execution is made."""

from __future__ import annotations

from holdfast.core import envelopes, events
from holdfast.core.chains import EXECUTION_DEADLINE_NUMBER, RUN_DEADLINE_NUMBER, START_NUMBER, Chain
from holdfast.core.effects import TimerSet, Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.timers import round_due
from holdfast.core.unused import add


def arm(turn: Turn) -> Instant | None:
    """Set the timers with which an execution begins, of its delay and its deadlines. When its delay ends, if it has one."""
    details = turn.execution.details
    if details.chain is not None:
        turn.started_timers = add(turn.started_timers, list_deadlines(details.chain))
    if details.start_at is not None and details.start_at <= turn.clock:
        details.start_at = None
    if details.start_at is not None:
        turn.started_timers = add(turn.started_timers, (TimerSet(START_NUMBER, round_due(turn, details.start_at)),))
    return details.start_at


def list_deadlines(chain: Chain) -> list[TimerSet]:
    """The timers of an execution's deadlines.

    Any node may end an execution for good. A run that may be followed by another is ended by a node that has its code, which
    knows what signals were not taken.
    """
    found = []
    if chain.run_deadline is not None:
        found.append(TimerSet(RUN_DEADLINE_NUMBER, chain.run_deadline, is_for_anybody=chain.retry is None))
    if chain.deadline is not None:
        found.append(TimerSet(EXECUTION_DEADLINE_NUMBER, chain.deadline, is_for_anybody=True))
    return found


def decide_due(turn: Turn, _envelope: envelopes.StartDue) -> events.DelayEnded | None:
    """The code of a delayed start begins, unless it has begun already."""
    turn.end_timers((START_NUMBER,))
    if turn.execution.details.start_at is None:
        turn.changed = True  # so that the stale row goes
        return None
    return events.DelayEnded()


def evolve_delay_ended(execution: Execution, _event: events.DelayEnded, _now: Instant) -> None:
    """The execution waits for its start no longer."""
    execution.details.start_at = None
