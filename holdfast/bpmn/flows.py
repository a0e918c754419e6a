"""Which outgoing flows a token takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bpmn.faults import Fault
from holdfast.bpmn.work import ExclusiveWork

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.variables import View


def choose_flows(run: Run, node: Node, view: View) -> tuple[str, ...]:
    """The flows that are taken out of an element whose flows have conditions. Raises Fault if there is none.

    An exclusive gateway takes the first whose condition holds, in the order of the file, else the default one. Conditional
    flows out of anything else are taken as by an inclusive gateway, beside those without a condition.
    """
    is_exclusive = isinstance(node.work, ExclusiveWork)
    taken: list[str] = []
    default = ""
    has_chosen = False
    for flow in node.outgoing:
        if flow.is_default:
            default = flow.id
        elif flow.condition is None:
            if is_exclusive:
                return (flow.id,)
            taken.append(flow.id)
        elif run.evaluator.holds(flow.condition, view, f"the condition of flow '{flow.id}'"):
            if is_exclusive:
                return (flow.id,)
            taken.append(flow.id)
            has_chosen = True
    if default and not has_chosen:
        taken.append(default)
    if not taken:
        raise Fault(
            "condition",
            f"Expected a condition of the flows out of '{node.id}' to hold, but none does, and there is no default flow. "
            "Set the variables that they read, or draw a default flow in a new version.",
        )
    return tuple(taken)
