"""What follows from the commit of a batch: answers, activities to start and stop, who closed, what comes due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from holdfast.core import codec
from holdfast.core.effects import (
    ActivityTask,
    CarriedOver,
    Refused,
    Turn,
    make_task,
)
from holdfast.core.envelopes import Start, Terminate
from holdfast.core.events import AnyEvent, WorkflowFailed
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.engine import trouble_log
from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.turns.notices import HistoryWarnings, warn
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.pending_turns import has_opened
from holdfast.engine.turns.plan import NOTHING_NEWER, AnswerRequest, LeaveAlone
from holdfast.engine.turns.request_keys import answer_like, answer_of
from holdfast.errors import CorruptStore, ExecutionClosed, HoldfastError, NewerFormat
from holdfast.store.rows import DeadLetterRow, RequestRow

if TYPE_CHECKING:
    from holdfast.engine.turns.batch_effects import BatchEffects, Noted, Prefetch
    from holdfast.engine.turns.claims import Claims
    from holdfast.engine.turns.pending_turns import PendingTurn
    from holdfast.engine.turns.plan import Forward, Plan
    from holdfast.engine.turns.program_cache import ProgramCache
    from holdfast.engine.turns.taken_turns import TakenTurn
    from holdfast.store.contract import TurnWrite


class CommitOutcome(msgspec.Struct):
    """Everything that has to happen now that a batch is committed."""

    answers: list[AnswerRequest] = []
    replies: list[RequestRow] = []
    """What was kept for those who wait under its key, on this node or another."""
    dispatched: list[ActivityTask] = []
    """Attempts of activities that begin on this node."""
    stopped: list[tuple[str, int]] = []
    cancelled: list[tuple[str, int]] = []
    """Activities that are cancelled, and whose ends their executions wait for."""
    """(execution id, number) of activities whose functions are told to stop."""
    has_offers: bool = False
    """Whether activities were offered to whichever node can take them."""
    closed: list[tuple[Execution, AnyEvent]] = []
    """Executions that closed, with the event that closed each."""
    blocked: list[tuple[Execution, Failure]] = []
    """Executions that are blocked from now on, and why."""
    troubled: list[tuple[Execution, Turn]] = []
    """Turns of which the log tells people."""
    dead_letters: Sequence[DeadLetterRow] = ()
    """The dead letters that belong to no turn."""
    discarded: Sequence[DeadLetterRow] = ()
    """What would have been such, where the engine's `dead_letter_policy` discards them."""
    has_dead_letters: bool = False
    """Whether dead letters were written."""
    has_sent: bool = False
    """Whether envelopes went to inboxes."""
    has_publications: bool = False
    """Whether something waits to be published."""
    has_subscribed: bool = False
    """Whether executions began to wait for what is published: what was kept for them is in their inboxes now."""
    next_due: Instant | None = None
    """When the earliest of the timers comes due that were started."""
    found_work: bool = False
    """Whether anything waited in an inbox, or was due: there may be more."""
    skipped: bool = False
    """Whether other nodes hold executions that have pending work."""
    retries: list[AnyRequest] = []
    """Requests for the next batch: their turn was lost, put off, or has to wait for another node."""
    planned: Collection[str] = ()
    """Executions that were to take turns."""
    taken: Sequence[TakenTurn] = ()
    """The turns that were taken, and the changes of rows that were made without one. Those in `lost` were not written."""
    overtaken: Sequence[str] = ()
    """Those of them that were put off, and whose kind got no turn: see `turn_order`."""
    has_put_off: bool = False
    """Whether something waits for the next batch, since this one has computed for long."""
    forwards: Sequence[Forward] = ()
    prefetches: Sequence[Prefetch] = ()
    parked: Sequence[str] = ()
    """Executions that cannot take turns here until somebody retries them."""
    newer: LeaveAlone = NOTHING_NEWER
    """Executions and workflow ids that are left to a newer Holdfast."""
    deadlines: dict[str, Instant] = {}
    """When those of the parked time out that have a deadline: then they must be looked at again."""
    terminated: list[str] = []
    """Executions that were sent an order to terminate, for which no program is needed."""
    postponed: Sequence[str] = ()
    """Suspects that wait until others have been tried."""
    noted: Sequence[Noted] = ()
    """Suspects that take their turns in trials now."""
    awaiting_trial: Sequence[tuple[str, Sequence[Request]]] = ()
    lost: AbstractSet[str] = frozenset()
    """Executions whose turn was not written, since another transaction was faster."""
    lost_closings: list[str] = []
    """Those of the lost whose turn would have closed them."""
    busy: AbstractSet[str] = frozenset()
    """Executions that were wanted, and that another transaction held."""


def make_outcome(
    plan: Plan, claims: Claims, effects: BatchEffects, lost: set[str], cache: ProgramCache, warnings: HistoryWarnings
) -> CommitOutcome:
    """What follows from a committed batch, of which the turns in `lost` were not written. Warns of what they show."""
    unrouted = effects.unrouted.write
    outcome = CommitOutcome(
        answers=[*plan.answers, *effects.answers],
        dead_letters=unrouted.dead_letters,
        discarded=effects.unrouted.discarded,
        has_dead_letters=bool(unrouted.dead_letters),
        has_publications=bool(unrouted.publications),
        has_sent=len(unrouted.outgoing) > plan.kept,
        found_work=claims.found_work,
        skipped=claims.skipped,
        retries=[*plan.retries, *effects.retries],
        planned=plan.turns.keys(),
        taken=effects.taken,
        overtaken=effects.overtaken,
        has_put_off=effects.has_put_off,
        forwards=plan.forwards,
        prefetches=effects.prefetches,
        parked=[*plan.parked, *effects.parked],
        postponed=effects.postponed,
        noted=effects.noted,
        awaiting_trial=effects.awaiting_trial,
        lost=lost,
        busy=claims.busy,
    )
    if unrouted.requests:
        outcome.replies += unrouted.requests
    if effects.newer or plan.newer is not NOTHING_NEWER:
        outcome.newer = LeaveAlone({**plan.newer.executions, **effects.newer}, plan.newer.workflow_ids)
    if outcome.parked:
        outcome.deadlines = _find_deadlines(outcome.parked, claims)
    if effects.noted and lost:
        _retry_lost_notes(outcome, lost)
    for taken in effects.taken:
        if taken.write is not None and taken.pending.execution_id in lost:
            taken.live.program.close()
            outcome.retries += taken.pending.requests
            if taken.write.row.closed_at is not None:
                outcome.lost_closings.append(taken.pending.execution_id)
            continue
        _follow_turn(taken, outcome, cache, warnings)
    outcome.retries += effects.unfinished  # behind those of a lost turn, which came before them
    if plan.answers_like:
        _answer_repeated(plan, outcome)
    if outcome.retries:
        outcome.retries = list(dict.fromkeys(outcome.retries))  # a lost turn and that of its next run share their requests
    return outcome


def _find_deadlines(parked: Collection[str], claims: Claims) -> dict[str, Instant]:
    """When executions time out that cannot take turns here. Of those that cannot be read, nothing is known."""
    found: dict[str, Instant] = {}
    for execution_id in parked:
        row = claims.rows.get(execution_id)
        try:
            chain = None if row is None else codec.decode_details(row.details).chain
        except (CorruptStore, NewerFormat):
            continue
        if chain is not None and chain.times_out_at is not None:
            found[execution_id] = chain.times_out_at
    return found


def _retry_lost_notes(outcome: CommitOutcome, lost: set[str]) -> None:
    """Suspects whose note was not written are no suspects yet: what was to be tried for them comes again."""
    for one in outcome.noted:
        if one.target.execution_id in lost:
            outcome.retries += one.requests
    outcome.noted = [one for one in outcome.noted if one.target.execution_id not in lost]


def _answer_repeated(plan: Plan, outcome: CommitOutcome) -> None:
    answered = {id(one.request): one.answer for one in outcome.answers}
    for one in plan.answers_like:
        answer = answered.get(id(one.first))
        if answer is None:
            outcome.retries.append(one.request)
            continue
        if not isinstance(answer, HoldfastError):
            answer = answer_like(one.request, answer)
        outcome.answers.append(AnswerRequest(one.request, answer))


def _follow_turn(taken: TakenTurn, outcome: CommitOutcome, cache: ProgramCache, warnings: HistoryWarnings) -> None:
    pending, live, turn, execution = taken.pending, taken.live, taken.turn, taken.live.execution
    for index, arrival in enumerate(pending.arrivals):
        if arrival.request is not None and arrival.request.future is not None:
            _answer(pending, turn, index, arrival.request, outcome)
    if turn.troubles or turn.dead_letters or turn.blocked is not None:
        _note_troubles(execution, turn, outcome)
    write = taken.write
    if write is None:
        if type(live.program) is not NoProgram:
            cache.put(live)
        return
    live.note_write(write.row, write.history)
    if turn.has_rare or write.requests:
        _note_published(write, turn, outcome)
    if turn.waits_forever or execution.sequence >= warnings.events or live.history_bytes >= warnings.bytes:
        warn(taken, warnings)
    for number in turn.dispatched:
        outcome.dispatched.append(make_task(execution, number, write.row.route))
    if turn.offered:
        outcome.has_offers = True
    if turn.stopped or turn.cancelled:
        outcome.stopped.extend((execution.execution_id, number) for number in turn.stopped)
        outcome.cancelled.extend((execution.execution_id, number) for number in turn.cancelled)
    for timer in turn.started_timers:
        if outcome.next_due is None or timer.due < outcome.next_due:
            outcome.next_due = timer.due
    if write.outgoing:
        outcome.has_sent = True
        outcome.terminated.extend(one.execution_id for one in turn.outgoing if type(one.envelope) is Terminate)
    if execution.closed_at is not None:
        outcome.closed.append((execution, turn.events[-1]))
    if type(live.program) is not NoProgram:
        cache.put(live)


def _note_published(write: TurnWrite, turn: Turn, outcome: CommitOutcome) -> None:
    outcome.replies += write.requests
    outcome.has_publications |= bool(turn.publications)
    outcome.has_subscribed |= bool(turn.subscribed)


def _note_troubles(execution: Execution, turn: Turn, outcome: CommitOutcome) -> None:
    if turn.blocked is not None:
        outcome.blocked.append((execution, turn.blocked))
    if turn.troubles or turn.dead_letters:
        outcome.troubled.append((execution, turn))
        outcome.has_dead_letters = outcome.has_dead_letters or bool(turn.dead_letters)


def _answer(pending: PendingTurn, turn: Turn, index: int, request: Request, outcome: CommitOutcome) -> None:
    answer = turn.answers.get(index)
    if type(answer) is CarriedOver:
        return  # the next run answers
    if type(answer) is Refused:
        if isinstance(answer.error, ExecutionClosed) and request.is_start:
            outcome.retries.append(request)  # it was terminated beside: a closed execution is none, another is started
        else:
            outcome.answers.append(AnswerRequest(request, answer.error))
        return
    envelope = pending.arrivals[index].envelope
    if type(envelope) is Start and request.signal is not None:
        return  # the signal that goes along is answered
    opened = has_opened(pending, request) if request.is_start else None
    outcome.answers.append(AnswerRequest(request, answer_of(envelope, answer, pending.execution_id, opened)))


def list_changes(outcome: CommitOutcome) -> list[tuple[str, int]]:
    """The executions that a committed batch has changed, with their versions."""
    return [
        (one.pending.execution_id, one.write.row.state_version)
        for one in outcome.taken
        if one.write is not None and one.pending.execution_id not in outcome.lost
    ]


def log_troubles(outcome: CommitOutcome, node: str) -> None:
    """Tell people in the log what a committed batch met, causes first; there is nothing to tell of most."""
    for execution, turn in outcome.troubled:
        trouble_log.log_activities(execution, turn, node)
    for execution, closing in outcome.closed:
        if type(closing) is WorkflowFailed:
            trouble_log.log_failed(execution, closing.failure, node)
    for execution, failure in outcome.blocked:
        trouble_log.log_blocked(execution, failure, node)
    for execution, turn in outcome.troubled:
        trouble_log.log_letters(execution, turn, node)
    for row in outcome.dead_letters:
        trouble_log.log_dead_letter(row, node)
    for row in outcome.discarded:
        trouble_log.log_discarded(row, node)
