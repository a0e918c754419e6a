"""Parallel and event-based gateways; exclusive ones only choose their flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.protocol import PassingHandler, WaitingHandler
from holdfast.bpmn.mappings import read_result
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import Leaving, finish, pass_event
from holdfast.bpmn.state import FLOW, WORKING
from holdfast.bpmn.waiting import Prepared, arm, end_waits, prepare, waits_of
from holdfast.core import commands, events

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.records import Wait
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View


class ParallelHandler(PassingHandler):
    """Parallel gateways: one token from each incoming flow for each firing."""

    def enter(self, run: Run, node: Node, place: Place) -> None:
        """Keep the token until there is one on each incoming flow; then go on by all outgoing ones."""
        if len(node.incoming) <= 1:
            finish(run, node, place, Leaving({}, node.flow_ids))
            return
        run.emit(records.Arrived(node.id, place.scope, place.flow))
        joins = run.state.active[place.scope].joins
        if len(joins[node.id]) < len(node.incoming):
            return
        run.emit(records.Joined(node.id, place.scope, node.incoming, node.flow_ids))
        for flow in node.flow_ids:
            run.push(place.scope, FLOW, flow)


class EventBasedHandler(WaitingHandler):
    """Event-based gateways: the first event wins, and ends the waits for the others."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> list[Prepared]:
        """Evaluate what the events behind the gateway wait for."""
        del place
        return [
            prepare(run, flow.target.catch, view, is_single=True) for flow in node.outgoing if flow.target.catch is not None
        ]

    def start(self, run: Run, one: Instance, node: Node, prepared: list[Prepared]) -> None:
        """Wait for all events behind the gateway."""
        del node
        arm(run, one, prepared)

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """One came: leave the gateway by its flow, and pass the event with what came."""
        node = run.node_of(one)
        flow = next(flow for flow in node.outgoing if flow.target.id == wait.catcher)
        caught = flow.target
        try:
            if type(event) is events.SubscriptionFailed:
                raise Fault("message", event.failure.message)
            result = {} if wait.kind == "timer" else read_result(event.value.data, caught, "message")
        except Fault as fault:
            raise_incident(run, one, fault, WORKING, wait.catcher)
            return
        scope = one.scope
        end_waits(run, waits_of(run, one))
        for number in one.incidents:
            run.issue(commands.ResolveIncident(number=number))
        run.emit(records.Left(one.key, (flow.id,)))
        run.touched.append(scope)
        pass_event(run, caught, Place(scope, flow.id), result)
