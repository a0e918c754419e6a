"""Expressions: each can be compiled as FEEL, and constants that stand for one have the right form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast import feel
from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.model import AnyNode, Element, Expression
from holdfast.errors import FeelError

_MOST_RETRIES: Final = 1_000_000


class Compiler:
    """Compiles the expressions of a file, each text once."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._known: dict[str, feel.Expression | str] = {}

    def check(self, element: Element, what: str, expression: Expression | None) -> feel.Expression | None:
        """What an expression was compiled to; None if it is a constant or missing, or if it cannot be, which is reported."""
        if expression is None or expression.is_static:
            return None
        compiled = self._compile(expression.text)
        shown = expression.source or expression.text
        if isinstance(compiled, feel.Expression):
            self._check_names(element, what, expression, compiled)
            return compiled
        self._findings.report(
            element,
            "expression",
            f"Expected the {what} to be an expression in FEEL, but {shown[:120]!r} cannot be compiled: {compiled}",
            "Correct the expression.",
            line=expression.line,
        )
        return None

    def check_constant(self, element: Element, what: str, expression: Expression | None) -> None:
        """As `check`, of an expression that is evaluated where no variables are: at deployment."""
        compiled = self.check(element, what, expression)
        if compiled is not None and compiled.names and expression is not None:
            self._findings.report(
                element,
                "no-variables",
                f"Expected the {what} to use no variables, since there are none before the start, but it uses "
                f"{', '.join(sorted(compiled.names))[:120]}.",
                "Write a constant.",
                line=expression.line,
            )

    def _check_names(self, element: Element, what: str, expression: Expression, compiled: feel.Expression) -> None:
        """Words in a row are one name to FEEL. Here they are prose, or a script of another language."""
        if "`" in expression.text:
            return
        name = next((name for name in compiled.names if " " in name), None)
        if name is not None:
            self._findings.report(
                element,
                "expression",
                f"Expected the {what} to be an expression in FEEL, but it reads as the one variable {name[:80]!r}.",
                "Write FEEL, or put backticks around a name that has spaces in it.",
                line=expression.line,
            )

    def _compile(self, text: str) -> feel.Expression | str:
        found = self._known.get(text)
        if found is None:
            try:
                found = feel.compile(text, functions=())
            except FeelError as error:
                found = error.message
            self._known[text] = found
        return found


def check_expressions(findings: Findings, scope: Scope, compiler: Compiler) -> None:
    """All expressions of the nodes and flows of the scope."""
    for flow in scope.container.flows:
        compiler.check(flow, "condition", flow.condition)
    for node in scope.container.nodes:
        for what, expression in _list_expressions(node):
            compiler.check(node, what, expression)
        _check_mappings(findings, node)
        _check_retries(findings, node)
        if isinstance(node, model.StartEvent) and scope.is_process:
            _check_start(findings, node, compiler)


def _check_start(findings: Findings, start: model.StartEvent, compiler: Compiler) -> None:
    """What starts a process is known when it is deployed."""
    for definition in start.definitions:
        declared: model.Message | model.Signal | None = None
        if isinstance(definition, model.TimerEventDefinition):
            compiler.check_constant(start, "timer of a start event", definition.when)
        elif isinstance(definition, model.MessageEventDefinition):
            declared = findings.definitions.messages.get(definition.message)
        elif isinstance(definition, model.SignalEventDefinition):
            declared = findings.definitions.signals.get(definition.signal)
        if declared is not None:
            compiler.check_constant(start, "name of what starts a process", declared.title)


def check_declared(findings: Findings, compiler: Compiler) -> None:
    """The expressions of messages, signals, errors and escalations."""
    definitions = findings.definitions
    for message in definitions.messages.values():
        compiler.check(message, "name of the message", message.title)
        compiler.check(message, "correlation key", message.correlation_key)
        key = message.correlation_key
        if key is not None and key.is_static:
            findings.report(
                message,
                "constant-key",
                f"Expected the correlation key to be an expression, but it is the constant {key.text[:80]!r}.",
                "Write the name of a variable behind a '='.",
                line=key.line,
            )
    for signal in definitions.signals.values():
        compiler.check(signal, "name of the signal", signal.title)
    for error in definitions.errors.values():
        compiler.check(error, "code of the error", error.code_expression)
    for escalation in definitions.escalations.values():
        compiler.check(escalation, "code of the escalation", escalation.code_expression)


def _list_expressions(node: AnyNode) -> Iterator[tuple[str, Expression | None]]:
    if node.mappings is not None:
        for mapping in node.mappings.inputs:
            yield "source of the input mapping", mapping.source
        for mapping in node.mappings.outputs:
            yield "source of the output mapping", mapping.source
    if isinstance(node, model.Activity) and isinstance(node.loop, model.Loop):
        yield "cardinality", node.loop.cardinality
        yield "input collection", node.loop.input_collection
        yield "output element", node.loop.output_element
        yield "completion condition", node.loop.completion_condition
    yield from _list_own(node)


def _list_own(node: AnyNode) -> Iterator[tuple[str, Expression | None]]:
    match node:
        case (
            model.StartEvent()
            | model.IntermediateCatchEvent()
            | model.IntermediateThrowEvent()
            | model.EndEvent()
            | model.BoundaryEvent()
        ):
            for definition in node.definitions:
                if isinstance(definition, model.TimerEventDefinition):
                    yield "time of the timer", definition.when
            if isinstance(node, model.IntermediateThrowEvent | model.EndEvent):
                yield from _list_job(node.job)
        case model.ServiceTask() | model.ScriptTask() | model.SendTask() | model.BusinessRuleTask():
            yield from _list_job(node.job)
            if node.script is not None:
                yield "script", node.script.expression
            if isinstance(node, model.BusinessRuleTask) and node.decision is not None:
                yield "decision", node.decision.decision
        case model.UserTask():
            yield from _list_job(node.job)
            yield "assignee", node.assignment.assignee
            yield "candidate groups", node.assignment.candidate_groups
            yield "candidate users", node.assignment.candidate_users
            yield "due date", node.assignment.due_date
            yield "follow-up date", node.assignment.follow_up_date
            yield "priority", node.assignment.priority
        case model.CallActivity() if node.called is not None:
            yield "called process", node.called.process
        case _:
            pass


def _list_job(job: model.Job | None) -> Iterator[tuple[str, Expression | None]]:
    if job is not None:
        yield "job type", job.type
        yield "number of retries", job.retries


def _check_mappings(findings: Findings, node: AnyNode) -> None:
    if node.mappings is None:
        return
    if isinstance(node, model.ParallelGateway | model.EventBasedGateway) and (node.mappings.inputs or node.mappings.outputs):
        findings.report(
            node,
            "bad-mapping",
            f"Expected no mappings at the {name_kind(node)}, which does nothing with variables, but there are some.",
            "Map variables at an element beside it.",
        )
    for mapping in (*node.mappings.inputs, *node.mappings.outputs):
        if mapping.target and not all(part.strip() for part in mapping.target.split(".")):
            findings.report(
                node,
                "bad-mapping",
                f"Expected the target of a mapping to be a name or a path of names, but it is {mapping.target[:80]!r}.",
                "Correct the target.",
                line=mapping.line,
            )


def _check_retries(findings: Findings, node: AnyNode) -> None:
    job = getattr(node, "job", None)
    if not isinstance(job, model.Job) or job.retries is None or not job.retries.is_static:
        return
    text = job.retries.text.strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= _MOST_RETRIES):
        findings.report(
            node,
            "bad-retries",
            f"Expected the number of retries to be a whole number above zero, but it is {text[:40]!r}.",
            "Write a number such as 3.",
            line=job.retries.line,
        )
