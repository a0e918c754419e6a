"""All handlers, by what elements do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.bpmn import work
from holdfast.bpmn.executable import CompiledJob
from holdfast.bpmn.handlers import calls, containers, events, gateways, jobs, passing, user_tasks

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.handlers.protocol import Handler

HANDLERS: Final[Mapping[type[Any], Handler]] = {
    work.PassWork: passing.PassHandler(),
    work.ExclusiveWork: passing.PassHandler(),
    work.ScriptWork: passing.ScriptHandler(),
    work.DecisionWork: passing.DecisionHandler(),
    work.MessageWork: passing.MessageHandler(),
    work.SignalWork: passing.SignalHandler(),
    CompiledJob: jobs.JobHandler(),
    work.UserWork: user_tasks.UserTaskHandler(),
    work.CallWork: calls.CallHandler(),
    work.CatchWork: events.CatchHandler(),
    work.ErrorWork: events.ErrorHandler(),
    work.EscalationWork: events.EscalationHandler(),
    work.TerminateWork: events.TerminateHandler(),
    work.LinkWork: events.LinkHandler(),
    work.ParallelWork: gateways.ParallelHandler(),
    work.EventBasedWork: gateways.EventBasedHandler(),
    work.SubProcessWork: containers.SubProcessHandler(),
}


def find_handler(node: Node) -> Handler:
    """The handler of an element, for one iteration if it is a multi-instance activity."""
    return HANDLERS[type(node.work)]
