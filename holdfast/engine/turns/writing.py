"""What a turn writes: from the effects that it gathered to rows."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import codec
from holdfast.core.effects import CarriedOver, DeadLetter, Outgoing, Refused, TimerSet, Turn, make_task
from holdfast.core.envelopes import KEYED, Cancel, Signal, Start, Terminate
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.engine.requests import Handled
from holdfast.engine.routes import make_route
from holdfast.engine.rows import to_row
from holdfast.engine.turns.pending_turns import PendingTurn, has_opened
from holdfast.engine.turns.request_keys import SIGNAL_WITH_START, answer_of, make_request_row
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ActivityRow, DeadLetterRow, HistoryRow, InboxRow, Route, TimerRow


def make_write(
    pending: PendingTurn,
    execution: Execution,
    turn: Turn,
    expected_version: int | None,
    node: str,
    route: Route | None = None,
) -> TurnWrite:
    """Everything one turn writes; moves the execution on by one version and the turn's events."""
    execution.state_version += 1
    history = None
    if turn.events:
        body = codec.encode(turn.events)
        history = HistoryRow(execution.execution_id, execution.sequence + 1, len(turn.events), turn.now, codec.SCHEMA, body)
        execution.sequence += len(turn.events)
    row = to_row(execution, route)
    write = TurnWrite(row=row, expected_version=expected_version, history=history)
    if turn.started_timers or turn.ended_timers:
        write.timers = make_timer_rows(execution, turn.started_timers, row.route)
        write.ended_timers = turn.ended_timers
    if turn.outgoing:
        write.outgoing = [_outgoing_row(execution.org, one, turn.clock) for one in turn.outgoing]
    if turn.offered or turn.withdrawn:
        write.offered = [_offer_row(execution, number, row.route) for number in turn.offered]
        write.withdrawn = turn.withdrawn
    if turn.dead_letters:
        write.dead_letters = _dead_letter_rows(execution, turn, node)
    note_arrivals(write, pending, turn)
    return write


def rewrite_offers(write: TurnWrite, execution: Execution, turn: Turn) -> None:
    """Let what a turn writes follow offers that were taken back since it was made."""
    write.row = to_row(execution, write.row.route)
    write.withdrawn, write.ended_timers = turn.withdrawn, turn.ended_timers


def make_timer_rows(execution: Execution, timers: Sequence[TimerSet], route: Route) -> list[TimerRow]:
    """The rows of the timers that a turn sets: on the route of their execution, or for whichever node is there."""
    return [
        TimerRow(
            execution.org,
            execution.execution_id,
            timer.number,
            timer.due,
            timer.kind,
            timer.attempt,
            "" if timer.is_for_anybody else route,
        )
        for timer in timers
    ]


def dead_letter_refused(pending: PendingTurn, turn: Turn) -> None:
    """Signals that were accepted into the inbox and now find no place: nobody waits for an answer, so they are kept."""
    for index, answer in turn.answers.items():
        arrival = pending.arrivals[index]
        if type(answer) is not Refused or arrival.request is not None:
            continue
        envelope = arrival.envelope
        if type(envelope) is Signal and envelope.sender is None:
            turn.dead_letters.append(DeadLetter(envelope, answer.error.message))


def _outgoing_row(org: str, sent: Outgoing, at: Instant) -> InboxRow:
    """Of all that goes to others, only where a start goes is known."""
    envelope = sent.envelope
    if type(envelope) is Start:
        route = make_route(envelope.queue, envelope.workflow)
        return InboxRow(org, "", sent.workflow_id, codec.encode(envelope), route=route, at=at)
    return InboxRow(org, sent.execution_id, sent.workflow_id, codec.encode(envelope), at=at)


def _offer_row(execution: Execution, number: int, route: Route) -> ActivityRow:
    task = make_task(execution, number, route)
    event = task.event
    return ActivityRow(
        execution.org,
        execution.execution_id,
        number,
        task.attempt,
        make_route(event.options.queue, event.name),
        codec.encode_task(task),
    )


def _dead_letter_rows(execution: Execution, turn: Turn, node: str) -> Sequence[DeadLetterRow]:
    return [
        DeadLetterRow(
            execution.org,
            execution.execution_id,
            execution.workflow_id,
            codec.encode(one.envelope),
            one.reason,
            node,
            turn.now,
        )
        for one in turn.dead_letters
    ]


def note_arrivals(write: TurnWrite, pending: PendingTurn, turn: Turn) -> None:
    """Note in what a turn writes which inbox rows it took, and what is remembered of the requests with keys among them."""
    consumed, rows = [], []
    answers = turn.answers
    for index, arrival in enumerate(pending.arrivals):
        envelope, request = arrival.envelope, arrival.request
        answer = answers.get(index) if answers else None
        if type(answer) is CarriedOver:
            continue  # it is the next run's to take
        if arrival.row is not None:
            consumed.append(arrival.row.id)
        if request is not None:
            if request.key is None:
                continue
            key = None if request.signal is not None and type(envelope) is Start else request.key
        else:
            key = envelope.request if isinstance(envelope, KEYED) else None
        if key is None or type(answer) is Refused:
            continue
        if request is not None:
            opened = has_opened(pending, request) if request.is_start else None
        else:  # a signal-with-start by the inbox: its signal follows on the start that it led to
            opened = (pending.start is not None and index == 1) if key.kind == SIGNAL_WITH_START else None
        given = answer_of(envelope, answer, pending.execution_id, opened)
        if request is None and isinstance(envelope, Cancel | Terminate):
            given = Handled()  # what its sender was told when the inbox took it, whatever comes of it
        rows.append(make_request_row(pending.org, key, pending.execution_id, given))
    write.consumed, write.requests = consumed, rows
