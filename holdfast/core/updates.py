"""Updates: calls of a workflow's handlers, each answered once, after what it did is durable.

An update that the program lets pass (`Program.check_update`) is an `UpdateAccepted` event, which holds the key of its
request. Its handler is workflow code and may take many turns. The turn in which it ends records that and writes the answer
under the key: so whoever waits for it finds it, on whichever node, and whoever repeats the request gets the same one.
"""

from __future__ import annotations

from typing import Any

from holdfast.core import commands, envelopes, events, payloads
from holdfast.core.effects import Refused, Replied, ReplyFollows, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.request_keys import MADE_UP, RequestKey
from holdfast.core.signals import describe_execution, limit_error
from holdfast.core.unused import add, put
from holdfast.errors import (
    HoldfastError,
    InvalidArguments,
    UnknownUpdate,
    UpdateFailed,
    UpdateRejected,
    UpdateUnfinished,
)


def decide_update(turn: Turn, envelope: envelopes.Update) -> events.UpdateAccepted | None:
    """An update is accepted if the program lets it pass. A repetition of one whose handler still runs joins that.

    So does a repetition in the turn in which the handler ended: the store does not know the answer before its commit.
    """
    execution = turn.execution
    if join(turn, envelope):
        return None
    if execution.details.signals >= turn.limits.max_signals:
        turn.answer(Refused(limit_error(execution, verb="update")))
        return None
    is_held = execution.details.start_at is not None  # the code has not begun: its handlers are not known yet
    if not is_held and turn.check_update is not None:
        checked = turn.check_update(envelope)
        if checked.blocked is not None:
            turn.blocked = checked.blocked
            return None
        if checked.refusal is not None:
            turn.answer(Refused(checked.refusal))
            return None
    number = execution.sequence + len(turn.events) + 1
    turn.answer(ReplyFollows(number))
    return events.UpdateAccepted(
        update=number,
        name=envelope.name,
        value=envelope.value,
        headers=envelope.headers,
        request=envelope.request,
        held=is_held,
    )


def join(turn: Turn, envelope: envelopes.Update) -> bool:
    """Answer an update that repeats one which is being handled, or whose end this turn has. False: it repeats none."""
    joined = None if envelope.request.kind == MADE_UP else _find_first(turn, envelope.request)
    if joined is not None:
        turn.answer(joined)
    return joined is not None


def _find_first(turn: Turn, request: RequestKey) -> ReplyFollows | None:
    """What answers a repeated request: its first is being handled, or this turn has the end of that. None: it is new."""
    for known in turn.execution.updates.values():
        if _is_same(known.request, request):
            return ReplyFollows(known.update)
    return ReplyFollows(None) if any(_is_same(key, request) for key, _ in turn.replies) else None


def _is_same(one: RequestKey, other: RequestKey) -> bool:
    return one.key == other.key and one.kind == other.kind


def record_completed(turn: Turn, command: commands.CompleteUpdate) -> events.UpdateCompleted:
    """The handler of an update returned: its caller is answered with the commit."""
    _reply(turn, turn.execution.updates[command.update], Replied(command.result))
    return events.UpdateCompleted(update=command.update, result=command.result)


def record_failed(turn: Turn, command: commands.FailUpdate) -> events.UpdateFailed:
    """The handler of an update raised, or there is none: its caller is told with the commit."""
    accepted, failure = turn.execution.updates[command.update], command.failure
    _reply(turn, accepted, Refused(make_error(accepted.name, failure, is_rejected=command.is_rejected), is_final=True))
    return events.UpdateFailed(update=command.update, failure=failure, is_rejected=command.is_rejected)


def refuse_unfinished(turn: Turn) -> None:
    """The execution closes: the callers of updates whose handlers have not ended are told so."""
    execution = turn.execution
    for accepted in list(execution.updates.values()):
        error = UpdateUnfinished(
            f"Expected update '{accepted.name}' of {describe_execution(execution)} to be answered, but the workflow ended "
            "while its handler ran. Let the workflow wait for its handlers before it ends."
        )
        _reply(turn, accepted, Refused(error, is_final=True))


def carry_over(turn: Turn, untaken: commands.UntakenUpdate) -> envelopes.Update:
    """An update that was accepted and not begun, for the next run, which replies to it."""
    accepted = turn.execution.updates.pop(untaken.update, None)
    position = None if accepted is None else _find_position(turn, accepted.update)
    if position is not None:
        del turn.answers[position]  # who waits for it looks for the answer under its key
    return envelopes.Update(name=untaken.name, value=untaken.value, headers=untaken.headers, request=untaken.request)


def evolve_accepted(execution: Execution, event: events.UpdateAccepted, _now: Instant) -> None:
    """The handler of an update runs: its caller waits. The limit of signals that a run may receive counts it too."""
    execution.details.signals += 1
    execution.updates = put(execution.updates, event.update, event)


def evolve_ended(execution: Execution, event: events.UpdateCompleted | events.UpdateFailed, _now: Instant) -> None:
    """The caller of an update is answered."""
    execution.updates.pop(event.update, None)


def make_error(name: str, failure: Failure, *, is_rejected: bool) -> HoldfastError:
    """What the caller of an update gets whose handler raised, or that was refused once the code had begun."""
    if is_rejected and failure.type == UnknownUpdate.__name__:
        told = {} if failure.details is None else payloads.decode(failure.details, dict[str, Any], "the names of handlers")
        return UnknownUpdate(failure.message, known=told.get("known", ()))
    if is_rejected:
        return (InvalidArguments if failure.type == InvalidArguments.__name__ else UpdateRejected)(failure.message)
    return UpdateFailed(
        f"Expected update '{name}' to return, but its handler raised {failure.type}: {failure.message}", type=failure.type
    )


def _reply(turn: Turn, accepted: events.UpdateAccepted, answer: Replied | Refused) -> None:
    """Answer the caller of an update, which this turn accepted or an earlier one did."""
    position = _find_position(turn, accepted.update)
    if position is None:
        turn.has_rare = True
        turn.replies = add(turn.replies, ((accepted.request, answer),))
    else:
        turn.answers = put(turn.answers, position, answer)


def _find_position(turn: Turn, update: int) -> int | None:
    """The place among what this turn takes of the envelope that it accepted as an update; None if it did not."""
    if update <= turn.execution.sequence:
        return None
    wanted = ReplyFollows(update)
    if turn.answers.get(turn.position) == wanted:
        return turn.position
    return next((position for position, answer in turn.answers.items() if answer == wanted), None)
