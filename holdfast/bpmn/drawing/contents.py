"""What of a file can be drawn, by id: shapes, lines, and in which container each of them is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from holdfast.bpmn.drawing import sizes
from holdfast.bpmn.drawing.graphs import Outline
from holdfast.bpmn.drawing.layout import list_drawn_data
from holdfast.bpmn.model import (
    Activity,
    Annotation,
    AnyContainer,
    AnyNode,
    Association,
    ComplexGateway,
    DataObject,
    Definitions,
    ExclusiveGateway,
    FlowNode,
    InclusiveGateway,
    Lane,
    MessageFlow,
    Participant,
    SequenceFlow,
    SubProcess,
)

AnyShape: TypeAlias = AnyNode | Annotation | DataObject | Lane | Participant
AnyLine: TypeAlias = SequenceFlow | Association | MessageFlow


class Contents:
    """The shapes and lines of a file. Of elements with the same id, the first counts."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.shapes: dict[str, AnyShape] = {}
        self.lines: dict[str, AnyLine] = {}
        self.parents: dict[str, str] = {}
        """The container of each shape and line: a process or sub-process."""
        self.defaults: set[str] = set()
        """Flows that are taken if no other is."""
        for participant in definitions.participants:
            self._add_shape(participant, "")
        for process in definitions.processes:
            self._add_container(process)
        for flow in definitions.message_flows:
            self.lines.setdefault(flow.id, flow)
        self.conditional = {
            line.id
            for line in self.lines.values()
            if isinstance(line, SequenceFlow)
            and line.condition is not None
            and line.id not in self.defaults
            and isinstance(self.shapes.get(line.source), Activity)
        }
        """Flows with a condition that leave an activity, and so have a diamond at their beginning."""

    def _add_container(self, container: AnyContainer) -> None:
        for lane in walk_lanes(container.lanes):
            self._add_shape(lane, container.id)
        for node in container.nodes:
            self._add_shape(node, container.id)
            if isinstance(node, (Activity, ExclusiveGateway, InclusiveGateway, ComplexGateway)) and node.default:
                self.defaults.add(node.default)
        artifacts: list[Annotation | DataObject] = [*container.annotations, *list_drawn_data(container)]
        for one in artifacts:
            self._add_shape(one, container.id)
        lines: list[AnyLine] = [*container.flows, *container.associations]
        for line in lines:
            if line.id and line.id not in self.lines:
                self.lines[line.id] = line
                self.parents.setdefault(line.id, container.id)
        for node in container.nodes:
            if isinstance(node, SubProcess):
                self._add_container(node)

    def _add_shape(self, shape: AnyShape, container: str) -> None:
        if shape.id and shape.id not in self.shapes:
            self.shapes[shape.id] = shape
            self.parents[shape.id] = container

    def list_ancestors(self, id_: str) -> Iterator[str]:
        """The containers around an element, the innermost first."""
        seen = {id_}
        current = self.parents.get(id_, "")
        while current and current not in seen:
            yield current
            seen.add(current)
            current = self.parents.get(current, "")

    def find_outline(self, id_: str) -> Outline:
        """Which form the shape of an element has."""
        shape = self.shapes.get(id_)
        return sizes.find_outline(shape) if isinstance(shape, FlowNode) else Outline.BOX

    def is_container(self, id_: str) -> bool:
        """Whether other shapes can be inside of that of an element."""
        return isinstance(self.shapes.get(id_), (SubProcess, Lane, Participant))


def walk_lanes(lanes: Iterable[Lane]) -> Iterator[Lane]:
    """All lanes, each before those in it."""
    for lane in lanes:
        yield lane
        yield from walk_lanes(lane.lanes)


def walk(container: AnyContainer) -> Iterator[AnyNode]:
    """All nodes in a container and in the sub-processes in it."""
    for node in container.nodes:
        yield node
        if isinstance(node, SubProcess):
            yield from walk(node)
