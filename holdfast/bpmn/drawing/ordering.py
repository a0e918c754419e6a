"""The order of each layer from top to bottom: barycentres, back and forth, and the best order that was seen.

Bands come before everything else, and what has the same barycentre stays in its order, which begins as that of the file: so
the result is the same each time, and the first of several branches is at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.bpmn.drawing.graphs import Item, Layered

SWEEPS: Final = 8
FEW: Final = 400
"""Units of a graph that is small enough to try whether neighbours should change places."""


def order_layers(graph: Layered) -> None:
    """Order the units of all layers, so that few links cross."""
    for layer in range(len(graph.layers)):
        graph.layers[layer].sort(key=lambda unit: unit[0].band)
        _number(graph, layer)
    best, fewest = _take_down(graph), _count_all(graph)
    if len(graph.layers) < 2:
        return
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        layers = range(1, len(graph.layers)) if forward else range(len(graph.layers) - 2, -1, -1)
        for layer in layers:
            _sort_layer(graph, layer, _get_left if forward else _get_right)
        crossings = _count_all(graph)
        if crossings < fewest or not sweep:
            best, fewest = _take_down(graph), crossings
        if not fewest:
            break
    graph.layers[:] = best
    for layer in range(len(graph.layers)):
        _number(graph, layer)
    if fewest and sum(map(len, graph.layers)) <= FEW:
        _swap_neighbours(graph)


def _take_down(graph: Layered) -> list[list[list[Item]]]:
    return [list(layer) for layer in graph.layers]


def _number(graph: Layered, layer: int) -> None:
    for index, item in enumerate(graph.list_items(layer)):
        item.index = index


def _get_left(item: Item) -> list[Item]:
    return item.left


def _get_right(item: Item) -> list[Item]:
    return item.right


def _sort_layer(graph: Layered, layer: int, find: Callable[[Item], list[Item]]) -> None:
    keys: dict[int, tuple[int, float]] = {}
    for unit in graph.layers[layer]:
        places = [neighbour.index for item in unit for neighbour in find(item)]
        keys[id(unit)] = unit[0].band, sum(places) / len(places) if places else unit[0].index
    graph.layers[layer].sort(key=lambda unit: keys[id(unit)])
    _number(graph, layer)


# --- crossings ------------------------------------------------------------------------------------------------------------


def _count_all(graph: Layered) -> int:
    return sum(count_crossings(graph.list_items(layer)) for layer in range(len(graph.layers) - 1))


def count_crossings(items: list[Item]) -> int:
    """How often links from the items of a layer to the next one cross."""
    ends = [end for item in items for end in sorted(neighbour.index for neighbour in item.right)]
    if not ends:
        return 0
    size = max(ends) + 1
    tree = [0] * (size + 1)
    crossings = 0
    for number, end in enumerate(ends):
        crossings += number - _sum(tree, end + 1)
        position = end + 1
        while position <= size:
            tree[position] += 1
            position += position & -position
    return crossings


def _sum(tree: list[int], position: int) -> int:
    total = 0
    while position:
        total += tree[position]
        position -= position & -position
    return total


def _swap_neighbours(graph: Layered) -> None:
    """Let neighbours of one band change places where fewer links cross then."""
    for _ in range(4):
        has_changed = False
        for units in graph.layers:
            for place in range(len(units) - 1):
                upper, lower = units[place], units[place + 1]
                if upper[0].band != lower[0].band:
                    continue
                if _count_between(lower, upper) < _count_between(upper, lower):
                    units[place], units[place + 1] = lower, upper
                    for index, item in enumerate([*lower, *upper], upper[0].index):
                        item.index = index
                    has_changed = True
        if not has_changed:
            return


def _count_between(upper: list[Item], lower: list[Item]) -> int:
    """How often links of two units cross if one is above the other."""
    crossings = 0
    for find in (_get_left, _get_right):
        above = [end.index for item in upper for end in find(item)]
        below = [end.index for item in lower for end in find(item)]
        crossings += sum(one > other for one in above for other in below)
    return crossings
