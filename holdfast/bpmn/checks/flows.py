"""Sequence flows: their ends, their conditions, default flows, and nodes that no flow reaches or leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.model import AnyNode, SequenceFlow
from holdfast.bpmn.problems import Severity

_CONNECT: Final = "Connect it, or take it out."
_CHOOSING: Final = (model.ExclusiveGateway, model.InclusiveGateway, model.ComplexGateway)
"""Gateways that choose among their outgoing flows by conditions."""


def check_flows(findings: Findings, scope: Scope, owners: Mapping[str, Scope]) -> None:
    """Each flow leads from a node to a node of the same scope, and has a condition only where one is asked for."""
    for flow in scope.container.flows:
        source = _find_end(findings, scope, owners, flow, "sourceRef", flow.source)
        target = _find_end(findings, scope, owners, flow, "targetRef", flow.target)
        if source is not None:
            _check_source(findings, scope, flow, source)
        if target is not None:
            _check_target(findings, flow, target)


def check_connections(findings: Findings, scope: Scope) -> None:
    """Each node is reached by a flow, and those that have to are left by one; defaults are flows of their node."""
    begins_free = scope.begins_without_start or isinstance(scope.container, model.AdHocSubProcess)
    for node in scope.container.nodes:
        incoming = scope.incoming.get(node.id, [])
        outgoing = scope.outgoing.get(node.id, [])
        needs_flow = not begins_free or _is_between(node, has_flows=bool(outgoing))
        if not incoming and needs_flow and not _begins_itself(node):
            findings.report(
                node,
                "not-connected",
                f"Expected a sequence flow that leads to the {name_kind(node)}, but there is none: it is never reached.",
                _CONNECT,
                severity=Severity.ERROR if begins_free else _find_severity(findings, "camunda-7", "camunda-8"),
            )
        if not outgoing:
            _check_end(findings, node)
        if isinstance(node, (*_CHOOSING, model.Activity)):
            _check_default(findings, node, outgoing)
        if isinstance(node, model.Activity):
            _check_conditional(findings, node, outgoing)
        if isinstance(node, model.ExclusiveGateway | model.InclusiveGateway):
            _check_choices(findings, node, outgoing)
        if isinstance(node, model.Gateway):
            _check_direction(findings, node, len(incoming), len(outgoing))


def _find_severity(findings: Findings, *dialects: str) -> Severity:
    """How bad it is what BPMN forbids, and what engines of these dialects run all the same."""
    dialect = findings.definitions.dialect
    return Severity.NOTICE if dialect and dialect in dialects else Severity.ERROR


def _find_end(
    findings: Findings, scope: Scope, owners: Mapping[str, Scope], flow: SequenceFlow, attribute: str, id_: str
) -> AnyNode | None:
    node = scope.nodes.get(id_)
    if node is not None:
        return node
    if not id_:
        why, remedy = f"it has no {attribute}", "Connect both ends."
    elif id_ in owners:
        inside = owners[id_].container
        why = f"its {attribute} is {id_!r} in the {name_kind(inside)} {inside.id!r}"
        remedy = "Flows do not cross the border of a sub-process or pool: use an event or a message."
    else:
        why, remedy = f"its {attribute} is {id_[:80]!r}, which is no node of the file", "Connect it to an existing node."
    findings.report(
        flow,
        "bad-flow",
        f"Expected the sequence flow to connect nodes of {name_kind(scope.container)} {scope.container.id!r}, but {why}.",
        remedy,
    )
    return None


def _check_source(findings: Findings, scope: Scope, flow: SequenceFlow, source: AnyNode) -> None:
    if isinstance(source, model.EndEvent):
        _refuse_end(findings, flow, "begin at an end event", source)
    elif isinstance(source, model.SubProcess) and source.triggered_by_event:
        _refuse_end(findings, flow, "begin at an event sub-process", source)
    elif isinstance(source, model.IntermediateThrowEvent) and _is_link(source.definitions):
        _refuse_end(findings, flow, "begin at a throwing link event", source)
    if flow.condition is None or isinstance(source, (*_CHOOSING, model.Activity)):
        return
    if isinstance(source, model.ParallelGateway):
        findings.notice(
            flow,
            "misplaced-condition",
            f"Expected no condition on a flow out of the parallel gateway {source.id!r}, but there is one. It is ignored.",
            "Take the condition out, or use an exclusive gateway.",
            line=flow.condition.line,
        )
        return
    findings.report(
        flow,
        "misplaced-condition",
        f"Expected conditions only on flows out of exclusive gateways and activities, but this one comes from the "
        f"{name_kind(source)} {source.id!r}.",
        "Take the condition out, or put an exclusive gateway before it.",
        line=flow.condition.line,
    )


def _check_target(findings: Findings, flow: SequenceFlow, target: AnyNode) -> None:
    if isinstance(target, model.StartEvent):
        _refuse_end(findings, flow, "lead to a start event", target)
    elif isinstance(target, model.BoundaryEvent):
        _refuse_end(findings, flow, "lead to a boundary event", target)
    elif isinstance(target, model.SubProcess) and target.triggered_by_event:
        _refuse_end(findings, flow, "lead to an event sub-process", target)
    elif isinstance(target, model.IntermediateCatchEvent) and _is_link(target.definitions):
        _refuse_end(findings, flow, "lead to a catching link event", target)


def _refuse_end(findings: Findings, flow: SequenceFlow, what: str, node: AnyNode) -> None:
    findings.report(
        flow,
        "bad-flow",
        f"Expected the sequence flow not to {what}, but it does: {node.id!r}.",
        "Connect it to another node, or take it out.",
    )


def _begins_itself(node: AnyNode) -> bool:
    """Whether a node begins without a flow that leads to it."""
    if isinstance(node, model.StartEvent | model.BoundaryEvent):
        return True
    if isinstance(node, model.IntermediateCatchEvent) and _is_link(node.definitions):
        return True
    if isinstance(node, model.SubProcess) and node.triggered_by_event:
        return True
    return isinstance(node, model.Activity) and node.is_for_compensation


def _is_between(node: AnyNode, *, has_flows: bool) -> bool:
    """Whether a node needs a flow that leads to it, also where the scope has no start event."""
    if isinstance(node, model.Gateway):
        return not has_flows
    return isinstance(node, model.IntermediateCatchEvent | model.IntermediateThrowEvent)


def _check_end(findings: Findings, node: AnyNode) -> None:
    """A node without an outgoing flow: of activities and gateways, the token ends there, as at an end event."""
    is_link = isinstance(node, model.IntermediateThrowEvent) and _is_link(node.definitions)
    is_compensation = isinstance(node, model.BoundaryEvent) and any(
        isinstance(one, model.CompensateEventDefinition) for one in node.definitions
    )
    if isinstance(node, model.EndEvent) or is_link or is_compensation:
        return
    if isinstance(node, model.SubProcess) and node.triggered_by_event:
        return
    if isinstance(node, model.Activity) and node.is_for_compensation:
        return
    is_implicit = isinstance(node, model.Activity | model.ExclusiveGateway | model.ParallelGateway)
    if is_implicit or (findings.definitions.dialect and not isinstance(node, model.EventBasedGateway)):
        findings.notice(
            node,
            "implicit-end",
            f"Expected a sequence flow out of the {name_kind(node)}, but there is none: the path ends there.",
            "Draw an end event behind it, if that is meant.",
        )
    else:
        findings.report(
            node,
            "not-connected",
            f"Expected a sequence flow out of the {name_kind(node)}, but there is none.",
            _CONNECT,
        )


def _is_link(definitions: tuple[model.AnyEventDefinition, ...]) -> bool:
    return any(isinstance(one, model.LinkEventDefinition) for one in definitions)


# --- conditions and defaults ---


def _check_default(
    findings: Findings,
    node: model.Activity | model.ExclusiveGateway | model.InclusiveGateway | model.ComplexGateway,
    outgoing: list[SequenceFlow],
) -> None:
    if not node.default:
        return
    flow = next((one for one in outgoing if one.id == node.default), None)
    if flow is None:
        findings.report(
            node,
            "bad-default",
            f"Expected the default flow to be one of those that leave the {_show(node)}, but it is {node.default[:80]!r}.",
            "Choose one of its outgoing flows, or take the attribute out.",
        )
    elif flow.condition is not None:
        # BPMN 2.0, 13.4.2: "The default Sequence Flow should not have a conditionExpression. Any such Expression SHALL be
        # ignored."
        findings.notice(
            flow,
            "condition-of-default",
            "Expected a default flow without a condition, but it has one, which is ignored.",
            "Take the condition out.",
            line=flow.condition.line,
        )


def _check_conditional(findings: Findings, node: model.Activity, outgoing: list[SequenceFlow]) -> None:
    """BPMN 2.0, 8.3.13: with a conditional flow out of an activity, at least one flow has to be without a condition."""
    if len(outgoing) == 1 and outgoing[0].condition is not None and outgoing[0].id != node.default:
        findings.report(
            outgoing[0],
            "lonely-condition",
            f"Expected a second flow out of the {_show(node)}, since this one has a condition, but it is the only one.",
            "Add a default flow, or take the condition out.",
            line=outgoing[0].condition.line,
        )


def _check_choices(
    findings: Findings, node: model.ExclusiveGateway | model.InclusiveGateway, outgoing: list[SequenceFlow]
) -> None:
    if len(outgoing) < 2:
        return
    bare = [flow for flow in outgoing if flow.condition is None and flow.id != node.default]
    is_only = len(bare) == 1 and not node.default
    for flow in bare:
        findings.report(
            flow,
            "missing-condition",
            f"Expected a condition on each flow out of the {_show(node)} but its default one, but this one has none.",
            "Write a condition, or make it the default flow of the gateway.",
            severity=_find_severity(findings, "camunda-7") if is_only else Severity.ERROR,
        )


def _check_direction(findings: Findings, node: model.Gateway, incoming: int, outgoing: int) -> None:
    """BPMN 2.0, 10.6: the direction is a promise about the number of flows. It is not needed: the flows themselves count."""
    is_broken = (
        (node.direction == "Diverging" and incoming > 1)
        or (node.direction == "Converging" and outgoing > 1)
        or (node.direction == "Mixed" and (incoming < 2 or outgoing < 2))
    )
    if is_broken:
        findings.notice(
            node,
            "gateway-direction",
            f"Expected the flows of a gateway whose gatewayDirection is {node.direction!r}, but {incoming} lead to it and "
            f"{outgoing} leave it.",
            "Look whether a flow is missing, or take the attribute out.",
        )


def _show(node: model.FlowNode) -> str:
    return f"{name_kind(node)} {node.id!r}"
