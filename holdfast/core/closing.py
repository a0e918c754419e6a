"""How executions end: by their own outcome, by cancellation, by termination, or by continuing as a new run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.core import commands, envelopes, events, updates
from holdfast.core.chains import Chain, TimeoutScope
from holdfast.core.children import close_children, notify_parent
from holdfast.core.effects import DONE, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import TIMED_OUT, Failure
from holdfast.core.human_tasks import close_tasks
from holdfast.core.ids import derive_execution_id, instant_of
from holdfast.core.incidents import close_incidents
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import Operation
from holdfast.core.payloads import Payload
from holdfast.core.retry import may_retry, retry_delay
from holdfast.core.subscriptions import end_subscriptions
from holdfast.core.unused import NO_ITEMS, add

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
    turn.is_forced = True
    closed = _closed(turn, terminated=True, reason=envelope.reason)
    _close(turn, Operation.TERMINATE, closed)
    turn.events.append(events.WorkflowTerminated(reason=envelope.reason))


def decide_deadline(turn: Turn, envelope: envelopes.DeadlineDue) -> None:
    """The execution ends here as failed, whatever its program wants; after a run another may follow.

    None follows where the code cannot run: it cannot be told which signals were not taken, and they would be lost.
    """
    chain = turn.execution.details.chain
    if chain is None:
        return
    turn.is_forced = True
    failure = _describe_timeout(chain, envelope.scope)
    retried = None
    if envelope.scope is TimeoutScope.RUN and turn.find_untaken is not None and (untaken := turn.find_untaken()) is not None:
        retried = _retry(turn, failure, untaken)
    _close(turn, Operation.TIME_OUT, None if retried else _closed(turn, failure=failure), failure)
    turn.events.append(events.WorkflowTimedOut(timeout=envelope.scope, failure=failure, retried_as=retried))


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
    """The workflow raised: close the run with the failure. The parent is told, unless another run follows."""
    retried = None if command.is_final else _retry(turn, command.failure, command.signals, command.kinds)
    _close(turn, Operation.FAIL, None if retried else _closed(turn, failure=command.failure), command.failure)
    return events.WorkflowFailed(failure=command.failure, retried_as=retried)


def record_cancelled(turn: Turn, _command: commands.EndCancelled) -> events.WorkflowCancelled:
    """The workflow let its cancellation through: close the execution as cancelled, and tell the parent."""
    _close(turn, Operation.CANCEL, _closed(turn, cancelled=True))
    return events.WorkflowCancelled(reason=turn.execution.details.cancel_reason)


def record_continued(turn: Turn, command: commands.ContinueAs) -> events.ContinuedAs:
    """The workflow continues: its next run opens in the same transaction, with the parent and the signals not taken."""
    chain = turn.execution.details.chain
    chain = None if chain is None else chain.follow()
    following = _follow(turn, command.workflow, command.input, command.signals, chain)
    _close(turn, Operation.CONTINUE, None)
    return events.ContinuedAs(execution_id=following, workflow=command.workflow, input=command.input)


def find_next_run(execution_id: str, closed_at: Instant) -> str:
    """The execution id of the run that follows one that continued: ordered after it, also within one transaction."""
    return derive_execution_id(max(closed_at, instant_of(execution_id)) + 1, execution_id, 0)


# --- parts ---


def _follow(
    turn: Turn,
    workflow: str,
    payload: Payload,
    untaken: Sequence[commands.Untaken],
    chain: Chain | None,
    start_at: Instant | None = None,
) -> str:
    """Open the next run in the same transaction, with the parent and the signals not taken. Its execution id."""
    execution, details = turn.execution, turn.execution.details
    following = find_next_run(execution.execution_id, turn.now)
    turn.successor = envelopes.Start(
        execution_id=following,
        workflow_id=execution.workflow_id,
        workflow=workflow,
        input=payload,
        queue=execution.queue,
        metadata=details.metadata,
        headers=execution.headers,
        reference=details.reference,
        start_at=start_at,
        chain=chain,
        parent=details.parent,
        continued_from=execution.execution_id,
    )
    for one in untaken:
        if isinstance(one, commands.UntakenSignal):
            turn.successor_envelopes = add(
                turn.successor_envelopes, (envelopes.Signal(name=one.name, value=one.value, headers=one.headers),)
            )
        else:
            turn.successor_envelopes = add(turn.successor_envelopes, (updates.carry_over(turn, one),))
    return following


def _retry(turn: Turn, failure: Failure, untaken: Sequence[commands.Untaken], kinds: tuple[str, ...] = ()) -> str | None:
    """Let the same work begin anew after a pause, if the retry policy allows it. The execution id of that run.

    Not after a request to cancel, and not if the pause would last beyond the deadline of the chain.
    """
    execution, details = turn.execution, turn.execution.details
    chain = details.chain
    if chain is None or chain.retry is None or execution.input is None or details.cancel_requested:
        return None
    if not may_retry(chain.retry, chain.attempt, failure.type, non_retryable=failure.non_retryable, kinds=kinds):
        return None
    start_at = turn.clock + retry_delay(chain.retry, chain.attempt, execution.execution_id)
    if chain.deadline is not None and start_at >= chain.deadline:
        return None
    following = _follow(turn, execution.workflow, execution.input, untaken, chain.follow(chain.attempt + 1), start_at)
    if details.pinned and turn.successor is not None:
        turn.successor = msgspec.structs.replace(
            turn.successor, code_version=execution.code_version, pinned=True, route_name=details.route_name
        )
    details.retried_as = following
    return following


def _describe_timeout(chain: Chain, scope: TimeoutScope) -> Failure:
    length = chain.run_timeout_us if scope is TimeoutScope.RUN else chain.execution_timeout_us
    seconds = f"{(length or 0) / SECOND:,.6f}".rstrip("0").rstrip(".")
    return Failure(type=TIMED_OUT, message=f"the {scope} timeout of {seconds} seconds passed before the workflow ended")


def _close(turn: Turn, operation: Operation, closed: envelopes.ChildClosed | None, error: Failure | None = None) -> None:
    execution = turn.execution
    if execution.updates:
        updates.refuse_unfinished(turn)
    close_children(turn)
    if execution.tasks:
        close_tasks(turn)
    if execution.incidents:
        close_incidents(turn)
    notify_parent(turn, closed)
    turn.dispatched = NO_ITEMS
    if execution.timers:
        turn.end_timers(execution.timers)
    if execution.activities:
        turn.stopped = add(turn.stopped, execution.running)
        turn.end_timers(number for number in execution.activities if number not in execution.running)
    if execution.subscriptions:
        end_subscriptions(turn, execution.subscriptions.values())
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
