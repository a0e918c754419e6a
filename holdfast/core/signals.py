"""Signals: accepting them, sending them to other workflows, and refusing what does not fit."""

from __future__ import annotations

from typing import Final

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import DeadLetter, Refused, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.core.unused import add, put
from holdfast.errors import ExecutionClosed, ExecutionNotFound, SignalLimitReached

_WITH_START: Final = frozenset({"signal", "update"})
"""What can be done together with a start."""


def decide_signal(turn: Turn, envelope: envelopes.Signal) -> events.SignalReceived | None:
    """Each signal is one event, up to the limit of a run."""
    execution, details = turn.execution, turn.execution.details
    if details.signals >= turn.limits.max_signals:
        refusal = limit_error(execution)
        answer_sender(turn, envelope, describe_exception(refusal))
        turn.answer(Refused(refusal))
        return None
    details.last_signal = envelope.name
    execution.last_signal_sequence = execution.sequence + len(turn.events) + 1
    answer_sender(turn, envelope, None)
    is_held = details.start_at is not None  # the code has not begun: it finds the signal when it does
    return events.SignalReceived(name=envelope.name, value=envelope.value, headers=envelope.headers, held=is_held)


def answer_sender(turn: Turn, envelope: envelopes.Signal, failure: Failure | None) -> None:
    """A workflow that sent the signal hears how it went."""
    if envelope.sender is not None:
        turn.send(envelope.sender.execution_id, envelopes.SignalAnswered(number=envelope.sender.number, failure=failure))


def record_external(turn: Turn, command: commands.SignalExternal) -> events.ExternalSignalInitiated:
    """A signal to another workflow goes out with the commit."""
    sender = envelopes.Sender(turn.execution.execution_id, command.number)
    headers = turn.execution.headers
    signal = envelopes.Signal(name=command.name, value=command.value, headers=headers, sender=sender)
    turn.send("", signal, command.workflow_id)
    return events.ExternalSignalInitiated(
        number=command.number, workflow_id=command.workflow_id, name=command.name, value=command.value
    )


def decide_answered(
    turn: Turn, envelope: envelopes.SignalAnswered
) -> events.ExternalSignalCompleted | events.ExternalSignalFailed | None:
    """The receiver's answer to a signal of this execution arrives: it counts once."""
    if envelope.number not in turn.execution.externals:
        return None
    if envelope.failure is None:
        return events.ExternalSignalCompleted(number=envelope.number)
    return events.ExternalSignalFailed(number=envelope.number, failure=envelope.failure)


def record_rejected(turn: Turn, command: commands.RejectSignal) -> events.SignalRejected:
    """A value that does not fit the awaited type goes to the dead letters; the workflow goes on waiting."""
    signal = envelopes.Signal(name=command.name, value=command.value, headers=command.headers)
    turn.dead_letters = add(turn.dead_letters, (DeadLetter(signal, command.reason, is_rejected=True),))
    return events.SignalRejected(name=command.name, reason=command.reason)


def evolve_received(execution: Execution, _event: events.SignalReceived, _now: Instant) -> None:
    """One more signal was received: the execution's row counts them."""
    execution.details.signals += 1


def evolve_initiated(execution: Execution, event: events.ExternalSignalInitiated, _now: Instant) -> None:
    """The answer to a signal that this execution sent is awaited."""
    execution.externals = put(execution.externals, event.number, event)


def evolve_answered(
    execution: Execution, event: events.ExternalSignalCompleted | events.ExternalSignalFailed, _now: Instant
) -> None:
    """The answer to a signal that this execution sent is awaited no longer."""
    execution.externals.pop(event.number, None)


def describe_execution(execution: Execution) -> str:
    """An execution as messages name it, by workflow id and execution id."""
    return f"execution '{execution.workflow_id}' ({execution.execution_id})"


def limit_error(execution: Execution, waiting: int = 0, verb: str = "signal") -> SignalLimitReached:
    """The error that says that a run cannot receive another signal or update; `waiting`: how many it has not taken yet."""
    received = execution.details.signals
    more = f", and {waiting} envelopes wait for it, which is" if waiting else ","
    return SignalLimitReached(
        f"Expected to {verb} {describe_execution(execution)}, but it has received {received} signals{more} the most "
        "one run may. Let the workflow continue_as a new run, or raise the engine's max_signals."
    )


def closed_error(execution: Execution, verb: str) -> ExecutionClosed:
    """The error that says that an execution cannot be reached, since it is closed."""
    following = execution.details.retried_as
    if following is not None or execution.status is Status.CONTINUED:
        how = "continued" if following is None else f"{execution.status}, and was retried,"
        to_it = "" if following is None else f" ({following})"
        return ExecutionClosed(
            f"Expected to {verb} {describe_execution(execution)}, but that run is over: it {how} as a next run{to_it}. "
            f"Use engine.handle('{execution.workflow_id}'), which always reaches the newest run."
        )
    return ExecutionClosed(
        f"Expected to {verb} {describe_execution(execution)}, but it is {execution.status}. "
        f"Start a new one, or {'update' if verb == 'update' else 'signal'} with start, which starts one if none is open."
    )


def missing_error(org: str, target: str, verb: str) -> ExecutionNotFound:
    """The error that says that there is no such execution in the org."""
    remedy = f"Check the id, or {verb} with start, which creates it." if verb in _WITH_START else "Check the id and the org."
    return ExecutionNotFound(f"Expected to {verb} '{target}', but org '{org}' has no such execution. {remedy}")
