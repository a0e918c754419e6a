"""Elements that a token passes: undefined and manual tasks, none events, scripts, decisions, sent messages and signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.protocol import Outcome, PassingHandler
from holdfast.bpmn.values import from_feel, read_object, to_json
from holdfast.core import commands
from holdfast.core.payloads import NULL, Payload
from holdfast.errors import DmnError, FeelError

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.variables import View
    from holdfast.bpmn.work import DecisionWork, MessageWork, ScriptWork, SignalWork


class PassHandler(PassingHandler):
    """Undefined and manual tasks, none events, exclusive gateways: nothing but the flows."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """Such an element has no result and asks for nothing."""
        del run, node, view
        return Outcome()


class ScriptHandler(PassingHandler):
    """Script tasks whose script is written in FEEL."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """Evaluate the script: its value goes to the result variable, or a context is merged by its names."""
        work: ScriptWork = node.work
        what = f"the script of '{node.id}'"
        value = run.evaluator.make_variable(work.expression, view, what)
        if work.result_variable:
            return Outcome({work.result_variable: value})
        return Outcome(read_object(value.raw) or {})


class DecisionHandler(PassingHandler):
    """Business rule tasks with a decision of a deployed model."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """Make the decision with all visible variables."""
        work: DecisionWork = node.work
        decision = run.evaluator.make_name(work.decision, view, f"the decision of '{node.id}'", "decision")
        found = run.setting.linked.find_decision(decision, work.binding, work.version_tag)
        if found is None:
            raise Fault(
                "decision",
                f"Expected a decision '{decision}' to be deployed, but there is none. Deploy it, and resolve the incident.",
            )
        inputs = {name: value.feel for name, value in view.flatten().items()}
        try:
            made = run.evaluator.decide(found.model, decision, inputs)
        except (DmnError, FeelError) as error:
            raise Fault("decision", f"Expected decision '{decision}' to be made, but: {error.message}") from None
        value = run.evaluator.check_size(
            from_feel(made.value, f"the value of decision '{decision}'"), f"decision '{decision}'"
        )
        trace = msgspec.Raw(msgspec.json.encode(made.trace.to_json()))
        record = records.Decided(node.id, decision, found.version, trace)
        result = {work.result_variable: value} if work.result_variable else read_object(value.raw) or {}
        return Outcome(result, (record,))


class MessageHandler(PassingHandler):
    """Send tasks and throwing message events that the engine publishes."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """Publish the message, with the variables of the input mappings."""
        work: MessageWork = node.work
        name = run.evaluator.make_name(work.name, view, f"the name of the message of '{node.id}'", "message")
        key = run.state.workflow_id
        if work.key is not None:
            key = run.evaluator.make_name(work.key, view, f"the correlation key of '{node.id}'", "message")
        number = run.next_number()
        command = commands.PublishMessage(number=number, name=name, key=key, value=_make_value(node, view))
        return Outcome({}, (records.Sent(number, node.id),), (command,))


class SignalHandler(PassingHandler):
    """Throwing signal events: broadcast a signal by its name."""

    def do(self, run: Run, node: Node, view: View) -> Outcome:
        """Throw the signal, with the variables of the input mappings: this execution's own waits get it, too."""
        work: SignalWork = node.work
        name = run.evaluator.make_name(work.name, view, f"the name of the signal of '{node.id}'", "message")
        number = run.next_number()
        served = len(run.state.find_named(name, "broadcast"))
        command = commands.Broadcast(number=number, name=name, value=_make_value(node, view), served=served)
        return Outcome({}, (records.Sent(number, node.id),), (command,))


def _make_value(node: Node, view: View) -> Payload:
    """What is sent along: what the input mappings made, which is visible; else nothing."""
    if not node.inputs:
        return NULL
    names = dict.fromkeys(mapping.target[0] for mapping in node.inputs)
    return Payload(msgspec.Raw(to_json({name: found for name in names if (found := view.find(name)) is not None})))
