"""What this node cannot take is left to nodes that can, or waits: on the route of its execution, in its inbox.

Order. Whoever was told that a signal is accepted may send the next one at once, by any node and any address: so a row that
is accepted never gets a new place in the order of arrival. It is readdressed where it is. New rows are only made of what was
not accepted before (requests, whose callers are answered by the same commit), and of what a run before has had already: that
is marked as carried over, and comes before all else, since what was sent later may have an older row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.core import codec
from holdfast.core.effects import DONE, Limits, Turn
from holdfast.core.envelopes import ANSWERED, KEYED, AnyEnvelope, Cancel, InternalContinue, Signal, Terminate, Update
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.starting import list_deadlines
from holdfast.engine.requests import Accepted, Handled, Opened, ReplyFollows
from holdfast.engine.rows import to_row
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.claims import is_carried
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import AnswerRequest
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.taken_turns import TakenTurn
from holdfast.engine.turns.unrouted import UnroutedWrites, make_readdressed
from holdfast.engine.turns.writing import make_timer_rows, note_arrivals
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import InboxRow, Route

_ORDERS: Final = frozenset({Cancel, Terminate})
MOST_GIVEN: Final = 256
"""How many signals go with the envelope that begins a run, where rows wait behind them; more become rows themselves."""
MOST_GIVEN_BYTES: Final = 64 * 1024


def keep_requests(turn: PendingTurn, route: Route, unrouted: UnroutedWrites) -> list[AnswerRequest]:
    """Put this node's own requests for an execution into its inbox; what the callers are told. Inbox rows stay there."""
    answers: list[AnswerRequest] = []
    for arrival in turn.arrivals:
        request = arrival.request
        if request is None:
            continue
        if request.judged is not None:
            answers.append(AnswerRequest(request, Handled(is_done=False)))
            continue
        is_keyed = isinstance(arrival.envelope, Signal | Cancel | Terminate)
        envelope = request.keyed_envelope if is_keyed else arrival.envelope
        unrouted.send(turn.org, turn.execution_id, envelope, route, arrival.at)
        if isinstance(arrival.envelope, Cancel | Terminate):
            answers.append(AnswerRequest(request, Handled()))
        elif isinstance(arrival.envelope, ANSWERED):
            answers.append(AnswerRequest(request, ReplyFollows(turn.execution_id)))
        elif request.is_start:
            answers.append(AnswerRequest(request, Opened(turn.execution_id, created=False)))
        else:
            answers.append(AnswerRequest(request, Accepted(turn.execution_id, None)))
    return answers


def keep_rows(turn: PendingTurn, route: Route, unrouted: UnroutedWrites) -> None:
    """Let inbox rows wait for an execution that takes no turn now.

    All wait by its execution id: so it can be skipped, and what comes by another address does not find them again.
    """
    for arrival in turn.arrivals:
        if arrival.row is not None and arrival.row.execution_id != turn.execution_id:
            unrouted.readdress(arrival.row, turn.execution_id, arrival.envelope, route)


def leave_to_others(turn: PendingTurn, route: Route, unrouted: UnroutedWrites) -> list[AnswerRequest]:
    """Leave everything that has arrived for an execution to the nodes on its route; what callers are told."""
    for arrival in turn.arrivals:
        if arrival.row is not None and arrival.row.execution_id == turn.execution_id:
            unrouted.reroute(arrival.row, route)
    keep_rows(turn, route, unrouted)
    return keep_requests(turn, route, unrouted)


def register(turn: PendingTurn, now: Instant, limits: Limits, *, process: str = "") -> TakenTurn:
    """Make an execution whose first turn is taken later: it has its workflow id, and its inbox holds what has arrived.

    If `process` is given, that one is about to try its first turn.
    """
    assert turn.start is not None  # noqa: S101 - only new executions are registered
    execution = Execution.register(turn.org, turn.start, now)
    if process:
        execution.details.tries, execution.details.trying = 1, process
    return _register(turn, execution, now, limits, turn.arrivals)


def register_next_run(turn: PendingTurn, now: Instant, limits: Limits) -> TakenTurn:
    """Make the next run of an execution that continued, which begins from its inbox, with what is carried over to it.

    Rows that wait for the run before it become its own, in their place: they stay in order, and are not written anew. What
    comes before them, and is no row, goes with the envelope that begins the run. If that is much, it becomes rows that are
    marked as carried over; and so do rows that are marked already, since they would come before it.
    """
    assert turn.start is not None  # noqa: S101 - a next run begins with a start
    turn.take_waiting()
    first, *rest = turn.arrivals
    rows = [arrival.row.id for arrival in rest if arrival.row is not None]
    given = _take_given(rest) if rows else ()
    has_much = bool(rows) and rest[0].came_with_start
    is_rewritten = has_much and any(arrival.row is not None and is_carried(arrival.envelope) for arrival in rest)
    if is_rewritten:
        rest = [Arrival(arrival.envelope, arrival.request, since=arrival.at) for arrival in rest]
    envelope = InternalContinue(start=turn.start, runs=turn.runs_before, signals=given)
    begin = Arrival(envelope, first.request, first.row, first.since)
    taken = _register(turn, Execution.register(turn.org, turn.start, now), now, limits, [begin, *rest])
    if is_rewritten and taken.write is not None:
        taken.write.consumed = rows
    return taken


def _take_given(arrivals: list[Arrival]) -> tuple[Signal | Update, ...]:
    """Take the signals in front that were given to the run before, which did not take them; none if these are many."""
    given: list[Signal | Update] = []
    size = 0
    for arrival in arrivals:
        if not arrival.came_with_start or not isinstance(arrival.envelope, Signal | Update):
            break
        given.append(arrival.envelope)
        size += len(arrival.envelope.value.data)
        if len(given) > MOST_GIVEN or size > MOST_GIVEN_BYTES:
            return ()
    del arrivals[: len(given)]
    return tuple(given)


def _register(
    pending: PendingTurn, execution: Execution, now: Instant, limits: Limits, arrivals: Sequence[Arrival]
) -> TakenTurn:
    """Write an execution without a history, with `arrivals` in its inbox."""
    execution.state_version = 1
    turn = Turn(execution, now, limits)
    turn.answers = {index: DONE for index, arrival in enumerate(pending.arrivals) if type(arrival.envelope) in _ORDERS}
    if execution.details.start_at is not None:
        execution.suspend(execution.describe_wait(()))
    row = to_row(execution)
    write = TurnWrite(row=row, expected_version=None, takes_over=execution.details.continued_from or "")
    if execution.details.chain is not None:  # its deadlines count, also if no node has its code
        turn.started_timers = list_deadlines(execution.details.chain)
        write.timers = make_timer_rows(execution, turn.started_timers, row.route)
    note_arrivals(write, pending, turn)
    adopted: list[int] = []
    moved: list[InboxRow] = []
    sent: list[InboxRow] = []
    for arrival in arrivals:
        envelope = _without_key(arrival.envelope)
        if arrival.row is not None:
            if pending.follows and arrival.row.execution_id and envelope is arrival.envelope:
                adopted.append(arrival.row.id)  # as it is
            else:
                moved.append(make_readdressed(arrival.row, pending.execution_id, envelope, row.route))
            continue
        if pending.follows and arrival.request is None and isinstance(envelope, Signal | Update | Cancel):
            envelope = msgspec.structs.replace(envelope, carried=True)
        body = codec.encode(envelope)
        sent.append(InboxRow(pending.org, pending.execution_id, "", body, route=row.route, at=arrival.at or now))
    write.consumed, write.adopted, write.readdressed, write.outgoing = (), adopted, moved, sent
    return TakenTurn(pending, LiveExecution(execution, NoProgram(), None, 0), turn, write)


def _without_key(envelope: AnyEnvelope) -> AnyEnvelope:
    """The key of its request is remembered from now on: with it, it would be taken for a repetition."""
    if isinstance(envelope, KEYED) and envelope.request is not None:
        return msgspec.structs.replace(envelope, request=None)
    return envelope
