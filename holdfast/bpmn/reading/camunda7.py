"""Attributes and elements of Camunda 7, where they have a meaning here; docs/bpmn-support.md holds the whole mapping.

What needs Java (listeners, connectors, scripts of other languages) is refused. What is only about how Camunda 7 stores its
work (`asyncBefore`, `exclusive`, `historyTimeToLive`) needs no counterpart, and is told as a notice.
"""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from holdfast.bpmn.model import Assignment, Binding, CalledDecision, CalledElement, Expression, FormDefinition, Job, Script
from holdfast.bpmn.reading.camunda7_values import make_literal, read_candidates, read_form_data
from holdfast.bpmn.reading.documents import Children, Document, text_of
from holdfast.bpmn.reading.expressions import read_juel
from holdfast.bpmn.reading.extensions import Extensions, list_inner
from holdfast.bpmn.reading.juel import find_name, has_juel
from holdfast.safe_xml import line_of

_ASYNC: Final = ("asyncBefore", "asyncAfter", "async")
_WITHOUT_MEANING: Final = frozenset(
    [
        "diagramRelationId",
        "exclusive",
        "modelerTemplate",
        "modelerTemplateIcon",
        "modelerTemplateVersion",
        *_ASYNC,
    ]
)
_MEANINGFUL: Final = frozenset(
    [
        "assignee",
        "calledElementBinding",
        "calledElementVersion",
        "calledElementVersionTag",
        "candidateGroups",
        "candidateUsers",
        "class",
        "collection",
        "decisionRef",
        "decisionRefBinding",
        "decisionRefVersion",
        "decisionRefVersionTag",
        "delegateExpression",
        "dueDate",
        "elementVariable",
        "errorCodeVariable",
        "errorMessageVariable",
        "escalationCodeVariable",
        "expression",
        "followUpDate",
        "formKey",
        "formRef",
        "formRefBinding",
        "formRefVersion",
        "mapDecisionResult",
        "priority",
        "resource",
        "resultVariable",
        "topic",
        "type",
        "variableMappingClass",
        "variableMappingDelegateExpression",
        "versionTag",
    ]
)
_NEEDS_JAVA: Final = {
    "connector": "a connector",
    "errorEventDefinition": "an error event definition of an external task",
    "executionListener": "an execution listener",
    "script": "a script",
    "taskListener": "a task listener",
}
_KNOWN_ELEMENTS: Final = frozenset(
    ("failedJobRetryTimeCycle", "field", "formData", "in", "inputOutput", "out", "properties", *_NEEDS_JAVA)
)
_RETRIES: Final = re.compile(r"R(\d{1,6})/\S+")
_LISTENER_REMEDY: Final = "Make a task of it, or move it into the activity."


def note_extensions(document: Document, element: etree._Element, extensions: Extensions) -> None:
    """Refuse what needs Java, and tell what has no effect."""
    attributes = extensions.attributes
    for name in _ASYNC:
        if attributes.get(name, "").strip().lower() == "true":
            document.notice(
                element,
                "always-durable",
                f"Expected nothing of camunda:{name}, but it is set: the engine keeps its state at every wait without it.",
                "It can be taken out.",
            )
    for name in attributes.keys() - _MEANINGFUL - _WITHOUT_MEANING:
        document.notice(
            element,
            "no-effect",
            f"Expected an attribute that has an effect, but camunda:{name} has none here.",
            "Take it out if you rely on it.",
        )
    for name, what in _NEEDS_JAVA.items():
        for child in extensions.camunda.get(name, ()):
            document.report(
                child,
                "needs-java",
                f"Expected nothing that runs inside of a Java engine, but there is {what} of Camunda 7.",
                _LISTENER_REMEDY,
            )
    for name in extensions.camunda.keys() - _KNOWN_ELEMENTS:
        document.notice(
            extensions.camunda[name][0],
            "no-effect",
            f"Expected an extension that has an effect, but camunda:{name} has none here.",
            "Take it out if you rely on it.",
        )


def note_history_time(document: Document, element: etree._Element, extensions: Extensions) -> dict[str, str]:
    """The attributes of a process, without the one that is about keeping its history."""
    attributes = dict(extensions.attributes)
    if attributes.pop("historyTimeToLive", None) is not None:
        document.notice(
            element,
            "history-time",
            "Expected nothing of camunda:historyTimeToLive, but it is set: how long histories are kept is a setting of the "
            "engine.",
            "Set the engine's retention.",
        )
    return attributes


def read_properties(children: Children) -> dict[str, str]:
    """What the `camunda:properties` of an element say, by name."""
    return {
        element.get("name", ""): element.get("value", "")
        for element in list_inner(children.get("properties"), "property")
        if element.get("name")
    }


def read_job(document: Document, element: etree._Element, extensions: Extensions) -> Job | None:
    """The work of a task or a message: a topic, or the name of a Java class or bean as the name of an activity."""
    attributes = extensions.attributes
    type_ = _read_type(document, element, attributes)
    if type_ is None:
        return None
    return Job(
        type=type_,
        retries=_read_retries(document, extensions.camunda),
        headers=_read_fields(document, extensions.camunda),
        result_variable=attributes.get("resultVariable", "").strip(),
    )


def read_expression(document: Document, element: etree._Element, extensions: Extensions) -> Script | None:
    """`camunda:expression`: its value is the result."""
    text = extensions.attributes.get("expression")
    if not text:
        return None
    return Script(
        expression=make_literal(read_juel(document, element, text)),
        result_variable=extensions.attributes.get("resultVariable", "").strip(),
    )


def read_decision(document: Document, element: etree._Element, extensions: Extensions) -> CalledDecision | None:
    """`camunda:decisionRef`: the decision that a business rule task evaluates."""
    attributes = extensions.attributes
    reference = attributes.get("decisionRef", "").strip()
    if not reference:
        return None
    if attributes.get("mapDecisionResult", "resultList") in ("resultList", "collectEntries"):
        document.notice(
            element,
            "decision-result",
            "Expected camunda:mapDecisionResult to be singleEntry or singleResult, but it is "
            f"{attributes.get('mapDecisionResult', 'resultList')!r}: the result is what DMN says, a list only where the "
            "table collects.",
            "Look at how the result is used.",
        )
    return CalledDecision(
        decision=read_juel(document, element, reference),
        result_variable=attributes.get("resultVariable", "").strip(),
        binding=_read_binding(document, element, attributes, "decisionRef"),
        version_tag=attributes.get("decisionRefVersionTag", "").strip(),
    )


def read_called(
    document: Document, element: etree._Element, extensions: Extensions, *, hands_over_all: bool, takes_back_all: bool
) -> CalledElement | None:
    """`calledElement` with the binding of Camunda 7; None if there is none."""
    attributes = extensions.attributes
    for name in ("variableMappingClass", "variableMappingDelegateExpression"):
        if name in attributes:
            document.report(
                element,
                "needs-java",
                f"Expected nothing that runs inside of a Java engine, but there is camunda:{name}.",
                "Name the variables with camunda:in and camunda:out.",
            )
    reference = element.get("calledElement", "").strip()
    if not reference:
        return None
    return CalledElement(
        process=read_juel(document, element, reference if has_juel(reference) else document.reference(reference)),
        binding=_read_binding(document, element, attributes, "calledElement"),
        version_tag=attributes.get("calledElementVersionTag", "").strip(),
        propagates_all_parent_variables=hands_over_all,
        propagates_all_child_variables=takes_back_all,
    )


def read_assignment(document: Document, element: etree._Element, extensions: Extensions) -> Assignment:
    """Who does a user task, and when."""
    attributes = extensions.attributes

    def read(name: str) -> Expression | None:
        text = attributes.get(name, "").strip()
        return read_juel(document, element, text) if text else None

    return Assignment(
        assignee=read("assignee"),
        candidate_groups=read_candidates(document, element, attributes.get("candidateGroups")),
        candidate_users=read_candidates(document, element, attributes.get("candidateUsers")),
        due_date=read("dueDate"),
        follow_up_date=read("followUpDate"),
        priority=read("priority"),
    )


def read_form(extensions: Extensions) -> FormDefinition | None:
    """The form of a user task: a key, a linked form, or fields."""
    form = FormDefinition(
        form_id=extensions.attributes.get("formRef", "").strip(),
        form_key=extensions.attributes.get("formKey", "").strip(),
        embedded=read_form_data(extensions.camunda),
    )
    return form if form != FormDefinition() else None


def _read_type(document: Document, element: etree._Element, attributes: dict[str, str]) -> Expression | None:
    line = line_of(element)
    kind = attributes.get("type", "").strip()
    topic = attributes.get("topic", "").strip()
    if kind not in ("", "external"):
        document.report(
            element,
            "needs-java",
            f"Expected an external task, but camunda:type is {kind!r}, a task built into Camunda 7.",
            "Write camunda:type='external' and a topic, and serve it by an activity.",
        )
        return None
    if kind or topic:
        return read_juel(document, element, topic)
    if class_ := attributes.get("class", "").strip():
        return Expression(text=re.split(r"[.$]", class_)[-1], is_static=True, source=class_, line=line)
    if delegate := attributes.get("delegateExpression", "").strip():
        name = find_name(delegate)
        if name is not None:
            return Expression(text=name, is_static=True, source=delegate, line=line)
        return read_juel(document, element, delegate)
    return None


def _read_retries(document: Document, children: Children) -> Expression | None:
    for element in children.get("failedJobRetryTimeCycle", ()):
        text = text_of(element)
        found = _RETRIES.fullmatch(text)
        document.notice(
            element,
            "retries",
            f"Expected the pauses between attempts to be set at the activity, but failedJobRetryTimeCycle is {text!r}"
            + (": only its count is used." if found else ": it has no effect."),
            "Give the activity a retry policy.",
        )
        if found:
            return Expression(text=found.group(1), is_static=True, source=text, line=line_of(element))
    return None


def _read_fields(document: Document, children: Children) -> dict[str, str]:
    """Injected fields: constants become headers."""
    headers: dict[str, str] = {}
    for element in children.get("field", ()):
        texts = [element.get("stringValue"), *map(text_of, list_inner([element], "string"))]
        value = next((text for text in texts if text is not None), None)
        if value is None:
            document.report(
                element,
                "needs-java",
                f"Expected a constant in camunda:field {element.get('name', '')!r}, but it is an expression.",
                "Make an input parameter of it.",
            )
            continue
        headers[element.get("name", "")] = value
    return headers


def _read_binding(document: Document, element: etree._Element, attributes: dict[str, str], prefix: str) -> Binding:
    text = attributes.get(f"{prefix}Binding", "").strip() or Binding.LATEST
    try:
        return Binding(text)
    except ValueError:
        document.report(
            element,
            "bad-attribute",
            f"Expected 'latest', 'deployment' or 'versionTag' for camunda:{prefix}Binding, but it is {text!r}.",
            "Give the version a tag, and bind to that.",
        )
        return Binding.LATEST
