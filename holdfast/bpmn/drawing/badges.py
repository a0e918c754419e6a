"""What an execution has done, drawn over a diagram: counts at elements and flows, tokens, incidents, and what they mean."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

from holdfast.bpmn.drawing.arrangements import Arrangement
from holdfast.bpmn.drawing.canvas import PAPER, Canvas, Pen
from holdfast.bpmn.drawing.geometry import Box, Point
from holdfast.bpmn.drawing.occupied import Occupied
from holdfast.bpmn.drawing.overlays import Overlay
from holdfast.bpmn.drawing.texts import measure

DONE: Final = "#17693a"
ACTIVE: Final = "#9a4a00"
FAULTY: Final = "#b3151b"
SIZE: Final = 11.0
HEIGHT: Final = 16.0
_MOST: Final = 99_999


class Badges:
    """Draws what an execution has done over one drawing."""

    def __init__(self, canvas: Canvas, arrangement: Arrangement, overlay: Overlay, labels: list[Box]) -> None:
        self.canvas = canvas
        self.arrangement = arrangement
        self.overlay = overlay
        self.labels = Occupied(labels)

    def draw(self) -> None:
        """Draw the counts of flows, then those of elements."""
        for id_, points in self.arrangement.lines.items():
            if count := self.overlay.taken_flows.get(id_, 0):
                self._draw_pill(self._find_place(points), _write_count(count), Pen(stroke=DONE, fill=PAPER, width=1.2), DONE)
        for id_, box in self.arrangement.boxes.items():
            inset = 3.0 if min(box.width, box.height) < 60 else 0.0
            if count := self.overlay.completed.get(id_, 0):
                place = box.x + inset, box.bottom - inset
                self._draw_pill(place, f"✓{_write_count(count)}", Pen(stroke=PAPER, fill=DONE, width=1), PAPER)
            if count := self.overlay.active.get(id_, 0):
                place = box.x + inset, box.y + inset
                self._draw_pill(place, f"●{_write_count(count)}", Pen(stroke=PAPER, fill=ACTIVE, width=1), PAPER)
            if count := self.overlay.incidents.get(id_, 0):
                place = box.right - inset, box.y + inset
                self._draw_pill(place, f"!{_write_count(count)}", Pen(stroke=PAPER, fill=FAULTY, width=1), PAPER)

    def draw_legend(self, area: Box) -> Box:
        """Say below the drawing what the marks mean. Returns the area with that."""
        y = area.bottom + 24
        x = area.x
        for mark, fill, text in (
            ("✓1", DONE, "completed so often"),
            ("●1", ACTIVE, "active now"),
            ("!1", FAULTY, "open incidents"),
        ):
            width = _measure_pill(mark)
            self._draw_pill((x + width / 2, y), mark, Pen(stroke=PAPER, fill=fill, width=1), PAPER)
            self.canvas.text([text], x + width + 5, y - 7, anchor="start")
            x += width + measure(text) + 24
        self._draw_pill((x + 8, y), "1", Pen(stroke=DONE, fill=PAPER, width=1.2), DONE)
        self.canvas.text(["flow taken so often"], x + 21, y - 7, anchor="start")
        right = max(area.right, x + 21 + measure("flow taken so often"))
        return Box(area.x, area.y, right - area.x, y + 8 - area.y)

    def _find_place(self, points: list[Point]) -> Point:
        """The middle of the longest part of a line that no label covers."""
        parts = sorted(pairwise(points), key=lambda pair: -math.dist(*pair))
        middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in parts]
        free = (middle for middle in middles if not self.labels.meets(Box(middle[0] - 8, middle[1] - 8, 16, 16)))
        return next(free, middles[0])

    def _draw_pill(self, center: Point, text: str, pen: Pen, color: str) -> None:
        width = _measure_pill(text)
        box = Box(center[0] - width / 2, center[1] - HEIGHT / 2, width, HEIGHT)
        self.canvas.rectangle(box, pen, HEIGHT / 2)
        self.canvas.text([text], center[0], center[1] - SIZE * 0.55, size=SIZE, color=color, weight="bold")


def _measure_pill(text: str) -> float:
    return max(HEIGHT, measure(text, SIZE) * 1.15 + 9)


def _write_count(count: int) -> str:
    return str(count) if count <= _MOST else f"{_MOST}+"
