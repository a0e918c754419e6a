"""How a BPMN file is drawn: planes with shapes and edges."""

from __future__ import annotations

from holdfast.bpmn.model_roots import Value


class Bounds(Value, frozen=True, kw_only=True):
    """A rectangle on the plane of a drawing."""

    x: float
    y: float
    width: float
    height: float


class Shape(Value, frozen=True, kw_only=True):
    """How a node or a pool is drawn."""

    element: str
    bounds: Bounds
    is_expanded: bool = True
    is_horizontal: bool = True
    label: Bounds | None = None


class Edge(Value, frozen=True, kw_only=True):
    """How a flow or an association is drawn: a line through points."""

    element: str
    points: tuple[tuple[float, float], ...] = ()
    label: Bounds | None = None


class Diagram(Value, frozen=True, kw_only=True):
    """One plane of a file's drawing."""

    plane: str = ""
    """The id of what is drawn: a process, a collaboration, or a collapsed sub-process with a plane of its own."""
    shapes: tuple[Shape, ...] = ()
    edges: tuple[Edge, ...] = ()
