"""Timer and signal elements back to BPMN XML: XML to model to XML loses nothing of them.

`write_events` gives a file with the signals of a model and its timer and signal events, each in the process or sub-process
in which it stood; reading that file gives the same values again, but for their lines. Everything else about a diagram is
kept as the bytes that were deployed, and never written from a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from lxml import etree

from holdfast.bpmn.model import (
    AnyContainer,
    AnyNode,
    BoundaryEvent,
    Definitions,
    Element,
    EndEvent,
    Expression,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    Listener,
    Mapping,
    Signal,
    SignalEventDefinition,
    StartEvent,
    SubProcess,
    TimerEventDefinition,
)

AnyEvent: TypeAlias = StartEvent | IntermediateCatchEvent | IntermediateThrowEvent | BoundaryEvent | EndEvent

_BPMN: Final = "http://www.omg.org/spec/BPMN/20100524/MODEL"
_ZEEBE: Final = "http://camunda.org/schema/zeebe/1.0"
_TAGS: Final = {
    StartEvent: "startEvent",
    IntermediateCatchEvent: "intermediateCatchEvent",
    IntermediateThrowEvent: "intermediateThrowEvent",
    BoundaryEvent: "boundaryEvent",
    EndEvent: "endEvent",
}


def list_events(container: AnyContainer) -> Iterator[AnyEvent]:
    """The timer and signal events of a container, without those of the sub-processes in it."""
    for node in container.nodes:
        if isinstance(node, AnyEvent) and node.definitions and all(map(_is_timer_or_signal, node.definitions)):
            yield node


def write_events(definitions: Definitions) -> bytes:
    """A BPMN file with the signals, and the timer and signal events, of a model."""
    root = etree.Element(f"{{{_BPMN}}}definitions", nsmap={"bpmn": _BPMN, "zeebe": _ZEEBE})
    root.set("id", definitions.id)
    root.set("targetNamespace", definitions.target_namespace)
    for signal in definitions.signals.values():
        _write_signal(root, signal)
    for process in definitions.processes:
        element = _add(root, "process")
        _write_shared(element, process)
        element.set("isExecutable", "true" if process.is_executable else "false")
        _write_content(element, process)
    return etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="UTF-8")


def write_event(event: AnyEvent) -> bytes:
    """One timer or signal event as XML, as it would stand in a process."""
    root = etree.Element(f"{{{_BPMN}}}process", nsmap={"bpmn": _BPMN, "zeebe": _ZEEBE})
    _write_event(root, event)
    return etree.tostring(root[0], pretty_print=True)


def _is_timer_or_signal(definition: object) -> bool:
    return isinstance(definition, TimerEventDefinition | SignalEventDefinition)


def _write_content(parent: etree._Element, container: AnyContainer) -> None:
    for event in list_events(container):
        _write_event(parent, event)
    for node in container.nodes:
        if isinstance(node, SubProcess) and _has_events(node):
            element = _add(parent, "subProcess")
            _write_shared(element, node)
            if node.triggered_by_event:
                element.set("triggeredByEvent", "true")
            _write_content(element, node)


def _has_events(container: SubProcess) -> bool:
    inner: tuple[AnyNode, ...] = container.nodes
    return any(list_events(container)) or any(isinstance(node, SubProcess) and _has_events(node) for node in inner)


def _write_signal(parent: etree._Element, signal: Signal) -> None:
    element = _add(parent, "signal")
    _write_shared(element, signal)
    if signal.properties:
        _write_properties(_add(element, "extensionElements"), signal.properties)


def _write_event(parent: etree._Element, event: AnyEvent) -> None:
    element = _add(parent, _TAGS[type(event)])
    _write_shared(element, event)
    if isinstance(event, BoundaryEvent):
        element.set("attachedToRef", event.attached_to)
        if not event.cancel_activity:
            element.set("cancelActivity", "false")
    if isinstance(event, StartEvent) and not event.is_interrupting:
        element.set("isInterrupting", "false")
    if not isinstance(event, IntermediateThrowEvent | EndEvent) and event.is_parallel_multiple:
        element.set("parallelMultiple", "true")
    _write_extensions(element, event)
    for definition in event.definitions:
        if isinstance(definition, TimerEventDefinition):
            _write_timer(element, definition)
        elif isinstance(definition, SignalEventDefinition):
            _write_reference(element, definition)


def _write_timer(parent: etree._Element, definition: TimerEventDefinition) -> None:
    element = _add(parent, "timerEventDefinition")
    if definition.id:
        element.set("id", definition.id)
    if definition.kind is not None:
        when = _add(element, definition.kind)
        if definition.when is not None:
            when.text = _write_expression(definition.when)


def _write_reference(parent: etree._Element, definition: SignalEventDefinition) -> None:
    element = _add(parent, "signalEventDefinition")
    if definition.id:
        element.set("id", definition.id)
    if definition.signal:
        element.set("signalRef", definition.signal)


def _write_extensions(parent: etree._Element, event: AnyEvent) -> None:
    job = event.job if isinstance(event, IntermediateThrowEvent | EndEvent) else None
    if not (event.properties or event.mappings or event.listeners or job):
        return
    box = etree.Element(f"{{{_BPMN}}}extensionElements")
    parent.append(box)
    if job is not None:
        task = _add(box, "taskDefinition", _ZEEBE)
        task.set("type", _write_expression(job.type))
        if job.retries is not None:
            task.set("retries", _write_expression(job.retries))
        if job.headers:
            headers = _add(box, "taskHeaders", _ZEEBE)
            for key, value in job.headers.items():
                _set(_add(headers, "header", _ZEEBE), key=key, value=value)
    if event.mappings is not None:
        mappings = _add(box, "ioMapping", _ZEEBE)
        _write_mappings(mappings, "input", event.mappings.inputs)
        _write_mappings(mappings, "output", event.mappings.outputs)
    if event.listeners:
        _write_listeners(_add(box, "executionListeners", _ZEEBE), event.listeners)
    if event.properties:
        _write_properties(box, event.properties)


def _write_mappings(parent: etree._Element, name: str, mappings: tuple[Mapping, ...]) -> None:
    for mapping in mappings:
        _set(_add(parent, name, _ZEEBE), source=_write_expression(mapping.source), target=mapping.target)


def _write_listeners(parent: etree._Element, listeners: tuple[Listener, ...]) -> None:
    for listener in listeners:
        element = _add(parent, "executionListener", _ZEEBE)
        _set(element, eventType=listener.event, type=listener.type)
        if listener.retries:
            element.set("retries", listener.retries)


def _write_properties(parent: etree._Element, properties: dict[str, str]) -> None:
    box = _add(parent, "properties", _ZEEBE)
    for name, value in properties.items():
        _set(_add(box, "property", _ZEEBE), name=name, value=value)


def _write_shared(element: etree._Element, value: Element) -> None:
    element.set("id", value.id)
    if value.name:
        element.set("name", value.name)
    if value.documentation:
        _add(element, "documentation").text = value.documentation


def _write_expression(expression: Expression) -> str:
    """As the file had it; else what is read as the same."""
    if expression.is_static:
        return expression.source or expression.text
    return expression.source or f"={expression.text}"


def _add(parent: etree._Element, name: str, namespace: str = _BPMN) -> etree._Element:
    return etree.SubElement(parent, f"{{{namespace}}}{name}")


def _set(element: etree._Element, **attributes: str) -> None:
    for name, value in attributes.items():
        element.set(name, value)
