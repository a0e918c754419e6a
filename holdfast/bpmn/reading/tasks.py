"""Tasks and call activities: who or what does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lxml import etree

from holdfast.bpmn import model
from holdfast.bpmn.model import Assignment, CalledElement, Expression, Job, Script
from holdfast.bpmn.reading import camunda7, zeebe
from holdfast.bpmn.reading.camunda7_values import CallMappings, make_literal, read_call_mappings
from holdfast.bpmn.reading.documents import Document, first, text_of
from holdfast.bpmn.reading.events import find_message
from holdfast.bpmn.reading.expressions import read_feel, read_juel
from holdfast.bpmn.reading.juel import has_juel
from holdfast.bpmn.reading.loops import read_loop
from holdfast.bpmn.reading.parts import Parts, read_node
from holdfast.safe_xml import line_of

_FEEL_FORMATS: Final = frozenset(("", "feel", "text/feel", "application/feel"))
_FEEL_ADDRESS: Final = ("http://www.omg.org/spec/", "https://www.omg.org/spec/")
_NO_ACTIVITY: Final = ("##", "http:", "https:", "urn:", "{", "webService", "WebService", "unspecified", "other")
"""How an `implementation` begins that names no activity."""


def read_activity(
    document: Document, parts: Parts, inputs: list[model.Mapping] | None = None, outputs: list[model.Mapping] | None = None
) -> dict[str, Any]:
    """The fields of `model.Activity`, by their names."""
    fields = read_node(document, parts, inputs or [], outputs or [])
    element = parts.element
    fields["loop"] = read_loop(document, parts.children)
    fields["default"] = document.reference(element.get("default"))
    fields["is_for_compensation"] = document.is_true(element, "isForCompensation")
    fields["start_quantity"] = document.count(element, "startQuantity", 1)
    fields["completion_quantity"] = document.count(element, "completionQuantity", 1)
    return fields


def read_job(document: Document, parts: Parts) -> Job | None:
    """The work that the extensions of a task give to an activity."""
    return zeebe.read_job(parts.extensions.zeebe) or camunda7.read_job(document, parts.element, parts.extensions)


def _find_job(document: Document, parts: Parts) -> Job | None:
    """The work of a task; in BPMN itself, `implementation` can name the activity."""
    job = read_job(document, parts)
    implementation = parts.get("implementation")
    if job is None and implementation and not implementation.startswith(_NO_ACTIVITY):
        return Job(type=Expression(text=implementation, is_static=True, line=parts.line))
    return job


def _refuse_job(document: Document, parts: Parts) -> None:
    """Of a task that nobody serves: a job type there would be ignored."""
    if read_job(document, parts) is not None:
        document.report(
            parts.element,
            "misplaced-job",
            "Expected a job type only at a task that is served by an activity, but this is an undefined or manual task.",
            "Make a service task of it, or take the job type out.",
        )


def _read_task(document: Document, parts: Parts) -> model.AnyNode:
    _refuse_job(document, parts)
    return model.Task(**read_activity(document, parts))


def _read_manual(document: Document, parts: Parts) -> model.AnyNode:
    _refuse_job(document, parts)
    return model.ManualTask(**read_activity(document, parts))


def _read_service(document: Document, parts: Parts) -> model.AnyNode:
    script = camunda7.read_expression(document, parts.element, parts.extensions)
    return model.ServiceTask(
        **read_activity(document, parts),
        job=None if script is not None else _find_job(document, parts),
        implementation=parts.get("implementation"),
        script=script,
    )


def _read_send(document: Document, parts: Parts) -> model.AnyNode:
    message = find_message(document, parts.element, parts.element.get("operationRef"))
    job = read_job(document, parts) if message else _find_job(document, parts)
    return model.SendTask(
        **read_activity(document, parts),
        job=job,
        message=message,
        implementation=parts.get("implementation"),
        script=None if job is not None else camunda7.read_expression(document, parts.element, parts.extensions),
    )


def _read_receive(document: Document, parts: Parts) -> model.AnyNode:
    message = find_message(document, parts.element, parts.element.get("operationRef"))
    if not message and document.is_camunda7 and parts.get("id"):
        document.nameless_receives.append(parts.element)
        message = parts.get("id")
        document.notice(
            parts.element,
            "missing-reference",
            "Expected the receive task to refer to a message, but it refers to none: it waits for one that is named like "
            f"its id, {message!r}.",
            "Choose a message, if that is not meant.",
        )
    return model.ReceiveTask(
        **read_activity(document, parts),
        message=message,
        instantiate=document.is_true(parts.element, "instantiate"),
    )


def _read_user(document: Document, parts: Parts) -> model.AnyNode:
    extensions = parts.extensions
    assignment = zeebe.read_assignment(extensions.zeebe)
    if assignment == Assignment():
        assignment = camunda7.read_assignment(document, parts.element, extensions)
    if assignment == Assignment():
        assignment = _read_performers(document, parts)
    return model.UserTask(
        **read_activity(document, parts),
        assignment=assignment,
        form=zeebe.read_form(document, extensions.zeebe) or camunda7.read_form(extensions),
        job=zeebe.read_job(extensions.zeebe),
    )


def _read_performers(document: Document, parts: Parts) -> Assignment:
    """BPMN's own resource roles: the human performer, and the potential owners as `user(…)`, `group(…)` or groups."""
    assignee = _read_role(document, first(parts.children, "humanPerformer"))
    owners = _read_role(document, first(parts.children, "potentialOwner"))
    if owners is None or not owners.is_static:
        return Assignment(assignee=assignee, candidate_groups=owners)
    users: list[str] = []
    groups: list[str] = []
    for part in filter(None, (part.strip() for part in owners.text.split(","))):
        if part.startswith("user(") and part.endswith(")"):
            users.append(part[5:-1].strip())
        else:
            groups.append(part.removeprefix("group(").removesuffix(")").strip())

    def join(names: list[str]) -> Expression | None:
        return Expression(text=",".join(names), is_static=True, line=owners.line) if names else None

    return Assignment(assignee=assignee, candidate_groups=join(groups), candidate_users=join(users))


def _read_role(document: Document, element: etree._Element | None) -> Expression | None:
    text = text_of(element)
    if element is None or not text:
        return None
    if text.startswith("="):
        return read_feel(text, line_of(element))
    return read_juel(document, element, text)


def _read_script_task(document: Document, parts: Parts) -> model.AnyNode:
    extensions = parts.extensions
    job = zeebe.read_job(extensions.zeebe)
    script = zeebe.read_script(extensions.zeebe)
    if job is None and script is None:
        script = _read_script(document, parts)
    return model.ScriptTask(
        **read_activity(document, parts), script=script, job=job, script_format=parts.get("scriptFormat")
    )


def _read_script(document: Document, parts: Parts) -> Script | None:
    """BPMN's own `script`: FEEL, or JUEL where it says so. None if there is none."""
    element = first(parts.children, "script")
    text = text_of(element)
    format_ = parts.get("scriptFormat").lower()
    variable = parts.extensions.attributes.get("resultVariable", "").strip()
    is_feel = format_ in _FEEL_FORMATS or format_.startswith(_FEEL_ADDRESS)
    if not is_feel and format_ != "juel":
        document.report(
            parts.element,
            "script-language",
            f"Expected a script in FEEL, but it is in {parts.get('scriptFormat')[:40]!r}.",
            "Write it in FEEL, or give the task a job type and let an activity run it.",
        )
        return Script(expression=Expression(text="null", source=text, line=parts.line), result_variable=variable)
    if "resource" in parts.extensions.attributes:
        document.report(
            parts.element,
            "script-language",
            "Expected the script in the file, but camunda:resource names another one.",
            "Write the script into the task, in FEEL.",
        )
    if element is None or not text:
        return None
    if format_ == "juel" or (has_juel(text) and not text.startswith("=")):
        expression = make_literal(read_juel(document, element, text))
    else:
        expression = read_feel(text, line_of(element))
    return Script(expression=expression, result_variable=variable)


def _read_rule(document: Document, parts: Parts) -> model.AnyNode:
    extensions = parts.extensions
    decision = zeebe.read_decision(document, extensions.zeebe) or camunda7.read_decision(document, parts.element, extensions)
    job = None if decision is not None else _find_job(document, parts)
    is_idle = decision is None and job is None
    return model.BusinessRuleTask(
        **read_activity(document, parts),
        decision=decision,
        job=job,
        implementation=parts.get("implementation"),
        script=camunda7.read_expression(document, parts.element, extensions) if is_idle else None,
    )


def _read_call(document: Document, parts: Parts) -> model.AnyNode:
    extensions = parts.extensions
    called = zeebe.read_called(document, extensions.zeebe)
    if called is not None:
        return model.CallActivity(**read_activity(document, parts), called=called)
    mappings = read_call_mappings(document, extensions.camunda)
    return model.CallActivity(
        **read_activity(document, parts, mappings.inputs, mappings.outputs),
        called=_read_called(document, parts, mappings),
    )


def _read_called(document: Document, parts: Parts, mappings: CallMappings) -> CalledElement | None:
    # In Camunda 7 nothing is handed over that is not named; BPMN itself says nothing about it, so that everything is.
    is_camunda7 = document.is_camunda7
    return camunda7.read_called(
        document,
        parts.element,
        parts.extensions,
        hands_over_all=mappings.hands_over_all or not is_camunda7,
        takes_back_all=mappings.takes_back_all or not is_camunda7,
    )


TASKS: Final[Mapping[str, Callable[[Document, Parts], model.AnyNode]]] = {
    "task": _read_task,
    "manualTask": _read_manual,
    "serviceTask": _read_service,
    "sendTask": _read_send,
    "receiveTask": _read_receive,
    "userTask": _read_user,
    "scriptTask": _read_script_task,
    "businessRuleTask": _read_rule,
    "callActivity": _read_call,
}
