"""Embedded sub-processes and event sub-processes; call activities are in `calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.bpmn import model
from holdfast.bpmn.handlers.protocol import WaitingHandler
from holdfast.bpmn.state import ELEMENT
from holdfast.bpmn.waiting import Prepared, arm, prepare

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Container, Node
    from holdfast.bpmn.records import Wait
    from holdfast.bpmn.running import Place, Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View


class SubProcessHandler(WaitingHandler):
    """Embedded sub-processes: a scope of variables, complete when no token is left inside."""

    is_scope = True

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> list[Prepared]:
        """Evaluate what its event sub-processes wait for."""
        del place
        return [] if node.inner is None else [prepare(run, catch, view) for catch in node.inner.catches]

    def start(self, run: Run, one: Instance, node: Node, prepared: list[Prepared]) -> None:
        """Subscribe its event sub-processes, and let a token begin inside."""
        arm(run, one, prepared)
        if node.inner is not None:
            begin_inside(run, one, node.inner)

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """A sub-process waits for nothing itself."""


def begin_inside(run: Run, one: Instance, container: Container) -> None:
    """Let tokens begin in a container: at its start event, or wherever no flow comes in."""
    initial = container.initial
    if not initial:  # an event sub-process that goes on after an incident
        initial = tuple(node for node in container.nodes.values() if isinstance(node.element, model.StartEvent))
    for node in initial:
        run.push(one.key, ELEMENT, node.id)
    run.touched.append(one.key)
