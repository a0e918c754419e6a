"""Points, boxes and lines of a drawing. The y axis goes down, as in SVG and BPMN DI."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.bpmn.model import Bounds

Point: TypeAlias = tuple[float, float]
FARTHEST: Final = 1_000_000.0
"""No drawing reaches farther than this: coordinates beyond it are taken for mistakes."""


class Box(NamedTuple):
    """A rectangle by its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x of its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of its lower side."""
        return self.y + self.height

    @property
    def center(self) -> Point:
        """The point in the middle of the box."""
        return self.x + self.width / 2, self.y + self.height / 2

    def move(self, x: float, y: float) -> Box:
        """The same rectangle so much farther right and down."""
        return Box(self.x + x, self.y + y, self.width, self.height)

    def grow(self, by: float) -> Box:
        """The rectangle with a margin around it."""
        return Box(self.x - by, self.y - by, self.width + 2 * by, self.height + 2 * by)

    def meets(self, other: Box) -> bool:
        """Whether the two share more than a border."""
        return self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom

    def holds(self, point: Point) -> bool:
        """Whether a point is inside, and not on the border."""
        return self.x < point[0] < self.right and self.y < point[1] < self.bottom

    def to_bounds(self) -> Bounds:
        """The rectangle as a value of the model."""
        return Bounds(x=self.x, y=self.y, width=self.width, height=self.height)


def to_box(bounds: Bounds) -> Box:
    """A rectangle of the model as a box."""
    return Box(bounds.x, bounds.y, bounds.width, bounds.height)


def is_drawable(bounds: Bounds) -> bool:
    """Whether a rectangle of a file has a place and a size at all."""
    numbers = (bounds.x, bounds.y, bounds.width, bounds.height)
    return all(math.isfinite(one) and abs(one) < FARTHEST for one in numbers) and bounds.width > 0 and bounds.height > 0


def are_drawable(points: Sequence[Point]) -> bool:
    """Whether points of a file make a line."""
    return len(points) > 1 and all(math.isfinite(one) and abs(one) < FARTHEST for point in points for one in point)


def surround(boxes: Iterable[Box], points: Iterable[Point] = ()) -> Box | None:
    """The smallest box around boxes and points; None if there are none."""
    left, top, right, bottom = math.inf, math.inf, -math.inf, -math.inf
    for box in boxes:
        left, top = min(left, box.x), min(top, box.y)
        right, bottom = max(right, box.right), max(bottom, box.bottom)
    for x, y in points:
        left, top, right, bottom = min(left, x), min(top, y), max(right, x), max(bottom, y)
    return None if left > right else Box(left, top, right - left, bottom - top)


def simplify(points: Iterable[Point]) -> list[Point]:
    """A line without points that repeat or lie straight between their neighbours."""
    kept: list[Point] = []
    for point in points:
        if kept and math.dist(kept[-1], point) < 0.01:
            continue
        while len(kept) > 1 and _is_straight(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _is_straight(first: Point, middle: Point, last: Point) -> bool:
    (ax, ay), (bx, by) = (middle[0] - first[0], middle[1] - first[1]), (last[0] - middle[0], last[1] - middle[1])
    return abs(ax * by - ay * bx) < 0.01 and ax * bx + ay * by >= 0


def toward(start: Point, end: Point, distance: float) -> Point:
    """The point so far from `start` in the direction of `end`."""
    length = math.dist(start, end)
    if length < 1e-9:
        return start
    share = distance / length
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def find_middle(points: Sequence[Point]) -> Point:
    """The point half way along a line."""
    left = sum(math.dist(a, b) for a, b in itertools.pairwise(points)) / 2
    for a, b in itertools.pairwise(points):
        length = math.dist(a, b)
        if left <= length:
            return toward(a, b, left)
        left -= length
    return points[-1]


def leave_box(box: Box, inside: Point, outside: Point) -> Point:
    """Where a line from a point inside of a box to one outside crosses its border."""
    dx, dy = outside[0] - inside[0], outside[1] - inside[1]
    shares = [1.0]
    if dx:
        shares.append(((box.right if dx > 0 else box.x) - inside[0]) / dx)
    if dy:
        shares.append(((box.bottom if dy > 0 else box.y) - inside[1]) / dy)
    share = max(0.0, min(shares))
    return inside[0] + dx * share, inside[1] + dy * share


def leave_circle(box: Box, outside: Point) -> Point:
    """Where the line from the centre of a circle to a point outside crosses it."""
    return toward(box.center, outside, min(box.width, box.height) / 2)


def leave_diamond(box: Box, outside: Point) -> Point:
    """Where the line from the centre of a diamond to a point outside crosses its border."""
    (cx, cy), (x, y) = box.center, outside
    reach = abs(x - cx) / (box.width / 2) + abs(y - cy) / (box.height / 2)
    return outside if reach <= 1 else (cx + (x - cx) / reach, cy + (y - cy) / reach)


def format_number(value: float) -> str:
    """A coordinate in as few characters as a drawing needs."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def format_points(points: Iterable[Point]) -> str:
    """Points as the attribute of a polygon has them."""
    return " ".join(f"{format_number(x)},{format_number(y)}" for x, y in points)


def make_path(points: Sequence[Point], radius: float = 5.0) -> str:
    """A line through points with small round corners, as the data of an SVG path."""
    parts = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        size = min(radius, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        parts.append(f"L{_pair(toward(corner, before, size))}Q{_pair(corner)} {_pair(toward(corner, after, size))}")
    parts.append(f"L{_pair(points[-1])}")
    return "".join(parts)


def _pair(point: Point) -> str:
    return f"{format_number(point[0])} {format_number(point[1])}"
