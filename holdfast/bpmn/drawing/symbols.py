"""The symbols of BPMN: what is inside events and gateways, and the markers of activities. Each is drawn around 0, 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from holdfast.bpmn.drawing.canvas import PAPER, Canvas, Pen
from holdfast.bpmn.drawing.geometry import Box, Point
from holdfast.bpmn.model import (
    BusinessRuleTask,
    CancelEventDefinition,
    CompensateEventDefinition,
    ConditionalEventDefinition,
    ErrorEventDefinition,
    EscalationEventDefinition,
    EventDefinition,
    FlowNode,
    LinkEventDefinition,
    ManualTask,
    MessageEventDefinition,
    ReceiveTask,
    ScriptTask,
    SendTask,
    ServiceTask,
    SignalEventDefinition,
    TerminateEventDefinition,
    TimerEventDefinition,
    UserTask,
)

Symbol: TypeAlias = Callable[[Canvas, str, bool], None]
"""Draws a symbol with a color; filled ones are those of events that throw."""

THIN: Final = 1.3


def _outline(color: str, is_filled: bool) -> Pen:
    return Pen(stroke=color, fill=color if is_filled else "none", width=THIN, cap="round")


# --- events ---------------------------------------------------------------------------------------------------------------


def draw_message(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an envelope, the symbol of messages."""
    canvas.rectangle(Box(-9, -6.5, 18, 13), Pen(stroke=color, fill=color if is_filled else PAPER, width=THIN))
    canvas.line([(-9, -6.5), (0, 1), (9, -6.5)], Pen(stroke=PAPER if is_filled else color, width=THIN), 0)


def draw_timer(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a clock, the symbol of timers."""
    del is_filled
    canvas.circle((0, 0), 10, Pen(stroke=color, fill=PAPER, width=THIN))
    for hour in range(12):
        x, y = math.sin(hour * math.pi / 6), -math.cos(hour * math.pi / 6)
        canvas.line([(x * 8, y * 8), (x * 9.6, y * 9.6)], Pen(stroke=color, width=1), 0)
    canvas.line([(1.5, -6.5), (0, 0), (5, 0.8)], Pen(stroke=color, width=THIN, cap="round"), 0)


def draw_signal(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a triangle, the symbol of broadcast signals."""
    canvas.polygon([(0, -9), (9, 6.5), (-9, 6.5)], _outline(color, is_filled))


def draw_error(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a flash, the symbol of errors."""
    canvas.polygon([(-9, 9), (-4, -7), (3, 2), (9, -9), (4, 7), (-3, -2)], _outline(color, is_filled))


def draw_escalation(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an arrow head that points up, the symbol of escalations."""
    canvas.polygon([(0, -9.5), (7.5, 8.5), (0, 1.5), (-7.5, 8.5)], _outline(color, is_filled))


def draw_terminate(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a disc, the symbol of termination."""
    del is_filled
    canvas.circle((0, 0), 10, Pen(stroke=color, fill=color, width=THIN))


def draw_link(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an arrow to the right, the symbol of links."""
    canvas.polygon([(-9, -4), (2, -4), (2, -8.5), (10, 0), (2, 8.5), (2, 4), (-9, 4)], _outline(color, is_filled))


def draw_conditional(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a sheet with lines, the symbol of conditions."""
    del is_filled
    canvas.rectangle(Box(-7, -9, 14, 18), Pen(stroke=color, fill=PAPER, width=THIN))
    for y in (-6, -2, 2, 6):
        canvas.line([(-4.5, y), (4.5, y)], Pen(stroke=color, width=1), 0)


def draw_compensation(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw two triangles that point to the left, the symbol of compensation."""
    for x in (-0.5, 9.0):
        canvas.polygon([(x, -7), (x, 7), (x - 9, 0)], _outline(color, is_filled))


def draw_cancel(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a slanting cross, the symbol of cancelling."""
    canvas.polygon(_make_cross(math.pi / 4, 10, 2.2), _outline(color, is_filled))


def draw_multiple(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a pentagon, the symbol of several event definitions."""
    points = [(9 * math.sin(n * 0.4 * math.pi), -9 * math.cos(n * 0.4 * math.pi)) for n in range(5)]
    canvas.polygon(points, _outline(color, is_filled))


def draw_parallel_multiple(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an upright cross, the symbol of events that all have to come."""
    canvas.polygon(_make_cross(0, 10, 2.8), _outline(color, is_filled))


def _make_cross(angle: float, reach: float, half: float) -> list[Point]:
    arm = [(half, -half), (half, -reach), (-half, -reach)]
    points: list[Point] = []
    for turn in range(4):
        a = angle - turn * math.pi / 2
        points += [(x * math.cos(a) - y * math.sin(a), x * math.sin(a) + y * math.cos(a)) for x, y in arm]
    return points


EVENT_SYMBOLS: Final[Mapping[type[EventDefinition], Symbol]] = {
    MessageEventDefinition: draw_message,
    TimerEventDefinition: draw_timer,
    SignalEventDefinition: draw_signal,
    ErrorEventDefinition: draw_error,
    EscalationEventDefinition: draw_escalation,
    TerminateEventDefinition: draw_terminate,
    LinkEventDefinition: draw_link,
    ConditionalEventDefinition: draw_conditional,
    CompensateEventDefinition: draw_compensation,
    CancelEventDefinition: draw_cancel,
}


# --- tasks ----------------------------------------------------------------------------------------------------------------


def draw_service(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a cogwheel, the symbol of service tasks."""
    del is_filled
    points: list[Point] = []
    for tooth in range(8):
        for offset, radius in ((-0.3, 6.0), (-0.16, 8.6), (0.16, 8.6), (0.3, 6.0)):
            angle = tooth * math.pi / 4 + offset
            points.append((radius * math.sin(angle), -radius * math.cos(angle)))
    canvas.polygon(points, Pen(stroke=color, fill=PAPER, width=1.1, cap="round"))
    canvas.circle((0, 0), 2.8, Pen(stroke=color, fill=PAPER, width=1.1))


def draw_user(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw head and shoulders of a person, the symbol of user tasks."""
    del is_filled
    canvas.path("M-8 8C-8 2 -4.5 0.5 0 0.5C4.5 0.5 8 2 8 8Z", Pen(stroke=color, fill=PAPER, width=1.1, cap="round"))
    canvas.circle((0, -3.6), 4.4, Pen(stroke=color, fill=PAPER, width=1.1))
    canvas.path("M-4.4 -4C-4.4 -10 4.4 -10 4.4 -4C2 -6 -2 -3.6 -4.4 -4Z", Pen(stroke=color, fill=color, width=0.8))


def draw_script(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a curled sheet with lines, the symbol of script tasks."""
    del is_filled
    pen = Pen(stroke=color, fill=PAPER, width=1.1, cap="round")
    canvas.path("M-4 -8H8C3 -4 9 2 4.5 8H-8C-3 3 -9 -3 -4 -8Z", pen)
    for y, x in ((-4.8, -3.2), (-1.6, -3), (1.6, -2.4), (4.8, -3)):
        canvas.line([(x, y), (x + 6, y)], Pen(stroke=color, width=1), 0)


def draw_manual(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a hand, the symbol of manual tasks."""
    del is_filled
    canvas.path(
        "M-8 -1C-6 -5 -3 -6.5 0 -6.5H2.2C3.6 -6.5 3.6 -4.4 2.2 -4.4H-0.5H7.6C9 -4.4 9 -2.2 7.6 -2.2H8.2C9.5 -2.2 9.5 0 8.2 0"
        "H7.6C8.8 0 8.8 2.2 7.6 2.2H6.4C7.6 2.2 7.6 4.4 6.4 4.4C3 5.4 -4 6.6 -8 4Z",
        Pen(stroke=color, fill=PAPER, width=1.1, cap="round"),
    )
    for y, x in ((-2.2, 7.4), (0, 7.4), (2.2, 6.2)):
        canvas.line([(0.8, y), (x, y)], Pen(stroke=color, width=0.9), 0)


def draw_rule(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a table with a heading, the symbol of business rule tasks."""
    del is_filled
    canvas.rectangle(Box(-8.5, -6.5, 17, 13), Pen(stroke=color, fill=PAPER, width=1.1))
    canvas.rectangle(Box(-8.5, -6.5, 17, 4), Pen(stroke=color, fill="#c9ccd3", width=1.1))
    canvas.line([(-8.5, 2), (8.5, 2)], Pen(stroke=color, width=1), 0)
    canvas.line([(-3.5, -2.5), (-3.5, 6.5)], Pen(stroke=color, width=1), 0)


TASK_SYMBOLS: Final[Mapping[type[FlowNode], tuple[Symbol, bool]]] = {
    ServiceTask: (draw_service, False),
    UserTask: (draw_user, False),
    ScriptTask: (draw_script, False),
    ManualTask: (draw_manual, False),
    BusinessRuleTask: (draw_rule, False),
    SendTask: (draw_message, True),
    ReceiveTask: (draw_message, False),
}


# --- markers at the lower side of activities ------------------------------------------------------------------------------


def draw_loop(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an open circle with an arrow, the marker of standard loops."""
    del is_filled
    canvas.path("M-2.5 5.2A5.6 5.6 0 1 1 2.6 5.1", Pen(stroke=color, width=THIN, cap="round"))
    canvas.line([(-6.5, 5.4), (-2.3, 5.4), (-2.5, 1.4)], Pen(stroke=color, width=THIN, cap="round"), 0)


def draw_parallel_instances(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw three upright bars, the marker of parallel multi-instance activities."""
    del is_filled
    for x in (-4.5, 0, 4.5):
        canvas.line([(x, -6), (x, 6)], Pen(stroke=color, width=2.2), 0)


def draw_sequential_instances(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw three bars above each other, the marker of sequential multi-instance activities."""
    del is_filled
    for y in (-4.5, 0, 4.5):
        canvas.line([(-6, y), (6, y)], Pen(stroke=color, width=2.2), 0)


def draw_collapsed(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a plus in a square, the marker of collapsed sub-processes."""
    del is_filled
    canvas.rectangle(Box(-7, -7, 14, 14), Pen(stroke=color, fill=PAPER, width=1.1))
    canvas.line([(-4, 0), (4, 0)], Pen(stroke=color, width=1.6), 0)
    canvas.line([(0, -4), (0, 4)], Pen(stroke=color, width=1.6), 0)


def draw_ad_hoc(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a tilde, the marker of ad-hoc sub-processes."""
    del is_filled
    canvas.path("M-7 2.5C-5 -4 -2 -3 0 0C2 3 5 4 7 -2.5", Pen(stroke=color, width=2.2, cap="round"))


def draw_small_compensation(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw two small triangles that point to the left, the marker of compensation handlers."""
    for x in (0.0, 7.0):
        canvas.polygon([(x, -5), (x, 5), (x - 7, 0)], _outline(color, is_filled))


# --- gateways -------------------------------------------------------------------------------------------------------------


def draw_exclusive(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a slanting cross with thick lines, the symbol of exclusive gateways."""
    del is_filled
    canvas.polygon(_make_cross(math.pi / 4, 12, 1.6), Pen(stroke=color, fill=color, width=1))


def draw_parallel(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw an upright cross with thick lines, the symbol of parallel gateways."""
    del is_filled
    canvas.polygon(_make_cross(0, 12.5, 1.9), Pen(stroke=color, fill=color, width=1))


def draw_inclusive(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a thick circle, the symbol of inclusive gateways."""
    del is_filled
    canvas.circle((0, 0), 11.5, Pen(stroke=color, width=2.6))


def draw_complex(canvas: Canvas, color: str, is_filled: bool) -> None:
    """Draw a star of thick lines, the symbol of complex gateways."""
    del is_filled
    pen = Pen(stroke=color, width=3)
    for angle in (0, math.pi / 4, math.pi / 2, 3 * math.pi / 4):
        x, y = 12 * math.cos(angle), 12 * math.sin(angle)
        canvas.line([(-x, -y), (x, y)], pen, 0)


def draw_event_based(canvas: Canvas, color: str, *, is_instantiating: bool, is_parallel: bool) -> None:
    """A pentagon, or a cross for all of the events, in two circles; in one where it begins a process."""
    canvas.circle((0, 0), 14, Pen(stroke=color, width=1.1))
    if not is_instantiating:
        canvas.circle((0, 0), 11.3, Pen(stroke=color, width=1.1))
    canvas.move(0, 0, 0.75)
    (draw_parallel_multiple if is_parallel else draw_multiple)(canvas, color, False)
    canvas.close_group()
