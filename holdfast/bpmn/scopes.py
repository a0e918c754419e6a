"""Leaving elements, completing scopes and ending instances with all that is inside: common to all kinds of elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from holdfast.bpmn import loops, records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.flows import choose_flows
from holdfast.bpmn.mappings import evaluate_inputs, evaluate_outputs
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.state import ENTERING, FLOW, ITERATION, LEAVING, ROOT, WORKING, Instance
from holdfast.bpmn.values import Variable, to_json, to_raws
from holdfast.bpmn.variables import place as place_variables
from holdfast.bpmn.waiting import end_waits, waits_of
from holdfast.core import commands
from holdfast.core.bpmn_errors import make_bpmn_error_failure
from holdfast.core.payloads import Payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.variables import Changes, View


@dataclass(frozen=True, slots=True)
class Leaving:
    """Everything that was evaluated for an element to be left."""

    changes: Changes
    flows: tuple[str, ...] = ()
    iteration: loops.Finished | None = None
    """Of an iteration of a multi-instance activity: its result."""


def prepare_leaving(run: Run, node: Node, place: Place, view: View, result: Mapping[str, Variable]) -> Leaving:
    """Evaluate what follows from an element that got a result, where `view` is what it sees. Raises Fault."""
    innermost = place.key or place.scope
    is_iteration = place.index >= 0
    # What the output mappings of an iteration make may be its own: the variable of its output element.
    places = (innermost, innermost if is_iteration else place.scope)
    changes = evaluate_outputs(run.evaluator, node, run.state, places, view, result)
    kept = changes.get(place.key) if is_iteration else None
    if place.variables and not place.key and (is_iteration or not node.outputs):
        kept = _keep_own(changes, place.variables)
    if is_iteration:
        seen = view.within(result)
        if changes:
            seen = run.look(place.scope, changes).within(place.variables).within(result).within(kept)
        return Leaving(changes, iteration=loops.prepare_finish(run, node, place, seen))
    if not node.has_choice:
        return Leaving(changes, node.flow_ids)
    return Leaving(changes, choose_flows(run, node, run.look(place.scope, changes or None)))


def _keep_own(changes: Changes, own: Mapping[str, Variable]) -> dict[str, Variable]:
    """Take out what stays with an element that has no instance: its own variables, which end with it."""
    kept: dict[str, Variable] = {}
    for variables in changes.values():
        for name in own.keys() & variables.keys():
            kept[name] = variables.pop(name)
    return kept


def finish(run: Run, node: Node, place: Place, leaving: Leaving) -> None:
    """Leave an element: its variables are set, and its tokens go on."""
    run.set_variables(leaving.changes, gone=place.key)
    if place.key:
        one = run.state.active[place.key]
        end_waits(run, waits_of(run, one))
        for number in one.incidents:
            run.issue(commands.ResolveIncident(number=number))
        run.emit(records.Left(place.key, leaving.flows))
    else:
        run.emit(records.Passed(node.id, place.scope, leaving.flows))
    for flow in leaving.flows:
        run.push(place.scope, FLOW, flow)
    run.touched.append(place.scope)
    if leaving.iteration is not None:
        _finish_iteration(run, node, run.state.active[place.scope], leaving.iteration)


def _finish_iteration(run: Run, node: Node, body: Instance, finished: loops.Finished) -> None:
    run.emit(records.Slot(body.key, finished.index, msgspec.Raw(finished.value.raw)))
    if finished.is_complete:
        for key in list(body.children):
            end(run, run.state.active[key])
        run.drop_tokens(body.key)
        complete_body(run, body)
    elif node.loop is not None and node.loop.is_sequential:
        run.push(body.key, ITERATION, "")


def complete_body(run: Run, body: Instance) -> None:
    """Leave a multi-instance activity whose iterations have completed: its results become one list."""
    node = run.node_of(body)
    place = Place(body.scope, key=body.key)
    try:
        leaving = prepare_body_leaving(run, node, place, loops.collect(body))
    except Fault as fault:
        fail_leaving(run, node, place, {}, fault)
        return
    finish(run, node, place, leaving)


def prepare_body_leaving(run: Run, node: Node, place: Place, results: Variable) -> Leaving:
    """Evaluate what follows from a multi-instance activity with these results. Raises Fault."""
    changes: Changes = {}
    if node.loop is not None and node.loop.output_collection:
        run.evaluator.check_size(results, f"the results of '{node.id}'")
        place_variables(run.state, place.scope, {node.loop.output_collection: results}, changes)
    if not node.has_choice:
        return Leaving(changes, node.flow_ids)
    return Leaving(changes, choose_flows(run, node, run.look(place.scope, changes or None)))


def pass_event(run: Run, node: Node, place: Place, result: Mapping[str, Variable]) -> None:
    """Let a token pass an event that got something: a boundary event, a start event."""
    view, own = run.look(place.scope), None
    try:
        own = evaluate_inputs(run.evaluator, node, view)
        leaving = prepare_leaving(run, node, place.within(own), view.within(own), result)
    except Fault as fault:
        fail_leaving(run, node, place.within(own), result, fault)
        return
    finish(run, node, place, leaving)


def leave(run: Run, one: Instance, result: Mapping[str, Variable]) -> None:
    """An instance has what it waited for: leave it. What fails is an incident from which it is left again."""
    node = run.node_of(one)
    place = Place(one.scope, "", one.index, one.variables, one.key)
    try:
        leaving = prepare_leaving(run, node, place, run.look(one.key), result)
    except Fault as fault:
        fail_leaving(run, node, place, result, fault)
        return
    finish(run, node, place, leaving)


def fail_entering(run: Run, node: Node, place: Place, fault: Fault, result: Mapping[str, Variable] | None = None) -> None:
    """An element could not be entered: an incident from which it is entered again, with what it got, if anything."""
    one = run.state.active[place.key] if place.key else run.begin(node, place, ENTERING)
    if result and one.result is None:
        run.emit(records.Result(one.key, to_raws(result)))
    raise_incident(run, one, fault, ENTERING)


def fail_leaving(run: Run, node: Node, place: Place, result: Mapping[str, Variable], fault: Fault) -> None:
    """An element could not be left: an incident from which it is left again, with what it got."""
    one = run.state.active[place.key] if place.key else run.begin(node, place, LEAVING)
    if result and one.result is None:
        run.emit(records.Result(one.key, to_raws(result)))
    raise_incident(run, one, fault, LEAVING)


# --- ending ---


def end(run: Run, one: Instance) -> None:
    """End an instance and all that is inside, depth first, with everything that they wait for."""
    _end_inside(run, one)
    run.emit(records.Ended(one.key))
    run.touched.append(one.scope)


def _end_inside(run: Run, one: Instance) -> None:
    waiting = [one]
    while waiting:
        current = waiting.pop()
        end_waits(run, waits_of(run, current))
        for number in current.incidents:
            run.issue(commands.ResolveIncident(number=number))
        waiting.extend(run.state.active[key] for key in reversed(current.children))


def clear(run: Run, scope: Instance) -> None:
    """End everything inside of a scope: its children, its tokens on flows and those at its joins."""
    for key in list(scope.children):
        end(run, run.state.active[key])
    run.drop_tokens(scope.key)
    if scope.joins:
        run.emit(records.Cleared(scope.key))
    if scope.key == ROOT or scope.loop is None:
        for number, incident in list(scope.incidents.items()):
            if incident.kind == "deadlock":
                run.emit(records.Resolved(scope.key, number))
                run.issue(commands.ResolveIncident(number=number))


# --- completing ---


def settle(run: Run) -> None:
    """Complete all scopes that are done, and those that are done by it."""
    while run.touched and not run.is_over:
        key = run.touched.pop()
        one = run.state.active.get(key)
        if one is None or one.children or run.has_tokens(key) or one.phase != WORKING:
            continue
        if one.joins:
            run.stuck[key] = None
            continue
        if key == ROOT:
            _close_process(run, one)
        elif one.loop is None and run.node_of(one).inner is not None:
            leave(run, one, {})


def _close_process(run: Run, root: Instance) -> None:
    """The process is done. A child closes only after the store has fixed who gets what it published.

    Else its end could overtake its signals and messages on their way to the parent, and end the waits for these.
    """
    waits = waits_of(run, root)
    if run.state.unanswered:
        end_waits(run, waits)
        if waits:
            run.emit(records.Unwaits(tuple(wait.number for wait in waits)))
        for number in list(root.incidents):
            run.emit(records.Resolved(ROOT, number))
            run.issue(commands.ResolveIncident(number=number))
        return
    ending = run.state.ending
    if ending is None:
        end_waits(run, waits)
        run.issue(commands.Complete(result=Payload(msgspec.Raw(to_json(root.variables or {})))))
        run.emit(records.Left(ROOT))
    else:
        end(run, root)
        _close_by(run, ending)
    run.is_over = True


def _close_by(run: Run, ending: records.Ending) -> None:
    """Close by what was thrown out of the process, and a caller catches."""
    if ending.is_escalation:
        run.issue(commands.Escalate(code=ending.code, value=ending.variables))
        run.issue(commands.EndCancelled())
    else:
        failure = make_bpmn_error_failure(ending.code, ending.message, ending.variables)
        run.issue(commands.Fail(failure=failure, is_final=True))


def find_deadlocks(run: Run) -> None:
    """Raise an incident for each scope in which tokens wait at joins for others that can never come."""
    for key in run.stuck:
        one = run.state.active.get(key)
        if one is None or not one.joins or one.children or one.waits or run.has_tokens(key) or one.incidents:
            continue
        gateway = next(iter(one.joins))
        flows = ", ".join(f"'{flow}'" for flow in one.joins[gateway])
        fault = Fault(
            "deadlock",
            f"Expected tokens from all incoming flows of '{gateway}', but they came by {flows} alone and no other can come. "
            "Correct the diagram in a new version, and cancel this execution.",
        )
        raise_incident(run, one, fault, WORKING, gateway)
