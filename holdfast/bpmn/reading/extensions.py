"""The extensions of an element: what Camunda 8 (Zeebe) and Camunda 7 add to BPMN. Those of others are ignored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from holdfast.bpmn.reading.documents import Children
from holdfast.bpmn.reading.names import CAMUNDA_7, ZEEBE


@dataclass(frozen=True, slots=True)
class Extensions:
    """Extension elements by vendor and local name, and the attributes of Camunda 7."""

    zeebe: Children = field(default_factory=dict)
    camunda: Children = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    """Of Camunda 7, by their local names."""


NO_EXTENSIONS: Final = Extensions()


def read_extensions(element: etree._Element, children: Children) -> Extensions:
    """What stands in the `extensionElements` of an element, and in attributes of Camunda 7."""
    attributes = read_attributes(element)
    boxes = children.get("extensionElements")
    if not boxes:
        return Extensions(attributes=attributes) if attributes else NO_EXTENSIONS
    zeebe: Children = {}
    camunda: Children = {}
    for child in (child for box in boxes for child in box):
        tag = str(child.tag)
        if tag.startswith(ZEEBE):
            zeebe.setdefault(tag[len(ZEEBE) :], []).append(child)
        elif tag.startswith(CAMUNDA_7):
            camunda.setdefault(tag.rpartition("}")[2], []).append(child)
    return Extensions(zeebe, camunda, attributes)


def read_attributes(element: etree._Element) -> dict[str, str]:
    """The attributes of Camunda 7 that an element has."""
    # Names first: lxml looks for each value from the first attribute on.
    names = [name for name in map(str, element.attrib) if name.startswith(CAMUNDA_7)]
    return {name.rpartition("}")[2]: element.get(name, "") for name in names}


def list_inner(elements: list[etree._Element] | None, name: str) -> list[etree._Element]:
    """The children of these elements that have that local name, whatever their namespace is."""
    ending = f"}}{name}"
    return [child for element in elements or () for child in element if str(child.tag).endswith(ending)]
