"""The x of each layer and the corners of each link.

Between two layers is a channel with tracks. A link that changes its y does so on a track of a channel, alone or together
with links that have its source or its target in common; so no link goes through a node, and none runs over another one.
Gateways are also left and reached at their upper and lower corners where nothing is in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from holdfast.bpmn.drawing.geometry import Box, Point, simplify
from holdfast.bpmn.drawing.graphs import Chain, Item, Layered, Link, Node, Outline

LEAST_CHANNEL: Final = 50.0
TRACK: Final = 12.0
MARGIN: Final = 20.0
CLEARANCE: Final = 6.0
EVENT_SIZE: Final = 36.0


@dataclass(slots=True)
class Placement:
    """Where everything of a graph is. It begins at 0, 0."""

    boxes: dict[str, Box] = field(default_factory=dict)
    points: dict[str, list[Point]] = field(default_factory=dict)
    labels: dict[str, Box] = field(default_factory=dict)
    """Labels of links."""
    busy: dict[str, set[str]] = field(default_factory=dict)
    """At which of its sides, `top` and `bottom`, lines meet a node."""
    bands: list[tuple[float, float]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


@dataclass(slots=True, eq=False)
class Track:
    """A vertical line of a channel, and at which heights links come to it from the left and leave it to the right."""

    lefts: list[float] = field(default_factory=list)
    rights: list[float] = field(default_factory=list)
    number: int = 0
    x: float = 0.0

    @property
    def span(self) -> tuple[float, float]:
        """From where to where it reaches, with some room."""
        every = [*self.lefts, *self.rights]
        return min(every) - CLEARANCE, max(every) + CLEARANCE

    @property
    def left(self) -> float:
        """Where links come to it, on average."""
        return sum(self.lefts) / len(self.lefts)

    @property
    def goes_down(self) -> bool:
        """Whether its links leave it farther down than they came."""
        return sum(self.rights) / len(self.rights) > self.left


def route(graph: Layered, bands: list[tuple[float, float]]) -> Placement:
    """Place layers and links of a graph whose items have their y."""
    return Router(graph, bands).run()


class Router:
    """Finds the x of layers and the corners of links, for one graph."""

    def __init__(self, graph: Layered, bands: list[tuple[float, float]]) -> None:
        self.graph = graph
        self.placement = Placement(bands=bands, height=bands[-1][1] if bands else 0.0)
        self.exits: dict[tuple[str, str], str] = {}
        """By node and side: whether links leave there or arrive."""
        self.tracks: list[dict[object, Track]] = [{} for _ in range(len(graph.layers) + 1)]
        """By channel, which is right of the layer before it: by what links have in common."""
        self.left_at_corner: set[str] = set()
        self.reached_at_corner: set[str] = set()
        self.outer_y: dict[str, float] = {}

    def run(self) -> Placement:
        """Place layers and boxes, then draw all links."""
        for chain in self.graph.chains:
            self._mark_anchors(chain)
        for chain in self.graph.loops:
            self._mark_anchors(chain)
        for chain in self.graph.chains:
            if not chain.is_back:
                self._choose_corners(chain)
        for chain in self.graph.chains:
            self._ask_for_tracks(chain)
        for link in self.graph.outer:
            self._ask_for_outer(link)
        for channel in self.tracks:
            number_tracks(channel)
        self._place_layers()
        self._place_boxes()
        for chain in self.graph.chains:
            self._draw(chain)
        for chain in self.graph.loops:
            self._draw_loop(chain)
        for link in self.graph.outer:
            self._draw_outer(link)
        for link_id, points in self.placement.points.items():
            self.placement.points[link_id] = simplify(points)
        for node_id, side in self.exits:
            self.placement.busy.setdefault(node_id, set()).add(side)
        return self.placement

    # --- corners of gateways ----------------------------------------------------------------------------------------------

    def _mark_anchors(self, chain: Chain) -> None:
        if not chain.link.boundary and (chain.is_back or chain.link.source == chain.link.target):
            self.exits[chain.link.source, "bottom"] = "anchor"
        if chain.is_back or chain.link.source == chain.link.target:
            self.exits[chain.link.target, "bottom"] = "anchor"

    def _choose_corners(self, chain: Chain) -> None:
        """Let a link leave or reach a gateway at its upper or lower corner, if nothing is in between."""
        first, second = chain.items[0], chain.items[1]
        if self._takes_corner(first, second.y, "leaving"):
            self.left_at_corner.add(chain.link.id)
            if len(chain.items) == 2:
                return
        before, last = chain.items[-2], chain.items[-1]
        if self._takes_corner(last, before.y, "arriving"):
            self.reached_at_corner.add(chain.link.id)

    def _takes_corner(self, item: Item, y: float, use: str) -> bool:
        node = item.node
        if node is None or node.outline is not Outline.DIAMOND or abs(item.y - y) < node.height / 2 + CLEARANCE:
            return False
        side = "top" if y < item.y else "bottom"
        if side == "top" and node.is_covered:
            return False
        if self.exits.get((node.id, side), use) != use:
            return False
        items = self.graph.list_items(item.layer)
        place = item.index + (-1 if side == "top" else 1)
        if 0 <= place < len(items):
            other = items[place]
            is_clear = other.y + other.below + CLEARANCE < y if side == "top" else other.y - other.above - CLEARANCE > y
            if not is_clear:
                return False
        self.exits[node.id, side] = use
        return True

    # --- tracks -----------------------------------------------------------------------------------------------------------

    def _ask_for_tracks(self, chain: Chain) -> None:
        for number, (left, right) in enumerate(zip(chain.items, chain.items[1:], strict=False)):
            if self._is_straight(chain, number):
                continue
            track = self.tracks[left.layer + 1].setdefault(_find_common(left, right), Track())
            track.lefts.append(left.y)
            track.rights.append(right.y)

    def _is_straight(self, chain: Chain, number: int) -> bool:
        """Whether a link needs no track between two of its items: it stays on its y, or turns at a gateway."""
        left, right = chain.items[number], chain.items[number + 1]
        if abs(left.y - right.y) < 0.01:
            return True
        if not number and chain.link.id in self.left_at_corner:
            return True
        return number == len(chain.items) - 2 and chain.link.id in self.reached_at_corner

    def _ask_for_outer(self, link: Link) -> None:
        """A link that goes around below everything: down behind its source, up before its target."""
        source, target = self.graph.nodes[link.source], self.graph.nodes[link.target]
        y = self.outer_y.get(link.target)
        if y is None:
            y = self.outer_y[link.target] = self.placement.height + TRACK * (len(self.outer_y) + 1)
        down = self.tracks[source.layer + 1].setdefault(("outer", link.source), Track([source.y]))
        down.rights.append(y)
        self.tracks[target.layer].setdefault(("outer to", link.target), Track([y], [target.y]))

    # --- places -----------------------------------------------------------------------------------------------------------

    def _place_layers(self) -> None:
        labels = [0.0] * (len(self.graph.layers) + 1)
        for chain in self.graph.chains:
            if chain.link.label_width and not chain.is_back:
                channel = chain.items[0].layer + 1
                labels[channel] = max(labels[channel], chain.link.label_width + MARGIN)
        first = max((one.number for one in self.tracks[0].values()), default=-1) + 1
        x = MARGIN + first * TRACK if first else 0.0
        for layer in range(len(self.graph.layers)):
            items = self.graph.list_items(layer)
            width = max((_find_room(item) for item in items), default=0.0)
            for item in items:
                item.x = x + width / 2
            count = max((one.number for one in self.tracks[layer + 1].values()), default=-1) + 1
            for track in self.tracks[layer + 1].values():
                track.x = x + width + MARGIN + track.number * TRACK
            room = max(LEAST_CHANNEL, 2 * MARGIN + (count - 1) * TRACK)
            x += width + max(room, labels[layer + 1] + count * TRACK + MARGIN / 2)
            self.placement.width = max(self.placement.width, x)
        for track in self.tracks[0].values():
            track.x = MARGIN / 2 + track.number * TRACK
        if self.outer_y:
            self.placement.height = max(self.outer_y.values()) + TRACK

    def _place_boxes(self) -> None:
        for id_, item in self.graph.nodes.items():
            node = _get_node(item)
            width, height = node.width, node.height
            self.placement.boxes[id_] = Box(item.x - width / 2, item.y - height / 2, width, height)
        for boundary, (host, port) in self.graph.boundary_ports.items():
            bottom = self.placement.boxes[_get_node(host).id].bottom
            half = EVENT_SIZE / 2
            self.placement.boxes[boundary] = Box(host.x + port - half, bottom - half, EVENT_SIZE, EVENT_SIZE)
        last = len(self.graph.layers) - 1
        right = max((item.x + _find_room(item) / 2 for item in self.graph.nodes.values()), default=0.0)
        used = [track.x for track in self.tracks[last + 1].values()] if last >= 0 else []
        loops = [self.placement.boxes[chain.link.source].right + MARGIN for chain in self.graph.loops]
        self.placement.width = max([right, *(one + TRACK for one in used), *loops])

    # --- lines ------------------------------------------------------------------------------------------------------------

    def _draw(self, chain: Chain) -> None:
        link = chain.link
        source, target = self.placement.boxes[link.source], self.placement.boxes[link.target]
        points: list[Point] = []
        first, last = chain.items[0], chain.items[-1]
        if chain.is_back:
            points.append(self._meet_below(link.target, first))
            points.append((points[0][0], first.y))
        elif first.node is None:
            points.append(self._leave_boundary(link))
            points.append((points[0][0], first.y))
        elif link.id in self.left_at_corner:
            y = chain.items[1].y
            points.append((source.center[0], source.y if y < source.center[1] else source.bottom))
            points.append((source.center[0], y))
        else:
            points.append((source.right, source.center[1]))
        for number, (left, right) in enumerate(zip(chain.items, chain.items[1:], strict=False)):
            if not self._is_straight(chain, number):
                x = self.tracks[left.layer + 1][_find_common(left, right)].x
                points += [(x, left.y), (x, right.y)]
        if chain.is_back:
            end = self._leave_boundary(link) if link.boundary else self._meet_below(link.source, last)
            points += [(end[0], last.y), end]
            points.reverse()
        elif link.id in self.reached_at_corner:
            y = chain.items[-2].y
            points += [(target.center[0], y), (target.center[0], target.y if y < target.center[1] else target.bottom)]
        else:
            points.append((target.x, target.center[1]))
        self.placement.points[link.id] = points
        if link.label_width:
            self._place_label(chain)

    def _place_label(self, chain: Chain) -> None:
        """The label stands on the line, where it has left its source and turned to its target."""
        link = chain.link
        if chain.is_back:
            last = chain.items[-1]
            x = self.placement.points[link.id][0][0] - MARGIN / 2 - link.label_width
            self.placement.labels[link.id] = Box(x, last.y - link.label_height - 2, link.label_width, link.label_height)
            return
        first, second = chain.items[0], chain.items[1]
        x = first.x + max((_find_room(item) for item in self.graph.list_items(first.layer)), default=0.0) / 2 + 6
        if not self._is_straight(chain, 0):
            x = self.tracks[first.layer + 1][_find_common(first, second)].x + 6
        stays = len(chain.items) == 2 and link.id in self.reached_at_corner
        y = first.y if stays else second.y
        self.placement.labels[link.id] = Box(x, y - link.label_height - 2, link.label_width, link.label_height)

    def _meet_below(self, node_id: str, anchor: Item) -> Point:
        """Where a line from below meets a node."""
        item = self.graph.nodes[node_id]
        return item.x + anchor.port, item.y + find_lower_edge(_get_node(item), anchor.port)

    def _leave_boundary(self, link: Link) -> Point:
        box = self.placement.boxes[link.boundary]
        return box.center[0], box.bottom

    def _draw_loop(self, chain: Chain) -> None:
        """A link of a node to itself: around its right lower corner."""
        anchor, link = chain.items[0], chain.link
        box = self.placement.boxes[link.source]
        end = self._meet_below(link.source, anchor)
        if link.boundary:
            start = self._leave_boundary(link)
            x = box.right + MARGIN / 2
            self.placement.points[link.id] = [start, (start[0], anchor.y), (end[0], anchor.y), end]
            return
        x = box.right + MARGIN / 2
        self.placement.points[link.id] = [
            (box.right, box.center[1]),
            (x, box.center[1]),
            (x, anchor.y),
            (end[0], anchor.y),
            end,
        ]

    def _draw_outer(self, link: Link) -> None:
        source, target = self.graph.nodes[link.source], self.graph.nodes[link.target]
        start_box, end_box = self.placement.boxes[link.source], self.placement.boxes[link.target]
        y = self.outer_y[link.target]
        down = self.tracks[source.layer + 1]["outer", link.source].x
        up = self.tracks[target.layer]["outer to", link.target].x
        start: list[Point] = [(start_box.right, source.y), (down, source.y)]
        if link.boundary:
            box = self.placement.boxes[link.boundary]
            start = [(box.center[0], box.bottom), (box.center[0], box.bottom + 8), (down, box.bottom + 8)]
        self.placement.points[link.id] = [*start, (down, y), (up, y), (up, target.y), (end_box.x, target.y)]


def _get_node(item: Item) -> Node:
    if item.node is None:  # only bends and anchors have none
        raise LookupError("Expected an item with a node, but it is a bend. Give another.")
    return item.node


def _find_room(item: Item) -> float:
    return 0.0 if item.node is None else max(item.node.width, item.node.room)


def _find_common(left: Item, right: Item) -> object:
    """What links have in common that share a track: their source, or else their target."""
    if len(left.right) > 1:
        return "left", id(left)
    if len(right.left) > 1:
        return "right", id(right)
    return "only", id(left), id(right)


def find_lower_edge(node: Node, offset: float) -> float:
    """How far below its centre the border of a node is, so far right of the centre."""
    half = node.height / 2
    if node.outline is Outline.DIAMOND:
        return half * max(0.0, 1 - abs(offset) / (node.width / 2))
    if node.outline is Outline.ROUND:
        return math.sqrt(max(0.0, half**2 - offset**2))
    return half


def number_tracks(channel: dict[object, Track]) -> None:
    """Give the tracks of a channel their numbers from the left, so that lines beside each other cross seldom."""
    down = sorted((one for one in channel.values() if one.goes_down), key=lambda one: -one.left)
    up = sorted((one for one in channel.values() if not one.goes_down), key=lambda one: one.left)
    placed: list[tuple[float, float, int]] = []
    for track in [*down, *up]:
        low, high = track.span
        track.number = max((number + 1 for top, bottom, number in placed if top < high and low < bottom), default=0)
        placed.append((low, high, track.number))
