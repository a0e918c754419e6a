"""The extensions of Camunda 8 (Zeebe): one function for each thing that a node is given."""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.bpmn.model import (
    Assignment,
    Binding,
    CalledDecision,
    CalledElement,
    Expression,
    FormDefinition,
    Job,
    Listener,
    Mapping,
    Script,
)
from holdfast.bpmn.reading.documents import Children, Document, first, local_name, text_of
from holdfast.bpmn.reading.expressions import read_feel, read_marked
from holdfast.bpmn.reading.extensions import list_inner
from holdfast.safe_xml import line_of

_EMBEDDED_FORM: Final = "camunda-forms:bpmn:"
_KNOWN: Final = frozenset(
    [
        "adHoc",
        "assignmentDefinition",
        "calledDecision",
        "calledElement",
        "executionListeners",
        "formDefinition",
        "ioMapping",
        "loopCharacteristics",
        "priorityDefinition",
        "properties",
        "script",
        "subscription",
        "taskDefinition",
        "taskHeaders",
        "taskListeners",
        "taskSchedule",
        "userTask",
        "userTaskForm",
        "versionTag",
    ]
)


def note_unknown(document: Document, children: Children) -> None:
    """Tell which extensions have no effect."""
    for name in children.keys() - _KNOWN:
        document.notice(
            children[name][0],
            "no-effect",
            f"Expected an extension that has an effect, but zeebe:{name} has none here.",
            "Take it out if you rely on it.",
        )


def read_job(children: Children) -> Job | None:
    """The work of a task or a throwing event, with its headers."""
    element = first(children, "taskDefinition")
    if element is None:
        return None
    return Job(
        type=_read_marked(element, "type") or Expression(text="", is_static=True, line=line_of(element)),
        retries=_read_marked(element, "retries"),
        headers=_read_pairs(list_inner(children.get("taskHeaders"), "header"), "key"),
    )


def read_properties(children: Children) -> dict[str, str]:
    """What the `zeebe:properties` of an element say, by name."""
    return _read_pairs(list_inner(children.get("properties"), "property"), "name")


def read_mappings(document: Document, children: Children) -> tuple[list[Mapping], list[Mapping]]:
    """The input and the output mappings."""
    boxes = children.get("ioMapping")
    return (
        [_read_mapping(document, element) for element in list_inner(boxes, "input")],
        [_read_mapping(document, element) for element in list_inner(boxes, "output")],
    )


def read_listeners(children: Children) -> tuple[Listener, ...]:
    """The execution listeners of an element, then its task listeners."""
    found = [
        *list_inner(children.get("executionListeners"), "executionListener"),
        *list_inner(children.get("taskListeners"), "taskListener"),
    ]
    return tuple(
        Listener(
            event=element.get("eventType", ""),
            type=element.get("type", ""),
            retries=element.get("retries", ""),
            line=line_of(element),
        )
        for element in found
    )


def read_script(children: Children) -> Script | None:
    """The FEEL of a script task."""
    element = first(children, "script")
    if element is None:
        return None
    return Script(
        expression=read_feel(element.get("expression", ""), line_of(element)),
        result_variable=element.get("resultVariable", "").strip(),
    )


def read_decision(document: Document, children: Children) -> CalledDecision | None:
    """The decision of a business rule task."""
    element = first(children, "calledDecision")
    if element is None:
        return None
    return CalledDecision(
        decision=_read_marked(element, "decisionId") or Expression(text="", is_static=True, line=line_of(element)),
        result_variable=element.get("resultVariable", "").strip(),
        binding=_read_binding(document, element),
        version_tag=element.get("versionTag", "").strip(),
    )


def read_called(document: Document, children: Children) -> CalledElement | None:
    """The process of a call activity."""
    element = first(children, "calledElement")
    if element is None:
        return None
    return CalledElement(
        process=_read_marked(element, "processId") or Expression(text="", is_static=True, line=line_of(element)),
        binding=_read_binding(document, element),
        version_tag=element.get("versionTag", "").strip(),
        propagates_all_parent_variables=document.is_true(element, "propagateAllParentVariables", default=True),
        propagates_all_child_variables=document.is_true(element, "propagateAllChildVariables", default=True),
    )


def read_assignment(children: Children) -> Assignment:
    """Who does a user task, and when."""
    people = first(children, "assignmentDefinition")
    times = first(children, "taskSchedule")
    priority = first(children, "priorityDefinition")
    return Assignment(
        assignee=_read_marked(people, "assignee"),
        candidate_groups=_read_marked(people, "candidateGroups"),
        candidate_users=_read_marked(people, "candidateUsers"),
        due_date=_read_marked(times, "dueDate"),
        follow_up_date=_read_marked(times, "followUpDate"),
        priority=_read_marked(priority, "priority"),
    )


def read_form(document: Document, children: Children) -> FormDefinition | None:
    """The form of a user task."""
    element = first(children, "formDefinition")
    if element is None:
        return None
    key = element.get("formKey", "").strip() or element.get("externalReference", "").strip()
    if not key.startswith(_EMBEDDED_FORM):
        return FormDefinition(form_id=element.get("formId", "").strip(), form_key=key)
    id_ = key.removeprefix(_EMBEDDED_FORM)
    if id_ not in document.forms:
        document.report(
            element,
            "unknown-reference",
            f"Expected a zeebe:userTaskForm with the id {id_!r} in the process, but there is none.",
            "Embed the form again, or link one by its id.",
        )
        return FormDefinition(form_key=key)
    return FormDefinition(form_key=key, embedded=document.forms[id_])


def read_forms(children: Children) -> dict[str, str]:
    """The forms that are embedded in a process, by their ids."""
    return {element.get("id", ""): text_of(element) for element in children.get("userTaskForm", ())}


def read_version_tag(children: Children) -> str:
    """The version tag of a process."""
    element = first(children, "versionTag")
    return "" if element is None else element.get("value", "").strip()


def read_correlation_key(children: Children) -> Expression | None:
    """By which value a message finds its wait."""
    return _read_marked(first(children, "subscription"), "correlationKey")


def read_attribute(children: Children, name: str, attribute: str) -> Expression | None:
    """An attribute of an extension: FEEL behind a `=`, else itself."""
    return _read_marked(first(children, name), attribute)


def read_text(children: Children, name: str, attribute: str) -> str:
    """An attribute of an extension that is a name."""
    element = first(children, name)
    return "" if element is None else element.get(attribute, "").strip()


def _read_mapping(document: Document, element: etree._Element) -> Mapping:
    source, target = element.get("source", ""), element.get("target", "").strip()
    kind = local_name(str(element.tag))
    if kind == "input" and not source.strip():
        source = "=null"  # connector templates write such inputs for fields that are left empty
    for name, text in (("source", source), ("target", target)):
        if not text.strip():
            document.report(
                element,
                "bad-mapping",
                f"Expected a {name} in the {kind} mapping, but it is empty.",
                f"Give it a {name}, or take the mapping out.",
            )
    found = read_marked(source, line_of(element))
    if not all(part.isidentifier() for part in target.split(".") if part):  # empty parts are found in all mappings alike
        document.report(
            element,
            "bad-mapping",
            f"Expected the target of the {kind} mapping to be a name or a path of names, but it is {target[:80]!r}.",
            "Name a variable with letters, digits and underscores.",
        )
    if kind == "output" and source.strip() and found.is_static:
        document.report(
            element,
            "bad-mapping",
            f"Expected the source of the output mapping to be an expression, but it is the text {source[:80]!r}.",
            "Write it behind a '='.",
        )
    return Mapping(source=found, target=target, line=line_of(element))


def _read_binding(document: Document, element: etree._Element) -> Binding:
    text = element.get("bindingType", "").strip() or Binding.LATEST
    try:
        return Binding(text)
    except ValueError:
        document.report(
            element,
            "bad-attribute",
            f"Expected 'latest', 'deployment' or 'versionTag' for 'bindingType', but it is {text!r}.",
            "Choose one of them.",
        )
        return Binding.LATEST


def _read_marked(element: etree._Element | None, name: str) -> Expression | None:
    text = None if element is None else element.get(name)
    if element is None or text is None or not text.strip():
        return None
    return read_marked(text, line_of(element))


def _read_pairs(elements: list[etree._Element], key: str) -> dict[str, str]:
    return {element.get(key, ""): element.get("value", "") for element in elements if element.get(key)}
