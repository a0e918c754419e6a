"""References that the model does not hold, since they change nothing about running.

One that leads nowhere is told; one that leads to something of another kind is refused, since then ids were mixed up when the
file was merged or edited by hand. Those that the model does hold (of flows, events, tasks, participants) are checked there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lxml import etree

from holdfast.bpmn.reading.documents import Document, local_name, text_of
from holdfast.bpmn.reading.names import BPMN

_ITEM: Final = ("itemDefinition",)
_DATA: Final = (
    "dataInput",
    "dataOutput",
    "dataObject",
    "dataObjectReference",
    "dataStore",
    "dataStoreReference",
    "inputDataItem",
    "outputDataItem",
    "property",
)
_ATTRIBUTES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "dataInput": ("itemSubjectRef", _ITEM),
    "dataObject": ("itemSubjectRef", _ITEM),
    "dataObjectReference": ("dataObjectRef", ("dataObject",)),
    "dataOutput": ("itemSubjectRef", _ITEM),
    "dataStore": ("itemSubjectRef", _ITEM),
    "group": ("categoryValueRef", ("categoryValue",)),
    "message": ("itemRef", _ITEM),
    "messageFlow": ("messageRef", ("message",)),
    "property": ("itemSubjectRef", _ITEM),
    "receiveTask": ("operationRef", ("operation",)),
    "sendTask": ("operationRef", ("operation",)),
    "serviceTask": ("operationRef", ("operation",)),
}
"""By the name of the element: its attribute, and what that may lead to."""
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "dataInputRefs": ("dataInput",),
    "dataOutputRefs": ("dataOutput",),
    "errorRef": ("error",),
    "inMessageRef": ("message",),
    "incoming": ("sequenceFlow", "messageFlow"),
    "interfaceRef": ("interface",),
    "operationRef": ("operation",),
    "outMessageRef": ("message",),
    "outgoing": ("sequenceFlow", "messageFlow"),
    "supportedInterfaceRef": ("interface",),
}
"""Elements whose text is a reference, and what that may lead to."""
_ASSOCIATIONS: Final = frozenset(("dataInputAssociation", "dataOutputAssociation"))
_ENDS: Final = {"incoming": "targetRef", "outgoing": "sourceRef"}


def check_references(document: Document) -> None:
    """Report each such reference that does not lead where it should."""
    start = len(BPMN)
    for element in document.root.iter(f"{BPMN}*"):
        name = str(element.tag)[start:]
        kinds = _TEXTS.get(name)
        if kinds is not None:
            _check_text(document, element, name, kinds)
            continue
        attribute = _ATTRIBUTES.get(name)
        if attribute is not None and element.get(attribute[0]):
            _check(document, element, f"{attribute[0]!r} of the {name}", element.get(attribute[0], ""), attribute[1])
        elif name in ("sourceRef", "targetRef"):
            parent = element.getparent()
            if parent is not None and local_name(str(parent.tag)) in _ASSOCIATIONS:
                _check(document, element, f"{name!r} of the data association", text_of(element), _DATA)


def _check_text(document: Document, element: etree._Element, name: str, kinds: tuple[str, ...]) -> None:
    target = _check(document, element, repr(name), text_of(element), kinds)
    end, node = _ENDS.get(name), element.getparent()
    if target is None or end is None or node is None or not target.get(end) or not node.get("id"):
        return
    if document.reference(target.get(end)) != node.get("id"):
        document.notice(
            element,
            "contradicting-flow",
            f"Expected {target.get('id')!r} to have {node.get('id')!r} as its {end}, as {name!r} says, but it has "
            f"{target.get(end)!r}.",
            "Correct the one that is wrong.",
        )


def _check(
    document: Document, element: etree._Element, what: str, reference: str, kinds: tuple[str, ...]
) -> etree._Element | None:
    """Where the reference leads; None, and a problem, if that is nowhere or to something else."""
    id_ = document.reference(reference)
    target = document.ids.get(id_)
    if target is not None and local_name(str(target.tag)) in kinds:
        return target
    if target is None and id_ != reference.strip():
        return None  # The prefix of an import: what is in other files is not known here.
    found = "nothing has that id" if target is None else f"that leads to {local_name(str(target.tag))!r}"
    tell = document.notice if target is None else document.report
    tell(
        element,
        "unknown-reference",
        f"Expected {what} to lead to {kinds[0]!r}, but it is {id_[:80]!r}, and {found}.",
        "Refer to an existing one, or take the reference out.",
    )
    return None
