"""Where everything of a drawing is: boxes, lines and labels by the ids of elements. Layouts make them, and so do files."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.bpmn.drawing.geometry import Box, Point, surround


@dataclass(slots=True)
class Arrangement:
    """The places of the elements of one drawing, or of one part of it while a layout is made."""

    boxes: dict[str, Box] = field(default_factory=dict)
    lines: dict[str, list[Point]] = field(default_factory=dict)
    labels: dict[str, Box] = field(default_factory=dict)
    """Where the names of events, gateways and lines are. One that is missing is placed when it is drawn."""
    collapsed: set[str] = field(default_factory=set)
    """Sub-processes of which the inside is not shown."""
    vertical: set[str] = field(default_factory=set)
    """Pools and lanes whose names stand at the top and not at the left."""
    captions: list[tuple[Box, str]] = field(default_factory=list)
    """Texts that belong to no element: the names of processes that are drawn below each other."""
    width: float = 0.0
    height: float = 0.0

    def take(self, other: Arrangement, x: float, y: float) -> None:
        """Take over everything of another arrangement, so much farther right and down."""
        self.boxes.update((id_, box.move(x, y)) for id_, box in other.boxes.items())
        self.labels.update((id_, box.move(x, y)) for id_, box in other.labels.items())
        self.lines.update((id_, [(a + x, b + y) for a, b in points]) for id_, points in other.lines.items())
        self.captions.extend((box.move(x, y), text) for box, text in other.captions)
        self.collapsed |= other.collapsed
        self.vertical |= other.vertical

    def find_area(self) -> Box:
        """The smallest box around everything; an empty one if there is nothing."""
        points = (point for line in self.lines.values() for point in line)
        boxes = [*self.boxes.values(), *self.labels.values(), *(box for box, _ in self.captions)]
        return surround(boxes, points) or Box(0, 0, 0, 0)
