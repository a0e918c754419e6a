"""How large elements are drawn where nobody has said so, and how much room their labels take."""

from __future__ import annotations

from typing import Final

from holdfast.bpmn.drawing.geometry import Box
from holdfast.bpmn.drawing.graphs import Outline
from holdfast.bpmn.drawing.texts import LINE_HEIGHT, measure, measure_lines, wrap
from holdfast.bpmn.model import (
    AdHocSubProcess,
    AnyNode,
    BoundaryEvent,
    DataObject,
    EndEvent,
    Gateway,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    StartEvent,
    SubProcess,
)

EVENTS: Final = (StartEvent, IntermediateCatchEvent, IntermediateThrowEvent, EndEvent, BoundaryEvent)
EVENT: Final = 36.0
GATEWAY: Final = 50.0
TASK_WIDTH: Final = 100.0
WIDE_TASK: Final = 150.0
TASK_HEIGHT: Final = 80.0
TASK_PADDING: Final = 5.0
LABEL_WIDTH: Final = 90.0
LABEL_LINES: Final = 4
FLOW_LABEL_WIDTH: Final = 100.0
FLOW_LABEL_LINES: Final = 3
BOUNDARY_LABEL_WIDTH: Final = 60.0
DATA_OBJECT: Final = (36.0, 50.0)
DATA_STORE: Final = (50.0, 50.0)
ANNOTATION_WIDTH: Final = 160.0
ANNOTATION_LINES: Final = 8
HEADER: Final = 30.0
"""How wide the strip with the name of a pool or lane is."""
PADDING: Final = 20.0
"""What stays free within the border of an expanded sub-process."""


def find_outline(node: AnyNode) -> Outline:
    """Which form the shape of a node has."""
    if isinstance(node, EVENTS):
        return Outline.ROUND
    return Outline.DIAMOND if isinstance(node, Gateway) else Outline.BOX


def find_size(node: AnyNode) -> tuple[float, float]:
    """How wide and how high a node is, sub-processes collapsed. A task with a long name is wider."""
    match find_outline(node):
        case Outline.ROUND:
            return EVENT, EVENT
        case Outline.DIAMOND:
            return GATEWAY, GATEWAY
        case Outline.BOX:
            lines = wrap(node.name, TASK_WIDTH - 2 * TASK_PADDING, 100)
            return (TASK_WIDTH if len(lines) <= 3 else WIDE_TASK), TASK_HEIGHT


def has_label_outside(node: AnyNode) -> bool:
    """Whether the name of a node stands beside it."""
    return bool(node.name.strip()) and find_outline(node) is not Outline.BOX


def measure_label(text: str, width: float = LABEL_WIDTH, most: int = LABEL_LINES) -> tuple[float, float]:
    """How wide and how high a label is that is broken into lines."""
    lines = wrap(text, width, most)
    return (measure_lines(lines) + 2, len(lines) * LINE_HEIGHT) if lines else (0.0, 0.0)


def find_title_height(container: SubProcess) -> float:
    """How much room the name of an expanded sub-process takes, above what is in it."""
    return LINE_HEIGHT * min(2, len(wrap(container.name, 300, 2))) + 8


def find_footer_height(container: SubProcess) -> float:
    """How much room the markers of an expanded sub-process take, below what is in it."""
    has_markers = container.loop is not None or container.is_for_compensation or isinstance(container, AdHocSubProcess)
    return 16.0 if has_markers else 0.0


def find_annotation_size(text: str) -> tuple[float, float]:
    """How wide and how high a text annotation is."""
    width, height = measure_label(text, ANNOTATION_WIDTH - 12, ANNOTATION_LINES)
    return min(ANNOTATION_WIDTH, max(50.0, width + 14)), max(30.0, height + 8)


def find_data_size(one: DataObject) -> tuple[float, float]:
    """How wide and how high a data object or data store is, without its name."""
    return DATA_STORE if one.kind == "dataStoreReference" else DATA_OBJECT


def find_lane_height(name: str) -> float:
    """How high a lane is at least, so that its name can be read."""
    return max(80.0, min(measure(name) + 16, 200.0))


def place_below(box: Box, text: str) -> Box:
    """Where a label is below a shape."""
    width, height = measure_label(text)
    return Box(box.center[0] - width / 2, box.bottom + 3, width, height)


def place_above(box: Box, text: str) -> Box:
    """Where a label is above a shape."""
    width, height = measure_label(text)
    return Box(box.center[0] - width / 2, box.y - 3 - height, width, height)
