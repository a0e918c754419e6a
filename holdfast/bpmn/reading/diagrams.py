"""How a file is drawn: diagrams with their shapes and edges."""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.bpmn.model import Bounds, Diagram, Edge, Shape
from holdfast.bpmn.reading.documents import Document, local_name
from holdfast.bpmn.reading.names import BPMN_DI, DC, DI, SUB_PROCESSES

_TASK_WIDTH: Final = 100
_TASK_HEIGHT: Final = 80
"""A sub-process of at most the size of a task is collapsed, where the file does not say so."""


def read_diagrams(document: Document) -> tuple[Diagram, ...]:
    """All diagrams of a file, one for each plane."""
    return tuple(
        _read_plane(document, plane)
        for diagram in document.root.iterchildren(f"{BPMN_DI}BPMNDiagram")
        for plane in diagram.iterchildren(f"{BPMN_DI}BPMNPlane")
    )


def _read_plane(document: Document, plane: etree._Element) -> Diagram:
    shapes: list[Shape] = []
    edges: list[Edge] = []
    for child in plane:
        if child.tag == f"{BPMN_DI}BPMNShape":
            shape = _read_shape(document, child)
            if shape is not None:
                shapes.append(shape)
        elif child.tag == f"{BPMN_DI}BPMNEdge":
            edges.append(_read_edge(document, child))
    return Diagram(plane=document.reference(plane.get("bpmnElement")), shapes=tuple(shapes), edges=tuple(edges))


def _read_shape(document: Document, element: etree._Element) -> Shape | None:
    bounds = _read_bounds(document, element)
    id_ = document.reference(element.get("bpmnElement"))
    if bounds is None:
        document.notice(
            element,
            "bad-drawing",
            f"Expected the bounds of the shape of {id_!r} as numbers, but they are missing or none.",
            "Draw it again, or leave the drawing out.",
        )
        return None
    is_small = bounds.width <= _TASK_WIDTH and bounds.height <= _TASK_HEIGHT
    drawn = document.ids.get(id_)
    is_sub_process = drawn is not None and local_name(str(drawn.tag)) in SUB_PROCESSES
    return Shape(
        element=id_,
        bounds=bounds,
        is_expanded=_is_true(element, "isExpanded", default=not (is_sub_process and is_small)),
        is_horizontal=_is_true(element, "isHorizontal", default=True),
        label=_read_label(document, element),
    )


def _is_true(element: etree._Element, name: str, *, default: bool) -> bool:
    """An attribute of a drawing; what it should not be refuses nothing."""
    return {"true": True, "1": True, "false": False, "0": False}.get(element.get(name, "").strip().lower(), default)


def _read_edge(document: Document, element: etree._Element) -> Edge:
    points: list[tuple[float, float]] = []
    for child in element.iterchildren(f"{DI}waypoint"):
        x, y = document.number(child, "x"), document.number(child, "y")
        if x is not None and y is not None:
            points.append((x, y))
    return Edge(
        element=document.reference(element.get("bpmnElement")),
        points=tuple(points),
        label=_read_label(document, element),
    )


def _read_label(document: Document, element: etree._Element) -> Bounds | None:
    label = element.find(f"{BPMN_DI}BPMNLabel")
    return None if label is None else _read_bounds(document, label)


def _read_bounds(document: Document, element: etree._Element) -> Bounds | None:
    inner = element.find(f"{DC}Bounds")
    if inner is None:
        return None
    x, y, width, height = (document.number(inner, name) for name in ("x", "y", "width", "height"))
    if x is None or y is None or width is None or height is None:
        return None
    return Bounds(x=x, y=y, width=width, height=height)
