"""A graph in layers, from left to right: the first step of laying out a diagram that has no places yet.

The steps, each in a file of its own:

1. here: cycles are broken, each node gets the layer behind its farthest predecessor, and links become **chains** of items,
   one in each layer that they pass;
2. `ordering`: the items of each layer are ordered from top to bottom, so that few links cross;
3. `rows`: each item gets its y, so that many links are straight;
4. `channels`: layers get their x, links their corners. Between two layers is a channel, the only place where links go up and
   down; so no link goes through a node.

**Items** of a layer are nodes, bends and anchors. A *bend* is where a link passes a layer. An *anchor* is room below a node
for a link that leaves or reaches it from below: links of boundary events, and links that go back to an earlier layer. A node
and its anchors are one **unit**: they stay together, in their order.

Links that would pass very many layers get no chain. They go around below everything: `outer`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

MOST_BENDS: Final = 6000
"""Bends of one graph; the longest links go around below it where there would be more."""


class Outline(Enum):
    """What form a node has, and so where lines meet it."""

    BOX = "box"
    ROUND = "round"
    DIAMOND = "diamond"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What is to be placed. `above` and `below` are room beyond its shape, for labels and what belongs to it."""

    id: str
    width: float
    height: float
    outline: Outline = Outline.BOX
    above: float = 0.0
    below: float = 0.0
    is_covered: bool = False
    """Whether something stands above it, so that no link can meet it there."""
    room: float = 0.0
    """The width that it needs with its labels."""
    band: int = 0
    """Nodes of a lower band are above those of a higher one in every layer: lanes."""
    boundaries: tuple[str, ...] = ()
    """Boundary events, which stand on its lower side."""
    boundary_step: float = 50.0
    """How far boundary events stand from each other; at least 50."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What leads from one node to another; `boundary` names the event on the lower side of its source that it leaves by."""

    id: str
    source: str
    target: str
    boundary: str = ""
    label_width: float = 0.0
    label_height: float = 0.0


@dataclass(slots=True, eq=False)
class Item:
    """One place in a layer: a node, an anchor below one, or a bend of a link."""

    layer: int
    band: int
    node: Node | None = None
    above: float = 8.0
    below: float = 8.0
    port: float = 0.0
    """Of an anchor: how far right of its node's centre its link meets the node."""
    index: int = 0
    """Its place in the layer, from the top."""
    x: float = 0.0
    y: float = 0.0
    left: list[Item] = field(default_factory=list)
    right: list[Item] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Chain:
    """The way of a link through the layers, from left to right; one that goes back is taken the other way round."""

    link: Link
    items: list[Item]
    is_back: bool = False


@dataclass(slots=True, eq=False)
class Layered:
    """A graph in layers; each layer is a list of units from top to bottom, a unit is a node with its anchors or one bend."""

    layers: list[list[list[Item]]]
    nodes: dict[str, Item]
    chains: list[Chain]
    loops: list[Chain]
    """Links of a node to itself: an anchor each."""
    outer: list[Link]
    boundary_ports: dict[str, tuple[Item, float]]
    """Where boundary events stand: their host, and how far right of its centre."""

    def list_items(self, layer: int) -> list[Item]:
        """The items of a layer from top to bottom."""
        return [item for unit in self.layers[layer] for item in unit]


def make_layers(nodes: list[Node], links: list[Link]) -> Layered:
    """Put nodes into layers, and links into chains between them. The ends of every link must be among the nodes."""
    back = find_back_links(nodes, links)
    depths = find_depths(nodes, links, back)
    outer = _find_outer(links, depths)
    units = {one.id: [_make_item(one, depths[one.id])] for one in nodes}
    graph = Layered(
        layers=[[] for _ in range(max(depths.values(), default=-1) + 1)],
        nodes={id_: unit[0] for id_, unit in units.items()},
        chains=[],
        loops=[],
        outer=[one for one in links if one.id in outer],
        boundary_ports={},
    )
    for one in nodes:
        graph.layers[depths[one.id]].append(units[one.id])
    _add_anchors(graph, units, [one for one in links if one.id not in outer], back)
    for chain in graph.chains:
        _add_bends(graph, chain)
    return graph


def _make_item(node: Node, layer: int) -> Item:
    half = node.height / 2
    return Item(layer, node.band, node, above=half + node.above, below=half + node.below)


# --- layers ---------------------------------------------------------------------------------------------------------------


def find_back_links(nodes: list[Node], links: list[Link]) -> set[str]:
    """Links that close a cycle when the nodes are visited depth first, those without an incoming link first."""
    leaving: dict[str, list[Link]] = {one.id: [] for one in nodes}
    reached = set()
    for link in links:
        if link.source != link.target:
            leaving[link.source].append(link)
            reached.add(link.target)
    roots = [one.id for one in nodes if one.id not in reached] + [one.id for one in nodes if one.id in reached]
    back: set[str] = set()
    seen: set[str] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        on_way = {root}
        stack = [(root, iter(leaving[root]))]
        while stack:
            current, remaining = stack[-1]
            link_or_none = next(remaining, None)
            if link_or_none is None:
                on_way.discard(current)
                stack.pop()
            elif link_or_none.target in on_way:
                back.add(link_or_none.id)
            elif link_or_none.target not in seen:
                seen.add(link_or_none.target)
                on_way.add(link_or_none.target)
                stack.append((link_or_none.target, iter(leaving[link_or_none.target])))
    return back


def find_depths(nodes: list[Node], links: list[Link], back: set[str]) -> dict[str, int]:
    """The layer of each node: how many links the longest way to it has, those that go back left out.

    Links between the same two nodes count twice: each has a bend of its own then, and none runs over the other.
    """
    leaving: dict[str, list[str]] = {one.id: [] for one in nodes}
    missing = dict.fromkeys(leaving, 0)
    for link in links:
        if link.id not in back and link.source != link.target:
            leaving[link.source].append(link.target)
            missing[link.target] += 1
    twins = Counter(frozenset((link.source, link.target)) for link in links)
    depths = dict.fromkeys(leaving, 0)
    ready = [id_ for id_, count in missing.items() if not count]
    for id_ in ready:  # grows as it is read
        for target in leaving[id_]:
            length = 1 if twins[frozenset((id_, target))] == 1 else 2
            depths[target] = max(depths[target], depths[id_] + length)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return depths


def _find_outer(links: list[Link], depths: dict[str, int]) -> set[str]:
    """The longest links, if there would be too many bends."""
    spans = sorted(((abs(depths[one.target] - depths[one.source]), one.id) for one in links), reverse=True)
    bends = sum(max(0, span - 1) for span, _ in spans)
    outer: set[str] = set()
    for span, id_ in spans:
        if bends <= MOST_BENDS:
            break
        outer.add(id_)
        bends -= span - 1
    return outer


# --- chains ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Ports:
    """What meets the lower side of a node beside its boundary events."""

    leaving: list[Link] = field(default_factory=list)
    arriving: list[Link] = field(default_factory=list)


def _add_anchors(graph: Layered, units: dict[str, list[Item]], links: list[Link], back: set[str]) -> None:
    ports, by_boundary = _sort_ports(units, links, back)
    sources: dict[str, Item] = {}
    targets: dict[str, Item] = {}
    for id_, unit in units.items():
        node = unit[0].node
        if node is None:
            continue
        leaving, arriving = ports[id_].leaving, ports[id_].arriving
        places = place_ports(node, len(leaving) + len(arriving))
        to_left = list(zip(places, leaving, strict=False))
        to_right = [(place, link, True) for place, link in zip(places[len(leaving) :], arriving, strict=False)]
        for boundary, place in zip(node.boundaries, places[len(places) - len(node.boundaries) :], strict=True):
            graph.boundary_ports[boundary] = unit[0], place
            for link in by_boundary.get(boundary, ()):
                if link.id in back:
                    to_left.append((place, link))
                else:
                    to_right.append((place, link, False))
        for place, link in sorted(to_left, key=lambda one: one[0]):
            sources[link.id] = _add_anchor(unit, place)
        for place, link, is_arriving in sorted(to_right, key=lambda one: -one[0]):
            (targets if is_arriving else sources)[link.id] = _add_anchor(unit, place)
    for link in links:
        source, target = units[link.source][0], units[link.target][0]
        if link.source == link.target:
            graph.loops.append(Chain(link, [targets[link.id]]))
        elif link.id in back:
            graph.chains.append(Chain(link, [targets[link.id], sources[link.id]], is_back=True))
        else:
            graph.chains.append(Chain(link, [sources.get(link.id, source), target]))


def _sort_ports(
    units: dict[str, list[Item]], links: list[Link], back: set[str]
) -> tuple[dict[str, _Ports], dict[str, list[Link]]]:
    """Which links meet the lower side of each node, and which leave each boundary event."""
    ports = {id_: _Ports() for id_ in units}
    by_boundary: dict[str, list[Link]] = {}
    for link in links:
        is_loop = link.source == link.target
        if link.boundary:
            by_boundary.setdefault(link.boundary, []).append(link)
        elif link.id in back and not is_loop:
            ports[link.source].leaving.append(link)
        if link.id in back or is_loop:
            ports[link.target].arriving.append(link)
    return ports, by_boundary


def _add_anchor(unit: list[Item], port: float) -> Item:
    anchor = Item(unit[0].layer, unit[0].band, port=port)
    unit.append(anchor)
    return anchor


def place_ports(node: Node, others: int) -> list[float]:
    """How far right of a node's centre lines and boundary events meet its lower side: first lines, at last events."""
    events = len(node.boundaries)
    if node.outline is not Outline.BOX:
        step = min(12.0, node.width / 2 / max(1, others + events))
        middle = (others + events - 1) / 2
        return [(number - middle) * step for number in range(others + events)]
    if not events:
        return [node.width * (number + 1) / (others + 1) - node.width / 2 for number in range(others)]
    first = node.width / 2 - (node.boundary_step - 25) - node.boundary_step * (events - 1)
    step = (first - 18 + node.width / 2) / (others + 1)
    return [
        *(step * (number + 1) - node.width / 2 for number in range(others)),
        *(first + node.boundary_step * number for number in range(events)),
    ]


def _add_bends(graph: Layered, chain: Chain) -> None:
    first, last = chain.items
    bends = [Item(layer, first.band) for layer in range(first.layer + 1, last.layer)]
    for bend in bends:
        graph.layers[bend.layer].append([bend])
    if bends and not chain.is_back:
        bends[0].above += chain.link.label_height
    chain.items = [first, *bends, last]
    for item, following in zip(chain.items, chain.items[1:], strict=False):
        item.right.append(following)
        following.left.append(item)
