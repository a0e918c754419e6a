"""What a turn writes: from the effects that it gathered to rows."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import codec
from holdfast.core.effects import DeadLetter, Turn
from holdfast.core.envelopes import Signal, Start
from holdfast.core.execution import Execution
from holdfast.engine.requests import Request
from holdfast.engine.routing import Work, make_request_row
from holdfast.engine.rows import to_row
from holdfast.errors import HoldfastError
from holdfast.store.contract import DeadLetterRow, HistoryRow, InboxRow, RequestRow, TimerRow, TurnWrite


def make_write(work: Work, execution: Execution, turn: Turn, expected_version: int | None, node: str) -> TurnWrite:
    """Everything one turn writes; moves the execution on by one version and the turn's events."""
    execution.state_version += 1
    history = None
    if turn.events:
        body = codec.encode(turn.events)
        history = HistoryRow(execution.execution_id, execution.sequence + 1, len(turn.events), turn.now, codec.SCHEMA, body)
        execution.sequence += len(turn.events)
    write = TurnWrite(row=to_row(execution), expected_version=expected_version, history=history)
    if turn.started_timers or turn.ended_timers:
        write.timers = [
            TimerRow(execution.org, execution.execution_id, timer.number, timer.due, timer.attempt)
            for timer in turn.started_timers
        ]
        write.ended_timers = turn.ended_timers
    if turn.outgoing:
        write.outgoing = [
            InboxRow(
                execution.org,
                "" if type(one.envelope) is Start else one.execution_id,
                one.workflow_id,
                codec.encode(one.envelope),
            )
            for one in turn.outgoing
        ]
    if turn.dead_letters:
        write.dead_letters = _dead_letter_rows(execution, turn, node)
    write.consumed = work.consumed
    write.requests = _request_rows(work, turn)
    return write


def bury_refused(work: Work, turn: Turn) -> None:
    """Signals that were accepted into the inbox and now find no place: nobody waits for an answer, so they are kept."""
    for index, answer in turn.answers.items():
        envelope = work.arrived[index]
        if not isinstance(answer, HoldfastError) or isinstance(work.sources[index], Request):
            continue
        if type(envelope) is Signal and envelope.sender is None:
            turn.dead_letters.append(DeadLetter(envelope, answer.message))


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


def _request_rows(work: Work, turn: Turn) -> Sequence[RequestRow]:
    rows = []
    for index, source in enumerate(work.sources):
        envelope = work.arrived[index]
        if isinstance(source, Request):
            key = None if source.signal is not None and type(envelope) is Start else source.key
        else:
            key = envelope.request if type(envelope) is Signal else None
        if key is None:
            continue
        answer = turn.answers.get(index)
        if not isinstance(answer, HoldfastError) and (answer is None or answer is not turn.successor):
            sequence = answer if type(answer) is int else None
            rows.append(make_request_row(work.org, key, work.execution_id, sequence))
    return rows
