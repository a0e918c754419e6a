"""The y of each item, so that many links are straight.

Links between neighbouring layers that do not cross each other are chosen to be straight; what they connect is a **block**,
whose items have one y. A block that is above another in one layer is above it in all, so the blocks have an order. First
each one is put as high as those above it allow; then they move towards what they are linked to, as far as their neighbours
allow.

Bands are placed one after the other, each on its own: links between bands are never straight.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from holdfast.bpmn.drawing.graphs import Item, Layered

GAP: Final = 30.0
LINE_GAP: Final = 4.0
ROUNDS: Final = 6


@dataclass(slots=True, eq=False)
class Block:
    """Items of neighbouring layers that have one y."""

    items: list[Item]
    y: float = 0.0
    above: dict[int, tuple[Block, float]] = field(default_factory=dict)
    """The blocks right above, each with how far away this one must stay."""
    below: dict[int, tuple[Block, float]] = field(default_factory=dict)
    neighbours: list[Block] = field(default_factory=list)


def place_rows(graph: Layered, bands: int, least_heights: dict[int, float]) -> list[tuple[float, float]]:
    """Give all items their y. Returns where each band begins and ends; it begins at 0, and has no gaps.

    A band is at least as high as `least_heights` says, which holds the bands that must be there even if empty.
    """
    columns: list[list[list[Item]]] = [[] for _ in range(bands)]
    for layer in range(len(graph.layers)):
        for column in columns:
            column.append([])
        for item in graph.list_items(layer):
            columns[item.band][-1].append(item)
    extents: list[tuple[float, float]] = []
    top = 0.0
    for band, column in enumerate(columns):
        bottom = top + max(_place_band(column, top), least_heights.get(band, 0.0))
        extents.append((top, bottom))
        top = bottom
    return extents


def _place_band(column: list[list[Item]], top: float) -> float:
    """Place the items of one band below `top`. Returns how high the band is, with half a gap at both ends."""
    blocks = _make_blocks(column)
    if not blocks:
        return 0.0
    ordered = _connect(column, blocks)
    for block in ordered:
        block.y = max((one.y + distance for one, distance in block.above.values()), default=0.0)
    for _ in range(ROUNDS):
        for block in reversed(ordered):
            _move(block)
        for block in ordered:
            _move(block)
    first = min(block.y - item.above for block in blocks for item in block.items)
    last = max(block.y + item.below for block in blocks for item in block.items)
    for block in blocks:
        for item in block.items:
            item.y = block.y - first + top + GAP / 2
    return last - first + GAP


def _move(block: Block) -> None:
    """Move a block to the middle of what it is linked to, as far as its neighbours allow."""
    if not block.neighbours:
        return
    ends = sorted(one.y for one in block.neighbours)
    wanted = ends[(len(ends) - 1) // 2]
    lowest = min((one.y - distance for one, distance in block.below.values()), default=math.inf)
    highest = max((one.y + distance for one, distance in block.above.values()), default=-math.inf)
    block.y = max(min(wanted, lowest), highest)


# --- blocks ---------------------------------------------------------------------------------------------------------------


def _make_blocks(column: list[list[Item]]) -> list[Block]:
    following: dict[int, Item] = {}
    preceded: set[int] = set()
    for items in column:
        for left, right in _choose_straight(items):
            following[id(left)] = right
            preceded.add(id(right))
    blocks: list[Block] = []
    for items in column:
        for item in items:
            if id(item) in preceded:
                continue
            block = Block([item])
            while (after := following.get(id(block.items[-1]))) is not None:
                block.items.append(after)
            blocks.append(block)
    return blocks


def _choose_straight(items: list[Item]) -> list[tuple[Item, Item]]:
    """The links from a layer to the next that are to be straight: the best ones first, none that crosses one before it."""
    offers: list[tuple[int, float, int, int, Item, Item]] = []
    for item in items:
        for rank, end in enumerate(sorted(item.right, key=lambda one: one.index)):
            if end.band != item.band:
                continue
            arriving = sorted(end.left, key=lambda one: one.index)
            off_middle = abs(rank - (len(item.right) - 1) / 2) + abs(arriving.index(item) - (len(arriving) - 1) / 2)
            offers.append((-_rate(item, end), off_middle, item.index, end.index, item, end))
    offers.sort(key=lambda one: one[:4])
    chosen: list[tuple[int, int]] = []
    pairs: list[tuple[Item, Item]] = []
    lefts: set[int] = set()
    rights: set[int] = set()
    for _, _, left, right, item, end in offers:
        if left in lefts or right in rights:
            continue
        place = bisect_left(chosen, (left, right))
        if place and chosen[place - 1][1] > right:
            continue
        if place < len(chosen) and chosen[place][1] < right:
            continue
        chosen.insert(place, (left, right))
        lefts.add(left)
        rights.add(right)
        pairs.append((item, end))
    return pairs


def _rate(item: Item, end: Item) -> int:
    """How much it matters that a link is straight: long ones most, then those between two nodes."""
    if item.node is None and end.node is None:
        return 3
    return 2 if item.node is not None and end.node is not None else 1


def _connect(column: list[list[Item]], blocks: list[Block]) -> list[Block]:
    """Tell blocks their neighbours. Returns them in an order in which each comes after all that are above it."""
    by_item = {id(item): block for block in blocks for item in block.items}
    for items in column:
        for upper, lower in itertools.pairwise(items):
            one, other = by_item[id(upper)], by_item[id(lower)]
            distance = upper.below + lower.above + find_gap(upper, lower)
            known = other.above.get(id(one))
            if known is None or known[1] < distance:
                other.above[id(one)] = one, distance
                one.below[id(other)] = other, distance
    for block in blocks:
        for item in block.items:
            ends = [by_item.get(id(end)) for end in (*item.left, *item.right)]
            block.neighbours.extend(end for end in ends if end is not None and end is not block)
    missing = {id(block): len(block.above) for block in blocks}
    ordered = [block for block in blocks if not block.above]
    for block in ordered:  # grows as it is read
        for lower_block, _ in block.below.values():
            missing[id(lower_block)] -= 1
            if not missing[id(lower_block)]:
                ordered.append(lower_block)
    return ordered


def find_gap(upper: Item, lower: Item) -> float:
    """How much room stays free between two items of a layer."""
    if upper.node is not None and lower.node is not None:
        return GAP
    return LINE_GAP
