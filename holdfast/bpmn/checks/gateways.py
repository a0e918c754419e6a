"""Gateways: event-based ones and what may stand behind them, and those that come later."""

from __future__ import annotations

from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope

_AWAITED: Final = (
    model.MessageEventDefinition,
    model.TimerEventDefinition,
    model.SignalEventDefinition,
    model.ConditionalEventDefinition,
)


def check_gateways(findings: Findings, scope: Scope) -> None:
    """The gateways of the scope can be run."""
    for node in scope.container.nodes:
        if isinstance(node, model.InclusiveGateway):
            findings.refuse_later(node, "an inclusive gateway", "Use exclusive and parallel gateways instead.")
        elif isinstance(node, model.ComplexGateway):
            findings.refuse_later(node, "a complex gateway", "Use exclusive and parallel gateways instead.")
        elif isinstance(node, model.EventBasedGateway):
            _check_event_based(findings, scope, node)


def _check_event_based(findings: Findings, scope: Scope, gateway: model.EventBasedGateway) -> None:
    if gateway.instantiate:
        findings.refuse_later(gateway, "an event-based gateway that starts a process", "Use one start event for each event.")
    elif gateway.is_parallel:
        findings.report(
            gateway,
            "bad-gateway",
            "Expected eventGatewayType='Parallel' only with instantiate='true', but the gateway does not start a process.",
            "Take the attribute out, or use a parallel gateway.",
        )
    flows = scope.outgoing.get(gateway.id, [])
    if len(flows) == 1:
        findings.report(
            gateway,
            "bad-gateway",
            "Expected at least two flows out of an event-based gateway, but there is one.",
            "Lead a flow to each event, or take the gateway out.",
        )
    targets = [node for flow in flows if (node := scope.nodes.get(flow.target)) is not None]
    for target in targets:
        _check_target(findings, scope, gateway, target)
    _check_messages(findings, targets)
    tasks = [node for node in targets if isinstance(node, model.ReceiveTask)]
    has_message = any(
        isinstance(one, model.MessageEventDefinition)
        for node in targets
        if isinstance(node, model.IntermediateCatchEvent)
        for one in node.definitions
    )
    if tasks and has_message:
        # BPMN 2.0, 10.6.6: "If Message Intermediate Events are used […], then Receive Tasks MUST NOT be used […]."
        findings.report(
            tasks[0],
            "bad-gateway",
            f"Expected either receive tasks or message events behind the event-based gateway {gateway.id!r}, but both are.",
            "Make message events of the receive tasks.",
        )


def _check_messages(findings: Findings, targets: list[model.AnyNode]) -> None:
    """Of two events that wait for one message, the first would always get it."""
    seen: dict[str, model.AnyNode] = {}
    for target in targets:
        if isinstance(target, model.ReceiveTask):
            awaited = [target.message] if target.message else []
        else:
            definitions = target.definitions if isinstance(target, model.IntermediateCatchEvent) else ()
            awaited = [one.message for one in definitions if isinstance(one, model.MessageEventDefinition) and one.message]
        for message in awaited:
            other = seen.setdefault(message, target)
            if other is not target:
                findings.report(
                    target,
                    "duplicate-catch",
                    f"Expected one event behind a gateway to wait for the message {message[:80]!r}, but {other.id!r} waits "
                    "for it too.",
                    "Leave one of them, or give them different messages.",
                )


def _check_target(findings: Findings, scope: Scope, gateway: model.EventBasedGateway, target: model.AnyNode) -> None:
    is_event = isinstance(target, model.IntermediateCatchEvent) and all(
        isinstance(one, _AWAITED) for one in target.definitions
    )
    if not is_event and not isinstance(target, model.ReceiveTask):
        findings.report(
            target,
            "bad-gateway",
            f"Expected a catching message, timer or signal event or a receive task behind the event-based gateway "
            f"{gateway.id!r}, but this is of the kind {name_kind(target)!r}.",
            "Put a catching event between them, or use an exclusive gateway.",
        )
    elif len(scope.incoming.get(target.id, [])) > 1:
        findings.report(
            target,
            "bad-gateway",
            f"Expected only the flow from the event-based gateway {gateway.id!r} to lead here, but others do too.",
            "Draw an event of its own for each of them.",
        )
    elif isinstance(target, model.ReceiveTask) and target.loop is not None:
        findings.report(
            target,
            "bad-gateway",
            f"Expected no multi-instance receive task behind the event-based gateway {gateway.id!r}, but here is one.",
            "Put it behind a catching event, or lead a flow from the gateway to an event of its own.",
        )
    elif target.id in scope.boundaries:
        findings.report(
            scope.boundaries[target.id][0],
            "bad-gateway",
            f"Expected no boundary events at a receive task behind the event-based gateway {gateway.id!r}, but here is one.",
            "Lead a flow from the gateway to a catching event instead.",
        )
