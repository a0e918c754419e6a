"""Events: catching ones wait; errors, escalations, terminations and links are thrown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.protocol import PassingHandler, WaitingHandler
from holdfast.bpmn.mappings import evaluate_inputs, read_result
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import Leaving, clear, fail_entering, fail_leaving, finish, leave, prepare_leaving
from holdfast.bpmn.state import ELEMENT, FLOW, WORKING
from holdfast.bpmn.throwing import Thrown, catches_error, interrupts_thrower, throw_error, throw_escalation
from holdfast.bpmn.waiting import Prepared, arm, prepare_mapped, rearm
from holdfast.core import events

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.records import Wait
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.values import Variable
    from holdfast.bpmn.variables import View
    from holdfast.bpmn.work import ErrorWork, EscalationWork, LinkWork


class CatchHandler(WaitingHandler):
    """Intermediate catching events and receive tasks."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> Prepared:
        """Evaluate what the event waits for."""
        del place
        if node.catch is None:
            raise Fault("message", f"Expected '{node.id}' to wait for something, but it names nothing.")
        return prepare_mapped(run, node.catch, view, view)

    def start(self, run: Run, one: Instance, node: Node, prepared: Prepared) -> None:
        """Let the instance wait for the event."""
        del node
        arm(run, one, (prepared,))

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """It came. A cycle lets a token go on each time it fires, and ends with the last."""
        node = run.node_of(one)
        if wait.kind == "timer":
            self._fire(run, one, node, wait)
            return
        if type(event) is events.SubscriptionFailed:
            raise_incident(run, one, Fault("message", event.failure.message), WORKING)
            return
        try:
            result = read_result(event.value.data, node, "message")
        except Fault as fault:
            raise_incident(run, one, fault, WORKING)
            return
        leave(run, one, result)

    def _fire(self, run: Run, one: Instance, node: Node, wait: Wait) -> None:
        if one.index >= 0 or not rearm(run, one, wait):
            leave(run, one, {})
            return
        place = Place(one.scope, "", one.index, one.variables)
        try:
            leaving = prepare_leaving(run, node, replace(place, key=one.key), run.look(one.key), {})
        except Fault as fault:
            fail_leaving(run, node, place, {}, fault)  # by an instance of its own: the cycle goes on
            return
        run.set_variables(leaving.changes, gone=one.key)
        run.emit(records.Flowed(one.key, leaving.flows))
        for flow in leaving.flows:
            run.push(one.scope, FLOW, flow)


class ErrorHandler(PassingHandler):
    """Error end events: throw an error by its code."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Throw the error: whatever catches it ends this token, with its scope. Uncaught, it is an incident here."""
        work: ErrorWork = node.work
        try:
            own = evaluate_inputs(run.evaluator, node, run.look(place.scope).within(place.variables))
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        thrown = Thrown(work.code, work.name or f"BPMN error '{work.code}'", own or {})
        if catches_error(run, place.scope, work.code):
            if not place.key:
                run.emit(records.Passed(node.id, place.scope))
            throw_error(run, run.state.active.get(place.key), place.scope, thrown)
            return
        uncaught = Fault(
            "error",
            f"Expected an event to catch the error '{work.code}' that '{node.id}' throws, but there is none. "
            "Draw one in a new version, and cancel this execution.",
        )
        fail_entering(run, node, place, uncaught)


class EscalationHandler(PassingHandler):
    """Escalation end events and throwing escalation events."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Throw the escalation, and go on, unless what catches it has ended the scope."""
        work: EscalationWork = node.work
        try:
            own, leaving = _prepare_passing(run, node, place)
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        # Passed first: what catches it may complete the scope with this token in it.
        finish(run, node, place, Leaving(leaving.changes) if interrupts_thrower(run, place.scope, work.code) else leaving)
        throw_escalation(run, None, place.scope, Thrown(work.code, "", own))


class TerminateHandler(PassingHandler):
    """Terminate end events: end all other tokens of a scope."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """End everything else in the scope of the event, which is complete then."""
        try:
            _, leaving = _prepare_passing(run, node, place)
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        run.set_variables(leaving.changes)
        clear(run, run.state.active[place.scope])
        run.emit(records.Passed(node.id, place.scope))
        run.touched.append(place.scope)


class LinkHandler(PassingHandler):
    """Throwing link events: jump to the catching one."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Go on at the catching event of the same name."""
        work: LinkWork = node.work
        target = node.container.links.get(work.name)
        if target is None:
            fail_entering(
                run, node, place, Fault("expression", f"Expected a catching link '{work.name}', but there is none.")
            )
            return
        try:
            _, leaving = _prepare_passing(run, node, place)
        except Fault as fault:
            fail_entering(run, node, place, fault)
            return
        run.push(place.scope, ELEMENT, target.id)
        finish(run, node, place, leaving)


def _prepare_passing(run: Run, node: Node, place: Place) -> tuple[dict[str, Variable], Leaving]:
    """The own variables of a throwing event, and what follows from passing it. Raises Fault."""
    view = run.look(place.scope).within(place.variables)
    own = evaluate_inputs(run.evaluator, node, view)
    return own or {}, prepare_leaving(run, node, place.within(own), view.within(own), {})
