"""The drawing of a file as SVG: shapes, lines and labels in BPMN's notation, and over them what an execution has done.

What is drawn later covers what was drawn before: containers, lines, nodes, events on their hosts, labels, counts. The result
is the same for the same file and overlay.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from holdfast.bpmn.drawing import sizes
from holdfast.bpmn.drawing.arrangements import Arrangement
from holdfast.bpmn.drawing.arranging import arrange
from holdfast.bpmn.drawing.badges import Badges
from holdfast.bpmn.drawing.canvas import INK, PAPER, Canvas, Pen
from holdfast.bpmn.drawing.contents import AnyLine, AnyShape, Contents
from holdfast.bpmn.drawing.geometry import Box, surround
from holdfast.bpmn.drawing.lines import draw_line, place_line_label
from holdfast.bpmn.drawing.occupied import Occupied
from holdfast.bpmn.drawing.overlays import Overlay
from holdfast.bpmn.drawing.shapes import draw_shape
from holdfast.bpmn.drawing.texts import LINE_HEIGHT, wrap
from holdfast.bpmn.model import (
    Annotation,
    BoundaryEvent,
    DataObject,
    Definitions,
    Element,
    FlowNode,
    Lane,
    Participant,
    SubProcess,
)

MARGIN: Final = 20.0
DONE: Final = "#17693a"
DONE_FILL: Final = "#e7f5ec"
ACTIVE: Final = "#9a4a00"
ACTIVE_FILL: Final = "#fff1dc"
FAULTY: Final = "#b3151b"
FAULTY_FILL: Final = "#fde9e9"


def draw(definitions: Definitions, *, overlay: Overlay | None = None) -> str:
    """Draw a BPMN file as SVG.

    Places come from the file's own diagram; what it does not draw gets a layout. With an overlay, elements and flows that
    an execution completed or took, active elements and incidents are marked, with their counts. The SVG holds shapes and
    escaped texts alone: no scripts, no styles, no references. The same input gives the same text.
    """
    contents = Contents(definitions)
    return _Drawing(contents, arrange(contents), overlay).run()


class _Drawing:
    """One drawing while it is made."""

    def __init__(self, contents: Contents, arrangement: Arrangement, overlay: Overlay | None) -> None:
        self.contents = contents
        self.arrangement = arrangement
        self.overlay = overlay
        self.canvas = Canvas()
        self.depths = {id_: sum(1 for _ in contents.list_ancestors(id_)) for id_ in arrangement.boxes}
        self.labels: list[Box] = []
        self.occupied = Occupied(box for id_, box in arrangement.boxes.items() if not contents.is_container(id_))

    def run(self) -> str:
        containers, nodes, hosted = self._sort_shapes()
        for id_ in containers:
            self._draw_shape(id_)
        for id_ in self.arrangement.lines:
            self._draw_line(id_)
        for id_ in (*nodes, *hosted):
            self._draw_shape(id_)
        for id_ in self.arrangement.boxes:
            self._draw_label(id_)
        for id_ in self.arrangement.lines:
            self._draw_line_label(id_)
        for box, text in self.arrangement.captions:
            self.canvas.text(wrap(text, 800, 1, 14), box.x, box.y, anchor="start", size=14, weight="bold")
        area = self._find_area()
        if self.overlay is not None:
            badges = Badges(self.canvas, self.arrangement, self.overlay, self.labels)
            badges.draw()
            area = badges.draw_legend(area)
        return self.canvas.finish(area.grow(MARGIN), self._find_title(), self._describe())

    def _sort_shapes(self) -> tuple[list[str], list[str], list[str]]:
        containers: list[str] = []
        nodes: list[str] = []
        hosted: list[str] = []
        for id_ in self.arrangement.boxes:
            shape = self.contents.shapes.get(id_)
            if isinstance(shape, (Participant, Lane)) or (
                isinstance(shape, SubProcess) and id_ not in self.arrangement.collapsed
            ):
                containers.append(id_)
            elif isinstance(shape, BoundaryEvent):
                hosted.append(id_)
            else:
                nodes.append(id_)
        containers.sort(key=self._rank)
        return containers, nodes, hosted

    def _rank(self, id_: str) -> tuple[int, int]:
        """Pools first, then lanes, then sub-processes from the outside to the inside."""
        shape = self.contents.shapes[id_]
        if isinstance(shape, Participant):
            return 0, 0
        return (
            (1, 0)
            if isinstance(shape, Lane) and self.depths[id_] == 1
            else (2, 2 * self.depths[id_] + isinstance(shape, Lane))
        )

    # --- shapes and lines -------------------------------------------------------------------------------------------------

    def _draw_shape(self, id_: str) -> None:
        shape = self.contents.shapes[id_]
        self._open(shape, "shape")
        draw_shape(
            self.canvas,
            shape,
            self.arrangement.boxes[id_],
            self._choose_pen(id_, shape),
            is_collapsed=id_ in self.arrangement.collapsed,
            is_vertical=id_ in self.arrangement.vertical,
        )
        self.canvas.close_group()

    def _choose_pen(self, id_: str, shape: AnyShape) -> Pen:
        overlay = self.overlay
        if overlay is not None and isinstance(shape, FlowNode):
            is_open = isinstance(shape, SubProcess) and id_ not in self.arrangement.collapsed
            if overlay.incidents.get(id_):
                return Pen(stroke=FAULTY, fill=PAPER if is_open else FAULTY_FILL, width=2.2)
            if overlay.active.get(id_):
                return Pen(stroke=ACTIVE, fill=PAPER if is_open else ACTIVE_FILL, width=2.2)
            if overlay.completed.get(id_):
                return Pen(stroke=DONE, fill=PAPER if is_open else DONE_FILL, width=2.0)
        return Pen(fill=PAPER)

    def _draw_line(self, id_: str) -> None:
        line = self.contents.lines[id_]
        self._open(line, "line")
        is_taken = self.overlay is not None and bool(self.overlay.taken_flows.get(id_))
        pen = Pen(stroke=DONE, width=2.8) if is_taken else Pen(stroke=INK)
        draw_line(self.canvas, self.contents, line, self.arrangement.lines[id_], pen)
        self.canvas.close_group()

    def _open(self, element: AnyShape | AnyLine, kind: str) -> None:
        state = self.overlay.describe_element(element.id) if self.overlay is not None else ""
        title = " ".join((_text_of(element) or element.id).split())[:200]
        self.canvas.open_group(
            {"class": f"bpmn-{kind}", "data-element": element.id}, f"{title} ({state})" if state else title
        )

    # --- labels -----------------------------------------------------------------------------------------------------------

    def _draw_label(self, id_: str) -> None:
        shape = self.contents.shapes[id_]
        box = self.arrangement.boxes[id_]
        is_outside = isinstance(shape, DataObject) or (isinstance(shape, FlowNode) and sizes.has_label_outside(shape))
        if not is_outside or not shape.name.strip():
            return
        self._write_label(
            shape.name, self.arrangement.labels.get(id_) or sizes.place_below(box, shape.name), sizes.LABEL_WIDTH
        )

    def _draw_line_label(self, id_: str) -> None:
        line = self.contents.lines[id_]
        if not line.name.strip():
            return
        box = self.arrangement.labels.get(id_)
        if box is None:
            box = place_line_label(line.name, self.arrangement.lines[id_], self.occupied)
        self._write_label(line.name, box, sizes.FLOW_LABEL_WIDTH)

    def _write_label(self, text: str, box: Box, least: float) -> None:
        """Write a label around the middle of its box, from its top on: a file's boxes are those of other fonts."""
        width = max(box.width + 6, min(least, 60.0))
        lines = wrap(text, width, max(sizes.LABEL_LINES, int(box.height // LINE_HEIGHT)))
        taken = surround([Box(box.center[0] - width / 2, box.y, width, len(lines) * LINE_HEIGHT)])
        if taken is not None:
            self.labels.append(taken)
            self.occupied.add(taken)
        self.canvas.text(lines, box.center[0], box.y, halo=True)

    # --- the whole --------------------------------------------------------------------------------------------------------

    def _find_area(self) -> Box:
        area = self.arrangement.find_area()
        return surround([area, *self.labels]) or area

    def _find_title(self) -> str:
        definitions = self.contents.definitions
        names = [one.name or one.id for one in definitions.participants or definitions.processes]
        return ", ".join(name for name in names[:5] if name) or definitions.name or definitions.file or "BPMN"

    def _describe(self) -> str:
        counts = Counter(_name_kind(self.contents.shapes[id_]) for id_ in self.arrangement.boxes)
        listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        flows = sum(1 for _ in self.arrangement.lines)
        text = f"BPMN diagram with {listed or 'no elements'}, {flows} connections."
        return f"{text} {self.overlay.describe()}" if self.overlay is not None else text


def _text_of(element: Element) -> str:
    return element.text if isinstance(element, Annotation) else element.name


def _name_kind(shape: AnyShape) -> str:
    name = type(shape).__name__
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name).strip()
