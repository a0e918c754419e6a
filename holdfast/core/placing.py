"""Where activities run: in the memory of a node, or offered to whichever node can; and what is lost with a node.

An execution's row names the nodes that hold running activities of its in memory. An offered one is a row of the store, until
it ends: no node has to be named for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from holdfast.core import envelopes, events
from holdfast.core.activities import (
    describe_attempt,
    end_by_timeout,
    find_deadline,
    is_about_present,
    is_present,
    set_attempt,
)
from holdfast.core.effects import Acknowledged, TimerKind, TimerSet, Turn
from holdfast.core.execution import FIRST_ATTEMPT, AttemptState, Execution
from holdfast.core.instants import Instant
from holdfast.core.options import TimeoutKind
from holdfast.core.troubles import AttemptTakenOver
from holdfast.core.unused import NO_ITEMS, add

SUSPECT: Final = 2
"""An activity that was lost with its process so often runs alone from then on, so that it is known who ended the process."""

_ENDED: Final = (envelopes.ActivityReturned, envelopes.ActivityRaised, envelopes.ActivityStopped)
"""The outcomes that prove that a function has ended. ActivityExpired is none: a function that timed out may still run."""

MayKeep: TypeAlias = Callable[[events.ActivityScheduled], bool]
"""Whether the node that takes the turn can run an activity itself."""


# --- what arrives ---


def decide_redispatch(turn: Turn, envelope: envelopes.Redispatch) -> None:
    """A node no longer runs its activities: each begins a new attempt, so that late results of the old are refused.

    The new attempt of one that must not be repeated, and may have begun, only reports that it is lost.
    """
    execution, number = turn.execution, envelope.number
    if not envelope.has_left:
        execution.details.suspect = True  # the turn that took a result may have ended the process
    if number is not None:
        is_theirs = execution.attempt_of(number).offered or execution.runner_of(number) == envelope.node
        if is_theirs and is_present(execution, number, envelope.attempt) and number not in turn.dispatched:
            _dispatch_anew(turn, number, envelope)
        return
    for number in sorted(execution.running.difference(turn.dispatched)):
        if execution.runner_of(number) == envelope.node:
            _dispatch_anew(turn, number, envelope)


def decide_began(turn: Turn, envelope: envelopes.ActivityBegan) -> None:
    """An attempt begins: from now on it is to blame if its process ends, and is not repeated if it must not be.

    Whether it may begin is the answer.
    """
    number = envelope.number
    may_begin = is_about_present(turn, envelope) and not turn.execution.activities[number].is_cancelling
    turn.answer(Acknowledged(may_begin))
    if may_begin:
        attempt, options = turn.execution.attempt_of(number), turn.execution.activities[number].event.options
        set_attempt(turn, number, msgspec.structs.replace(attempt, begun=True, may_not_repeat=options.at_most_once))


def clear_ended_suspects(execution: Execution, arrived: Iterable[envelopes.Envelope]) -> bool:
    """Note that suspects whose outcome has arrived did not end their process; whether there were any.

    For an execution that takes its turn later: whoever ends the process meanwhile, it was none of them.
    """
    attempts = execution.details.attempts
    cleared: dict[int, AttemptState] = {}
    for one in arrived:
        if isinstance(one, _ENDED):
            attempt = execution.attempt_of(one.number)
            if attempt.begun and attempt.attempt == one.attempt:
                cleared[one.number] = msgspec.structs.replace(attempt, begun=False)
    if cleared:
        execution.details.attempts = {**attempts, **cleared}
    return bool(cleared)


def decide_offer_due(turn: Turn, envelope: envelopes.OfferDue) -> events.ActivityTimedOut | None:
    """An activity that nobody took in time is over."""
    execution, number = turn.execution, envelope.number
    attempt = execution.attempt_of(number)
    if not is_present(execution, number, envelope.attempt) or not attempt.offered:
        if attempt.retry_at is None:  # else the present retry has taken the row
            turn.end_timers((number,))
            turn.changed = True  # so that the stale row goes
        return None
    deadline = find_deadline(execution.activities[number])
    is_over = deadline is not None and turn.clock >= deadline
    timeout = TimeoutKind.SCHEDULE_TO_CLOSE if is_over else TimeoutKind.SCHEDULE_TO_START
    return end_by_timeout(turn, number, timeout, attempt.attempt)


def _dispatch_anew(turn: Turn, number: int, envelope: envelopes.Redispatch) -> None:
    activity, attempt = turn.execution.activities[number], turn.execution.attempt_of(number)
    lost = attempt.lost
    if not envelope.has_left and (lost < SUSPECT or attempt.begun):
        lost += 1
    following = msgspec.structs.replace(
        attempt,
        attempt=attempt.attempt + 1,
        node=None,
        lost=lost,
        begun=False,
        offered=False,
        may_not_repeat=attempt.may_not_repeat or (envelope.may_have_begun and activity.event.options.at_most_once),
    )
    set_attempt(turn, number, following)
    if not following.may_not_repeat:  # else it is lost, and reported as such when it ends
        about = describe_attempt(turn.execution, number, attempt.attempt)
        turn.troubles = add(turn.troubles, (AttemptTakenOver(about, envelope.node, envelope.has_left),))
    turn.dispatched = add(turn.dispatched, (number,))


# --- at the end of a turn ---


def place_activities(turn: Turn, node: str, may_keep: MayKeep | None = None) -> None:
    """Decide where the dispatched activities run, on `node` or where another node takes them, and note it.

    Without `may_keep`, `node` runs all of them.
    """
    execution = turn.execution
    if may_keep is not None and turn.dispatched:
        _offer(turn, may_keep)
    if turn.had_offers:
        _withdraw(turn)
    attempts = execution.details.attempts
    if not execution.running:
        execution.nodes = ()
    elif not attempts and (not execution.nodes or execution.nodes == (node,)):
        execution.nodes = (node,)  # the usual case: everything runs here
    else:
        kept = [number for number in execution.running if not execution.attempt_of(number).offered]
        runners = {number: execution.runner_of(number) or node for number in kept}
        runners.update(dict.fromkeys(turn.dispatched, node))
        execution.nodes = tuple(sorted(set(runners.values())))
        execution.details.attempts = _note_runners(attempts, runners, execution.nodes)


def find_recallable(turn: Turn) -> list[int]:
    """Activities on offer that this turn cancels, and whose end the program waits for: if nobody has them, nothing runs."""
    execution = turn.execution
    if execution.closed_at is not None:
        return []
    return [number for number in turn.cancelled if execution.attempt_of(number).offered]


def recall_offers(turn: Turn, numbers: Iterable[int], node: str) -> None:
    """Take back offers that nobody has taken: `node` reports at once that they are cancelled, and runs nothing."""
    for number in numbers:
        set_attempt(turn, number, msgspec.structs.replace(turn.execution.attempt_of(number), offered=False))
        turn.cancelled.remove(number)
        turn.dispatched = add(turn.dispatched, (number,))
    turn.withdrawn = NO_ITEMS
    place_activities(turn, node)


def _note_runners(
    attempts: Mapping[int, AttemptState], runners: Mapping[int, str], nodes: Sequence[str]
) -> dict[int, AttemptState]:
    """The attempts with their nodes: an attempt that names none is run by the first that its execution names.

    Offered ones name none, and stay as they are.
    """
    found = dict(attempts)
    for number, runner in runners.items():
        attempt = attempts.get(number, FIRST_ATTEMPT)
        noted = None if runner == nodes[0] else runner
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
    watched: set[int] = set()
    for number in turn.dispatched:
        activity, attempt = execution.activities[number], execution.attempt_of(number)
        if attempt.may_not_repeat or activity.is_cancelling or may_keep(activity.event):
            kept.append(number)  # the first two are not run: any node can report their end
            continue
        set_attempt(turn, number, msgspec.structs.replace(attempt, node=None, offered=True))
        turn.offered = add(turn.offered, (number,))
        due = _find_due(turn, number)
        if due is not None:
            turn.started_timers = add(turn.started_timers, (TimerSet(number, due, TimerKind.OFFER, attempt.attempt),))
            watched.add(number)
    if watched:
        turn.ended_timers = [ended for ended in turn.ended_timers if ended not in watched]
    turn.dispatched = kept


def _find_due(turn: Turn, number: int) -> Instant | None:
    """Until when an offered activity may wait. Each attempt waits for its own place."""
    activity, attempt = turn.execution.activities[number], turn.execution.attempt_of(number)
    deadline, limit = find_deadline(activity), activity.event.options.schedule_to_start_us
    if limit is None:
        return deadline
    since = activity.scheduled_at if attempt.attempt == 1 else turn.clock
    return since + limit if deadline is None else min(since + limit, deadline)


def _withdraw(turn: Turn) -> None:
    """What was offered and is not wanted any more, or not as that attempt."""
    execution = turn.execution
    started = {timer.number for timer in turn.started_timers}
    for number, attempt in turn.had_offers:
        if is_present(execution, number, attempt) and execution.attempt_of(number).offered:
            continue
        turn.withdrawn = add(turn.withdrawn, (number,))
        if number not in started:
            turn.end_timers((number,))
