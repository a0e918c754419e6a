"""How executions end: by their own outcome, by cancellation, by termination, or by continuing as a new run."""

from __future__ import annotations

from holdfast.core import commands, envelopes, events
from holdfast.core.children import close_children, notify_parent
from holdfast.core.effects import DONE, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.ids import derive_execution_id, instant_of
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Operation

# --- what arrives ---


def decide_cancel(turn: Turn, envelope: envelopes.Cancel) -> events.CancelRequested | None:
    """A first request reaches the program; a second changes nothing."""
    turn.answer(DONE)
    if turn.execution.details.cancel_requested:
        return None
    return events.CancelRequested(reason=envelope.reason)


def decide_terminate(turn: Turn, envelope: envelopes.Terminate) -> None:
    """The execution ends here, whatever its program wants."""
    turn.answer(DONE)
    closed = _closed(turn, terminated=True, reason=envelope.reason)
    _close(turn, Operation.TERMINATE, closed)
    turn.events.append(events.WorkflowTerminated(reason=envelope.reason))


def evolve_cancel_requested(execution: Execution, event: events.CancelRequested, _now: Instant) -> None:
    """The execution's row remembers that it was asked to cancel, and why."""
    execution.details.cancel_requested = True
    execution.details.cancel_reason = event.reason


# --- what the program asks for: each closes ---


def record_complete(turn: Turn, command: commands.Complete) -> events.WorkflowCompleted:
    """The workflow returned: close the execution with its result, and tell the parent."""
    _close(turn, Operation.COMPLETE, _closed(turn, result=command.result))
    return events.WorkflowCompleted(result=command.result)


def record_fail(turn: Turn, command: commands.Fail) -> events.WorkflowFailed:
    """The workflow raised: close the execution with the failure, and tell the parent."""
    _close(turn, Operation.FAIL, _closed(turn, failure=command.failure), command.failure)
    return events.WorkflowFailed(failure=command.failure)


def record_cancelled(turn: Turn, _command: commands.EndCancelled) -> events.WorkflowCancelled:
    """The workflow let its cancellation through: close the execution as cancelled, and tell the parent."""
    _close(turn, Operation.CANCEL, _closed(turn, cancelled=True))
    return events.WorkflowCancelled(reason=turn.execution.details.cancel_reason)


def record_continued(turn: Turn, command: commands.ContinueAs) -> events.ContinuedAs:
    """The workflow continues: its next run opens in the same transaction, with the parent and the signals not taken."""
    execution = turn.execution
    following = find_next_run(execution.execution_id, turn.now)
    turn.successor = envelopes.Start(
        execution_id=following,
        workflow_id=execution.workflow_id,
        workflow=command.workflow,
        input=command.input,
        queue=execution.queue,
        metadata=execution.details.metadata,
        parent=execution.details.parent,
        continued_from=execution.execution_id,
    )
    turn.successor_envelopes = [envelopes.Signal(name=name, value=value) for name, value in command.signals]
    _close(turn, Operation.CONTINUE, None)
    return events.ContinuedAs(execution_id=following, workflow=command.workflow, input=command.input)


def find_next_run(execution_id: str, closed_at: Instant) -> str:
    """The execution id of the run that follows one that continued: ordered after it, also within one transaction."""
    return derive_execution_id(max(closed_at, instant_of(execution_id)) + 1, execution_id, 0)


# --- parts ---


def _close(turn: Turn, operation: Operation, closed: envelopes.ChildClosed | None, error: Failure | None = None) -> None:
    execution = turn.execution
    close_children(turn)
    notify_parent(turn, closed)
    turn.stopped.extend(execution.running)
    turn.dispatched.clear()
    turn.ended_timers.extend(execution.timers)
    turn.ended_timers.extend(number for number in execution.activities if number not in execution.running)
    execution.finish(operation, turn.now, error)


def _closed(turn: Turn, **outcome: object) -> envelopes.ChildClosed | None:
    parent = turn.execution.details.parent
    if parent is None:
        return None
    return envelopes.ChildClosed(
        number=parent.number,
        execution_id=turn.execution.execution_id,
        **outcome,  # type: ignore[arg-type]
    )
