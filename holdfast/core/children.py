"""Children: starting them, hearing of their end once, and what becomes of them when the parent closes."""

from __future__ import annotations

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import Turn
from holdfast.core.events import Parent
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.ids import derive_execution_id
from holdfast.core.instants import Instant
from holdfast.core.options import OnOpen, ParentClose
from holdfast.core.unused import put


def record_child(turn: Turn, command: commands.StartChild) -> events.ChildStarted:
    """Record that the program asked for a child: its start goes out with the commit. Its id follows from the parent's."""
    execution = turn.execution
    child_id = derive_execution_id(turn.now, execution.execution_id, command.number)
    workflow_id = command.workflow_id or child_id
    turn.send(
        child_id,
        envelopes.Start(
            execution_id=child_id,
            workflow_id=workflow_id,
            workflow=command.workflow,
            input=command.input,
            queue=execution.queue,
            on_open=OnOpen.FAIL,
            metadata=command.metadata,
            headers=execution.headers if command.headers is None else command.headers,
            reference=execution.details.reference if command.reference is None else command.reference,
            chain=command.chain,
            parent=Parent(execution.execution_id, command.number, command.policy),
        ),
        workflow_id,
    )
    return events.ChildStarted(
        number=command.number,
        workflow=command.workflow,
        workflow_id=workflow_id,
        execution_id=child_id,
        input=command.input,
        policy=command.policy,
        label=command.label,
        failure_as_value=command.failure_as_value,
    )


def record_child_cancel(turn: Turn, command: commands.CancelChild) -> events.ChildCancelRequested | None:
    """The workflow no longer wants a child: ask it to cancel, if it is open."""
    child = turn.execution.children.get(command.number)
    if child is None:
        return None
    turn.send(child.execution_id, envelopes.Cancel(reason="its parent asked for it"), child.workflow_id)
    return events.ChildCancelRequested(number=command.number)


def decide_closed(
    turn: Turn, envelope: envelopes.ChildClosed
) -> events.ChildCompleted | events.ChildFailed | events.ChildCancelled | events.ChildTerminated | None:
    """A child's end reaches the parent once. It may come from another run than the first, if the child continued."""
    number = envelope.number
    if number not in turn.execution.children:
        return None
    if envelope.result is not None:
        return events.ChildCompleted(number=number, result=envelope.result)
    if envelope.cancelled:
        return events.ChildCancelled(number=number)
    if envelope.terminated:
        return events.ChildTerminated(number=number, reason=envelope.reason)
    return events.ChildFailed(number=number, failure=envelope.failure or Failure(type="Unknown", message="no reason kept"))


def evolve_started(execution: Execution, event: events.ChildStarted, _now: Instant) -> None:
    """The child is open until its end arrives."""
    execution.children = put(execution.children, event.number, event)


def evolve_ended(
    execution: Execution,
    event: events.ChildCompleted | events.ChildFailed | events.ChildCancelled | events.ChildTerminated,
    _now: Instant,
) -> None:
    """The child is open no longer."""
    execution.children.pop(event.number, None)


def close_children(turn: Turn) -> None:
    """The parent closes: each open child gets what its policy says."""
    for child in turn.execution.children.values():
        if child.policy is ParentClose.CANCEL:
            turn.send(child.execution_id, envelopes.Cancel(reason="its parent closed"), child.workflow_id)
        elif child.policy is ParentClose.TERMINATE:
            turn.send(child.execution_id, envelopes.Terminate(reason="its parent closed"), child.workflow_id)


def notify_parent(turn: Turn, closed: envelopes.ChildClosed | None) -> None:
    """The child closes: its parent hears of it."""
    parent = turn.execution.details.parent
    if parent is not None and closed is not None:
        turn.send(parent.execution_id, closed)


def refuse_child(start: envelopes.Start, failure: Failure) -> tuple[str, envelopes.ChildClosed] | None:
    """The answer to a parent whose child could not be started: who gets it, and what."""
    if start.parent is None:
        return None
    return start.parent.execution_id, envelopes.ChildClosed(
        number=start.parent.number, execution_id=start.execution_id, failure=failure
    )
