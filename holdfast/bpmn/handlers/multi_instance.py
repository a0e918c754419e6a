"""Multi-instance activities: a body that has the boundary events, and an instance of the activity for each iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.loops import evaluate_repeats, make_own
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import fail_entering, finish, prepare_body_leaving
from holdfast.bpmn.state import ITERATION, WORKING
from holdfast.bpmn.values import Variable
from holdfast.bpmn.waiting import arm, prepare

if TYPE_CHECKING:
    from holdfast.bpmn.executable import CompiledLoop, Node
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance


def enter_body(run: Run, node: Node, loop: CompiledLoop, place: Place) -> None:
    """A token arrives at a multi-instance activity: the collection is evaluated once, and kept."""
    try:
        view = run.look(place.scope)
        repeats = evaluate_repeats(run, node, loop, view)
        leaving = None if repeats.total else prepare_body_leaving(run, node, place, Variable(b"[]"))
        boundaries = [] if leaving is not None else [prepare(run, catch, view) for catch in node.boundaries]
    except Fault as fault:
        fail_entering(run, node, place, fault)
        return
    if leaving is not None:
        finish(run, node, place, leaving)
        return
    body = run.begin(node, place, WORKING)
    run.count_bytes(sum(len(item) for item in repeats.items or ()))
    run.emit(records.Looped(body.key, repeats.total, repeats.items, loop.output_collection))
    arm(run, body, boundaries)
    run.push(body.key, ITERATION, "")


def find_next(run: Run, body: Instance, loop: CompiledLoop) -> Place | None:
    """Where the next iteration is entered; None if all have begun. Those of a parallel one follow each other at once."""
    state = body.loop
    if state is None or state.begun >= state.total:
        return None
    index = state.begun
    if not loop.is_sequential and index + 1 < state.total:
        run.push(body.key, ITERATION, "")
    return Place(body.key, "", index, make_own(loop, state, index))
