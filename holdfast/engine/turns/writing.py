"""What a turn writes: from the effects that it gathered to rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from holdfast.core import codec
from holdfast.core.commands import RaiseIncident, Subscribe
from holdfast.core.effects import (
    CarriedOver,
    DeadLetter,
    OutboxItem,
    Outgoing,
    Refused,
    Replied,
    TimerSet,
    Turn,
    TurnAnswer,
    make_task,
)
from holdfast.core.envelopes import ANSWERED, KEYED, Cancel, Signal, Start, Terminate, Update
from holdfast.core.events import Subscribed
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.request_keys import MADE_UP
from holdfast.core.routes import find_start_route
from holdfast.core.unused import NO_ITEMS, add
from holdfast.engine.requests import Handled, Request
from holdfast.engine.routes import make_route
from holdfast.engine.rows import to_row
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.pending_turns import PendingTurn, has_opened
from holdfast.engine.turns.request_keys import SIGNAL_WITH_START, answer_of, make_reply_row, make_request_row
from holdfast.engine.turns.snapshots import take_snapshot
from holdfast.engine.turns.task_rows import write_tasks
from holdfast.store.attributes import list_changes
from holdfast.store.contract import TurnWrite
from holdfast.store.incidents import IncidentRow
from holdfast.store.publications import PublicationRow, SubscriptionRow
from holdfast.store.rows import ActivityRow, DeadLetterRow, HistoryRow, InboxRow, RequestRow, Route, TimerRow

if TYPE_CHECKING:
    from holdfast.engine.turns.program_cache import LiveExecution
    from holdfast.engine.turns.services import TurnServices


def make_write(
    pending: PendingTurn,
    live: LiveExecution,
    turn: Turn,
    expected_version: int | None,
    services: TurnServices,
    route: Route | None = None,
) -> TurnWrite:
    """Everything one turn writes; moves the execution on by one version and the turn's events."""
    execution = live.execution
    execution.state_version += 1
    history = snapshot = None
    if turn.events:
        body = codec.encode(turn.events)
        history = HistoryRow(execution.execution_id, execution.sequence + 1, len(turn.events), turn.now, codec.SCHEMA, body)
        execution.sequence += len(turn.events)
        if live.program.snapshot_schema and execution.closed_at is None:
            snapshot = take_snapshot(live, history, services.config.max_turn_bytes)
    has_rare = turn.has_rare or snapshot is not None
    if execution.details.snapshot is not None and execution.closed_at is not None:
        execution.details.snapshot, has_rare = None, True  # it goes with the closing
    row = to_row(execution, route)
    write = TurnWrite(row=row, expected_version=expected_version, history=history, has_rare=has_rare)
    write.snapshot = snapshot
    if turn.started_timers or turn.ended_timers:
        write.timers = make_timer_rows(execution, turn.started_timers, row.route)
        write.ended_timers = turn.ended_timers
    if turn.outgoing:
        write.outgoing = [_outgoing_row(execution.org, one, turn.clock) for one in turn.outgoing]
    if turn.offered or turn.withdrawn:
        write.offered = [_offer_row(execution, number, row.route) for number in turn.offered]
        write.withdrawn = turn.withdrawn
    if expected_version is None and execution.details.continued_from is not None:
        write.takes_over = execution.details.continued_from
    if turn.dead_letters:
        write.dead_letters = _dead_letter_rows(execution, turn, services.node)
    if turn.has_rare:
        _write_rare(write, execution, turn)
    note_arrivals(write, pending, turn)
    return write


def _write_rare(write: TurnWrite, execution: Execution, turn: Turn) -> None:
    """What few turns write: see `Turn.has_rare`."""
    if turn.subscribed:
        since = turn.clock
        write.subscriptions = [_subscription_row(execution, one, since, one.seen) for one in turn.subscribed]
    if turn.ended_subscriptions:
        write.ended_subscriptions = [_subscription_row(execution, one) for one in turn.ended_subscriptions]
    if turn.publications:
        write.publications = [_publication_row(execution, one) for one in turn.publications]
    if turn.searchable_before is not None and write.expected_version is not None:
        write.attributes = list_changes(turn.searchable_before, execution.details.searchable)
    if turn.created_tasks or turn.task_changes:
        write_tasks(write, execution, turn)
    if turn.incidents:
        write.incidents = [_incident_row(execution, one, turn.now) for one in turn.incidents]
    if turn.ended_incidents:
        write.ended_incidents = turn.ended_incidents


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
            turn.dead_letters = add(turn.dead_letters, (DeadLetter(envelope, answer.error.message),))


def find_refused_update(pending: PendingTurn, turn: Turn) -> tuple[Arrival, Refused] | None:
    """The update with which an execution was to be started, and why it is refused, if it is."""
    update = pending.arrivals[1] if len(pending.arrivals) > 1 else None
    if update is None or type(update.envelope) is not Update or pending.follows:
        return None
    answer, request = turn.answers.get(1), update.request
    if type(answer) is not Refused or (request is not None and not request.is_start):
        return None
    came_along = pending.arrivals[0].request is request and pending.arrivals[0].row is None
    return (update, answer) if came_along else None


def _outgoing_row(org: str, sent: Outgoing, at: Instant) -> InboxRow:
    """Of all that goes to others, only where a start goes is known."""
    envelope = sent.envelope
    if type(envelope) is Start:
        route = find_start_route(envelope)
        return InboxRow(org, "", sent.workflow_id, codec.encode(envelope), route=route, at=at)
    return InboxRow(org, sent.execution_id, sent.workflow_id, codec.encode(envelope), at=at)


def _subscription_row(
    execution: Execution, one: Subscribe | Subscribed, since: Instant = 0, seen: Sequence[str] = ()
) -> SubscriptionRow:
    """The row of a subscription; `since` and `seen` are of one that begins."""
    return SubscriptionRow(
        execution.org,
        one.kind.value,
        one.name,
        execution.execution_id,
        one.number,
        one.key,
        one.where,
        one.standing,
        since,
        execution.created_at,
        seen,
    )


def _incident_row(execution: Execution, one: RaiseIncident, at: Instant) -> IncidentRow:
    return IncidentRow(
        execution.org,
        execution.execution_id,
        one.number,
        execution.workflow,
        execution.workflow_id,
        one.element,
        one.element_name,
        one.kind,
        one.message,
        at,
    )


def _publication_row(execution: Execution, one: OutboxItem) -> PublicationRow:
    """A row of the outbox."""
    return PublicationRow(
        execution.org,
        codec.encode(one.publication),
        one.fields,
        execution.execution_id,
        one.number,
        one.is_returned,
    )


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
    consumed: list[int] = NO_ITEMS
    rows: list[RequestRow] = NO_ITEMS
    answers = turn.answers
    for index, arrival in enumerate(pending.arrivals):
        envelope, request = arrival.envelope, arrival.request
        if request is not None and request.key is None and not answers:
            continue  # most are such: nothing is remembered of them
        answer = answers.get(index) if answers else None
        if type(answer) is CarriedOver:
            continue  # it is the next run's to take
        if arrival.row is not None:
            consumed = add(consumed, (arrival.row.id,))
        if isinstance(envelope, ANSWERED):
            if _is_kept(answer, envelope.request.kind, request):
                rows = add(rows, (make_reply_row(pending.org, envelope.request, pending.execution_id, answer, turn.now),))
            continue
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
        rows = add(rows, (make_request_row(pending.org, key, pending.execution_id, given),))
    for key, reply in turn.replies if turn.has_rare else ():
        rows = add(rows, (make_reply_row(pending.org, key, pending.execution_id, reply, turn.now),))
    write.consumed, write.requests = consumed, rows


def _is_kept(answer: TurnAnswer | None, kind: str, request: Request | None) -> TypeGuard[Replied | Refused]:
    """Whether a reply is kept under its key: somebody may wait for it on another node, or repeat the request.

    A refusal is told to callers of this node and forgotten, as for all requests.
    """
    if type(answer) is Replied or (type(answer) is Refused and answer.is_final):
        return request is None or kind != MADE_UP
    return type(answer) is Refused and request is None
