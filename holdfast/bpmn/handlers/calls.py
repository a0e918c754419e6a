"""Call activities: another process or a code workflow, as a child execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.bpmn import model, records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.protocol import WaitingHandler
from holdfast.bpmn.mappings import read_result
from holdfast.bpmn.records import Wait
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.scopes import leave
from holdfast.bpmn.state import WORKING
from holdfast.bpmn.throwing import (
    Thrown,
    list_caught_errors,
    list_caught_escalations,
    throw_error,
    throw_escalation,
)
from holdfast.bpmn.values import Variable, read_object, to_raws
from holdfast.core import commands, events
from holdfast.core.bpmn_errors import read_bpmn_error
from holdfast.core.options import ParentClose
from holdfast.core.signatures import make_call_input

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.running import Place, Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View
    from holdfast.bpmn.work import CallWork


@dataclass(frozen=True, slots=True)
class _Call:
    process: str
    variables: dict[str, Variable]


class CallHandler(WaitingHandler):
    """Call activities: start a child and take its end."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> _Call:
        """Evaluate what is called, and collect the variables that it gets."""
        work: CallWork = node.work
        process = run.evaluator.make_name(work.process, view, f"the process that '{node.id}' calls", "call")
        if work.propagates_all_parent_variables:
            variables = view.flatten()
        else:
            names = {mapping.target[0] for mapping in node.inputs}
            variables = {name: value for name, value in view.flatten().items() if name in names}
            variables.update(place.variables or {})
        size = sum(len(value.raw) for value in variables.values())
        if size > run.evaluator.limit:
            raise Fault(
                "call",
                f"Expected the variables for '{process}' to have {run.evaluator.limit:,} bytes at most, but it is {size:,}. "
                "Add input mappings, and propagate no others.",
            )
        run.count_bytes(size)
        return _Call(process, variables)

    def start(self, run: Run, one: Instance, node: Node, prepared: _Call) -> None:
        """Start the child. It is told which errors and escalations are caught around it."""
        work: CallWork = node.work
        number = run.next_number()
        escalations = list_caught_escalations(run, one, one.scope)
        run.emit(records.Waits(one.key, (Wait(number, "child", node.id),)))
        run.issue(
            commands.StartChild(
                number=number,
                workflow=prepared.process,
                input=make_call_input(to_raws(prepared.variables)),
                policy=ParentClose.CANCEL,
                label=node.name or node.id,
                version_tag=work.version_tag if work.binding is model.Binding.VERSION_TAG else "",
                deployment=run.setting.linked.deployment if work.binding is model.Binding.DEPLOYMENT else "",
                catches=list_caught_errors(run, one, one.scope),
                catches_escalations=tuple(escalations),
                interrupting_escalations=tuple(code for code, ends in escalations.items() if ends),
            )
        )

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """The child ended, or told of an escalation and goes on."""
        del wait
        if type(event) is events.ChildEscalated:
            throw_escalation(run, one, one.scope, Thrown(event.code, "", read_object(event.value.data) or {}))
            return
        try:
            if type(event) is not events.ChildCompleted:
                self._fail(run, one, event)
                return
            node = run.node_of(one)
            result = read_result(event.result.data, node, "call")
        except Fault as fault:
            raise_incident(run, one, fault, WORKING)
            return
        work: CallWork = node.work
        leave(run, one, result if work.propagates_all_child_variables or node.outputs else {})

    def _fail(self, run: Run, one: Instance, event: Any) -> None:
        match event:
            case events.ChildFailed(failure=failure):
                thrown = read_bpmn_error(failure)
                said = f"it failed: {failure.type}: {failure.message}"
            case events.ChildTerminated(reason=reason):
                thrown, said = None, f"it was terminated{f': {reason}' if reason else ''}"
            case _:
                thrown, said = None, "it was cancelled"
        if thrown is None:
            raise Fault("call", f"Expected what '{one.element}' calls to complete, but {said}")
        variables = read_object(thrown.variables.data) or {}
        if not throw_error(run, one, one.scope, Thrown(thrown.code, thrown.message, variables)):
            raise Fault(
                "error", f"Expected an event to catch the error '{thrown.code}' of '{one.element}', but there is none."
            )
