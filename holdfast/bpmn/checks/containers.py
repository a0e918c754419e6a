"""Processes and sub-processes: their start events, event sub-processes, what catches the same thing twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.model import FlowNode, StartEvent


def check_container(findings: Findings, scope: Scope) -> None:
    """The scope begins in a way that is clear, and its catching events compete for no error, escalation or message."""
    if scope.is_event_sub_process:
        _check_event_sub_process(findings, scope)
    elif scope.is_process:
        _check_process_starts(findings, scope)
    else:
        _check_sub_process_starts(findings, scope)
    _check_catches(findings, scope)


def _check_process_starts(findings: Findings, scope: Scope) -> None:
    starts = scope.list_starts()
    if not starts:
        _check_missing(findings, scope)
    nones = [start for start in starts if not start.definitions]
    for start in nones[1:]:
        findings.report(
            start,
            "several-starts",
            f"Expected one start event without a trigger in the process, but {nones[0].id!r} is another.",
            "Leave one, and lead the others' paths from it by a parallel gateway.",
        )
    for start in starts:
        if not start.is_interrupting:
            findings.notice(
                start,
                "no-effect",
                "Expected isInterrupting only at the start of an event sub-process, but this one starts a process.",
                "Take the attribute out.",
            )
    _check_message_starts(findings, starts)


def _check_sub_process_starts(findings: Findings, scope: Scope) -> None:
    if isinstance(scope.container, model.AdHocSubProcess):
        return
    starts = scope.list_starts()
    if not starts:
        _check_missing(findings, scope)
    for start in starts[1:]:
        findings.notice(
            start,
            "several-starts",
            f"Expected one start event in the sub-process, but {starts[0].id!r} is another: all of them begin together.",
            "Leave one, and lead the others' paths from it by a parallel gateway.",
        )


def _check_missing(findings: Findings, scope: Scope) -> None:
    """A scope without start events begins with all nodes that no flow leads to; an empty sub-process is passed."""
    kind = name_kind(scope.container)
    if not scope.begins_without_start or (scope.is_process and not scope.container.nodes):
        _refuse_missing(findings, scope)
    elif not scope.container.nodes:
        message = f"Expected something to do in the {kind}, but it is empty: it ends as soon as it begins."
        findings.notice(scope.container, "empty", message, "Draw what it does.")
    elif all(node.id in scope.incoming or _waits_for_its_event(node) for node in scope.container.nodes):
        _refuse_missing(findings, scope)
    else:
        message = f"Expected a start event in the {kind}, but there is none: all elements that no flow leads to begin."
        findings.notice(scope.container, "implicit-start", message, "Draw a start event, if that is not meant.")


def _waits_for_its_event(node: model.AnyNode) -> bool:
    """Whether a node without incoming flows begins by something else than the beginning of its scope."""
    return isinstance(node, model.BoundaryEvent) or (isinstance(node, model.SubProcess) and node.triggered_by_event)


def _check_event_sub_process(findings: Findings, scope: Scope) -> None:
    starts = scope.list_starts()
    if not starts:
        _refuse_missing(findings, scope)
    for start in starts[1:]:
        findings.report(
            start,
            "several-starts",
            f"Expected one start event in the event sub-process, but {starts[0].id!r} is another.",
            "Draw one event sub-process for each.",
        )


def _refuse_missing(findings: Findings, scope: Scope) -> None:
    findings.report(
        scope.container,
        "missing-start",
        f"Expected a start event in the {name_kind(scope.container)}, but there is none.",
        "Draw one, and lead a sequence flow from it.",
    )


def _check_message_starts(findings: Findings, starts: list[StartEvent]) -> None:
    """A message that two start events of a process wait for could start either."""
    seen: dict[tuple[str, str], StartEvent] = {}
    for start in starts:
        for definition in start.definitions:
            declared: model.Message | model.Signal | None = None
            kind = "message"
            if isinstance(definition, model.MessageEventDefinition):
                declared = findings.definitions.messages.get(definition.message)
            elif isinstance(definition, model.SignalEventDefinition):
                declared, kind = findings.definitions.signals.get(definition.signal), "signal"
            if declared is None:
                continue
            other = seen.setdefault((kind, declared.name), start)
            if other is not start:
                findings.report(
                    start,
                    "duplicate-start",
                    f"Expected one start event for the {kind} {declared.name[:80]!r}, but {other.id!r} waits for it too.",
                    f"Leave one of them, or give them different {kind}s.",
                )


# --- what two events would catch ---


def _check_catches(findings: Findings, scope: Scope) -> None:
    for host, events in scope.boundaries.items():
        _check_repeated(findings, events, f"at {host!r}")
    starts = [
        start
        for node in scope.container.nodes
        if isinstance(node, model.SubProcess) and node.triggered_by_event
        for start in node.nodes
        if isinstance(start, StartEvent)
    ]
    _check_repeated(findings, starts, "among the event sub-processes of one scope")


def _check_repeated(findings: Findings, events: Iterable[StartEvent | model.BoundaryEvent], where: str) -> None:
    seen: dict[tuple[str, str], FlowNode] = {}
    for event in events:
        for kind, code in _list_codes(findings, event):
            other = seen.setdefault((kind, code), event)
            if other is not event:
                what = f"the {kind} {code[:80]!r}" if code else f"every {kind}"
                findings.report(
                    event,
                    "duplicate-catch",
                    f"Expected one event to catch {what} {where}, but {other.id!r} catches it too.",
                    "Leave one of them, or let them catch different things.",
                )


def _list_codes(findings: Findings, event: StartEvent | model.BoundaryEvent) -> Iterator[tuple[str, str]]:
    for definition in event.definitions:
        if isinstance(definition, model.ErrorEventDefinition):
            error = findings.definitions.errors.get(definition.error)
            if error is not None or not definition.error:
                yield "error", "" if error is None else error.code
        elif isinstance(definition, model.EscalationEventDefinition):
            escalation = findings.definitions.escalations.get(definition.escalation)
            if escalation is not None or not definition.escalation:
                yield "escalation", "" if escalation is None else escalation.code
        elif isinstance(definition, model.MessageEventDefinition) and definition.message:
            yield "message", definition.message  # only one of several would ever get it
