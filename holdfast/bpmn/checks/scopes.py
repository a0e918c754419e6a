"""Containers with what lies inside them, found once for all checks: nodes by id, flows by their ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.bpmn.model import AnyContainer, AnyNode, BoundaryEvent, EndEvent, Process, SequenceFlow, StartEvent, SubProcess


@dataclass(frozen=True, slots=True)
class Scope:
    """A process or sub-process, without the content of the sub-processes in it."""

    container: AnyContainer
    nodes: dict[str, AnyNode]
    incoming: dict[str, list[SequenceFlow]] = field(default_factory=dict)
    """Flows by their targets."""
    outgoing: dict[str, list[SequenceFlow]] = field(default_factory=dict)
    """Flows by their sources."""
    boundaries: dict[str, list[BoundaryEvent]] = field(default_factory=dict)
    """Boundary events by their hosts."""

    @property
    def is_process(self) -> bool:
        """Whether it is a whole process."""
        return isinstance(self.container, Process)

    @property
    def is_event_sub_process(self) -> bool:
        """Whether it is started by an event of the scope around it."""
        return isinstance(self.container, SubProcess) and self.container.triggered_by_event

    @property
    def begins_without_start(self) -> bool:
        """Whether it begins with all nodes that no flow leads to.

        BPMN 2.0, 10.5.2: that is so where no start event is used; and if there is an end event, there must be a start event.
        """
        return not self.is_event_sub_process and not any(
            isinstance(node, StartEvent | EndEvent) for node in self.container.nodes
        )

    def list_starts(self) -> list[StartEvent]:
        """Its start events, in the order of the file."""
        return [node for node in self.container.nodes if isinstance(node, StartEvent)]


def make_scopes(process: Process) -> list[Scope]:
    """All scopes of a process, the outer ones first."""
    return list(_walk(process))


def _walk(container: AnyContainer) -> Iterator[Scope]:
    yield _make(container)
    for node in container.nodes:
        if isinstance(node, SubProcess):
            yield from _walk(node)


def _make(container: AnyContainer) -> Scope:
    scope = Scope(container, {node.id: node for node in container.nodes})
    for flow in container.flows:
        scope.incoming.setdefault(flow.target, []).append(flow)
        scope.outgoing.setdefault(flow.source, []).append(flow)
    for node in container.nodes:
        if isinstance(node, BoundaryEvent):
            scope.boundaries.setdefault(node.attached_to, []).append(node)
    return scope
