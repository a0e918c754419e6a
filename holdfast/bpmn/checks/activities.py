"""Tasks, call activities and sub-processes: who does the work, how often, and what comes later."""

from __future__ import annotations

import json
import re
from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.checks.events import check_message
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.model import Activity, Expression

_JOB: Final = "Give it a job type (zeebe:taskDefinition, or camunda:topic): the name of the activity that does it."
_ASSIGNMENT: Final = re.compile(r"\s*([^\W\d][\w.]*)\s*=(?![=>])")
_COMPENSATION: Final = "Draw what undoes the work as a path of its own."


def check_activities(findings: Findings, scope: Scope) -> None:
    """Each activity of the scope has somebody or something that does it."""
    for node in scope.container.nodes:
        if isinstance(node, model.UnknownNode):
            findings.report(
                node,
                "unknown-element",
                f"Expected an element of BPMN 2.0 that can stand in a process, but there is {node.tag[:80]!r}.",
                "Take it out.",
            )
        if isinstance(node, Activity):
            _check_later(findings, node)
            _check_work(findings, node)
            _check_loop(findings, node)


def _check_later(findings: Findings, node: Activity) -> None:
    if isinstance(node, model.Transaction):
        findings.refuse_later(node, "a transaction", "Use a sub-process, and error events where it can fail.")
    elif isinstance(node, model.AdHocSubProcess):
        findings.refuse_later(node, "an ad-hoc sub-process", "Draw the order of its elements, or use a code workflow.")
    if node.is_for_compensation:
        findings.refuse_later(node, "an activity for compensation", _COMPENSATION)
    if node.start_quantity != 1 or node.completion_quantity != 1:
        findings.refuse_later(
            node,
            "an activity with a startQuantity or completionQuantity other than 1",
            "Join tokens with a parallel gateway, and split them with one.",
        )


# --- work ---


def _check_work(findings: Findings, node: Activity) -> None:
    match node:
        case model.ServiceTask() if node.job is None and node.script is None:
            _refuse_idle(findings, node, "a job type", _JOB)
        case model.SendTask():
            if node.job is None and node.script is None and not node.message:
                _refuse_idle(findings, node, "a message or a job type", f"Choose a message. Or: {_JOB}")
            elif node.message:
                check_message(findings, node, node.message, is_optional=node.job is not None or node.script is not None)
        case model.ReceiveTask():
            if node.instantiate:
                findings.refuse_later(node, "a receive task that starts a process", "Use a message start event.")
            check_message(findings, node, node.message, is_optional=False)
        case model.ScriptTask() if node.script is None and node.job is None:
            _refuse_idle(findings, node, "a script or a job type", f"Write a FEEL expression. Or: {_JOB}")
        case model.ScriptTask() if node.script is not None:
            _check_script(findings, node, node.script)
        case model.BusinessRuleTask() if node.decision is None and node.job is None and node.script is None:
            _refuse_idle(findings, node, "a decision or a job type", f"Name a DMN decision. Or: {_JOB}")
        case model.BusinessRuleTask() if node.decision is not None:
            _check_named(findings, node, "decision", node.decision.decision)
            _check_version_tag(findings, node, node.decision.binding, node.decision.version_tag)
        case model.CallActivity():
            _check_called(findings, node)
        case model.UserTask():
            _check_form(findings, node)
        case _:
            pass
    job = getattr(node, "job", None)
    if isinstance(job, model.Job):
        _check_named(findings, node, "job type", job.type)


def _check_script(findings: Findings, node: model.ScriptTask, script: model.Script) -> None:
    """`total = 5` assigns in other languages; in FEEL it compares, and nobody would get to know the result."""
    found = _ASSIGNMENT.match(script.expression.text)
    if found and not script.result_variable:
        findings.report(
            node,
            "script-language",
            f"Expected a FEEL expression, whose value is the result, but the script looks like an assignment to "
            f"{found.group(1)[:80]!r}, which FEEL does not have.",
            "Write the value alone and name a result variable, or write a context: {total: 5}.",
            line=script.expression.line,
        )


def _refuse_idle(findings: Findings, node: Activity, what: str, remedy: str) -> None:
    implementation = getattr(node, "implementation", "")
    found = f"its implementation is {implementation[:80]!r}, which names no activity" if implementation else "it has none"
    findings.report(node, "missing-work", f"Expected the {name_kind(node)} to have {what}, but {found}.", remedy)


def _check_named(findings: Findings, node: Activity, what: str, name: Expression) -> None:
    if not name.text.strip():
        findings.report(
            node,
            "missing-name",
            f"Expected the {what} of the {name_kind(node)} to be a name or an expression, but it is empty.",
            "Write the name.",
            line=name.line,
        )


def _check_version_tag(findings: Findings, node: Activity, binding: model.Binding, tag: str) -> None:
    if binding is model.Binding.VERSION_TAG and not tag:
        findings.report(
            node,
            "missing-version-tag",
            f"Expected the {name_kind(node)} to name a version tag, since it binds to one, but it is empty.",
            "Write the tag, or bind to the latest version.",
        )


def _check_called(findings: Findings, node: model.CallActivity) -> None:
    called = node.called
    if called is None:
        _refuse_idle(findings, node, "the id of a process", "Name the process or code workflow that it calls.")
        return
    _check_named(findings, node, "called process", called.process)
    _check_version_tag(findings, node, called.binding, called.version_tag)
    if not called.process.is_static:
        return
    id_ = called.process.text
    process = next((one for one in findings.definitions.processes if one.id == id_), None)
    starts = [] if process is None else [one for one in process.nodes if isinstance(one, model.StartEvent)]
    if starts and all(start.definitions for start in starts):
        findings.report(
            node,
            "not-callable",
            f"Expected the called process {id_!r} to have a start event without a trigger, but all wait for something.",
            "Add one there, or send the message that starts it.",
        )
    if process is not None and not process.is_executable:
        findings.report(
            node,
            "not-executable",
            f"Expected the called process {id_!r} to be executable, but the file says that it is not.",
            "Set isExecutable='true' there, or call another process.",
        )


def _check_form(findings: Findings, node: model.UserTask) -> None:
    form = node.form
    if form is None or not form.embedded:
        return
    try:
        content = json.loads(form.embedded)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        findings.report(
            node,
            "bad-form",
            "Expected the embedded form of the user task to be a JSON object, but it is none.",
            "Embed the form again, or link one by its id.",
        )


# --- loops ---


def _check_loop(findings: Findings, node: Activity) -> None:
    loop = node.loop
    if loop is None:
        return
    if isinstance(node, model.SubProcess) and node.triggered_by_event:
        _refuse_loop(findings, node, "Expected an event sub-process not to be repeated, but it is.", loop.line)
    if isinstance(loop, model.StandardLoop):
        findings.refuse_later(node, "a standard loop", "Draw the loop with an exclusive gateway.", line=loop.line)
        return
    if loop.behavior not in ("", "All"):
        findings.refuse_later(
            node,
            f"multi-instance with the behavior {loop.behavior[:40]!r}",
            "Leave the behavior out, and throw events behind the activity.",
            line=loop.line,
        )
    elif loop.complex_behaviors:
        findings.refuse_later(node, "a complexBehaviorDefinition", "Throw events behind the activity.", line=loop.line)
    if loop.cardinality is None and loop.input_collection is None:
        message = (
            "Expected a multi-instance activity to say how often it runs, but it has neither a collection nor a cardinality."
        )
        _refuse_loop(findings, node, message, loop.line)
    if loop.input_collection is not None and loop.input_collection.is_static:
        message = (
            f"Expected the input collection to be an expression, but it is the text {loop.input_collection.text[:80]!r}."
        )
        _refuse_loop(findings, node, message, loop.line)
    if loop.output_element is not None and loop.output_element.is_static:
        message = f"Expected the output element to be an expression, but it is the text {loop.output_element.text[:80]!r}."
        _refuse_loop(findings, node, message, loop.line)
    if loop.input_element and loop.input_collection is None:
        message = f"Expected a collection to take the input element {loop.input_element[:80]!r} from, but there is none."
        _refuse_loop(findings, node, message, loop.line)
    if bool(loop.output_collection) != (loop.output_element is not None):
        message = "Expected both an output collection and an output element, or none of them, but there is one."
        _refuse_loop(findings, node, message, loop.line)


def _refuse_loop(findings: Findings, node: Activity, message: str, line: int) -> None:
    findings.report(node, "bad-loop", message, "Correct the multi-instance marker of the activity.", line=line)
