"""Lines in BPMN's notation: sequence flows, message flows and associations, and where their labels are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from holdfast.bpmn.drawing import sizes
from holdfast.bpmn.drawing.canvas import PAPER, Canvas, Pen
from holdfast.bpmn.drawing.contents import AnyLine, Contents
from holdfast.bpmn.drawing.geometry import Box, Point, find_middle, toward
from holdfast.bpmn.drawing.occupied import Occupied
from holdfast.bpmn.model import Association, MessageFlow, SequenceFlow

HEAD: Final = 9.0
_MARK_AT: Final = 11.0


def draw_line(canvas: Canvas, contents: Contents, line: AnyLine, points: Sequence[Point], pen: Pen) -> None:
    """Draw a line with its ends: arrow heads, the circle of a message flow, the marks of default and conditional flows."""
    match line:
        case SequenceFlow():
            _draw_sequence_flow(canvas, contents, line, points, pen)
        case MessageFlow():
            _draw_message_flow(canvas, points, pen)
        case Association():
            _draw_association(canvas, line, points, pen)


def _draw_sequence_flow(canvas: Canvas, contents: Contents, line: SequenceFlow, points: Sequence[Point], pen: Pen) -> None:
    size = HEAD + (pen.width - 1.5)
    body = [*points[:-1], toward(points[-1], points[-2], min(size * 0.7, math.dist(points[-1], points[-2]) / 2))]
    canvas.line(body, pen)
    canvas.polygon(_make_head(points[-2], points[-1], size), Pen(stroke=pen.stroke, fill=pen.stroke, width=1, cap="round"))
    if line.id in contents.defaults:
        middle = toward(points[0], points[1], _MARK_AT)
        along = math.atan2(points[1][1] - points[0][1], points[1][0] - points[0][0]) + math.pi * 0.7
        x, y = 6 * math.cos(along), 6 * math.sin(along)
        canvas.line([(middle[0] - x, middle[1] - y), (middle[0] + x, middle[1] + y)], pen, 0)
    elif line.id in contents.conditional:
        end = toward(points[0], points[1], 15)
        middle = toward(points[0], points[1], 7.5)
        dx, dy = (end[0] - points[0][0]) / 3, (end[1] - points[0][1]) / 3
        diamond = [points[0], (middle[0] - dy, middle[1] + dx), end, (middle[0] + dy, middle[1] - dx)]
        canvas.polygon(diamond, Pen(stroke=pen.stroke, fill=PAPER, width=1.3))


def _draw_message_flow(canvas: Canvas, points: Sequence[Point], pen: Pen) -> None:
    canvas.line(points, Pen(stroke=pen.stroke, width=pen.width, dash="8 5"))
    canvas.circle(toward(points[0], points[1], 3.5), 3.5, Pen(stroke=pen.stroke, fill=PAPER, width=1.3))
    canvas.polygon(_make_head(points[-2], points[-1], HEAD), Pen(stroke=pen.stroke, fill=PAPER, width=1.3, cap="round"))


def _draw_association(canvas: Canvas, line: Association, points: Sequence[Point], pen: Pen) -> None:
    canvas.line(points, Pen(stroke=pen.stroke, width=pen.width, dash="1 4", cap="round"))
    ends = []
    if line.direction in ("One", "Both"):
        ends.append((points[-2], points[-1]))
    if line.direction == "Both":
        ends.append((points[1], points[0]))
    for before, end in ends:
        left, tip, right = _make_head(before, end, HEAD)
        canvas.line([left, tip, right], Pen(stroke=pen.stroke, width=1.3), 0)


def _make_head(before: Point, end: Point, size: float) -> list[Point]:
    """The three points of an arrow head, its tip in the middle."""
    angle = math.atan2(end[1] - before[1], end[0] - before[0])
    sides = [(end[0] - size * math.cos(angle + turn), end[1] - size * math.sin(angle + turn)) for turn in (0.42, -0.42)]
    return [sides[0], end, sides[1]]


def place_line_label(text: str, points: Sequence[Point], taken: Occupied) -> Box:
    """Where the label of a line is of which nobody has said it: beside its longest parts, where nothing else is."""
    width, height = sizes.measure_label(text, sizes.FLOW_LABEL_WIDTH, sizes.FLOW_LABEL_LINES)
    places: list[Box] = []
    for a, b in sorted(pairwise(points), key=lambda pair: -math.dist(*pair)):
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        if abs(a[0] - b[0]) >= abs(a[1] - b[1]):
            places += [Box(x - width / 2, y - height - 3, width, height), Box(x - width / 2, y + 4, width, height)]
        else:
            places += [Box(x + 5, y - height / 2, width, height), Box(x - 5 - width, y - height / 2, width, height)]
    free = (place for place in places if not taken.meets(place))
    x, y = find_middle(points)
    return next(free, places[0] if places else Box(x, y, width, height))
