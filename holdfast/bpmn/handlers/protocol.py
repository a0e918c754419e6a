"""What a handler of elements does, and the two forms of it: elements that a token passes, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.mappings import evaluate_inputs
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import fail_entering, finish, prepare_leaving
from holdfast.bpmn.state import WORKING
from holdfast.bpmn.values import Variable
from holdfast.bpmn.waiting import arm, prepare

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.records import Wait
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View
    from holdfast.core.commands import AnyCommand


class Handler(Protocol):
    """What the elements of one kind do."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """A token arrives, or an instance that failed to enter tries again."""
        ...

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """What an instance waited for itself came."""
        ...

    def work_again(self, run: Run, one: Instance) -> None:
        """An incident of an instance that works was resolved."""
        ...


@dataclass(slots=True)
class Outcome:
    """What an element that a token passes does: its result, and what it asks for."""

    result: dict[str, Variable] = field(default_factory=dict)
    records: Sequence[records.AnyRecord] = ()
    commands: Sequence[AnyCommand] = ()


class PassingHandler:
    """Elements that a token passes at once."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """What the element does, evaluated. Raises Fault; changes nothing."""
        raise NotImplementedError

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Do what the element does, and let the token go on."""
        try:
            view = run.look(place.scope).within(place.variables)
            own = evaluate_inputs(run.evaluator, node, view)
            seen = view.within(own)
            outcome = self.do(run, node, seen)
            leaving = prepare_leaving(run, node, place.within(own), seen, outcome.result)
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        for record in outcome.records:
            run.emit(record)
        for command in outcome.commands:
            run.issue(command)
        finish(run, node, place, leaving)

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """Nothing is awaited by what a token passes."""

    def work_again(self, run: Run, one: Instance) -> None:
        """Nothing works: such an element enters again as a whole."""


class WaitingHandler:
    """Elements that wait for something: they have boundary events and an instance."""

    is_scope = False
    """Whether the element always has variables of its own."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> Any:
        """Evaluate what the element needs to begin. Raises Fault; changes nothing."""
        raise NotImplementedError

    def start(self, run: Run, one: Instance, node: Node, prepared: Any) -> None:
        """Begin what the element does, with what was prepared."""
        raise NotImplementedError

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Subscribe the boundary events, then begin."""
        boundaries = []
        try:
            view = run.look(place.scope).within(place.variables)
            own = evaluate_inputs(run.evaluator, node, view)
            seen = view.within(own)
            # On a multi-instance activity, boundary events belong to the whole, not to an iteration.
            if place.index < 0:
                boundaries = [prepare(run, catch, seen, around=view) for catch in node.boundaries]
            prepared = self.prepare(run, node, seen, place)
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        if own is None and (self.is_scope or place.index >= 0):
            own = {}
        one = run.begin(node, place, WORKING, own)
        arm(run, one, boundaries)
        self.start(run, one, node, prepared)

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """What the instance waited for came."""
        raise NotImplementedError

    def work_again(self, run: Run, one: Instance) -> None:
        """Begin the work anew, with the variables as they are now."""
        node = run.node_of(one)
        try:
            prepared = self.prepare(run, node, run.look(one.key), Place(one.scope, "", one.index, one.variables, one.key))
        except Fault as fault:
            raise_incident(run, one, fault, WORKING)
            return
        self.start(run, one, node, prepared)
