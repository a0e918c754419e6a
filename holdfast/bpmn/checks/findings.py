"""What the checks of one file share: the model, the problems found so far, and the words for its elements."""

from __future__ import annotations

from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.model import Definitions, Element
from holdfast.bpmn.problems import Problem, ProblemList, Severity

NOT_YET: Final = "not-yet"
"""The code of what BPMN has and this engine will run later."""

_WORDS: Final[dict[type[object], str]] = {
    model.StartEvent: "start event",
    model.IntermediateCatchEvent: "intermediate catch event",
    model.IntermediateThrowEvent: "intermediate throw event",
    model.EndEvent: "end event",
    model.BoundaryEvent: "boundary event",
    model.Task: "task",
    model.ManualTask: "manual task",
    model.ServiceTask: "service task",
    model.SendTask: "send task",
    model.ReceiveTask: "receive task",
    model.UserTask: "user task",
    model.ScriptTask: "script task",
    model.BusinessRuleTask: "business rule task",
    model.CallActivity: "call activity",
    model.ExclusiveGateway: "exclusive gateway",
    model.ParallelGateway: "parallel gateway",
    model.InclusiveGateway: "inclusive gateway",
    model.EventBasedGateway: "event-based gateway",
    model.ComplexGateway: "complex gateway",
    model.SubProcess: "sub-process",
    model.Transaction: "transaction",
    model.AdHocSubProcess: "ad-hoc sub-process",
    model.Process: "process",
    model.SequenceFlow: "sequence flow",
    model.MessageEventDefinition: "message",
    model.TimerEventDefinition: "timer",
    model.SignalEventDefinition: "signal",
    model.ErrorEventDefinition: "error",
    model.EscalationEventDefinition: "escalation",
    model.TerminateEventDefinition: "terminate",
    model.LinkEventDefinition: "link",
    model.ConditionalEventDefinition: "conditional",
    model.CompensateEventDefinition: "compensation",
    model.CancelEventDefinition: "cancel",
}


class Findings:
    """The problems of one file, as its checks find them."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self._found = ProblemList()

    @property
    def problems(self) -> list[Problem]:
        """The findings about the file, as far as there are any."""
        return self._found.kept

    def report(
        self, element: Element, code: str, message: str, remedy: str, *, line: int = 0, severity: Severity = Severity.ERROR
    ) -> None:
        """Keep a finding about an element; `line` is where in the element, if that is known better."""
        file = self.definitions.file
        self._found.add(Problem(file, line or element.line, element.id, message, remedy, severity, code))

    def notice(self, element: Element, code: str, message: str, remedy: str, *, line: int = 0) -> None:
        """Keep what is handled in another way than the file may mean, without refusing it."""
        self.report(element, code, message, remedy, line=line, severity=Severity.NOTICE)

    def refuse_later(self, element: Element, what: str, remedy: str, *, line: int = 0) -> None:
        """Refuse what BPMN has, and this engine does not run yet."""
        self.report(
            element,
            NOT_YET,
            f"Expected what can be run already, but there is {what}, which is not supported yet.",
            remedy,
            line=line,
        )


def name_kind(value: object) -> str:
    """What people call an element, an event definition or a class of them: `service task`."""
    if isinstance(value, model.SubProcess) and value.triggered_by_event:
        return "event sub-process"
    if isinstance(value, model.UnknownNode):
        return value.tag
    return _WORDS[value if isinstance(value, type) else type(value)]
