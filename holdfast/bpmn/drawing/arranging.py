"""Where everything of a file is drawn: as its diagrams say, and by a layout where they do not.

A process is drawn as the file says if each of its nodes that can be seen has a shape there; boundary events and lines may be
missing, and are added. Any other process gets a layout of its own, below what the file draws. Diagrams of collapsed
sub-processes follow below.
"""

from __future__ import annotations

from typing import Final

from holdfast.bpmn.drawing import sizes
from holdfast.bpmn.drawing.arrangements import Arrangement
from holdfast.bpmn.drawing.connecting import MOST_OBSTACLES, connect, connect_simply, connect_straight
from holdfast.bpmn.drawing.contents import Contents, walk, walk_lanes
from holdfast.bpmn.drawing.geometry import Box, are_drawable, find_middle, is_drawable, simplify, to_box
from holdfast.bpmn.drawing.graphs import Outline
from holdfast.bpmn.drawing.layout import lay_out
from holdfast.bpmn.drawing.texts import LINE_HEIGHT, measure
from holdfast.bpmn.model import (
    AnyContainer,
    Association,
    BoundaryEvent,
    Diagram,
    FlowNode,
    Lane,
    MessageFlow,
    Participant,
    Process,
    SequenceFlow,
    SubProcess,
)

BETWEEN: Final = 60.0
"""What stays free between two processes, for message flows."""
MOST_SEARCHED: Final = 200
"""Lines for which a way around shapes is searched; others are drawn with two corners."""


def arrange(contents: Contents) -> Arrangement:
    """Find the place of everything in a file that can be drawn."""
    planes = [_read_diagram(contents, diagram) for diagram in contents.definitions.diagrams]
    result = Arrangement()
    undrawn = _find_undrawn(contents, planes)
    bottom = 0.0
    for diagram, plane in zip(contents.definitions.diagrams, planes, strict=True):
        _remove(contents, plane, undrawn)
        _attach_missing(contents, plane)
        if plane.boxes:
            bottom = _stack(contents, result, diagram, plane, bottom)
    _lay_out_rest(contents, undrawn, result, bottom)
    _connect_rest(contents, result)
    return result


# --- what the file says ---------------------------------------------------------------------------------------------------


def _read_diagram(contents: Contents, diagram: Diagram) -> Arrangement:
    plane = Arrangement()
    plane.collapsed = {
        one.element
        for one in diagram.shapes
        if not one.is_expanded and isinstance(contents.shapes.get(one.element), SubProcess) and one.element != diagram.plane
    }
    for shape in diagram.shapes:
        if not is_drawable(shape.bounds) or shape.element not in contents.shapes or shape.element in plane.boxes:
            continue
        if _is_hidden(contents, plane, shape.element, diagram.plane):
            continue
        plane.boxes[shape.element] = to_box(shape.bounds)
        if shape.label is not None and is_drawable(shape.label):
            plane.labels[shape.element] = to_box(shape.label)
        if not shape.is_horizontal:
            plane.vertical.add(shape.element)
    for edge in diagram.edges:
        if edge.element not in contents.lines or not are_drawable(edge.points):
            continue
        if _is_hidden(contents, plane, edge.element, diagram.plane):
            continue
        plane.lines[edge.element] = simplify(edge.points)
        if len(plane.lines[edge.element]) < 2:
            del plane.lines[edge.element]
        elif edge.label is not None and is_drawable(edge.label):
            plane.labels[edge.element] = to_box(edge.label)
    return plane


def _is_hidden(contents: Contents, plane: Arrangement, id_: str, root: str) -> bool:
    """Whether an element is inside a sub-process that is collapsed in the same diagram."""
    for container in contents.list_ancestors(id_):
        if container == root:
            return False
        if container in plane.collapsed:
            return True
    return False


def _find_undrawn(contents: Contents, planes: list[Arrangement]) -> list[Process]:
    """The processes of which the file does not draw every node that could be seen."""
    drawn: set[str] = set().union(*(plane.boxes for plane in planes))
    collapsed: set[str] = set().union(*(plane.collapsed & plane.boxes.keys() for plane in planes))
    return [
        process
        for process in contents.definitions.processes
        if not (_is_drawn(process, drawn, collapsed) if process.nodes else _is_named(contents, process, drawn))
    ]


def _is_drawn(container: AnyContainer, drawn: set[str], collapsed: set[str]) -> bool:
    ids = {node.id for node in container.nodes}
    for node in container.nodes:
        if node.id not in drawn and not (isinstance(node, BoundaryEvent) and node.attached_to in ids):
            return False
        if isinstance(node, SubProcess) and node.id not in collapsed and not _is_drawn(node, drawn, collapsed):
            return False
    return True


def _is_named(contents: Contents, process: Process, drawn: set[str]) -> bool:
    """Whether a process without nodes needs no place: its pool and its artifacts have one, as far as there are any."""
    pools = [one.id for one in contents.definitions.participants if one.process == process.id]
    artifacts = [id_ for id_, parent in contents.parents.items() if parent == process.id and id_ in contents.shapes]
    return all(pool in drawn for pool in pools) and (not artifacts or any(id_ in drawn for id_ in artifacts))


def _remove(contents: Contents, plane: Arrangement, processes: list[Process]) -> None:
    """Take out of a diagram what gets a layout of its own."""
    for process in processes:
        gone = {node.id for node in walk(process)} | {lane.id for lane in walk_lanes(process.lanes)}
        gone |= {one.id for one in contents.definitions.participants if one.process == process.id}
        gone |= {id_ for id_ in plane.boxes if process.id in contents.list_ancestors(id_)}
        for id_ in gone:
            plane.boxes.pop(id_, None)
            plane.labels.pop(id_, None)
        for id_ in list(plane.lines):
            line = contents.lines[id_]
            if process.id in contents.list_ancestors(id_) or line.source in gone or line.target in gone:
                del plane.lines[id_]
                plane.labels.pop(id_, None)


def _attach_missing(contents: Contents, plane: Arrangement) -> None:
    """Put boundary events that the file does not draw onto the lower side of their hosts."""
    missing: dict[str, list[str]] = {}
    for id_, shape in contents.shapes.items():
        if isinstance(shape, BoundaryEvent) and id_ not in plane.boxes and shape.attached_to in plane.boxes:
            missing.setdefault(shape.attached_to, []).append(id_)
    for host, events in missing.items():
        box = plane.boxes[host]
        for number, id_ in enumerate(events):
            x = box.right - box.width * (number + 1) / (len(events) + 1)
            plane.boxes[id_] = Box(x - sizes.EVENT / 2, box.bottom - sizes.EVENT / 2, sizes.EVENT, sizes.EVENT)


def _stack(contents: Contents, result: Arrangement, diagram: Diagram, plane: Arrangement, bottom: float) -> float:
    """Put a diagram below those before it. The first one stays where it is."""
    area = plane.find_area()
    for id_ in plane.boxes.keys() & result.boxes.keys():  # each element is drawn once
        del plane.boxes[id_]
    if not result.boxes:
        result.take(plane, 0.0, 0.0)
        return area.bottom
    y = bottom + BETWEEN
    sub_process = contents.shapes.get(diagram.plane)
    left = result.find_area().x
    if sub_process is not None:
        y = _add_caption(result, f"{sub_process.name or sub_process.id}:", left, y)
    result.take(plane, left - area.x, y - area.y)
    return y + area.height


def _add_caption(result: Arrangement, text: str, x: float, y: float) -> float:
    result.captions.append((Box(x, y, min(measure(text, 14), 800.0) + 4, LINE_HEIGHT + 4), text))
    return y + LINE_HEIGHT + 14


# --- what it does not say -------------------------------------------------------------------------------------------------


def _lay_out_rest(contents: Contents, undrawn: list[Process], result: Arrangement, bottom: float) -> None:
    left = result.find_area().x if result.boxes else 0.0
    y = bottom + BETWEEN if result.boxes else 0.0
    pools = {one.process: one for one in reversed(contents.definitions.participants) if one.process}
    placed: set[str] = set()
    waiting = {process.id: process for process in undrawn}
    roots: list[tuple[Participant | None, Process | None]] = []
    for participant in contents.definitions.participants:
        process = waiting.get(participant.process) if participant.process not in placed else None
        if process is not None:
            placed.add(process.id)
        if process is not None or participant.id not in result.boxes:
            roots.append((participant, process))
    roots += [(None, process) for process in undrawn if process.id not in placed and process.id not in pools]
    is_named = len([one for one in contents.definitions.processes if one.nodes]) > 1
    made: list[tuple[Arrangement, str]] = []
    for pool, process in roots:
        inside = lay_out(process) if process is not None else Arrangement()
        if pool is not None:
            made.append((_make_pool(pool, process, inside), ""))
        elif process is not None and inside.boxes:
            made.append((inside, (process.name or process.id) if is_named else ""))
    widest = max((one.width for one, _ in made), default=0.0)
    for one, caption in made:
        if caption:
            y = _add_caption(result, caption, left, y)
        _widen_pool(contents, one, widest)
        result.take(one, left, y)
        y += one.height + BETWEEN


def _make_pool(pool: Participant, process: Process | None, inside: Arrangement) -> Arrangement:
    """A pool around what is in it."""
    made = Arrangement()
    has_lanes = process is not None and bool(process.lanes)
    padding = 0.0 if has_lanes else sizes.PADDING
    made.take(inside, sizes.HEADER + padding, padding)
    least = sizes.find_lane_height(pool.name)
    if not inside.boxes:
        least = min(least, 100.0)
    made.width = max(sizes.HEADER + inside.width + 2 * padding, 300.0)
    made.height = inside.height + 2 * padding if has_lanes else max(least, inside.height + 2 * padding)
    made.boxes = {pool.id: Box(0, 0, made.width, made.height), **made.boxes}
    return made


def _widen_pool(contents: Contents, one: Arrangement, width: float) -> None:
    """Make a pool and its lanes as wide as the widest."""
    root = next(iter(one.boxes), "")
    if not isinstance(contents.shapes.get(root), Participant):
        return
    wider = width - one.width
    process = next((p for p in contents.definitions.processes if p.id == _get_process(contents, root)), None)
    lanes = {lane.id for lane in walk_lanes(process.lanes)} if process is not None else set()
    for id_ in (root, *lanes):
        if id_ in one.boxes:
            box = one.boxes[id_]
            one.boxes[id_] = Box(box.x, box.y, box.width + wider, box.height)


def _get_process(contents: Contents, pool: str) -> str:
    found = contents.shapes[pool]
    return found.process if isinstance(found, Participant) else ""


# --- lines ----------------------------------------------------------------------------------------------------------------


def _connect_rest(contents: Contents, result: Arrangement) -> None:
    """Draw the lines that have no place yet and whose ends have one."""
    missing = [line for id_, line in contents.lines.items() if id_ not in result.lines]
    obstacles = [box for id_, box in result.boxes.items() if _is_obstacle(contents, id_)]
    searched = 0
    for line in missing:
        start, end = _find_end(result, line.source), _find_end(result, line.target)
        if start is None or end is None or (line.source not in result.boxes and line.target not in result.boxes):
            continue
        is_upright = isinstance(line, MessageFlow)
        if is_upright:
            start, end = _narrow(contents, line.source, start, end), _narrow(contents, line.target, end, start)
        outlines = contents.find_outline(line.source), contents.find_outline(line.target)
        if isinstance(line, Association) and not _are_nodes(contents, line):
            result.lines[line.id] = _connect_artifact(start, end, outlines)
        elif searched < MOST_SEARCHED and len(obstacles) <= MOST_OBSTACLES:
            searched += 1
            result.lines[line.id] = connect(start, end, obstacles, is_upright=is_upright)
        else:
            result.lines[line.id] = connect_simply(start, end, is_upright=is_upright)


def _is_obstacle(contents: Contents, id_: str) -> bool:
    """Whether lines go around a shape; those that hold an end of a line are left out later."""
    return not isinstance(contents.shapes.get(id_), (Lane, Participant))


def _are_nodes(contents: Contents, line: Association | SequenceFlow) -> bool:
    return all(isinstance(contents.shapes.get(id_), FlowNode) for id_ in (line.source, line.target))


def _find_end(result: Arrangement, id_: str) -> Box | None:
    """Where a line ends: the box of a shape, or the middle of another line."""
    if (box := result.boxes.get(id_)) is not None:
        return box
    points = result.lines.get(id_)
    return Box(*find_middle(points), 0.0, 0.0) if points else None


def _narrow(contents: Contents, id_: str, box: Box, other: Box) -> Box:
    """The part of a pool at which a line ends that comes from a box above or below it: as straight as can be."""
    if not isinstance(contents.shapes.get(id_), Participant):
        return box
    x = min(max(other.center[0], box.x + 2), box.right - 2)
    return Box(x - 1, box.y, 2, box.height)


def _connect_artifact(start: Box, end: Box, outlines: tuple[Outline, Outline]) -> list[tuple[float, float]]:
    """A straight line to an annotation or data object, upright if one is above the other."""
    left, right = max(start.x, end.x), min(start.right, end.right)
    if right - left > 4 and (start.bottom <= end.y or end.bottom <= start.y):
        x = end.center[0] if outlines[1] is not Outline.BOX else start.center[0]
        x = x if left <= x <= right else (left + right) / 2
        if outlines == (Outline.BOX, Outline.BOX) or x in (start.center[0], end.center[0]):
            return [(x, start.bottom), (x, end.y)] if start.bottom <= end.y else [(x, start.y), (x, end.bottom)]
    return connect_straight(start, end, outlines)
