"""Children: starting them, hearing of their end once, and what becomes of them when the parent closes.

The name of a child is that of a process of the organisation, or of code. Which one, and which version of a process, is
looked up when the child is asked for (`Turn.bind_child`), and recorded.
"""

from __future__ import annotations

from typing import Final

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import ChildBinding, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.ids import derive_execution_id
from holdfast.core.instants import Instant
from holdfast.core.options import OnOpen, ParentClose
from holdfast.core.parents import ALL_CODES, Parent
from holdfast.core.unused import put

DEEPEST: Final = 100
"""How many calls may lead to a child that a process made or that called one: processes that call each other in a circle
would go on for ever."""
TOO_DEEP: Final = "CallTooDeep"
"""The type of the failure of a child that so many calls lead to."""


def record_child(turn: Turn, command: commands.StartChild) -> events.ChildStarted:
    """Record that the program asked for a child: its start goes out with the commit. Its id follows from the parent's."""
    execution = turn.execution
    child_id = derive_execution_id(turn.now, execution.execution_id, command.number)
    workflow_id = command.workflow_id or child_id
    binding = None if turn.bind_child is None else turn.bind_child(execution.org, command)
    version = command.version if binding is None else binding.version
    parent = _make_parent(execution, command, binding)
    failure = _refuse_depth(command, parent.depth) if binding is None or binding.failure is None else binding.failure
    if failure is not None:
        closed = envelopes.ChildClosed(number=command.number, execution_id=child_id, failure=failure)
        turn.send(execution.execution_id, closed)
    else:
        start = envelopes.Start(
            execution_id=child_id,
            workflow_id=workflow_id,
            workflow=command.workflow,
            input=command.input,
            queue=execution.queue,
            code_version=version,
            pinned=bool(version),
            route_name="" if binding is None else binding.route_name,
            on_open=OnOpen.FAIL,
            metadata=command.metadata,
            headers=execution.headers if command.headers is None else command.headers,
            reference=execution.details.reference if command.reference is None else command.reference,
            chain=command.chain,
            parent=parent,
        )
        turn.send(child_id, start, workflow_id)
    return events.ChildStarted(
        number=command.number,
        workflow=command.workflow,
        workflow_id=workflow_id,
        execution_id=child_id,
        input=command.input,
        policy=command.policy,
        label=command.label,
        failure_as_value=command.failure_as_value,
        version=version,
    )


def _make_parent(execution: Execution, command: commands.StartChild, binding: ChildBinding | None) -> Parent:
    """What the child is told of its parent."""
    above = execution.details.parent
    depth = 0 if above is None else above.depth
    if binding is not None or execution.details.route_name:
        depth += 1
    # Code that calls a process catches whatever error that ends with, as it does of other code.
    is_called_by_code = binding is not None and not execution.details.route_name
    catches = (ALL_CODES,) if is_called_by_code else command.catches
    return Parent(
        execution.execution_id,
        command.number,
        command.policy,
        depth,
        catches,
        command.catches_escalations,
        command.interrupting_escalations,
    )


def _refuse_depth(command: commands.StartChild, depth: int) -> Failure | None:
    if depth <= DEEPEST:
        return None
    message = (
        f"Expected at most {DEEPEST} calls to lead to a child, but '{command.workflow}' would be one more. "
        "Look for processes that call each other in a circle."
    )
    return Failure(type=TOO_DEEP, message=message, non_retryable=True)


def record_escalation(turn: Turn, command: commands.Escalate) -> events.EscalationSent | None:
    """The program escalates something: its parent hears of it, if it has one."""
    execution = turn.execution
    parent = execution.details.parent
    if parent is None:
        return None
    turn.send(
        parent.execution_id,
        envelopes.ChildEscalated(
            number=parent.number, execution_id=execution.execution_id, code=command.code, value=command.value
        ),
    )
    return events.EscalationSent(code=command.code, value=command.value)


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


def decide_escalated(turn: Turn, envelope: envelopes.ChildEscalated) -> events.ChildEscalated | None:
    """A child told of an escalation: the program hears of it if it still waits for the child."""
    if envelope.number not in turn.execution.children:
        return None
    return events.ChildEscalated(number=envelope.number, code=envelope.code, value=envelope.value)


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
