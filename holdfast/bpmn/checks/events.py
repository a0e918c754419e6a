"""Events: which definitions may stand at which position, what they refer to, boundary events and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.checks.timers import check_timer
from holdfast.bpmn.model import AnyEventDefinition

AnyEvent: TypeAlias = (
    model.StartEvent | model.IntermediateCatchEvent | model.IntermediateThrowEvent | model.EndEvent | model.BoundaryEvent
)

_Kind: TypeAlias = type[model.EventDefinition]
_Kinds: TypeAlias = frozenset[_Kind]

_MESSAGE: Final = model.MessageEventDefinition
_TIMER: Final = model.TimerEventDefinition
_SIGNAL: Final = model.SignalEventDefinition
_ERROR: Final = model.ErrorEventDefinition
_ESCALATION: Final = model.EscalationEventDefinition
_TERMINATE: Final = model.TerminateEventDefinition
_LINK: Final = model.LinkEventDefinition
_CONDITIONAL: Final = model.ConditionalEventDefinition
_COMPENSATE: Final = model.CompensateEventDefinition
_CANCEL: Final = model.CancelEventDefinition

_LATER: Final[Mapping[_Kind, str]] = {
    _CONDITIONAL: "a conditional event",
    _COMPENSATE: "a compensation event",
    _CANCEL: "a cancel event",
}
_LATER_REMEDIES: Final[Mapping[_Kind, str]] = {
    _CONDITIONAL: "Wait for a message or a signal, or ask again by a timer.",
    _COMPENSATE: "Draw what undoes the work as a path of its own.",
    _CANCEL: "Use an error event in a sub-process.",
}

# BPMN 2.0, tables 10.84 (starts), 10.89 (intermediate events in flows), 10.90 (at boundaries) and 10.88 (ends).
_OF_PROCESS_STARTS: Final[_Kinds] = frozenset((_MESSAGE, _TIMER, _SIGNAL, _CONDITIONAL))
_OF_EVENT_SUB_PROCESSES: Final[_Kinds] = frozenset(
    (_MESSAGE, _TIMER, _SIGNAL, _ERROR, _ESCALATION, _CONDITIONAL, _COMPENSATE)
)
_OF_CATCHES: Final[_Kinds] = frozenset((_MESSAGE, _TIMER, _SIGNAL, _CONDITIONAL, _LINK))
_OF_THROWS: Final[_Kinds] = frozenset((_MESSAGE, _SIGNAL, _ESCALATION, _COMPENSATE, _LINK))
_OF_ENDS: Final[_Kinds] = frozenset((_MESSAGE, _SIGNAL, _ERROR, _ESCALATION, _COMPENSATE, _CANCEL, _TERMINATE))
_OF_BOUNDARIES: Final[_Kinds] = frozenset(
    (_MESSAGE, _TIMER, _SIGNAL, _ERROR, _ESCALATION, _CONDITIONAL, _COMPENSATE, _CANCEL)
)
_ALWAYS_INTERRUPTING: Final[_Kinds] = frozenset((_ERROR, _COMPENSATE, _CANCEL))


def check_events(findings: Findings, scope: Scope) -> None:
    """Each event of the scope has what its position allows, and refers to what there is."""
    for node in scope.container.nodes:
        if isinstance(node, AnyEvent):
            _check_event(findings, scope, node)
    _check_links(findings, scope)


def _check_event(findings: Findings, scope: Scope, event: AnyEvent) -> None:
    if isinstance(event, model.BoundaryEvent):
        _check_host(findings, scope, event)
    _check_count(findings, scope, event)
    allowed, where = _find_allowed(scope, event)
    for definition in event.definitions:
        kind = type(definition)
        if kind not in allowed:
            findings.report(
                event,
                "misplaced-event",
                f"Expected {_list(allowed)} {where}, but it is of the kind {name_kind(definition)!r}.",
                "Choose another kind of event, or another place for it.",
                line=definition.line,
            )
        elif kind in _LATER:
            findings.refuse_later(event, _LATER[kind], _LATER_REMEDIES[kind], line=definition.line)
        else:
            _check_definition(findings, event, definition)


def _find_allowed(scope: Scope, event: AnyEvent) -> tuple[_Kinds, str]:
    match event:
        case model.StartEvent() if scope.is_process:
            return _OF_PROCESS_STARTS, "at the start of a process"
        case model.StartEvent() if scope.is_event_sub_process:
            if not event.is_interrupting:
                return (
                    _OF_EVENT_SUB_PROCESSES - _ALWAYS_INTERRUPTING,
                    "at the start of an event sub-process that interrupts nothing",
                )
            return _OF_EVENT_SUB_PROCESSES, "at the start of an event sub-process"
        case model.StartEvent():
            return frozenset(), "at the start of a sub-process"
        case model.IntermediateCatchEvent():
            return _OF_CATCHES, "at an intermediate catch event"
        case model.IntermediateThrowEvent():
            return _OF_THROWS, "at an intermediate throw event"
        case model.EndEvent():
            return _OF_ENDS, "at an end event"
        case model.BoundaryEvent() if not event.cancel_activity:
            return _OF_BOUNDARIES - _ALWAYS_INTERRUPTING, "at a boundary event that interrupts nothing"
        case model.BoundaryEvent():
            return _OF_BOUNDARIES, "at a boundary event"


def _list(allowed: _Kinds) -> str:
    names = sorted(name_kind(kind) for kind in allowed)
    return f"one of {', '.join(names)}" if names else "no event definition"


def _check_count(findings: Findings, scope: Scope, event: AnyEvent) -> None:
    if len(event.definitions) > 1:
        is_parallel = not isinstance(event, model.IntermediateThrowEvent | model.EndEvent) and event.is_parallel_multiple
        what = "a parallel multiple event" if is_parallel else "a multiple event"
        findings.refuse_later(event, what, "Draw one event for each definition.")
        return
    needs_one = isinstance(event, model.IntermediateCatchEvent | model.BoundaryEvent) or (
        isinstance(event, model.StartEvent) and scope.is_event_sub_process
    )
    if needs_one and not event.definitions:
        where = "start event of the event sub-process" if isinstance(event, model.StartEvent) else name_kind(event)
        findings.report(
            event,
            "missing-event-definition",
            f"Expected the {where} to say what it waits for, but it has no event definition.",
            "Make it a message, timer, signal or other event.",
        )


# --- what definitions refer to ---


def _check_definition(findings: Findings, event: AnyEvent, definition: AnyEventDefinition) -> None:
    throws = isinstance(event, model.IntermediateThrowEvent | model.EndEvent)
    match definition:
        case model.MessageEventDefinition():
            has_job = isinstance(event, model.IntermediateThrowEvent | model.EndEvent) and event.job is not None
            check_message(findings, event, definition.message, is_optional=has_job, line=definition.line)
        case model.SignalEventDefinition():
            _check_signal(findings, event, definition)
        case model.ErrorEventDefinition():
            _check_error(findings, event, definition, throws=throws)
        case model.EscalationEventDefinition():
            _check_escalation(findings, event, definition, throws=throws)
        case model.TimerEventDefinition():
            check_timer(findings, event, definition)
        case model.LinkEventDefinition() if not definition.name:
            findings.report(
                event,
                "missing-name",
                "Expected a link event to have the name of its link, but it has none.",
                "Give both ends the same name.",
                line=definition.line,
            )


def check_message(findings: Findings, node: model.FlowNode, reference: str, *, is_optional: bool, line: int = 0) -> None:
    """A message is referred to, and has a name to be published under."""
    if not reference:
        if not is_optional:
            findings.report(
                node,
                "missing-reference",
                f"Expected the {name_kind(node)} to refer to a message, but it refers to none.",
                "Choose a message, or declare one.",
                line=line,
            )
        return
    message = findings.definitions.messages.get(reference)
    if message is None:
        _refuse_reference(findings, node, "message", reference, line)
    elif not message.name.strip() and not is_optional:
        _refuse_nameless(findings, message, "message")


def _check_signal(findings: Findings, event: AnyEvent, definition: model.SignalEventDefinition) -> None:
    if not definition.signal:
        findings.report(
            event,
            "missing-reference",
            f"Expected the {name_kind(event)} to refer to a signal, but it refers to none.",
            "Choose a signal, or declare one.",
            line=definition.line,
        )
        return
    signal = findings.definitions.signals.get(definition.signal)
    if signal is None:
        _refuse_reference(findings, event, "signal", definition.signal, definition.line)
    elif not signal.name.strip():
        _refuse_nameless(findings, signal, "signal")


def _check_error(findings: Findings, event: AnyEvent, definition: model.ErrorEventDefinition, *, throws: bool) -> None:
    error = findings.definitions.errors.get(definition.error)
    if definition.error and error is None:
        _refuse_reference(findings, event, "error", definition.error, definition.line)
    elif error is not None or throws:
        _check_code(findings, event, "error", error, throws=throws, line=definition.line)


def _check_escalation(
    findings: Findings, event: AnyEvent, definition: model.EscalationEventDefinition, *, throws: bool
) -> None:
    escalation = findings.definitions.escalations.get(definition.escalation)
    if definition.escalation and escalation is None:
        _refuse_reference(findings, event, "escalation", definition.escalation, definition.line)
    elif escalation is not None or throws:
        _check_code(findings, event, "escalation", escalation, throws=throws, line=definition.line)


def _check_code(
    findings: Findings,
    event: AnyEvent,
    kind: str,
    declared: model.Error | model.Escalation | None,
    *,
    throws: bool,
    line: int,
) -> None:
    if declared is not None and not declared.code and not throws:
        findings.notice(
            event,
            "missing-code",
            f"Expected the {kind} {declared.id!r} to have a code to be caught by, but it has none: every {kind} is caught.",
            "Give it a code, if that is not meant.",
            line=line,
        )
    elif declared is None or not declared.code:
        found = "it refers to none" if declared is None else f"{declared.id!r} has no {kind}Code"
        findings.report(
            event,
            "missing-code",
            f"Expected the {name_kind(event)} to refer to an {kind} with a code, but {found}.",
            "Give it a code: codes are what is matched.",
            line=line,
        )
    elif declared.code_expression is not None and throws:
        findings.refuse_later(event, f"an {kind} code that is an expression", "Write the code itself.", line=line)
    elif declared.code_expression is not None:
        findings.report(
            event,
            "code-expression",
            f"Expected a constant {kind} code where it is caught, but that of {declared.id!r} is the expression "
            f"{declared.code[:80]!r}.",
            f"Write the code itself, or catch every {kind}.",
            line=line,
        )


def _refuse_reference(findings: Findings, node: model.FlowNode, kind: str, reference: str, line: int) -> None:
    findings.report(
        node,
        "unknown-reference",
        f"Expected the {name_kind(node)} to refer to a declared {kind}, but there is none with the id {reference[:80]!r}.",
        "Refer to an existing one, or declare it.",
        line=line,
    )


def _refuse_nameless(findings: Findings, declared: model.Message | model.Signal, kind: str) -> None:
    if not any(one.element == declared.id and one.code == "missing-name" for one in findings.problems[-20:]):
        findings.report(
            declared,
            "missing-name",
            f"Expected the {kind} {declared.id!r} to have a name, under which it is published, but it has none.",
            "Name it.",
        )


# --- boundary events ---


def _check_host(findings: Findings, scope: Scope, event: model.BoundaryEvent) -> None:
    host = scope.nodes.get(event.attached_to)
    if isinstance(host, model.Activity) and not (isinstance(host, model.SubProcess) and host.triggered_by_event):
        return
    if not event.attached_to:
        found = "it has no attachedToRef"
    elif host is None:
        found = f"there is no {event.attached_to[:80]!r} in its scope"
    else:
        found = f"{host.id!r} is of the kind {name_kind(host)!r}"
    findings.report(
        event,
        "bad-host",
        f"Expected the boundary event to be attached to a task, sub-process or call activity, but {found}.",
        "Attach it to an activity.",
    )


# --- links ---


def _check_links(findings: Findings, scope: Scope) -> None:
    """BPMN 2.0, 10.5.5: several sources may lead to one target of the same name, and all of them are in one scope."""
    throws: dict[str, list[model.IntermediateThrowEvent]] = {}
    catches: dict[str, list[model.IntermediateCatchEvent]] = {}
    for node in scope.container.nodes:
        if not isinstance(node, model.IntermediateThrowEvent | model.IntermediateCatchEvent):
            continue
        for one in node.definitions:
            if isinstance(one, model.LinkEventDefinition) and one.name:
                if isinstance(node, model.IntermediateThrowEvent):
                    throws.setdefault(one.name, []).append(node)
                else:
                    catches.setdefault(one.name, []).append(node)
    for name, events in catches.items():
        for repeated in events[1:]:
            findings.report(
                repeated,
                "bad-link",
                f"Expected one catching link event of the name {name[:80]!r} in its scope, but {events[0].id!r} is another.",
                "Change one of the names.",
            )
        if name not in throws:
            findings.report(
                events[0],
                "bad-link",
                f"Expected a throwing link event of the name {name[:80]!r} in the same scope, but there is none.",
                "Add it, or correct the name.",
            )
    for name, thrown in throws.items():
        for event in thrown if name not in catches else ():
            findings.report(
                event,
                "bad-link",
                f"Expected a catching link event of the name {name[:80]!r} in the same scope, but there is none.",
                "Add it, or correct the name.",
            )
