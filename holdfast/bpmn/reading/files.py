"""A whole file: from bytes to definitions and problems."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from lxml import etree

from holdfast.bpmn import model
from holdfast.bpmn.model import Definitions, Expression, Message, Process, Signal
from holdfast.bpmn.problems import Problem
from holdfast.bpmn.reading import zeebe
from holdfast.bpmn.reading.containers import read_global_task, read_process
from holdfast.bpmn.reading.diagrams import read_diagrams
from holdfast.bpmn.reading.documents import DUPLICATE_ID, Children, Document, group_children, local_name
from holdfast.bpmn.reading.events import read_definition
from holdfast.bpmn.reading.expressions import read_juel, read_marked
from holdfast.bpmn.reading.juel import has_juel
from holdfast.bpmn.reading.names import BPMN, EVENT_DEFINITION
from holdfast.bpmn.reading.parts import read_element, read_executable, take_apart
from holdfast.bpmn.reading.references import check_references
from holdfast.safe_xml import XmlLimits, XmlRefused, line_of, parse_xml

Some = TypeVar("Some", bound=model.Element)

MOST_BYTES: Final = 20_000_000
DEEPEST: Final = 100
"""Elements inside each other. A sub-process in a sub-process is one level."""
MOST_ELEMENTS: Final = 200_000
LIMITS: Final = XmlLimits(bytes=MOST_BYTES, depth=DEEPEST, elements=MOST_ELEMENTS)

_GLOBAL_TASKS: Final = {
    "globalTask": "task",
    "globalManualTask": "manualTask",
    "globalUserTask": "userTask",
    "globalScriptTask": "scriptTask",
    "globalBusinessRuleTask": "businessRuleTask",
}
_WITHOUT_EFFECT: Final = frozenset(
    [
        "category",
        "collaboration",
        "correlationProperty",
        "dataStore",
        "documentation",
        "endPoint",
        "error",
        "escalation",
        "extension",
        "extensionElements",
        "globalConversation",
        "import",
        "interface",
        "itemDefinition",
        "message",
        "partnerEntity",
        "partnerRole",
        "process",
        "relationship",
        "resource",
        "signal",
    ]
)
"""Children of the root that are read by their names, or change nothing."""


class Reading(msgspec.Struct, frozen=True):
    """What a file says, and what is wrong with it."""

    definitions: Definitions | None
    """None if the bytes are no BPMN at all."""
    problems: tuple[Problem, ...] = ()
    """In the order of their lines."""


def read(data: bytes, file: str, *, limits: XmlLimits = LIMITS) -> Reading:
    """Read one BPMN file; `file` is its name, for the problems. Never raises because of what the bytes are."""
    try:
        root = parse_xml(data, limits)
    except XmlRefused as refused:
        return Reading(None, (Problem(file, refused.line, "", refused.found, refused.remedy, code="xml"),))
    if root.tag != f"{BPMN}definitions":
        return Reading(None, (_refuse_root(root, file),))
    document = Document(root, file)
    _find_ids(document)
    check_references(document)
    definitions = _read_definitions(document)
    return Reading(definitions, tuple(sorted(document.problems)))


def _refuse_root(root: etree._Element, file: str) -> Problem:
    namespace, _, name = str(root.tag).removeprefix("{").rpartition("}")
    return Problem(
        file,
        line_of(root),
        "",
        f"Expected the root element 'definitions' of BPMN 2.0, but it is {name[:80]!r} of {namespace[:120]!r}.",
        "Export the diagram as BPMN 2.0.",
        code="xml",
    )


def _find_ids(document: Document) -> None:
    """BPMN 2.0, 8.3.1: ids are unique within a file. Those of drawings are XML's alone, and nothing here refers to them."""
    ids = document.ids
    for element in document.root.iter(f"{BPMN}*"):
        id_ = element.get("id")
        if not id_:
            continue
        other = ids.setdefault(id_, element)
        if other is not element:
            document.report(
                element,
                DUPLICATE_ID,
                f"Expected an id of its own, but {id_!r} is also that of the {local_name(str(other.tag))} in line "
                f"{line_of(other)}.",
                "Change one of them.",
            )


def _read_definitions(document: Document) -> Definitions:
    root = document.root
    children = group_children(root)
    for name, elements in children.items():
        if name.endswith(EVENT_DEFINITION):
            for element in elements:
                definition = read_definition(document, element)
                if definition is not None:
                    document.event_definitions[element.get("id", "")] = definition
        elif name not in _WITHOUT_EFFECT and name not in _GLOBAL_TASKS:
            _refuse_root_element(document, elements[0], name)
    processes = [read_process(document, element) for element in children.get("process", ())]
    processes.extend(_read_global_tasks(document, children))
    collaborations = [group_children(element) for element in children.get("collaboration", ())]
    return Definitions(
        file=document.file,
        id=root.get("id", ""),
        name=root.get("name", ""),
        target_namespace=root.get("targetNamespace", ""),
        exporter=root.get("exporter", ""),
        processes=tuple(processes),
        messages=_read_messages(document, children),
        signals=_by_id([_read_signal(document, element) for element in children.get("signal", ())]),
        errors=_read_errors(document, children),
        escalations=_by_id([_read_escalation(document, element) for element in children.get("escalation", ())]),
        participants=tuple(
            model.Participant(
                **read_element(document, take_apart(element)), process=document.reference(element.get("processRef"))
            )
            for inner in collaborations
            for element in inner.get("participant", ())
        ),
        message_flows=tuple(
            model.MessageFlow(
                **read_element(document, take_apart(element)),
                source=document.reference(element.get("sourceRef")),
                target=document.reference(element.get("targetRef")),
            )
            for inner in collaborations
            for element in inner.get("messageFlow", ())
        ),
        diagrams=read_diagrams(document),
        dialect=document.dialect,
    )


def _read_global_tasks(document: Document, children: Children) -> list[Process]:
    return [
        read_global_task(document, element, kind)
        for name, kind in _GLOBAL_TASKS.items()
        for element in children.get(name, ())
    ]


def _refuse_root_element(document: Document, element: etree._Element, name: str) -> None:
    is_choreography = "horeography" in name
    document.report(
        element,
        "choreography" if is_choreography else "unknown-element",
        f"Expected processes, collaborations and what they refer to, but there is {name!r}"
        + (": choreographies are not run." if is_choreography else "."),
        "Take it out of the file.",
    )


def _read_messages(document: Document, children: Children) -> dict[str, Message]:
    """The messages by their ids; those of receive tasks without one, too, see `tasks`."""
    found = _by_id([_read_message(document, element) for element in children.get("message", ())])
    for element in document.nameless_receives:
        id_ = element.get("id", "").strip()
        found.setdefault(id_, Message(id=id_, name=id_, line=line_of(element)))
    return found


def _read_errors(document: Document, children: Children) -> dict[str, model.Error]:
    """The errors by their ids. Camunda 7 and its kin take a reference to an error that is not declared for its code."""
    found = _by_id([_read_error(document, element) for element in children.get("error", ())])
    if document.is_camunda7:
        for element in document.root.iter(f"{BPMN}errorEventDefinition"):
            reference = document.reference(element.get("errorRef"))
            if reference and reference not in document.ids:
                found[reference] = model.Error(id=reference, name=reference, code=reference, line=line_of(element))
    return found


def _read_message(document: Document, element: etree._Element) -> Message:
    parts = take_apart(element)
    zeebe.note_unknown(document, parts.extensions.zeebe)
    return Message(
        **read_executable(document, parts),
        title=_read_computed(document, element, "name"),
        correlation_key=zeebe.read_correlation_key(parts.extensions.zeebe),
    )


def _read_signal(document: Document, element: etree._Element) -> Signal:
    return Signal(**read_executable(document, take_apart(element)), title=_read_computed(document, element, "name"))


def _read_error(document: Document, element: etree._Element) -> model.Error:
    return model.Error(
        **read_executable(document, take_apart(element)),
        code=element.get("errorCode", "").strip(),
        code_expression=_read_computed(document, element, "errorCode"),
    )


def _read_escalation(document: Document, element: etree._Element) -> model.Escalation:
    return model.Escalation(
        **read_executable(document, take_apart(element)),
        code=element.get("escalationCode", "").strip(),
        code_expression=_read_computed(document, element, "escalationCode"),
    )


def _read_computed(document: Document, element: etree._Element, attribute: str) -> Expression | None:
    """An attribute that is an expression; None if it is a constant."""
    text = element.get(attribute, "").strip()
    if text.startswith("="):
        return read_marked(text, line_of(element))
    return read_juel(document, element, text) if has_juel(text) else None


def _by_id(elements: list[Some]) -> dict[str, Some]:
    found: dict[str, Some] = {}
    for element in elements:
        found.setdefault(element.id, element)
    return found
