"""Where activities run: in the memory of a node, or offered to whichever node can; and what is lost with a node.

An execution's row names the nodes that hold running activities of its in memory. An offered one is a row of the store, until
it ends: no node has to be named for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from holdfast.core import envelopes, events
from holdfast.core.activities import find_deadline, is_present, set_attempt
from holdfast.core.effects import TimerSet, Turn
from holdfast.core.execution import FIRST_ATTEMPT, OFFERED, Attempt
from holdfast.core.instants import Instant
from holdfast.core.options import TimeoutKind

SUSPECT: Final = 2
"""An activity that was lost with its process so often runs alone from then on, so that it is known who ended the process."""

MayKeep: TypeAlias = Callable[[events.ActivityScheduled], bool]
"""Whether the node that takes the turn can run an activity itself."""


# --- what arrives ---


def decide_redispatch(turn: Turn, envelope: envelopes.Redispatch) -> None:
    """A node no longer runs its activities: each begins a new attempt, so that late results of the old are refused."""
    execution, number = turn.execution, envelope.number
    if number is not None:
        if is_present(execution, number, envelope.attempt) and execution.runner_of(number) in (OFFERED, envelope.node):
            _dispatch_anew(turn, number, has_left=envelope.has_left)
        return
    for number in sorted(execution.running):
        if execution.runner_of(number) == envelope.node:
            _dispatch_anew(turn, number, has_left=envelope.has_left)


def decide_began(turn: Turn, envelope: envelopes.ActivityBegan) -> None:
    """A suspect begins: from now on it is to blame if its process ends. Whether it may is the answer."""
    number = envelope.number
    may_begin = is_present(turn.execution, number, envelope.attempt)
    turn.answer(may_begin)
    if may_begin:
        set_attempt(turn, number, msgspec.structs.replace(turn.execution.attempt_of(number), begun=True))


def decide_offer_due(turn: Turn, envelope: envelopes.OfferDue) -> events.ActivityTimedOut | None:
    """An activity that nobody took in time is over."""
    execution, number = turn.execution, envelope.number
    attempt = execution.attempt_of(number)
    if not is_present(execution, number, envelope.attempt) or attempt.node != OFFERED:
        if attempt.retry_at is None:  # else the present retry has taken the row
            turn.ended_timers.append(number)
            turn.changed = True  # so that the stale row goes
        return None
    deadline = find_deadline(execution.activities[number])
    is_over = deadline is not None and turn.now >= deadline
    timeout = TimeoutKind.SCHEDULE_TO_CLOSE if is_over else TimeoutKind.SCHEDULE_TO_START
    return events.ActivityTimedOut(number=number, timeout=timeout, attempt=attempt.attempt)


def _dispatch_anew(turn: Turn, number: int, *, has_left: bool) -> None:
    if number in turn.dispatched:
        return
    attempt = turn.execution.attempt_of(number)
    lost = attempt.lost
    if not has_left and (lost < SUSPECT or attempt.begun):
        lost += 1
    following = msgspec.structs.replace(attempt, attempt=attempt.attempt + 1, node=None, lost=lost, begun=False)
    set_attempt(turn, number, following)
    turn.dispatched.append(number)


# --- at the end of a turn ---


def place_activities(turn: Turn, node: str, may_keep: MayKeep | None = None) -> None:
    """Decide who runs the dispatched activities, `node` or whoever takes them, and note in the execution who runs which.

    Without `may_keep`, `node` runs all of them.
    """
    execution = turn.execution
    if may_keep is not None and turn.dispatched:
        _offer(turn, may_keep)
    if turn.had_offers:
        _withdraw(turn)
    attempts = execution.details.attempts
    if not execution.running:
        execution.node = None
    elif not attempts and (execution.node is None or execution.node == node):
        execution.node = node  # the usual case: everything runs here
    else:
        runners = {number: execution.runner_of(number) or node for number in execution.running}
        runners.update(dict.fromkeys(turn.dispatched, node))
        nodes = sorted(set(runners.values()) - {OFFERED})
        execution.details.attempts = _note_runners(attempts, runners, nodes[0] if nodes else None)
        execution.node = ",".join(nodes) or None


def _note_runners(attempts: Mapping[int, Attempt], runners: Mapping[int, str], first: str | None) -> dict[int, Attempt]:
    """The attempts with their nodes: an attempt that names none is run by the first that its execution names."""
    found = dict(attempts)
    for number, runner in runners.items():
        attempt = attempts.get(number, FIRST_ATTEMPT)
        noted = None if runner == first else runner
        if attempt.node != noted:
            attempt = msgspec.structs.replace(attempt, node=noted)
        if attempt == FIRST_ATTEMPT:
            found.pop(number, None)
        else:
            found[number] = attempt
    return found


def _offer(turn: Turn, may_keep: MayKeep) -> None:
    """Offer those of the dispatched activities that the node does not keep, and watch how long they wait."""
    execution = turn.execution
    kept = []
    for number in turn.dispatched:
        activity, attempt = execution.activities[number], execution.attempt_of(number)
        if may_keep(activity.event):
            kept.append(number)
            continue
        set_attempt(turn, number, msgspec.structs.replace(attempt, node=OFFERED))
        turn.offered.append(number)
        due = _find_due(turn, number)
        if due is not None:
            turn.started_timers.append(TimerSet(number, due, -attempt.attempt))
            turn.ended_timers = [ended for ended in turn.ended_timers if ended != number]
    turn.dispatched = kept


def _find_due(turn: Turn, number: int) -> Instant | None:
    """Until when an offered activity may wait. Each attempt waits for its own place."""
    activity, attempt = turn.execution.activities[number], turn.execution.attempt_of(number)
    deadline, limit = find_deadline(activity), activity.event.options.schedule_to_start_us
    if limit is None:
        return deadline
    since = activity.scheduled_at if attempt.attempt == 1 else turn.now
    return since + limit if deadline is None else min(since + limit, deadline)


def _withdraw(turn: Turn) -> None:
    """What was offered and is not wanted any more, or not as that attempt."""
    execution = turn.execution
    for number, attempt in turn.had_offers:
        if is_present(execution, number, attempt) and execution.runner_of(number) == OFFERED:
            continue
        turn.withdrawn.append(number)
        if all(timer.number != number for timer in turn.started_timers):
            turn.ended_timers.append(number)
