"""Processes and sub-processes, and the nodes, flows and artifacts in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from holdfast.bpmn import model
from holdfast.bpmn.model import Annotation, AnyNode, Association, DataObject, Job, Lane, Process, SequenceFlow
from holdfast.bpmn.reading import camunda7, zeebe
from holdfast.bpmn.reading.documents import Document, first, group_children, local_name, text_of
from holdfast.bpmn.reading.events import read_definitions, read_message_job, read_signal_inputs
from holdfast.bpmn.reading.expressions import read_condition
from holdfast.bpmn.reading.extensions import Extensions
from holdfast.bpmn.reading.names import BPMN
from holdfast.bpmn.reading.parts import Parts, read_element, read_executable, read_node, take_apart
from holdfast.bpmn.reading.tasks import TASKS, read_activity, read_job

_DATA: Final = frozenset(("dataObject", "dataObjectReference", "dataStoreReference"))
_WITHOUT_EFFECT: Final = frozenset(
    [
        "auditing",
        "completionCondition",
        "correlationSubscription",
        "dataInput",
        "dataInputAssociation",
        "dataOutput",
        "dataOutputAssociation",
        "documentation",
        "extensionElements",
        "group",
        "humanPerformer",
        "incoming",
        "ioBinding",
        "ioSpecification",
        "monitoring",
        "multiInstanceLoopCharacteristics",
        "outgoing",
        "performer",
        "potentialOwner",
        "property",
        "resourceRole",
        "standardLoopCharacteristics",
        "supportedInterfaceRef",
        "supports",
    ]
)
"""Children of containers that are no nodes, and are read elsewhere or not at all."""


@dataclass(slots=True)
class _Content:
    """What stands in a container."""

    nodes: list[AnyNode] = field(default_factory=list)
    flows: list[SequenceFlow] = field(default_factory=list)
    associations: list[Association] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    data_objects: list[DataObject] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    def list_fields(self) -> dict[str, Any]:
        return {name: tuple(getattr(self, name)) for name in self.__slots__}


def read_process(document: Document, element: etree._Element) -> Process:
    """One process with all that is in it. Mistakes in one that is not executable are only told."""
    document.is_true(element, "isExecutable")  # Anything but true and false is a problem.
    if element in document.implied:
        document.notice(
            element,
            "executable",
            "Expected isExecutable='true' at the process, but the attribute is missing: the process is run.",
            "Say it, or say isExecutable='false' if it is a drawing.",
        )
    parts = take_apart(element)
    extensions = parts.extensions
    document.forms.update(zeebe.read_forms(extensions.zeebe))
    zeebe.note_unknown(document, extensions.zeebe)
    attributes = camunda7.note_history_time(document, element, extensions)
    camunda7.note_extensions(document, element, Extensions(extensions.zeebe, extensions.camunda, attributes))
    return Process(
        **read_executable(document, parts),
        **_read_content(document, element).list_fields(),
        is_executable=document.is_executable(element),
        version_tag=zeebe.read_version_tag(extensions.zeebe) or attributes.get("versionTag", "").strip(),
        listeners=zeebe.read_listeners(extensions.zeebe),
    )


def read_global_task(document: Document, element: etree._Element, kind: str) -> Process:
    """A global task, which call activities can call: a process of nothing but that task."""
    task = TASKS[kind](document, take_apart(element))
    start, end = f"{task.id}_start", f"{task.id}_end"
    return Process(
        id=task.id,
        name=task.name,
        line=task.line,
        is_executable=True,
        nodes=(model.StartEvent(id=start, line=task.line), task, model.EndEvent(id=end, line=task.line)),
        flows=(
            SequenceFlow(id=f"{task.id}_begin", source=start, target=task.id, line=task.line),
            SequenceFlow(id=f"{task.id}_finish", source=task.id, target=end, line=task.line),
        ),
    )


def _read_content(document: Document, container: etree._Element) -> _Content:
    content = _Content()
    start = len(BPMN)
    for child in container:
        tag = child.tag
        if not isinstance(tag, str) or not tag.startswith(BPMN):
            continue
        name = tag[start:]
        if name == "sequenceFlow":
            content.flows.append(_read_flow(document, child))
        elif (read := _NODES.get(name)) is not None:
            content.nodes.append(read(document, take_apart(child)))
        elif name == "association":
            content.associations.append(_read_association(document, child))
        elif name == "textAnnotation":
            content.annotations.append(_read_annotation(document, child))
        elif name in _DATA:
            content.data_objects.append(_read_data(document, child, name))
        elif name == "laneSet":
            content.lanes.extend(_read_lanes(document, child))
        elif name not in _WITHOUT_EFFECT:
            content.nodes.append(_read_unknown(document, child, name))
    return content


# --- events ---


def _read_start(document: Document, parts: Parts) -> AnyNode:
    return model.StartEvent(
        **read_node(document, parts, [], []),
        definitions=read_definitions(document, parts.element),
        is_interrupting=document.is_true(parts.element, "isInterrupting", default=True),
        is_parallel_multiple=document.is_true(parts.element, "parallelMultiple"),
    )


def _read_catch(document: Document, parts: Parts) -> AnyNode:
    return model.IntermediateCatchEvent(
        **read_node(document, parts, [], []),
        definitions=read_definitions(document, parts.element),
        is_parallel_multiple=document.is_true(parts.element, "parallelMultiple"),
    )


def _read_throw(document: Document, parts: Parts) -> AnyNode:
    return model.IntermediateThrowEvent(
        **read_node(document, parts, read_signal_inputs(document, parts.element), []),
        definitions=read_definitions(document, parts.element),
        job=_read_throwing_job(document, parts),
    )


def _read_end(document: Document, parts: Parts) -> AnyNode:
    return model.EndEvent(
        **read_node(document, parts, read_signal_inputs(document, parts.element), []),
        definitions=read_definitions(document, parts.element),
        job=_read_throwing_job(document, parts),
    )


def _read_throwing_job(document: Document, parts: Parts) -> Job | None:
    return zeebe.read_job(parts.extensions.zeebe) or read_message_job(document, parts.element)


def _read_boundary(document: Document, parts: Parts) -> AnyNode:
    definitions = read_definitions(document, parts.element)
    cancels = document.is_true(parts.element, "cancelActivity", default=True)
    if not cancels and document.is_camunda7 and any(isinstance(one, model.ErrorEventDefinition) for one in definitions):
        cancels = True
        document.notice(
            parts.element,
            "no-effect",
            "Expected a boundary event that catches errors to end its host, but cancelActivity is 'false': it ends it.",
            "Take the attribute out.",
        )
    return model.BoundaryEvent(
        **read_node(document, parts, [], []),
        attached_to=document.reference(parts.element.get("attachedToRef")),
        cancel_activity=cancels,
        definitions=definitions,
        is_parallel_multiple=document.is_true(parts.element, "parallelMultiple"),
    )


# --- gateways ---


def _read_gateway(document: Document, parts: Parts) -> dict[str, Any]:
    return {**read_node(document, parts, [], []), "direction": parts.get("gatewayDirection")}


def _read_exclusive(document: Document, parts: Parts) -> AnyNode:
    default = document.reference(parts.element.get("default"))
    return model.ExclusiveGateway(**_read_gateway(document, parts), default=default)


def _read_parallel(document: Document, parts: Parts) -> AnyNode:
    return model.ParallelGateway(**_read_gateway(document, parts))


def _read_inclusive(document: Document, parts: Parts) -> AnyNode:
    default = document.reference(parts.element.get("default"))
    return model.InclusiveGateway(**_read_gateway(document, parts), default=default)


def _read_event_based(document: Document, parts: Parts) -> AnyNode:
    return model.EventBasedGateway(
        **_read_gateway(document, parts),
        instantiate=document.is_true(parts.element, "instantiate"),
        is_parallel=parts.get("eventGatewayType") == "Parallel",
    )


def _read_complex(document: Document, parts: Parts) -> AnyNode:
    return model.ComplexGateway(
        **_read_gateway(document, parts),
        default=document.reference(parts.element.get("default")),
        activation_condition=read_condition(document, first(parts.children, "activationCondition")),
    )


# --- containers in containers ---


def _read_sub_process(document: Document, parts: Parts) -> AnyNode:
    return model.SubProcess(**_read_inner(document, parts))


def _read_transaction(document: Document, parts: Parts) -> AnyNode:
    return model.Transaction(**_read_inner(document, parts))


def _read_ad_hoc(document: Document, parts: Parts) -> AnyNode:
    extensions = parts.extensions.zeebe
    return model.AdHocSubProcess(
        **_read_inner(document, parts),
        is_sequential=parts.get("ordering") == "Sequential",
        completion_condition=read_condition(document, first(parts.children, "completionCondition")),
        cancels_remaining=document.is_true(parts.element, "cancelRemainingInstances", default=True),
        active_elements=zeebe.read_attribute(extensions, "adHoc", "activeElementsCollection"),
        job=read_job(document, parts),
    )


def _read_inner(document: Document, parts: Parts) -> dict[str, Any]:
    content = _read_content(document, parts.element)
    inside = Parts(
        parts.element, {name: parts.children[name] for name in parts.children.keys() & _OF_ACTIVITIES}, parts.extensions
    )
    return {
        **read_activity(document, inside),
        **content.list_fields(),
        "triggered_by_event": document.is_true(parts.element, "triggeredByEvent"),
    }


_OF_ACTIVITIES: Final = frozenset(("documentation", "multiInstanceLoopCharacteristics", "standardLoopCharacteristics"))
"""The other children of a sub-process belong to its content."""


def _read_unknown(document: Document, element: etree._Element, name: str) -> AnyNode:
    return model.UnknownNode(**read_element(document, take_apart(element)), tag=name)


# --- flows and artifacts ---


def _read_flow(document: Document, element: etree._Element) -> SequenceFlow:
    parts = take_apart(element)
    if parts.extensions.camunda:
        camunda7.note_extensions(document, element, parts.extensions)
    source, target = document.reference(element.get("sourceRef")), document.reference(element.get("targetRef"))
    fields = read_element(document, parts)
    if not fields["id"]:
        fields["id"] = document.make_id(element, f"{source}-{target}")
    return SequenceFlow(
        **fields,
        source=source,
        target=target,
        condition=read_condition(document, first(parts.children, "conditionExpression")),
    )


def _read_association(document: Document, element: etree._Element) -> Association:
    return Association(
        **read_element(document, take_apart(element)),
        source=document.reference(element.get("sourceRef")),
        target=document.reference(element.get("targetRef")),
        direction=element.get("associationDirection", ""),
    )


def _read_annotation(document: Document, element: etree._Element) -> Annotation:
    parts = take_apart(element)
    return Annotation(**_read_artifact(document, element, parts), text=text_of(first(parts.children, "text")))


def _read_data(document: Document, element: etree._Element, kind: str) -> DataObject:
    reference = element.get("dataObjectRef") or element.get("dataStoreRef")
    fields = _read_artifact(document, element, take_apart(element))
    return DataObject(**fields, kind=kind, references=document.reference(reference))


def _read_artifact(document: Document, element: etree._Element, parts: Parts) -> dict[str, Any]:
    """The fields of something that is only drawn. Drawings know everything by its id, and in BPMN it needs none."""
    fields = read_element(document, parts)
    if not fields["id"]:
        fields["id"] = document.make_id(element, local_name(str(element.tag)))
    return fields


def _read_lanes(document: Document, lane_set: etree._Element) -> list[Lane]:
    return [_read_lane(document, lane) for lane in group_children(lane_set).get("lane", ())]


def _read_lane(document: Document, element: etree._Element) -> Lane:
    parts = take_apart(element)
    inner = first(parts.children, "childLaneSet")
    return Lane(
        **read_element(document, parts),
        nodes=tuple(document.reference(text_of(child)) for child in parts.children.get("flowNodeRef", ())),
        lanes=() if inner is None else tuple(_read_lanes(document, inner)),
    )


_NODES: Final[Mapping[str, Callable[[Document, Parts], AnyNode]]] = {
    **TASKS,
    "startEvent": _read_start,
    "intermediateCatchEvent": _read_catch,
    "intermediateThrowEvent": _read_throw,
    "endEvent": _read_end,
    "boundaryEvent": _read_boundary,
    "exclusiveGateway": _read_exclusive,
    "parallelGateway": _read_parallel,
    "inclusiveGateway": _read_inclusive,
    "eventBasedGateway": _read_event_based,
    "complexGateway": _read_complex,
    "subProcess": _read_sub_process,
    "transaction": _read_transaction,
    "adHocSubProcess": _read_ad_hoc,
}
