"""What every kind of flow node has: its id, name and documentation, mappings, listeners and properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from holdfast.bpmn.model import Mapping, Mappings
from holdfast.bpmn.reading import camunda7, zeebe
from holdfast.bpmn.reading.camunda7_values import read_parameters
from holdfast.bpmn.reading.documents import Children, Document, group_children, local_name, text_of
from holdfast.bpmn.reading.extensions import Extensions, read_extensions
from holdfast.bpmn.reading.names import EVENT_DEFINITION
from holdfast.safe_xml import line_of

_OF_NODES: Final = frozenset(
    [
        "activationCondition",
        "auditing",
        "categoryValueRef",
        "completionCondition",
        "dataInput",
        "dataInputAssociation",
        "dataOutput",
        "dataOutputAssociation",
        "documentation",
        "eventDefinitionRef",
        "extensionElements",
        "humanPerformer",
        "incoming",
        "inputSet",
        "ioBinding",
        "ioSpecification",
        "monitoring",
        "multiInstanceLoopCharacteristics",
        "outgoing",
        "outputSet",
        "performer",
        "potentialOwner",
        "property",
        "rendering",
        "resourceRole",
        "script",
        "standardLoopCharacteristics",
        "supportedInterfaceRef",
    ]
)


@dataclass(frozen=True, slots=True)
class Parts:
    """An element of BPMN, taken apart once."""

    element: etree._Element
    children: Children
    extensions: Extensions

    @property
    def line(self) -> int:
        """The line in which it begins."""
        return line_of(self.element)

    def get(self, name: str) -> str:
        """An attribute; empty if it is missing."""
        return self.element.get(name, "").strip()


def take_apart(element: etree._Element) -> Parts:
    """The children and extensions of an element, by their names."""
    children = group_children(element)
    return Parts(element, children, read_extensions(element, children))


def read_element(document: Document, parts: Parts) -> dict[str, Any]:
    """The fields of `model.Element`: whatever has an id."""
    extensions = parts.extensions
    fields: dict[str, Any] = {"id": parts.get("id"), "line": parts.line}
    name = parts.element.get("name")
    if name:
        fields["name"] = name
    if "documentation" in parts.children:
        fields["documentation"] = "\n".join(filter(None, map(text_of, parts.children["documentation"])))
    if extensions.zeebe or extensions.camunda:
        fields["properties"] = camunda7.read_properties(extensions.camunda) | zeebe.read_properties(extensions.zeebe)
    return fields


def read_executable(document: Document, parts: Parts) -> dict[str, Any]:
    """The fields of `model.Element`, of something that is nothing without an id."""
    fields = read_element(document, parts)
    if not fields["id"]:
        kind = local_name(str(parts.element.tag))
        document.report(
            parts.element, "missing-id", f"Expected an id of the {kind}, but there is none.", "Give it one of its own."
        )
        # Later problems should not all be about the same empty id.
        fields["id"] = f"{kind} in line {parts.line}"
    return fields


def read_node(document: Document, parts: Parts, inputs: list[Mapping], outputs: list[Mapping]) -> dict[str, Any]:
    """The fields of `model.FlowNode`. The given mappings come before those of the extensions."""
    fields = read_executable(document, parts)
    for name in parts.children.keys() - _OF_NODES:
        if not name.endswith(EVENT_DEFINITION):
            refuse_unknown(document, parts.children[name][0])
    extensions = parts.extensions
    if extensions.attributes or extensions.camunda:
        camunda7.note_extensions(document, parts.element, extensions)
    if extensions.zeebe:
        zeebe.note_unknown(document, extensions.zeebe)
        fields["listeners"] = zeebe.read_listeners(extensions.zeebe)
    mappings = read_mappings(document, extensions, inputs, outputs)
    if mappings is not None:
        fields["mappings"] = mappings
    return fields


def read_mappings(
    document: Document, extensions: Extensions, inputs: list[Mapping], outputs: list[Mapping]
) -> Mappings | None:
    """All mappings of a node; None if there are none."""
    first_inputs, first_outputs = read_parameters(document, extensions.camunda)
    more_inputs, more_outputs = zeebe.read_mappings(document, extensions.zeebe)
    all_inputs = (*inputs, *first_inputs, *more_inputs)
    all_outputs = (*outputs, *first_outputs, *more_outputs)
    return Mappings(inputs=all_inputs, outputs=all_outputs) if all_inputs or all_outputs else None


def refuse_unknown(document: Document, element: etree._Element) -> None:
    """Report an element that BPMN does not have, or that stands where it means nothing."""
    name = local_name(str(element.tag))
    document.report(
        element,
        "unknown-element",
        f"Expected an element of BPMN 2.0 that can stand here, but there is {name!r}.",
        "Take it out, or put it where it belongs.",
    )
