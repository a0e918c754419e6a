"""The layout of a process or sub-process that has no places: nested sub-processes first, each then is a node around it.

What flows connect is laid out together, in layers from left to right. What they do not connect is put below each other;
single nodes stand beside each other in rows. With lanes, everything is one graph whose bands are the lanes. Annotations and
data objects stand above the node to which they belong, others above everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.bpmn.drawing import sizes
from holdfast.bpmn.drawing.arrangements import Arrangement
from holdfast.bpmn.drawing.channels import Placement, route
from holdfast.bpmn.drawing.geometry import Box
from holdfast.bpmn.drawing.graphs import Link, Node, Outline, make_layers
from holdfast.bpmn.drawing.ordering import order_layers
from holdfast.bpmn.drawing.rows import place_rows
from holdfast.bpmn.model import (
    Annotation,
    AnyContainer,
    AnyNode,
    Association,
    BoundaryEvent,
    DataObject,
    Lane,
    SequenceFlow,
    SubProcess,
)

Artifact: TypeAlias = Annotation | DataObject

ROW_WIDTH: Final = 800.0
"""Rows of single nodes are about as wide as this, if nothing else is wider."""
GAP: Final = 20.0
ARTIFACT_GAP: Final = 25.0


def lay_out(container: AnyContainer) -> Arrangement:
    """Place everything in a container, beginning at 0, 0; the container itself has no box in it."""
    return _Layout(container).run()


def list_drawn_data(container: AnyContainer) -> list[DataObject]:
    """The data objects of a container that are drawn: references, and objects that nothing refers to."""
    referred = {one.references for one in container.data_objects}
    return [one for one in container.data_objects if one.kind != "dataObject" or one.id not in referred]


@dataclass(slots=True)
class _Row:
    """Artifacts that stand beside each other above a node."""

    artifacts: list[Artifact] = field(default_factory=list)

    @property
    def width(self) -> float:
        return sum(_measure(one)[0] for one in self.artifacts) + GAP * max(0, len(self.artifacts) - 1)

    @property
    def height(self) -> float:
        return max((_measure(one)[1] for one in self.artifacts), default=-ARTIFACT_GAP) + ARTIFACT_GAP


class _Layout:
    """The layout of one container, step by step."""

    def __init__(self, container: AnyContainer) -> None:
        self.container = container
        self.nodes: dict[str, AnyNode] = {}
        self.hosted: dict[str, list[BoundaryEvent]] = {}
        self.host_of: dict[str, str] = {}
        self.inner: dict[str, Arrangement] = {}
        self.rows: dict[str, _Row] = {}
        self.result = Arrangement()
        self.leaves = list_leaves(container.lanes)
        self.depth = find_depth(container.lanes)

    def run(self) -> Arrangement:
        self._sort_nodes()
        for node in self.nodes.values():
            if isinstance(node, SubProcess) and _has_content(node):
                self.inner[node.id] = lay_out(node)
        loose = self._give_artifacts_places()
        links = self._make_links()
        bands = self._find_bands()
        nodes = [self._make_node(node, bands.get(node.id, 0)) for node in self.nodes.values()]
        if self.leaves:
            self._place_lanes(nodes, links, bands, loose)
        else:
            self._place_parts(nodes, links, loose)
        return self.result

    # --- what there is ----------------------------------------------------------------------------------------------------

    def _sort_nodes(self) -> None:
        every = {node.id: node for node in reversed(self.container.nodes) if node.id}
        for node in self.container.nodes:
            if every.get(node.id) is not node:
                continue
            host = every.get(node.attached_to) if isinstance(node, BoundaryEvent) else None
            if isinstance(node, BoundaryEvent) and host is not None and sizes.find_outline(host) is Outline.BOX:
                self.hosted.setdefault(host.id, []).append(node)
                self.host_of[node.id] = host.id
            else:
                self.nodes[node.id] = node

    def _give_artifacts_places(self) -> list[Artifact]:
        """Put artifacts above the node that they belong to. Returns those that belong to none."""
        artifacts: dict[str, Artifact] = {}
        listed: list[Artifact] = [*self.container.annotations, *list_drawn_data(self.container)]
        for one in listed:
            artifacts.setdefault(one.id, one)
        for association in self.container.associations:
            for artifact_id, other in ((association.source, association.target), (association.target, association.source)):
                node_id = self.host_of.get(other, other)
                if artifact_id in artifacts and node_id in self.nodes:
                    self.rows.setdefault(node_id, _Row()).artifacts.append(artifacts.pop(artifact_id))
                    break
        return list(artifacts.values())

    def _make_links(self) -> list[Link]:
        links: dict[str, Link] = {}
        lines: list[SequenceFlow | Association] = [*self.container.flows, *self.container.associations]
        for one in lines:
            source, target = self.host_of.get(one.source, one.source), self.host_of.get(one.target, one.target)
            if source not in self.nodes or target not in self.nodes or one.id in links or not one.id:
                continue
            if one.target in self.host_of:  # nothing may lead to a boundary event
                continue
            width, height = _measure_flow(one.name)
            boundary = one.source if one.source in self.host_of else ""
            links[one.id] = Link(
                id=one.id, source=source, target=target, boundary=boundary, label_width=width, label_height=height
            )
        return list(links.values())

    def _find_bands(self) -> dict[str, int]:
        if not self.leaves:
            return {}
        bands: dict[str, int] = {}
        for number, lane in enumerate(self.leaves):
            for id_ in lane.nodes:
                bands.setdefault(id_, number)
        for id_ in self.nodes:
            bands.setdefault(id_, len(self.leaves))
        return bands

    def _make_node(self, node: AnyNode, band: int) -> Node:
        width, height = sizes.find_size(node)
        if (inner := self.inner.get(node.id)) is not None and isinstance(node, SubProcess):
            title, footer = sizes.find_title_height(node), sizes.find_footer_height(node)
            width = max(inner.width + 2 * sizes.PADDING, TASK_MINIMUM)
            height = inner.height + sizes.PADDING + title + footer
        above = below = 0.0
        room = width
        if sizes.has_label_outside(node):
            label_width, label_height = sizes.measure_label(node.name)
            above = below = label_height + 4
            room = max(room, label_width + 8)
        boundaries = self.hosted.get(node.id, [])
        step = 50.0
        if boundaries:
            heights = [
                sizes.measure_label(one.name, sizes.BOUNDARY_LABEL_WIDTH)[1] for one in boundaries if one.name.strip()
            ]
            step = sizes.BOUNDARY_LABEL_WIDTH + 30 if heights else 50.0
            width = max(width, step * len(boundaries) + 30)
            room = max(room, width)
            below = sizes.EVENT / 2 + max(heights, default=0.0) + 4
        if (row := self.rows.get(node.id)) is not None:
            above += row.height
            room = max(room, row.width)
        return Node(
            id=node.id,
            width=width,
            height=height,
            outline=sizes.find_outline(node),
            above=above,
            is_covered=row is not None,
            below=below,
            room=room,
            band=band,
            boundaries=tuple(one.id for one in boundaries),
            boundary_step=step,
        )

    # --- placing ----------------------------------------------------------------------------------------------------------

    def _place_parts(self, nodes: list[Node], links: list[Link], loose: list[Artifact]) -> None:
        """Without lanes: connected parts below each other, single nodes in rows."""
        parts = split_parts(nodes, links)
        placed = [(part_nodes, place_graph(part_nodes, part_links)[0]) for part_nodes, part_links in parts]
        large = [one for part_nodes, one in placed if len(part_nodes) > 1]
        small = [(self._is_event_handler(part_nodes[0]), one) for part_nodes, one in placed if len(part_nodes) == 1]
        area = sum(one.width * one.height for _, one in small)
        widest = max([ROW_WIDTH, 1.3 * area**0.5, *(one.width for one in large)])
        y = self._place_loose(loose, 0.0, widest)
        for one in large:
            self._take(one, 0.0, y)
            y += one.height + GAP
        for kind in (False, True):
            y = self._place_row([one for is_handler, one in small if is_handler is kind], y, widest)
        self.result.height = max(0.0, y - GAP)
        self.result.width = self.result.find_area().right

    def _is_event_handler(self, node: Node) -> bool:
        found = self.nodes[node.id]
        return isinstance(found, SubProcess) and found.triggered_by_event

    def _place_row(self, placements: list[Placement], y: float, widest: float) -> float:
        x, height = 0.0, 0.0
        for one in placements:
            if x and x + one.width > widest:
                x, y, height = 0.0, y + height + GAP, 0.0
            self._take(one, x, y)
            x += one.width + 2 * GAP
            height = max(height, one.height)
        return y + height + GAP if placements else y

    def _place_loose(self, artifacts: list[Artifact], y: float, widest: float) -> float:
        x, height = 0.0, 0.0
        for one in artifacts:
            width, needed = _measure(one)
            if x and x + width > widest:
                x, y, height = 0.0, y + height + GAP, 0.0
            self._place_artifact(one, x, y)
            x += width + GAP
            height = max(height, needed)
        return y + height + GAP if artifacts else y

    def _place_artifact(self, one: Artifact, x: float, y: float) -> None:
        room, _ = _measure(one)
        if isinstance(one, Annotation):
            self.result.boxes[one.id] = Box(x, y, *sizes.find_annotation_size(one.text))
            return
        width, height = sizes.find_data_size(one)
        box = self.result.boxes[one.id] = Box(x + (room - width) / 2, y, width, height)
        if one.name.strip():
            self.result.labels[one.id] = sizes.place_below(box, one.name)

    def _place_lanes(self, nodes: list[Node], links: list[Link], bands: dict[str, int], loose: list[Artifact]) -> None:
        """With lanes: one graph whose bands they are."""
        least = {number: sizes.find_lane_height(lane.name) for number, lane in enumerate(self.leaves)}
        count = max([len(self.leaves), *(band + 1 for band in bands.values())])
        placement, extents = place_graph(nodes, links, bands=count, least_heights=least)
        left = sizes.HEADER * self.depth
        start = self._place_loose(loose, GAP / 2, max(ROW_WIDTH, placement.width)) if loose else 0.0
        if start:
            self.result.boxes = {id_: box.move(left + GAP, 0) for id_, box in self.result.boxes.items()}
            self.result.labels = {id_: box.move(left + GAP, 0) for id_, box in self.result.labels.items()}
        self._take(placement, left + GAP, start)
        right = max(self.result.find_area().right, left + 200) + GAP
        tops = {id(lane): extents[number] for number, lane in enumerate(self.leaves)}
        bottom = max(extents[len(self.leaves) - 1][1], placement.height if count == len(self.leaves) else 0.0)
        tops[id(self.leaves[-1])] = tops[id(self.leaves[-1])][0], bottom
        for lane in self.container.lanes:
            self._place_lane(lane, 0.0, right, tops, start)
        self.result.width, self.result.height = right, start + placement.height

    def _place_lane(
        self, lane: Lane, left: float, right: float, extents: dict[int, tuple[float, float]], start: float
    ) -> None:
        covered = [extents[id(leaf)] for leaf in list_leaves((lane,))]
        top, bottom = covered[0][0] + start, covered[-1][1] + start
        if not covered[0][0]:
            top = 0.0
        self.result.boxes[lane.id] = Box(left, top, right - left, bottom - top)
        for inner in lane.lanes:
            self._place_lane(inner, left + sizes.HEADER, right, extents, start)

    # --- from a graph to elements -----------------------------------------------------------------------------------------

    def _take(self, placement: Placement, x: float, y: float) -> None:
        """Take over what was placed, with what is in it and beside it."""
        result = self.result
        for id_, points in placement.points.items():
            result.lines[id_] = [(a + x, b + y) for a, b in points]
        for id_, box in placement.labels.items():
            result.labels[id_] = box.move(x, y)
        for id_, placed in placement.boxes.items():
            box = result.boxes[id_] = placed.move(x, y)
            node = self.nodes.get(id_)
            if node is not None:
                self._fill(node, box, placement.busy.get(id_, set()))
        for host, events in self.hosted.items():
            if host not in placement.boxes:
                continue
            for event in events:
                if event.name.strip():
                    box = result.boxes[event.id]
                    width, height = sizes.measure_label(event.name, sizes.BOUNDARY_LABEL_WIDTH)
                    result.labels[event.id] = Box(box.center[0] + 5, box.bottom + 1, width, height)

    def _fill(self, node: AnyNode, box: Box, busy: set[str]) -> None:
        if (inner := self.inner.get(node.id)) is not None and isinstance(node, SubProcess):
            self.result.take(inner, box.x + (box.width - inner.width) / 2, box.y + sizes.find_title_height(node))
        elif isinstance(node, SubProcess):
            self.result.collapsed.add(node.id)
        row = self.rows.get(node.id)
        label_height = 0.0
        if sizes.has_label_outside(node):
            label = sizes.place_below(box, node.name)
            if "bottom" in busy and "top" not in busy and row is None:
                label = sizes.place_above(box, node.name)
            elif "bottom" in busy:  # beside the line that leaves at the top
                above = sizes.place_above(box, node.name)
                label = above.move(above.width / 2 + 4, 0)
            label_height = label.height + 4
            self.result.labels[node.id] = label
        if row is not None:
            x = box.center[0] - row.width / 2
            for one in row.artifacts:
                width, height = _measure(one)
                self._place_artifact(one, x, box.y - label_height - ARTIFACT_GAP - height)
                x += width + GAP


TASK_MINIMUM: Final = 140.0
"""How wide an expanded sub-process is at least."""


def place_graph(
    nodes: list[Node], links: list[Link], *, bands: int = 1, least_heights: dict[int, float] | None = None
) -> tuple[Placement, list[tuple[float, float]]]:
    """Lay out one graph. Returns it, and where each band begins and ends."""
    graph = make_layers(nodes, links)
    order_layers(graph)
    extents = place_rows(graph, bands, least_heights or {})
    return route(graph, extents), extents


def split_parts(nodes: list[Node], links: list[Link]) -> list[tuple[list[Node], list[Link]]]:
    """The parts of a graph that no links connect, in the order of their first nodes."""
    roots = {one.id: one.id for one in nodes}

    def find(id_: str) -> str:
        while roots[id_] != id_:
            roots[id_] = roots[roots[id_]]
            id_ = roots[id_]
        return id_

    for link in links:
        roots[find(link.source)] = find(link.target)
    parts: dict[str, tuple[list[Node], list[Link]]] = {}
    for one in nodes:
        parts.setdefault(find(one.id), ([], []))[0].append(one)
    for link in links:
        parts[find(link.source)][1].append(link)
    return list(parts.values())


def list_leaves(lanes: Iterable[Lane]) -> list[Lane]:
    """The lanes that have no lanes in them, from top to bottom."""
    return [leaf for lane in lanes for leaf in (list_leaves(lane.lanes) if lane.lanes else [lane])]


def find_depth(lanes: Iterable[Lane]) -> int:
    """How many lanes are inside each other."""
    return max((1 + find_depth(lane.lanes) for lane in lanes), default=0)


def _has_content(container: AnyContainer) -> bool:
    return bool(container.nodes or container.annotations or list_drawn_data(container))


def _measure_flow(text: str) -> tuple[float, float]:
    return sizes.measure_label(text, sizes.FLOW_LABEL_WIDTH, sizes.FLOW_LABEL_LINES)


def _measure(one: Artifact) -> tuple[float, float]:
    """How wide and how high an artifact is with its name."""
    if isinstance(one, Annotation):
        return sizes.find_annotation_size(one.text)
    width, height = sizes.find_data_size(one)
    label_width, label_height = sizes.measure_label(one.name)
    return max(width, label_width), height + (label_height + 4 if label_height else 0.0)
