"""Event definitions: what an event catches or throws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lxml import etree

from holdfast.bpmn import model
from holdfast.bpmn.model import AnyEventDefinition, Job, TimerKind
from holdfast.bpmn.reading import camunda7
from holdfast.bpmn.reading.camunda7_values import read_call_mappings
from holdfast.bpmn.reading.documents import Document, first, group_children, local_name, text_of
from holdfast.bpmn.reading.expressions import read_condition, read_time
from holdfast.bpmn.reading.extensions import Extensions, read_extensions
from holdfast.bpmn.reading.names import BPMN, EVENT_DEFINITION
from holdfast.safe_xml import line_of

_REFERENCE: Final = f"{BPMN}eventDefinitionRef"


def read_definitions(document: Document, event: etree._Element) -> tuple[AnyEventDefinition, ...]:
    """The definitions of an event: its own, and those that it refers to, in their order."""
    found: list[AnyEventDefinition] = []
    for child in event:
        tag = str(child.tag)
        if tag == _REFERENCE:
            definition = find_definition(document, child, text_of(child))
        elif tag.startswith(BPMN) and tag.endswith(EVENT_DEFINITION):
            definition = read_definition(document, child)
        else:
            continue
        if definition is not None:
            found.append(definition)
    return tuple(found)


def read_definition(document: Document, element: etree._Element) -> AnyEventDefinition | None:
    """An event definition; None, and a problem, if it is of a kind that BPMN does not have."""
    read = _READERS.get(local_name(str(element.tag)))
    if read is None:
        document.report(
            element,
            "unknown-element",
            f"Expected an event definition of BPMN 2.0, but there is {local_name(str(element.tag))!r}.",
            "Use one of BPMN's own.",
        )
        return None
    return read(document, element)


def find_definition(document: Document, element: etree._Element, reference: str) -> AnyEventDefinition | None:
    """The event definition beside the processes that a reference leads to; None, and a problem, if there is none."""
    id_ = document.reference(reference)
    definition = document.event_definitions.get(id_)
    if definition is None:
        document.report(
            element,
            "unknown-reference",
            f"Expected an event definition with the id {id_!r} beside the processes, but there is none.",
            "Refer to an existing one, or put the definition into the event.",
        )
    return definition


def read_message_job(document: Document, event: etree._Element) -> Job | None:
    """The activity that sends a message, as Camunda 7 says it at the definition of a throwing event."""
    for child in event:
        if child.tag == f"{BPMN}messageEventDefinition":
            return camunda7.read_job(document, child, read_extensions(child, group_children(child)))
    return None


def read_signal_inputs(document: Document, event: etree._Element) -> list[model.Mapping]:
    """What a throwing signal event of Camunda 7 hands over: the signal carries it, as it does input mappings."""
    for child in event:
        if child.tag == f"{BPMN}signalEventDefinition":
            handed = read_call_mappings(document, read_extensions(child, group_children(child)).camunda)
            if handed.hands_over_all:
                document.report(
                    child,
                    "unsupported",
                    "Expected the variables by name that a signal carries, but camunda:in says all of them.",
                    "Name those that are needed.",
                )
            return handed.inputs
    return []


def find_message(document: Document, element: etree._Element, operation: str | None) -> str:
    """The id of the message that an element refers to, directly or by the operation that takes it."""
    reference = element.get("messageRef")
    if reference is None and operation:
        target = document.ids.get(document.reference(operation))
        reference = None if target is None else text_of(first(group_children(target), "inMessageRef"))
    return document.reference(reference)


def _read_message(document: Document, element: etree._Element) -> AnyEventDefinition:
    children = group_children(element)
    extensions = read_extensions(element, children)
    camunda7.note_extensions(document, element, extensions)
    message = find_message(document, element, text_of(first(children, "operationRef")))
    return model.MessageEventDefinition(id=element.get("id", ""), line=line_of(element), message=message)


def _read_timer(document: Document, element: etree._Element) -> AnyEventDefinition:
    children = group_children(element)
    kinds = [kind for kind in TimerKind if kind in children]
    if len(kinds) > 1 or any(len(children[kind]) > 1 for kind in kinds):
        document.report(
            element,
            "bad-timer",
            "Expected one of timeDuration, timeDate and timeCycle, but the timer has more than one.",
            "Leave one of them.",
        )
    kind = kinds[0] if kinds else None
    return model.TimerEventDefinition(
        id=element.get("id", ""),
        line=line_of(element),
        kind=kind,
        when=None if kind is None else read_time(document, children[kind][0], kind),
    )


def _read_signal(document: Document, element: etree._Element) -> AnyEventDefinition:
    extensions = read_extensions(element, group_children(element))
    camunda7.note_extensions(document, element, Extensions(attributes=extensions.attributes))
    return model.SignalEventDefinition(
        id=element.get("id", ""), line=line_of(element), signal=document.reference(element.get("signalRef"))
    )


def _read_error(document: Document, element: etree._Element) -> AnyEventDefinition:
    attributes = read_extensions(element, {}).attributes
    return model.ErrorEventDefinition(
        id=element.get("id", ""),
        line=line_of(element),
        error=document.reference(element.get("errorRef")),
        code_variable=attributes.get("errorCodeVariable", "").strip(),
        message_variable=attributes.get("errorMessageVariable", "").strip(),
    )


def _read_escalation(document: Document, element: etree._Element) -> AnyEventDefinition:
    attributes = read_extensions(element, {}).attributes
    return model.EscalationEventDefinition(
        id=element.get("id", ""),
        line=line_of(element),
        escalation=document.reference(element.get("escalationRef")),
        code_variable=attributes.get("escalationCodeVariable", "").strip(),
    )


def _read_link(document: Document, element: etree._Element) -> AnyEventDefinition:
    return model.LinkEventDefinition(id=element.get("id", ""), line=line_of(element), name=element.get("name", "").strip())


def _read_conditional(document: Document, element: etree._Element) -> AnyEventDefinition:
    condition = read_condition(document, first(group_children(element), "condition"))
    return model.ConditionalEventDefinition(id=element.get("id", ""), line=line_of(element), condition=condition)


def _read_compensate(document: Document, element: etree._Element) -> AnyEventDefinition:
    return model.CompensateEventDefinition(
        id=element.get("id", ""), line=line_of(element), activity=document.reference(element.get("activityRef"))
    )


def _read_terminate(document: Document, element: etree._Element) -> AnyEventDefinition:
    return model.TerminateEventDefinition(id=element.get("id", ""), line=line_of(element))


def _read_cancel(document: Document, element: etree._Element) -> AnyEventDefinition:
    return model.CancelEventDefinition(id=element.get("id", ""), line=line_of(element))


_READERS: Final[Mapping[str, Callable[[Document, etree._Element], AnyEventDefinition]]] = {
    "messageEventDefinition": _read_message,
    "timerEventDefinition": _read_timer,
    "signalEventDefinition": _read_signal,
    "errorEventDefinition": _read_error,
    "escalationEventDefinition": _read_escalation,
    "terminateEventDefinition": _read_terminate,
    "linkEventDefinition": _read_link,
    "conditionalEventDefinition": _read_conditional,
    "compensateEventDefinition": _read_compensate,
    "cancelEventDefinition": _read_cancel,
}
