"""Which places of a drawing are taken, found quickly also in large ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.bpmn.drawing.geometry import Box

CELL: Final = 200.0
MOST_CELLS: Final = 100
"""A box that covers more of them is kept apart."""


class Occupied:
    """Boxes that others must not cover, sorted into the cells of a grid."""

    def __init__(self, boxes: Iterable[Box] = ()) -> None:
        self.cells: dict[tuple[int, int], list[Box]] = {}
        self.large: list[Box] = []
        for box in boxes:
            self.add(box)

    def add(self, box: Box) -> None:
        """Take the place that a box covers."""
        cells = list(_list_cells(box))
        if not cells:
            self.large.append(box)
        for cell in cells:
            self.cells.setdefault(cell, []).append(box)

    def meets(self, box: Box) -> bool:
        """Whether a box covers something that is taken."""
        if any(box.meets(other) for other in self.large):
            return True
        return any(box.meets(other) for cell in _list_cells(box) for other in self.cells.get(cell, ()))


def _list_cells(box: Box) -> Iterator[tuple[int, int]]:
    """The cells that a box covers; none if they are too many."""
    left, right = math.floor(box.x / CELL), math.floor(box.right / CELL)
    top, bottom = math.floor(box.y / CELL), math.floor(box.bottom / CELL)
    if (right - left + 1) * (bottom - top + 1) <= MOST_CELLS:
        yield from ((x, y) for x in range(left, right + 1) for y in range(top, bottom + 1))
