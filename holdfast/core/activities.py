"""Activities: what may be decided about them, and what their events change. The first recorded end counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, get_args

import msgspec

from holdfast.core import commands, envelopes, events
from holdfast.core.bpmn_errors import read_bpmn_error
from holdfast.core.effects import TimerKind, TimerSet, Turn
from holdfast.core.execution import AttemptState, Execution, OpenActivity
from holdfast.core.failures import Failure, shorten_trace
from holdfast.core.instants import Instant, Micros
from holdfast.core.options import Cancellation, TimeoutKind
from holdfast.core.payloads import Payload
from holdfast.core.retry import may_retry, retry_delay
from holdfast.core.troubles import ActivityAbout, ActivityEnded, AttemptFailed
from holdfast.core.unused import add

Ending: TypeAlias = (
    events.ActivityCompleted
    | events.ActivityFailed
    | events.ActivityTimedOut
    | events.ActivityCancelled
    | events.ActivityLost
    | events.ActivityCancelRequested
)
ENDING: Final = get_args(Ending)
AboutAttempt: TypeAlias = (
    envelopes.ActivityReturned
    | envelopes.ActivityRaised
    | envelopes.ActivityExpired
    | envelopes.ActivityStopped
    | envelopes.ActivityBeat
    | envelopes.ActivityBegan
)
"""What an attempt reports."""

# --- what the program asks for ---


def record_activity(turn: Turn, command: commands.RunActivity) -> events.ActivityScheduled:
    """Record that the program asked for an activity: its first attempt starts once this turn is committed."""
    turn.dispatched = add(turn.dispatched, (command.number,))
    return events.ActivityScheduled(
        number=command.number, name=command.name, input=command.input, options=command.options, label=command.label
    )


def record_activity_cancel(turn: Turn, command: commands.CancelActivity) -> events.ActivityCancelRequested | None:
    """Record that the program cancelled an activity: its function is told, its timers end.

    Its result will be stale; or, if the program waits for its end, it is the activity's end, whatever it is.
    """
    number = command.number
    activity = turn.execution.activities.get(number)
    if activity is None or activity.is_cancelling:
        return None
    attempt = turn.execution.attempt_of(number)
    if attempt.retry_at is not None:
        turn.end_timers((number,))
    if activity.event.options.cancellation is Cancellation.WAIT:
        if attempt.retry_at is not None:  # an attempt that is not run reports the end
            set_attempt(turn, number, msgspec.structs.replace(attempt, retry_at=None))
            turn.execution.running.add(number)
            turn.dispatched = add(turn.dispatched, (number,))
        elif number not in turn.dispatched:
            turn.cancelled = add(turn.cancelled, (number,))
        return events.ActivityCancelRequested(number=number, waits=True)
    if number in turn.dispatched:
        turn.dispatched.remove(number)
    turn.stopped = add(turn.stopped, (number,))
    return events.ActivityCancelRequested(number=number)


# --- what arrives ---


def decide_returned(turn: Turn, envelope: envelopes.ActivityReturned) -> events.ActivityCompleted | None:
    """A result counts if it is of the present attempt, or was committed with what the function did; else it is stale."""
    execution, number = turn.execution, envelope.number
    if not is_about_present(turn, envelope):
        if not envelope.committed or not is_about_work(execution, envelope):
            return None
        _give_up_present(turn, number)
    return events.ActivityCompleted(number=envelope.number, result=envelope.result, attempt=envelope.attempt)


def decide_raised(turn: Turn, envelope: envelopes.ActivityRaised) -> events.ActivityFailed | events.ActivityLost | None:
    """A failure is tried again as the policy says; the last one is an event."""
    number, failure = envelope.number, envelope.failure
    if not is_about_present(turn, envelope):
        return None
    if envelope.is_lost:
        about = describe_attempt(turn.execution, number, envelope.attempt)
        turn.troubles = add(turn.troubles, (ActivityEnded(about, failure, is_lost=True),))
        return events.ActivityLost(number=number, attempt=envelope.attempt)
    if _retry(turn, number, failure, envelope.heartbeat, envelope.kinds, envelope.retry_after_us):
        return None
    if read_bpmn_error(failure) is None:  # else it is an outcome that the diagram or the code expects
        about = describe_attempt(turn.execution, number, envelope.attempt)
        turn.troubles = add(turn.troubles, (ActivityEnded(about, failure),))
    return events.ActivityFailed(number=number, failure=failure, attempt=envelope.attempt)


def decide_expired(turn: Turn, envelope: envelopes.ActivityExpired) -> events.ActivityTimedOut | None:
    """A timeout of one attempt is tried again like a failure; one of the whole activity is final."""
    number = envelope.number
    if not is_about_present(turn, envelope):
        return None
    turn.stopped = add(turn.stopped, (number,))
    is_of_attempt = envelope.timeout in (TimeoutKind.START_TO_CLOSE, TimeoutKind.HEARTBEAT)
    if is_of_attempt and _retry(turn, number, describe_timeout(envelope.timeout), envelope.heartbeat):
        return None
    return end_by_timeout(turn, number, envelope.timeout, envelope.attempt)


def decide_stopped(turn: Turn, envelope: envelopes.ActivityStopped) -> events.ActivityCancelled | None:
    """Record that an attempt ended as cancelled."""
    if not is_about_present(turn, envelope):
        return None
    return events.ActivityCancelled(number=envelope.number, attempt=envelope.attempt)


def decide_beat(turn: Turn, envelope: envelopes.ActivityBeat) -> None:
    """Keep what a running attempt reported, for the next one."""
    execution, number = turn.execution, envelope.number
    if is_about_present(turn, envelope):
        set_attempt(turn, number, msgspec.structs.replace(execution.attempt_of(number), heartbeat=envelope.details))


def decide_retry_due(turn: Turn, envelope: envelopes.RetryDue) -> events.ActivityTimedOut | None:
    """The wait before an attempt is over. If the activity's own time is over too, that is its end."""
    execution, number = turn.execution, envelope.number
    attempt = execution.attempt_of(number)
    if number not in execution.activities or attempt.retry_at is None:
        turn.end_timers((number,))
        turn.changed = True  # so that the stale row goes
        return None
    if attempt.attempt != envelope.attempt:
        return None  # the present retry has taken the row
    turn.end_timers((number,))
    deadline = find_deadline(execution.activities[number])
    if deadline is not None and turn.clock >= deadline:
        return end_by_timeout(turn, number, TimeoutKind.SCHEDULE_TO_CLOSE, attempt.attempt - 1)
    set_attempt(turn, number, msgspec.structs.replace(attempt, retry_at=None))
    execution.running.add(number)
    turn.dispatched = add(turn.dispatched, (number,))
    return None


# --- what the events change ---


def evolve_scheduled(execution: Execution, event: events.ActivityScheduled, now: Instant) -> None:
    """The activity is open, and its first attempt runs."""
    execution.activities[event.number] = OpenActivity(event, now)
    if execution.attempt_of(event.number).retry_at is None:
        execution.running.add(event.number)


def evolve_ended(
    execution: Execution,
    event: Ending,
    _now: Instant,
) -> None:
    """The activity is open no longer, whatever the reason; its attempts are forgotten."""
    number = event.number
    execution.activities.pop(number, None)
    execution.running.discard(number)
    if number in execution.details.attempts:
        del execution.details.attempts[number]


def evolve_cancel_requested(execution: Execution, event: events.ActivityCancelRequested, now: Instant) -> None:
    """The activity is open no longer, or it is until its function has ended."""
    if not event.waits:
        evolve_ended(execution, event, now)
    elif event.number in execution.activities:
        execution.activities[event.number].is_cancelling = True


def is_ending(event: events.AnyEvent, number: int) -> bool:
    """Whether an event ends an activity."""
    if not isinstance(event, ENDING) or event.number != number:
        return False
    return not isinstance(event, events.ActivityCancelRequested) or not event.waits


def has_ended(history: Iterable[events.AnyEvent], number: int) -> bool:
    """Whether these events end an activity: an attempt whose result would be stale must not commit it."""
    return any(is_ending(event, number) for event in history)


def is_cancel_awaited(history: Iterable[events.AnyEvent], number: int) -> bool:
    """Whether these events cancel an activity whose end the program waits for."""
    return any(type(event) is events.ActivityCancelRequested and event.number == number and event.waits for event in history)


# --- parts ---


def is_present(execution: Execution, number: int, attempt: int) -> bool:
    """Whether that attempt of an activity is the one under way."""
    return number in execution.running and execution.attempt_of(number).attempt == attempt


def is_about_present(turn: Turn, envelope: AboutAttempt) -> bool:
    """Whether an envelope is about the attempt that is under way, and about the work that is asked of it.

    An attempt that this very turn gives out cannot have reported: what does is of another past of the database.
    """
    number = envelope.number
    if number in turn.dispatched or not is_present(turn.execution, number, envelope.attempt):
        return False
    return is_about_work(turn.execution, envelope)


def is_about_work(execution: Execution, envelope: AboutAttempt) -> bool:
    """Whether the activity is open that an envelope is about: not another one, which got its number in another past."""
    activity = execution.activities.get(envelope.number)
    return activity is not None and envelope.work in ("", activity.work)


def _give_up_present(turn: Turn, number: int) -> None:
    """An earlier attempt did it after all: the present one is told to stop, or does not begin."""
    if number in turn.dispatched:
        turn.dispatched.remove(number)
    if number in turn.execution.running:
        turn.stopped = add(turn.stopped, (number,))
    else:
        turn.end_timers((number,))


def _retry(
    turn: Turn,
    number: int,
    failure: Failure,
    heartbeat: Payload | None,
    kinds: tuple[str, ...] = (),
    retry_after: Micros | None = None,
) -> bool:
    """Arrange the next attempt if the policy allows one; whether it does. An activity that is cancelled gets no other."""
    execution = turn.execution
    activity, attempt = execution.activities[number], execution.attempt_of(number)
    policy, failures = activity.event.options.retry, attempt.failures + 1
    if activity.is_cancelling or not may_retry(
        policy,
        failures,
        failure.type,
        non_retryable=failure.non_retryable,
        kinds=kinds,
        is_asked_for=retry_after is not None,
    ):
        return False
    delay = retry_delay(policy, failures, execution.execution_id, number) if retry_after is None else retry_after
    retry_at = turn.clock + delay
    deadline = find_deadline(activity)
    if deadline is not None:
        if turn.clock >= deadline:
            return False
        retry_at = min(retry_at, deadline)
    following = AttemptState(
        attempt=attempt.attempt + 1,
        failures=failures,
        retry_at=retry_at,
        failure=shorten_trace(failure),
        heartbeat=heartbeat if heartbeat is not None else attempt.heartbeat,
    )
    set_attempt(turn, number, following)
    about = describe_attempt(execution, number, attempt.attempt)
    open_for = turn.clock - activity.scheduled_at
    turn.troubles = add(turn.troubles, (AttemptFailed(about, failure, failures, retry_at - turn.clock, open_for),))
    execution.running.discard(number)
    turn.started_timers = add(turn.started_timers, (TimerSet(number, retry_at, TimerKind.RETRY, following.attempt),))
    return True


def describe_timeout(timeout: TimeoutKind) -> Failure:
    """A timeout as the failure that it is for people and for retry policies."""
    return Failure(type="ActivityTimedOut", message=f"the {timeout} timeout passed")


def end_by_timeout(turn: Turn, number: int, timeout: TimeoutKind, attempt: int) -> events.ActivityTimedOut:
    """The event that ends an activity whose time is over."""
    turn.troubles = add(
        turn.troubles, (ActivityEnded(describe_attempt(turn.execution, number, attempt), describe_timeout(timeout)),)
    )
    return events.ActivityTimedOut(number=number, timeout=timeout, attempt=attempt)


def describe_attempt(execution: Execution, number: int, attempt: int) -> ActivityAbout:
    """An attempt of an open activity, as the log names it."""
    event = execution.activities[number].event
    return ActivityAbout(event.name, event.options.queue, attempt)


def set_attempt(turn: Turn, number: int, attempt: AttemptState) -> None:
    """Note in the execution's row how far an activity has come."""
    turn.execution.details.attempts[number] = attempt
    turn.changed = True


def find_deadline(activity: OpenActivity) -> Instant | None:
    """When an activity is over, whatever its attempts."""
    limit = activity.event.options.schedule_to_close_us
    return None if limit is None else activity.scheduled_at + limit
