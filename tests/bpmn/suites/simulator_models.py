"""Diagrams of the token simulator made executable: it plays drawings, which lack what an engine has to know.

A drawing says that a task, a timer or a message is there, not what it is. Here each gets what lets the same tokens flow:
tasks pass, or wait for a job where the simulator waits; timers are due in an hour; what catches a message, a condition or
nothing that is named gets a message of its own, or that of the message flow which leads to it; gateways get conditions by
which the chosen flows are taken; signals, errors and escalations that name none share one each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from holdfast.bpmn import model
from holdfast.bpmn.model import Expression, Job

SHARED: Final = "shared"
"""The id of the one signal, error and escalation of events that name none; code and name of it too."""
KEY: Final = Expression(text='"all"')
HOUR: Final = Expression(text="PT1H", is_static=True)
EACH_HOUR: Final = Expression(text="R/PT1H", is_static=True)


@dataclass(frozen=True)
class Setting:
    """How a case wants a diagram to be played."""

    waiting: Collection[str] = ()
    """Tasks that wait until they are triggered."""
    chosen: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By gateway, the outgoing flows that are taken."""


def complete_model(definitions: model.Definitions, setting: Setting) -> model.Definitions:
    """The model with what it lacks; every process of it can be executed."""
    return Completion(definitions, setting).make()


class Completion:
    """Gives one model what it lacks."""

    def __init__(self, definitions: model.Definitions, setting: Setting) -> None:
        self._given = definitions
        self._setting = setting
        self._messages = {
            id_: msgspec.structs.replace(one, name=one.name or id_, correlation_key=KEY)
            for id_, one in definitions.messages.items()
        }
        self._catching = {flow.target: flow.id for flow in definitions.message_flows}
        self._throwing = {flow.source: flow.id for flow in reversed(definitions.message_flows)}

    def make(self) -> model.Definitions:
        """The completed model."""
        processes = tuple(
            msgspec.structs.replace(one, is_executable=True, **self._complete_parts(one)) for one in self._given.processes
        )
        shared: dict[str, Any] = {"id": SHARED, "name": SHARED}
        return msgspec.structs.replace(
            self._given,
            processes=processes,
            messages=self._messages,
            signals={**self._given.signals, SHARED: model.Signal(**shared)},
            errors={
                SHARED: model.Error(**shared, code=SHARED),
                **{id_: msgspec.structs.replace(one, code=one.code or id_) for id_, one in self._given.errors.items()},
            },
            escalations={
                SHARED: model.Escalation(**shared, code=SHARED),
                **{id_: msgspec.structs.replace(one, code=one.code or id_) for id_, one in self._given.escalations.items()},
            },
        )

    def _complete_parts(self, container: model.AnyContainer) -> dict[str, Any]:
        nodes = tuple(self._complete_node(node) for node in container.nodes)
        return {"nodes": nodes, "flows": self._choose_flows(container)}

    def _choose_flows(self, container: model.AnyContainer) -> tuple[model.SequenceFlow, ...]:
        """Conditions by which an exclusive gateway takes the chosen flow, or its first one as the simulator does."""
        gateways = {node.id for node in container.nodes if isinstance(node, model.ExclusiveGateway | model.InclusiveGateway)}
        made: list[model.SequenceFlow] = []
        for flow in container.flows:
            if flow.source not in gateways:
                made.append(msgspec.structs.replace(flow, condition=None))
                continue
            outgoing = [one.id for one in container.flows if one.source == flow.source]
            chosen = self._setting.chosen.get(flow.source, outgoing[:1])
            condition = Expression(text="true" if flow.id in chosen else "false") if len(outgoing) > 1 else None
            made.append(msgspec.structs.replace(flow, condition=condition))
        return tuple(made)

    # --- nodes ---

    def _complete_node(self, node: model.AnyNode) -> model.AnyNode:
        if isinstance(node, model.SubProcess):
            return msgspec.structs.replace(node, **self._complete_parts(node))
        if isinstance(node, model.ExclusiveGateway):
            return msgspec.structs.replace(node, default="")
        if isinstance(node, model.ReceiveTask):
            return msgspec.structs.replace(node, message=self._name_message(node.id, node.message))
        if isinstance(node, model.Activity):
            return self._complete_task(node)
        if isinstance(node, model.StartEvent) and node.id in self._catching and not node.definitions:
            definition = model.MessageEventDefinition(message=self._name_message(node.id, ""))
            return msgspec.structs.replace(node, definitions=(definition,))
        if isinstance(node, model.BoundaryEvent) and not node.definitions:
            definition = model.MessageEventDefinition(message=self._name_message(node.id, ""))
            return msgspec.structs.replace(node, definitions=(definition,))
        if isinstance(node, model.EndEvent) and node.id in self._throwing and not node.definitions:
            definition = model.MessageEventDefinition(message=self._name_message(node.id, ""))
            return msgspec.structs.replace(node, definitions=(definition,))
        if isinstance(
            node,
            model.StartEvent
            | model.IntermediateCatchEvent
            | model.IntermediateThrowEvent
            | model.EndEvent
            | model.BoundaryEvent,
        ):
            definitions = tuple(self._complete_definition(node, one) for one in node.definitions)
            return msgspec.structs.replace(node, definitions=definitions)
        return node

    def _complete_task(self, node: model.AnyNode) -> model.AnyNode:
        """A task that waits has a job; one with a message flow sends a message; any other passes."""
        fields = {name: getattr(node, name) for name in model.Activity.__struct_fields__}
        if node.id in self._setting.waiting:
            return model.ServiceTask(**fields, job=Job(type=Expression(text=f"do-{node.id}", is_static=True)))
        if node.id in self._throwing:
            return model.SendTask(**fields, message=self._name_message(node.id, ""))
        return model.Task(**fields)

    def _complete_definition(self, node: model.AnyNode, definition: model.AnyEventDefinition) -> model.AnyEventDefinition:
        throws = isinstance(node, model.IntermediateThrowEvent | model.EndEvent)
        match definition:
            case model.MessageEventDefinition():
                return msgspec.structs.replace(definition, message=self._name_message(node.id, definition.message))
            case model.ConditionalEventDefinition():
                return model.MessageEventDefinition(message=self._name_message(node.id, ""))
            case model.TimerEventDefinition() if isinstance(node, model.BoundaryEvent) and not node.cancel_activity:
                return msgspec.structs.replace(definition, kind=model.TimerKind.CYCLE, when=EACH_HOUR)
            case model.TimerEventDefinition():
                return msgspec.structs.replace(definition, kind=model.TimerKind.DURATION, when=HOUR)
            case model.SignalEventDefinition():
                return msgspec.structs.replace(definition, signal=definition.signal or SHARED)
            case model.ErrorEventDefinition() if throws:
                return msgspec.structs.replace(definition, error=definition.error or SHARED)
            case model.EscalationEventDefinition() if throws:
                return msgspec.structs.replace(definition, escalation=definition.escalation or SHARED)
            case _:
                return definition

    def _name_message(self, element: str, message: str) -> str:
        """The id of the message of an element: that of its message flow, its own, or one of its element alone."""
        id_ = self._catching.get(element) or self._throwing.get(element) or message or f"message-{element}"
        self._messages.setdefault(id_, model.Message(id=id_, name=id_, correlation_key=KEY))
        return id_
