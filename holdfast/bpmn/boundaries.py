"""Boundary events and event sub-processes: what happens when the event that they wait for comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.mappings import evaluate_inputs
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import clear, end, fail_entering, pass_event
from holdfast.bpmn.state import LEAVING, WORKING
from holdfast.bpmn.waiting import arm, end_waits, prepare, waits_of
from holdfast.core import commands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.bpmn.executable import EventSubProcess, Node
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.values import Variable


def pass_boundary(run: Run, host: Instance, event: Node, result: Mapping[str, Variable], *, is_interrupting: bool) -> None:
    """A boundary event of an instance fires: an interrupting one ends the host first, with all that is inside."""
    if is_interrupting:
        end(run, host)
    pass_event(run, event, Place(host.scope), result)


def interrupt_scope(run: Run, scope: Instance) -> None:
    """End everything inside of a scope, and what its event sub-processes wait for. Its own boundary events stay."""
    container = run.container_of(scope)
    clear(run, scope)
    if container is None:
        return
    over = [wait for wait in waits_of(run, scope) if wait.catcher in container.event_sub_processes]
    if over:
        end_waits(run, over)
        run.emit(records.Unwaits(tuple(wait.number for wait in over)))
    for number, incident in list(scope.incidents.items()):
        if incident.phase == LEAVING or incident.catcher in container.event_sub_processes:
            run.emit(records.Resolved(scope.key, number))
            run.issue(commands.ResolveIncident(number=number))
    if scope.phase == LEAVING:
        run.emit(records.Began(scope.key))  # it is left again, once the event sub-process is done


def start_event_sub_process(
    run: Run, scope: Instance, sub: EventSubProcess, result: Mapping[str, Variable], key: int = 0
) -> None:
    """Begin an event sub-process whose start event got something; or go on with the instance `key` that failed to begin."""
    place = Place(scope.key, key=key)
    node = sub.node
    try:
        container = node.inner
        view = run.look(scope.key)
        own = evaluate_inputs(run.evaluator, node, view)
        seen = view.within(own)
        armed = [] if container is None else [prepare(run, one, seen) for one in container.catches]
    except Fault as fault:
        fail_entering(run, node, place, fault, result)
        return
    one = run.begin(node, place, WORKING, own or {})
    arm(run, one, armed)
    pass_event(run, sub.start, Place(one.key), result)


def trigger_event_sub_process(run: Run, scope: Instance, sub: EventSubProcess, result: Mapping[str, Variable]) -> None:
    """What an event sub-process waits for came: an interrupting one takes over its scope."""
    if sub.is_interrupting:
        interrupt_scope(run, scope)
        run.emit(records.Interrupted(scope.key))
    start_event_sub_process(run, scope, sub, result)
