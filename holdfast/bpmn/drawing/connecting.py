"""Lines between shapes that have their places already: message flows, associations, and flows that a file does not draw.

The way is searched on the lines just beside shapes and through the centres of both ends: as short as can be, with few
corners, and through no other shape. Where there is too much to look at, or no way, a line with two corners is taken.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final

from holdfast.bpmn.drawing.geometry import Box, Point, leave_box, leave_circle, leave_diamond, simplify
from holdfast.bpmn.drawing.graphs import Outline

MOST_OBSTACLES: Final = 120
MOST_STEPS: Final = 20_000
CORNER: Final = 40.0
"""How much longer a way may be to save a corner."""
CLEARANCE: Final = 10.0
_DIRECTIONS: Final = ((1, 0), (-1, 0), (0, 1), (0, -1))


def connect(start: Box, end: Box, obstacles: Iterable[Box], *, is_upright: bool = False) -> list[Point]:
    """A line of horizontal and vertical parts from the border of one box to that of another, around obstacles.

    An upright one begins and ends at upper or lower sides alone, as message flows do.
    """
    if start.meets(end) or start == end:
        return [start.center, end.center] if start != end else _turn_back(start)
    near = _choose_near(start, end, obstacles)
    found = _Search(start, end, near, is_upright=is_upright).run() if near is not None else None
    return found or connect_simply(start, end, is_upright=is_upright)


def connect_simply(start: Box, end: Box, *, is_upright: bool = False) -> list[Point]:
    """A line with at most two corners from one box to another, whatever is in between."""
    (ax, ay), (bx, by) = start.center, end.center
    is_beside = end.x >= start.right or end.right <= start.x
    is_level = start.y < end.bottom and end.y < start.bottom
    if is_beside and (is_level or not is_upright):
        first, last = (start.right, end.x) if end.x >= start.right else (start.x, end.right)
        middle = (first + last) / 2
        return simplify([(first, ay), (middle, ay), (middle, by), (last, by)])
    first, last = (start.bottom, end.y) if end.y >= start.bottom else (start.y, end.bottom)
    middle = (first + last) / 2
    return simplify([(ax, first), (ax, middle), (bx, middle), (bx, last)])


def connect_straight(start: Box, end: Box, outlines: tuple[Outline, Outline]) -> list[Point]:
    """One straight line from the border of a shape to that of another, towards their centres."""
    return [_leave(start, end.center, outlines[0]), _leave(end, start.center, outlines[1])]


def _leave(box: Box, outside: Point, outline: Outline) -> Point:
    if outline is Outline.ROUND:
        return leave_circle(box, outside)
    return leave_diamond(box, outside) if outline is Outline.DIAMOND else leave_box(box, box.center, outside)


def _turn_back(box: Box) -> list[Point]:
    """A line from a shape to itself, around its right lower corner."""
    right, below = box.right + 2 * CLEARANCE, box.bottom + 2 * CLEARANCE
    x, y = box.center
    return [(box.right, y), (right, y), (right, below), (x, below), (x, box.bottom)]


def _choose_near(start: Box, end: Box, obstacles: Iterable[Box]) -> list[Box] | None:
    """The obstacles that count; None if they are too many. What holds one of the ends is none."""
    near: list[Box] = []
    for box in obstacles:
        if box in (start, end) or box.meets(start) or box.meets(end):
            continue
        near.append(box)
        if len(near) > MOST_OBSTACLES:
            return None
    return near


class _Search:
    """A* on a grid of the lines that matter."""

    def __init__(self, start: Box, end: Box, obstacles: Sequence[Box], *, is_upright: bool) -> None:
        self.start, self.end = start, end
        self.sides = [number for number, (dx, _) in enumerate(_DIRECTIONS) if not dx or not is_upright]
        self.obstacles = [*obstacles, start, end]
        xs = {start.center[0], end.center[0]}
        ys = {start.center[1], end.center[1]}
        for box in self.obstacles:
            xs |= {box.x - CLEARANCE, box.right + CLEARANCE}
            ys |= {box.y - CLEARANCE, box.bottom + CLEARANCE}
        self.xs, self.ys = sorted(xs), sorted(ys)
        self.closed_x: set[tuple[int, int]] = set()
        """Parts of horizontal lines that go through an obstacle, by their left end."""
        self.closed_y: set[tuple[int, int]] = set()
        for box in self.obstacles:
            self._close(box)

    def _close(self, box: Box) -> None:
        left, right = bisect_right(self.xs, box.x), bisect_left(self.xs, box.right)
        top, bottom = bisect_right(self.ys, box.y), bisect_left(self.ys, box.bottom)
        self.closed_x |= {(x, y) for x in range(left - 1, right) for y in range(top, bottom)}
        self.closed_y |= {(x, y) for x in range(left, right) for y in range(top - 1, bottom)}

    def run(self) -> list[Point] | None:
        goals = {self._find_gate(self.end, _DIRECTIONS[number]): _DIRECTIONS[number] for number in self.sides}
        queue: list[tuple[float, int, float, tuple[int, int], int]] = []
        best: dict[tuple[tuple[int, int], int], float] = {}
        came: dict[tuple[tuple[int, int], int], tuple[tuple[int, int], int] | None] = {}
        for number in self.sides:
            place = self._find_gate(self.start, _DIRECTIONS[number])
            cost = float(CLEARANCE)
            best[place, number], came[place, number] = cost, None
            heappush(queue, (cost + self._guess(place), len(came), cost, place, number))
        for _ in range(MOST_STEPS):
            if not queue:
                return None
            _, _, cost, place, number = heappop(queue)
            if cost > best[place, number]:
                continue
            if place in goals and _DIRECTIONS[number] == _opposite(goals[place]):
                return self._trace(came, (place, number), goals[place])
            for following in range(4):
                if _DIRECTIONS[following] == _opposite(_DIRECTIONS[number]):
                    continue
                target, length = self._go(place, following)
                if place in goals and _DIRECTIONS[following] == _opposite(goals[place]):
                    target, length = place, 0.0
                if target is None:
                    continue
                total = cost + length + (CORNER if following != number else 0.0)
                if total < best.get((target, following), float("inf")):
                    best[target, following], came[target, following] = total, (place, number)
                    heappush(queue, (total + self._guess(target), len(came), total, target, following))
        return None

    def _find_gate(self, box: Box, direction: tuple[int, int]) -> tuple[int, int]:
        """The place on the grid just before the middle of one side of a box."""
        x, y = box.center
        dx, dy = direction
        if dx:
            x = box.right + CLEARANCE if dx > 0 else box.x - CLEARANCE
        else:
            y = box.bottom + CLEARANCE if dy > 0 else box.y - CLEARANCE
        return bisect_left(self.xs, x), bisect_left(self.ys, y)

    def _go(self, place: tuple[int, int], number: int) -> tuple[tuple[int, int] | None, float]:
        x, y = place
        dx, dy = _DIRECTIONS[number]
        target = x + dx, y + dy
        if not (0 <= target[0] < len(self.xs) and 0 <= target[1] < len(self.ys)):
            return None, 0.0
        if dx and (min(x, target[0]), y) in self.closed_x:
            return None, 0.0
        if dy and (x, min(y, target[1])) in self.closed_y:
            return None, 0.0
        return target, abs(self.xs[target[0]] - self.xs[x]) + abs(self.ys[target[1]] - self.ys[y])

    def _guess(self, place: tuple[int, int]) -> float:
        x, y = self.end.center
        away = abs(self.xs[place[0]] - x) - self.end.width / 2 + abs(self.ys[place[1]] - y) - self.end.height / 2
        return max(0.0, away)

    def _trace(
        self,
        came: dict[tuple[tuple[int, int], int], tuple[tuple[int, int], int] | None],
        last: tuple[tuple[int, int], int],
        side: tuple[int, int],
    ) -> list[Point]:
        points = [_find_side(self.end, side)]
        step: tuple[tuple[int, int], int] | None = last
        first = last
        while step is not None:
            points.append((self.xs[step[0][0]], self.ys[step[0][1]]))
            first, step = step, came[step]
        points.append(_find_side(self.start, _DIRECTIONS[first[1]]))
        points.reverse()
        return simplify(points)


def _opposite(direction: tuple[int, int]) -> tuple[int, int]:
    return -direction[0], -direction[1]


def _find_side(box: Box, direction: tuple[int, int]) -> Point:
    x, y = box.center
    return x + direction[0] * box.width / 2, y + direction[1] * box.height / 2
