"""Shapes in BPMN's notation: pools, lanes, sub-processes, activities, events, gateways, data objects and annotations."""

from __future__ import annotations

from typing import Final

from holdfast.bpmn.drawing import sizes, symbols
from holdfast.bpmn.drawing.canvas import PAPER, Canvas, Pen
from holdfast.bpmn.drawing.geometry import Box
from holdfast.bpmn.drawing.texts import LINE_HEIGHT, wrap
from holdfast.bpmn.model import (
    Activity,
    AdHocSubProcess,
    Annotation,
    BoundaryEvent,
    CallActivity,
    CancelEventDefinition,
    ComplexGateway,
    DataObject,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    Gateway,
    InclusiveGateway,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    Lane,
    Loop,
    ParallelGateway,
    Participant,
    ReceiveTask,
    StandardLoop,
    StartEvent,
    SubProcess,
    Transaction,
)

MARKER_STEP: Final = 20.0
_GATEWAYS: Final = {
    ExclusiveGateway: symbols.draw_exclusive,
    ParallelGateway: symbols.draw_parallel,
    InclusiveGateway: symbols.draw_inclusive,
    ComplexGateway: symbols.draw_complex,
}


def draw_shape(canvas: Canvas, shape: object, box: Box, pen: Pen, *, is_collapsed: bool, is_vertical: bool) -> None:
    """Draw one shape with all that is within its border. Labels that stand outside are drawn by others."""
    match shape:
        case Participant() | Lane():
            draw_pool(canvas, shape, box, pen, is_vertical=is_vertical)
        case SubProcess():
            draw_sub_process(canvas, shape, box, pen, is_collapsed=is_collapsed)
        case StartEvent() | IntermediateCatchEvent() | IntermediateThrowEvent() | EndEvent() | BoundaryEvent():
            draw_event(canvas, shape, box, pen)
        case Gateway():
            draw_gateway(canvas, shape, box, pen)
        case DataObject():
            draw_data(canvas, shape, box, pen)
        case Annotation():
            draw_annotation(canvas, shape, box, pen)
        case FlowNode():
            draw_activity(canvas, shape, box, pen)
        case _:
            canvas.rectangle(box, pen)


# --- containers -----------------------------------------------------------------------------------------------------------


def draw_pool(canvas: Canvas, shape: Participant | Lane, box: Box, pen: Pen, *, is_vertical: bool) -> None:
    """A pool or lane: its name in a strip at the left, or at the top; that of a pool without a process in the middle."""
    canvas.rectangle(box, pen)
    is_black_box = isinstance(shape, Participant) and not shape.process
    if is_black_box or min(box.width, box.height) < sizes.HEADER + 10:
        lines = wrap(shape.name, box.width - 10, max(1, int(box.height // LINE_HEIGHT)))
        canvas.text(lines, box.center[0], box.center[1] - len(lines) * LINE_HEIGHT / 2)
    elif is_vertical:
        if isinstance(shape, Participant):
            canvas.line([(box.x, box.y + sizes.HEADER), (box.right, box.y + sizes.HEADER)], pen, 0)
        lines = wrap(shape.name, box.width - 8, 2)
        canvas.text(lines, box.center[0], box.y + sizes.HEADER / 2 - len(lines) * LINE_HEIGHT / 2)
    else:
        if isinstance(shape, Participant):
            canvas.line([(box.x + sizes.HEADER, box.y), (box.x + sizes.HEADER, box.bottom)], pen, 0)
        canvas.text(wrap(shape.name, box.height - 8, 2), box.x + sizes.HEADER / 2, box.center[1], turned=True)


def draw_sub_process(canvas: Canvas, shape: SubProcess, box: Box, pen: Pen, *, is_collapsed: bool) -> None:
    """A sub-process with its name at the top, or in the middle if it is collapsed."""
    border = Pen(
        stroke=pen.stroke, fill=pen.fill, width=pen.width, dash="2 4" if shape.triggered_by_event else "", cap="round"
    )
    canvas.rectangle(box, border, 10)
    if isinstance(shape, Transaction):
        canvas.rectangle(box.grow(-3), Pen(stroke=pen.stroke, width=pen.width), 7)
    if is_collapsed:
        _draw_name(canvas, shape.name, box, 22)
        if shape.triggered_by_event and (start := _find_start(shape)) is not None:
            _draw_event_symbol(canvas, start, Box(box.x + 6, box.y + 6, 20, 20), pen.stroke)
    else:
        lines = wrap(shape.name, box.width - 20, 2)
        canvas.text(lines, box.center[0], box.y + 5)
    _draw_markers(canvas, shape, box, pen.stroke, is_collapsed=is_collapsed)


def _find_start(shape: SubProcess) -> StartEvent | None:
    return next((one for one in shape.nodes if isinstance(one, StartEvent)), None)


# --- activities -----------------------------------------------------------------------------------------------------------


def draw_activity(canvas: Canvas, shape: FlowNode, box: Box, pen: Pen) -> None:
    """A task or call activity with its name and its symbol; a call activity has a thick border."""
    width = pen.width + 2.2 if isinstance(shape, CallActivity) else pen.width
    canvas.rectangle(box, Pen(stroke=pen.stroke, fill=pen.fill, width=width), 10)
    found = symbols.TASK_SYMBOLS.get(type(shape))
    if found is not None:
        symbol, is_filled = found
        canvas.move(box.x + 15, box.y + 14, 0.9)
        symbol(canvas, pen.stroke, is_filled)
        canvas.close_group()
        if isinstance(shape, ReceiveTask) and shape.instantiate:
            canvas.circle((box.x + 15, box.y + 14), 12, Pen(stroke=pen.stroke, width=1))
    count = _draw_markers(canvas, shape, box, pen.stroke, is_collapsed=False) if isinstance(shape, Activity) else 0
    _draw_name(canvas, shape.name, box, 18 if count else 0, has_symbol=found is not None)


def _draw_name(canvas: Canvas, name: str, box: Box, footer: float, *, has_symbol: bool = False) -> None:
    """A name in the middle of a box; below its symbol where there is no room beside it."""
    width = max(20.0, box.width - 2 * sizes.TASK_PADDING)
    room = box.height - 8 - footer
    lines = wrap(name, width, max(1, int(room // LINE_HEIGHT)))
    top = box.y + 4 + (room - len(lines) * LINE_HEIGHT) / 2
    if has_symbol and top < box.y + 24:
        fitting = wrap(name, width, max(1, int((room - 20) // LINE_HEIGHT)))
        if "".join(fitting) == "".join(lines):
            top = box.y + 24
        else:
            top = max(top, box.y + 4)
    canvas.text(lines, box.center[0], top)


def _draw_markers(canvas: Canvas, shape: Activity, box: Box, color: str, *, is_collapsed: bool) -> int:
    """The markers at the lower side of an activity. Returns how many there are."""
    drawn: list[symbols.Symbol] = []
    if isinstance(shape.loop, StandardLoop):
        drawn.append(symbols.draw_loop)
    elif isinstance(shape.loop, Loop):
        drawn.append(symbols.draw_sequential_instances if shape.loop.is_sequential else symbols.draw_parallel_instances)
    if shape.is_for_compensation:
        drawn.append(symbols.draw_small_compensation)
    if is_collapsed:
        drawn.append(symbols.draw_collapsed)
    if isinstance(shape, AdHocSubProcess):
        drawn.append(symbols.draw_ad_hoc)
    x = box.center[0] - MARKER_STEP * (len(drawn) - 1) / 2
    for symbol in drawn:
        canvas.move(x, box.bottom - 11)
        symbol(canvas, color, False)
        canvas.close_group()
        x += MARKER_STEP
    return len(drawn)


# --- events and gateways --------------------------------------------------------------------------------------------------


def draw_event(
    canvas: Canvas,
    shape: StartEvent | IntermediateCatchEvent | IntermediateThrowEvent | EndEvent | BoundaryEvent,
    box: Box,
    pen: Pen,
) -> None:
    """An event: a thin circle at the start, a double one in between, a thick one at the end, dashed without interrupting."""
    is_dashed = (isinstance(shape, StartEvent) and not shape.is_interrupting) or (
        isinstance(shape, BoundaryEvent) and not shape.cancel_activity
    )
    radius = min(box.width, box.height) / 2
    dash = "4 3" if is_dashed else ""
    width = pen.width + 2 if isinstance(shape, EndEvent) else pen.width
    canvas.circle(box.center, radius, Pen(stroke=pen.stroke, fill=pen.fill, width=width, dash=dash))
    if isinstance(shape, (IntermediateCatchEvent, IntermediateThrowEvent, BoundaryEvent)):
        canvas.circle(box.center, radius - 3.2, Pen(stroke=pen.stroke, width=min(pen.width, 1.5), dash=dash))
    _draw_event_symbol(canvas, shape, box, pen.stroke)


def _draw_event_symbol(
    canvas: Canvas,
    shape: StartEvent | IntermediateCatchEvent | IntermediateThrowEvent | EndEvent | BoundaryEvent,
    box: Box,
    color: str,
) -> None:
    if not shape.definitions:
        return
    is_throwing = isinstance(shape, (EndEvent, IntermediateThrowEvent))
    symbol = symbols.EVENT_SYMBOLS.get(type(shape.definitions[0]))
    if len(shape.definitions) > 1:
        is_parallel = not isinstance(shape, (EndEvent, IntermediateThrowEvent)) and shape.is_parallel_multiple
        symbol = symbols.draw_parallel_multiple if is_parallel else symbols.draw_multiple
    if symbol is None:
        return
    size = min(box.width, box.height)
    scale = size / sizes.EVENT
    if isinstance(shape.definitions[0], CancelEventDefinition):
        scale *= 0.95
    canvas.move(*box.center, round(scale * 0.92, 3))
    symbol(canvas, color, is_throwing)
    canvas.close_group()


def draw_gateway(canvas: Canvas, shape: Gateway, box: Box, pen: Pen) -> None:
    """A diamond with the symbol of its kind."""
    x, y = box.center
    canvas.polygon([(x, box.y), (box.right, y), (x, box.bottom), (box.x, y)], pen)
    scale = round(min(box.width, box.height) / sizes.GATEWAY, 3)
    canvas.move(x, y, scale)
    if isinstance(shape, EventBasedGateway):
        symbols.draw_event_based(canvas, pen.stroke, is_instantiating=shape.instantiate, is_parallel=shape.is_parallel)
    elif (symbol := _GATEWAYS.get(type(shape))) is not None:
        symbol(canvas, pen.stroke, False)
    canvas.close_group()


# --- artifacts ------------------------------------------------------------------------------------------------------------


def draw_data(canvas: Canvas, shape: DataObject, box: Box, pen: Pen) -> None:
    """A sheet with a folded corner, or the cylinder of a store."""
    if shape.kind == "dataStoreReference":
        _draw_store(canvas, box, pen)
        return
    fold = min(12.0, box.width / 3, box.height / 3)
    corner = box.right - fold, box.y + fold
    canvas.polygon(
        [(box.x, box.y), (corner[0], box.y), (box.right, corner[1]), (box.right, box.bottom), (box.x, box.bottom)], pen
    )
    canvas.line([(corner[0], box.y), corner, (box.right, corner[1])], Pen(stroke=pen.stroke, width=pen.width), 0)


def _draw_store(canvas: Canvas, box: Box, pen: Pen) -> None:
    x, y, right, bottom = box.x, box.y, box.right, box.bottom
    bow = box.height * 0.12
    top = y + bow
    side = f"M{x:.2f} {top:.2f}C{x:.2f} {y - bow / 3:.2f} {right:.2f} {y - bow / 3:.2f} {right:.2f} {top:.2f}"
    low = (
        f"V{bottom - bow:.2f}C{right:.2f} {bottom + bow / 3:.2f} {x:.2f} {bottom + bow / 3:.2f} {x:.2f} {bottom - bow:.2f}Z"
    )
    canvas.path(side + low, pen)
    for level in range(3):
        at = top + level * bow * 0.8
        middle = at + bow * 1.33
        canvas.path(
            f"M{x:.2f} {at:.2f}C{x:.2f} {middle:.2f} {right:.2f} {middle:.2f} {right:.2f} {at:.2f}",
            Pen(stroke=pen.stroke, width=pen.width),
        )


def draw_annotation(canvas: Canvas, shape: Annotation, box: Box, pen: Pen) -> None:
    """A bracket at the left of a text."""
    canvas.rectangle(box, Pen(stroke="none", fill=PAPER))
    reach = min(box.x + 10, box.right)
    canvas.line(
        [(reach, box.y), (box.x, box.y), (box.x, box.bottom), (reach, box.bottom)],
        Pen(stroke=pen.stroke, width=pen.width),
        0,
    )
    lines = wrap(shape.text or shape.name, max(20.0, box.width - 10), max(1, int(box.height // LINE_HEIGHT)))
    canvas.text(lines, box.x + 6, box.y + max(2.0, (box.height - len(lines) * LINE_HEIGHT) / 2), anchor="start")
