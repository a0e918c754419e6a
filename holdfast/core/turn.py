"""The turn: envelopes in, events and effects out. Pure; the engine writes what comes out in one commit.

Events are given to the program one at a time, and it runs to rest after each; so two nodes that batch differently agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.core import (
    activities,
    behaviours,
    children,
    closing,
    commands,
    envelopes,
    events,
    human_tasks,
    incidents,
    payloads,
    placing,
    publishing,
    signals,
    starting,
    subscriptions,
    timers,
    updates,
)
from holdfast.core.effects import CARRIED_OVER, NOT_DONE, BindChild, Limits, Refused, SignalRecorded, Turn
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.event_times import place_arrival
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.execution import NEVER, Execution, Waiting
from holdfast.core.failures import describe_exception
from holdfast.core.ids import DEFAULT_QUEUE
from holdfast.core.instants import Instant
from holdfast.core.program import Program, Step
from holdfast.core.searchable_values import find_searchable
from holdfast.core.task_standings import TaskStanding
from holdfast.core.unused import add

NO_LIMITS: Final = Limits()
_BEGINNING: Final = frozenset({envelopes.Start, envelopes.InternalContinue})
"""The envelopes that become the first event of a history."""


def decide_start(turn: Turn, envelope: envelopes.Start) -> events.WorkflowStarted:
    """Make the first event of an execution from its start: if that is delayed, its code does not run yet."""
    begins = starting.arm(turn)
    return events.WorkflowStarted(
        workflow=envelope.workflow,
        workflow_id=envelope.workflow_id,
        input=envelope.input,
        code_version=turn.execution.code_version,
        parent=envelope.parent,
        continued_from=envelope.continued_from,
        queue=None if envelope.queue == DEFAULT_QUEUE else envelope.queue,
        attempt=1 if envelope.chain is None else envelope.chain.attempt,
        start_at=begins,
        held=begins is not None,
        metadata=envelope.metadata or None,
        headers=envelope.headers,
        reference=envelope.reference,
        element=envelope.element,
        behaviours=_find_behaviours(envelope),
    )


def _find_behaviours(envelope: envelopes.Start) -> tuple[str, ...]:
    """What an execution records that begins now: what is present, and what it needs of the occasional ones."""
    if not envelope.headers and envelope.reference is None:
        return behaviours.PRESENT
    needed = {behaviours.HEADERS} if envelope.headers else set()
    if envelope.reference is not None:
        needed.add(behaviours.BUSINESS_REFERENCE)
    return tuple(sorted(needed.union(behaviours.PRESENT)))


def evolve_start(execution: Execution, event: events.WorkflowStarted, _at: Instant) -> None:
    """Take over the behaviours with which the execution began."""
    if event.behaviours:
        execution.behaviours = behaviours.as_set(event.behaviours)
    if event.headers:
        execution.headers = event.headers
    if execution.details.chain is not None and execution.details.chain.retry is not None:
        execution.input = event.input


def decide_continue(turn: Turn, envelope: envelopes.InternalContinue) -> events.WorkflowStarted:
    """The first event of a run that was opened by the transaction in which the run before it ended."""
    return decide_start(turn, envelope.start)


def record_side_effect(_turn: Turn, command: commands.RecordSideEffect) -> events.SideEffectRecorded:
    """Record a value that the code computed once, for replays to give again."""
    return events.SideEffectRecorded(number=command.number, value=command.value, failure=command.failure)


def record_patch(_turn: Turn, command: commands.RecordPatch) -> events.PatchRecorded:
    """The code takes a patch's new path in this execution."""
    return events.PatchRecorded(patch=command.patch)


def record_state(turn: Turn, command: commands.SetState) -> None:
    """Keep what `query_status`, `holdfast show` and lists tell of the execution; leaves no event."""
    details = turn.execution.details
    details.state = command.value
    turn.changed = True
    searchable = find_searchable(payloads.decode(command.value, Any, "a state"), turn.limits.searchable_state)
    if searchable != details.searchable:
        if turn.searchable_before is None:
            turn.has_rare = True
            turn.searchable_before = details.searchable
        details.searchable = searchable


DECIDE: Final[Mapping[type[envelopes.Envelope], Callable[[Turn, Any], AnyEvent | None]]] = {
    envelopes.Start: decide_start,
    envelopes.InternalContinue: decide_continue,
    envelopes.Signal: signals.decide_signal,
    envelopes.Update: updates.decide_update,
    envelopes.Cancel: closing.decide_cancel,
    envelopes.Terminate: closing.decide_terminate,
    envelopes.StartDue: starting.decide_due,
    envelopes.DeadlineDue: closing.decide_deadline,
    envelopes.TimerDue: timers.decide_due,
    envelopes.RetryDue: activities.decide_retry_due,
    envelopes.ActivityReturned: activities.decide_returned,
    envelopes.ActivityRaised: activities.decide_raised,
    envelopes.ActivityExpired: activities.decide_expired,
    envelopes.ActivityStopped: activities.decide_stopped,
    envelopes.ActivityBeat: activities.decide_beat,
    envelopes.ActivityBegan: placing.decide_began,
    envelopes.OfferDue: placing.decide_offer_due,
    envelopes.Redispatch: placing.decide_redispatch,
    envelopes.ChildClosed: children.decide_closed,
    envelopes.ChildEscalated: children.decide_escalated,
    envelopes.SignalAnswered: signals.decide_answered,
    envelopes.Triggered: subscriptions.decide_triggered,
    envelopes.SubscriptionRefused: subscriptions.decide_refused,
    envelopes.PublicationAnswered: publishing.decide_answered,
    envelopes.TaskCompleted: human_tasks.decide_completed,
    envelopes.TaskCancelled: human_tasks.decide_cancelled,
    envelopes.TaskRescheduled: human_tasks.decide_rescheduled,
}
"""What an envelope becomes: an event that is given to the program, or none if it is stale or handled without one."""

RECORD: Final[Mapping[type[commands.Command], Callable[[Turn, Any], AnyEvent | None]]] = {
    commands.RunActivity: activities.record_activity,
    commands.CancelActivity: activities.record_activity_cancel,
    commands.StartTimer: timers.record_timer,
    commands.CancelTimer: timers.record_timer_cancel,
    commands.StartChild: children.record_child,
    commands.CancelChild: children.record_child_cancel,
    commands.Escalate: children.record_escalation,
    commands.SignalExternal: signals.record_external,
    commands.Subscribe: subscriptions.record_subscribe,
    commands.Unsubscribe: subscriptions.record_unsubscribe,
    commands.DeclinePublication: subscriptions.record_declined,
    commands.PublishMessage: publishing.record_message,
    commands.SendEvent: publishing.record_event,
    commands.Broadcast: publishing.record_broadcast,
    commands.CreateTask: human_tasks.record_task,
    commands.EndTask: human_tasks.record_end,
    commands.RaiseIncident: incidents.record_raised,
    commands.ResolveIncident: incidents.record_resolved,
    commands.CompleteUpdate: updates.record_completed,
    commands.FailUpdate: updates.record_failed,
    commands.RejectSignal: signals.record_rejected,
    commands.RecordSideEffect: record_side_effect,
    commands.RecordPatch: record_patch,
    commands.SetState: record_state,
    commands.Complete: closing.record_complete,
    commands.Fail: closing.record_fail,
    commands.EndCancelled: closing.record_cancelled,
    commands.ContinueAs: closing.record_continued,
}
"""What a command becomes: a recorded event, with its effects noted in the turn."""

EVOLVE: Final[Mapping[type[events.Event], Callable[[Execution, Any, Instant], None]]] = {
    events.WorkflowStarted: evolve_start,
    events.DelayEnded: starting.evolve_delay_ended,
    events.SignalReceived: signals.evolve_received,
    events.UpdateAccepted: updates.evolve_accepted,
    events.UpdateCompleted: updates.evolve_ended,
    events.UpdateFailed: updates.evolve_ended,
    events.CancelRequested: closing.evolve_cancel_requested,
    events.ActivityScheduled: activities.evolve_scheduled,
    events.ActivityCompleted: activities.evolve_ended,
    events.ActivityFailed: activities.evolve_ended,
    events.ActivityTimedOut: activities.evolve_ended,
    events.ActivityCancelled: activities.evolve_ended,
    events.ActivityLost: activities.evolve_ended,
    events.ActivityCancelRequested: activities.evolve_cancel_requested,
    events.TimerStarted: timers.evolve_started,
    events.TimerFired: timers.evolve_ended,
    events.TimerCancelled: timers.evolve_ended,
    events.ChildStarted: children.evolve_started,
    events.ChildCompleted: children.evolve_ended,
    events.ChildFailed: children.evolve_ended,
    events.ChildCancelled: children.evolve_ended,
    events.ChildTerminated: children.evolve_ended,
    events.ExternalSignalInitiated: signals.evolve_initiated,
    events.ExternalSignalCompleted: signals.evolve_answered,
    events.ExternalSignalFailed: signals.evolve_answered,
    events.Subscribed: subscriptions.evolve_subscribed,
    events.SubscriptionTriggered: subscriptions.evolve_triggered,
    events.SubscriptionFailed: subscriptions.evolve_ended,
    events.Unsubscribed: subscriptions.evolve_ended,
    events.MessagePublished: publishing.evolve_published,
    events.EventSent: publishing.evolve_published,
    events.SignalBroadcast: publishing.evolve_published,
    events.PublicationCompleted: publishing.evolve_answered,
    events.PublicationFailed: publishing.evolve_answered,
    events.TaskCreated: human_tasks.evolve_created,
    events.TaskReminded: human_tasks.evolve_reminded,
    events.TaskRescheduled: human_tasks.evolve_rescheduled,
    events.TaskCompleted: human_tasks.evolve_ended,
    events.TaskCancelled: human_tasks.evolve_ended,
    events.TaskEnded: human_tasks.evolve_ended,
    events.IncidentRaised: incidents.evolve_raised,
    events.IncidentResolved: incidents.evolve_resolved,
}
"""What an event changes in the execution's open things; events that are not named change none."""

WITHOUT_EFFECT: Final[frozenset[type[events.Event]]] = frozenset(
    {
        events.ChildCancelRequested,
        events.ChildEscalated,
        events.EscalationSent,
        events.ProcessAdvanced,
        events.SignalRejected,
        events.PublicationDeclined,
        events.SideEffectRecorded,
        events.PatchRecorded,
        *events.CLOSING,
    }
)


def take_turn(
    execution: Execution,
    program: Program,
    arrived: Iterable[AnyEnvelope],
    clock: Instant,
    limits: Limits = NO_LIMITS,
    *,
    holds: bool = False,
    may_go_on: Callable[[int, int], bool] | None = None,
    time_of: Callable[[int], Instant] | None = None,
    task_standings: Mapping[int, TaskStanding] | None = None,
    bind_child: BindChild | None = None,
) -> Turn:
    """Take one turn. Changes `execution` and `program`, which are provisional until what comes out is committed.

    `clock` is what the clock shows, which may have been set back: the time of the events never goes back.

    With `may_go_on`, which is told after each envelope how many were handled and how many bytes the program has recorded by
    itself, it may end before all are: `turn.handled` says how many were. An execution that closes handles all that has
    arrived; but where `arrived` is an iterator, which gives a start and then only signals, one that continues leaves in it
    what its next run gets.

    With `holds`, the signals and updates among `arrived` come first and are all in their queues before the program runs
    again: for a turn that has to be taken again because the program ended before it was given them.

    `time_of` says of each place in `arrived` when that arrived, if one of them has waited: their events tell it.

    `task_standings` are the rows of the human tasks about which people want something, see `human_tasks`. `bind_child` says
    which process a child is bound to, see `children`.
    """
    shown = execution.last_turn_at if execution.sequence else 0
    listed = arrived if isinstance(arrived, list | tuple) else None
    now = find_time(execution, listed or (), clock)
    check_form = None if task_standings is None else program.check_form
    turn = Turn(execution, now, limits, now - clock, task_standings=task_standings, check_form=check_form)
    turn.bind_child = bind_child
    if execution.details.chain is not None:
        turn.find_untaken = program.untaken_signals
    last_held = -1
    in_order = [] if listed is None else list(enumerate(listed))
    if holds:
        in_order.sort(key=_holding_rank)
        last_held = _find_last_held(in_order, limits.max_signals - execution.details.signals)
    source = enumerate(arrived) if listed is None else iter(in_order)
    for count, (index, envelope) in enumerate(source, 1):
        turn.position = index
        kind = type(envelope)
        if kind is envelopes.Update:
            turn.check_update = program.check_update
        event = DECIDE[kind](turn, envelope)
        if event is not None:
            if count <= last_held:
                event = msgspec.structs.replace(event, held=True)
            if kind in _BEGINNING and len(in_order) > 1:
                event = _begin_or_end(event, [type(one) for _, one in in_order[count:]])
            if time_of is not None and (shown := place_arrival(time_of(index), shown, now)) < now:
                event = msgspec.structs.replace(event, arrived_at=shown)
            _record(turn, event)
            if kind is envelopes.Signal:
                turn.answer(SignalRecorded(execution.sequence + len(turn.events)))
            _carry_out(turn, program.advance(event, turn.now))  # type: ignore[arg-type]
            if turn.own_triggers:
                _give_own(turn, program)
        if turn.blocked is not None:
            break
        if execution.closed_at is not None:
            if listed is not None or turn.successor is None:
                _settle_rest(turn, source)
            break
        if may_go_on is not None and count != len(in_order) and not may_go_on(count, turn.recorded_bytes):
            turn.handled = count
            break
    if turn.events or turn.changed:
        _settle_status(turn, program)
    return turn


def hold(
    execution: Execution,
    program: Program,
    arrived: Sequence[AnyEnvelope],
    clock: Instant,
    limits: Limits = NO_LIMITS,
    *,
    time_of: Callable[[int], Instant] | None = None,
) -> Turn:
    """Take a turn that only puts signals and updates into their queues: the program runs with the event after them."""
    shown = execution.last_turn_at
    now = find_time(execution, arrived, clock)
    turn = Turn(execution, now, limits, now - clock, check_update=program.check_update)
    for index, envelope in enumerate(arrived):
        turn.position = index
        event = DECIDE[type(envelope)](turn, envelope)
        if turn.blocked is not None:
            break
        if event is not None:
            event = msgspec.structs.replace(event, held=True)
            if time_of is not None and (shown := place_arrival(time_of(index), shown, now)) < now:
                event = msgspec.structs.replace(event, arrived_at=shown)
            _record(turn, event)
            if type(envelope) is envelopes.Signal:
                turn.answer(SignalRecorded(execution.sequence + len(turn.events)))
            _carry_out(turn, program.advance(event, turn.now))  # type: ignore[arg-type]
    _settle_status(turn, program)
    return turn


def find_time(execution: Execution, arrived: Sequence[AnyEnvelope], clock: Instant) -> Instant:
    """The time of the events of a turn: what the clock shows, but never before what the execution was told earlier.

    That is the time of its last turn, and when a timer fires the time for which that was set. Without it, code that waits
    until some time by `ctx.now()` would wait again and again after the clock was set back.
    """
    now = max(execution.updated_at, clock)
    if execution.timers:
        for one in arrived:
            if type(one) is envelopes.TimerDue:
                now = max(now, execution.timers.get(one.number, now))
    return now


def fold(execution: Execution, turns: Sequence[HistoryTurn], clock: Instant | None = None) -> None:
    """Bring a freshly loaded execution's open things up to its history.

    What has waited since a time that the clock does not show yet, because it was set back, has waited since now.
    """
    received = execution.details.signals  # the row counts them already
    for turn in turns:
        at = turn.at if clock is None else min(turn.at, clock)
        for event in turn.events:
            evolve = EVOLVE.get(type(event))
            if evolve is not None:
                evolve(execution, event, at)
    execution.details.signals = received
    execution.last_signal_sequence = _find_last_signal(turns) or execution.last_signal_sequence


def _find_last_signal(turns: Sequence[HistoryTurn]) -> int:
    """The place of the last signal in a history, or 0."""
    for turn in reversed(turns):
        for offset in range(len(turn.events) - 1, -1, -1):
            if type(turn.events[offset]) is events.SignalReceived:
                return turn.first + offset
    return 0


def _begin_or_end(started: AnyEvent, following: Sequence[type[AnyEnvelope]]) -> AnyEvent:
    """What ends before its first turn is closed without running any of its code, and says so, for replay."""
    if following and following[0] in envelopes.ENDING:
        return msgspec.structs.replace(started, held=True)
    return msgspec.structs.replace(started, cancelled=True) if envelopes.Cancel in following else started


def _holding_rank(numbered: tuple[int, AnyEnvelope]) -> int:
    kind = type(numbered[1])
    return 0 if kind in _BEGINNING else 1 if kind in envelopes.MUST_BE_GIVEN else 2


def _find_last_held(in_order: Sequence[tuple[int, AnyEnvelope]], room: int) -> int:
    """The place up to which all is held: that of the last signal or update, which makes the program run. -1: of none.

    Beyond the `room` that a run has for signals and updates, they are refused and make nothing run.
    """
    last = -1
    for place, (_, one) in enumerate(in_order):
        kind = type(one)
        is_counted = kind is envelopes.Signal or kind is envelopes.Update
        if is_counted:
            room -= 1
        if kind in envelopes.MUST_BE_GIVEN and (room >= 0 or not is_counted):
            last = place
    return last


def _record(turn: Turn, event: AnyEvent) -> None:
    turn.events.append(event)
    evolve = EVOLVE.get(type(event))
    if evolve is not None:
        evolve(turn.execution, event, turn.clock)


def _carry_out(turn: Turn, step: Step) -> None:
    for event in step.events:
        _record(turn, event)
        if type(event) is events.ProcessAdvanced:
            turn.recorded_bytes += len(event.records.data)
    for command in step.commands:
        if type(command) is commands.Block:
            turn.blocked = command.error
            return
        event_or_none = RECORD[type(command)](turn, command)
        if event_or_none is not None:
            _record(turn, event_or_none)


def _give_own(turn: Turn, program: Program) -> None:
    """Give the program the broadcast signals that it threw and waits for, as events of their own, in the order thrown.

    A wait that has ended since, or that an earlier one has used up, gets none. The queue may grow meanwhile.
    """
    for number, publication in turn.own_triggers:
        subscription = turn.execution.subscriptions.get(number)
        if subscription is None:
            continue
        if turn.own_triggered >= publishing.MOST_OWN:
            turn.send(turn.execution.execution_id, envelopes.Triggered(number=number, publication=publication))
            continue
        turn.own_triggered += 1
        event = subscriptions.trigger(turn, subscription, publication)
        _record(turn, event)
        _carry_out(turn, program.advance(event, turn.now))
        if turn.blocked is not None or turn.execution.closed_at is not None:
            break
    turn.own_triggers.clear()


def _settle_rest(turn: Turn, rest: Iterable[tuple[int, AnyEnvelope]]) -> None:
    """What arrived behind the event that closed the execution."""
    execution = turn.execution
    for index, envelope in rest:
        turn.position = index
        if type(envelope) is envelopes.Update and updates.join(turn, envelope):
            continue  # the handler of the first ended in this turn
        if turn.successor is not None and isinstance(envelope, envelopes.CARRIED):
            turn.successor_envelopes = add(turn.successor_envelopes, (envelope,))
            turn.answer(CARRIED_OVER)
        elif type(envelope) is envelopes.Update:
            if turn.is_forced or execution.details.signals >= turn.limits.max_signals:
                turn.answer(Refused(signals.closed_error(execution, "update")))
            else:
                turn.has_unseen = True
        elif type(envelope) is envelopes.Signal:
            # It was accepted and must be given before the end. After a termination or a timeout there is no program to give
            # it to, and beyond the limit of a run it cannot be given: it came too late.
            if turn.is_forced or execution.details.signals >= turn.limits.max_signals:
                error = signals.closed_error(execution, "signal")
                signals.answer_sender(turn, envelope, describe_exception(error))
                turn.answer(Refused(error))
            else:
                turn.has_unseen = True
        elif isinstance(envelope, envelopes.Cancel | envelopes.Terminate):
            turn.answer(NOT_DONE)
        elif isinstance(envelope, envelopes.TASK_STEPS):
            human_tasks.refuse_late(turn, envelope)
        elif type(envelope) is envelopes.Triggered:
            subscriptions.put_back(turn, envelope.publication)


def _settle_status(turn: Turn, program: Program) -> None:
    execution = turn.execution
    execution.updated_at, execution.details.last_turn_at = turn.now, None
    if execution.closed_at is not None or turn.blocked is not None:
        return
    if execution.running:
        execution.resume()
        return
    before = execution.details.waiting
    waiting = execution.describe_wait(program.waiting_signals())
    if waiting is None and (handled := program.update_names()):
        waiting = Waiting("update", ", ".join(handled))
    if waiting is None and (waits := program.find_waits()) is not None:
        waiting = Waiting(NEVER, ", ".join(waits.lines))
        turn.waits_forever = before is None or before.kind != NEVER
    execution.suspend(waiting)
