"""Layouts of random models: nothing overlaps, boundary events stand on their hosts, lines end at borders."""

from __future__ import annotations

import math
import time
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bpmn.drawing import draw
from holdfast.bpmn.drawing.arrangements import Arrangement
from holdfast.bpmn.drawing.arranging import arrange
from holdfast.bpmn.drawing.contents import Contents
from holdfast.bpmn.drawing.geometry import Box, Point
from holdfast.bpmn.drawing.graphs import Outline
from holdfast.bpmn.model import BoundaryEvent, Definitions, Lane, Participant, SequenceFlow
from tests.bpmn.drawing.random_models import make_definitions

Chosen = dict[str, Any]
"""How a random model is made: a model itself would be too much to print."""

models = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "size": st.integers(0, 14),
        "density": st.sampled_from((0.0, 0.5, 1.0, 1.5, 3.0)),
        "lanes": st.sampled_from((0, 0, 0, 1, 3)),
        "processes": st.sampled_from((1, 1, 2, 3)),
        "pools": st.booleans(),
    }
)


def place(definitions: Definitions) -> tuple[Contents, Arrangement]:
    contents = Contents(definitions)
    return contents, arrange(contents)


def is_on_border(box: Box, point: Point, outline: Outline) -> bool:
    x, y = abs(point[0] - box.center[0]), abs(point[1] - box.center[1])
    if outline is Outline.ROUND:
        return abs(math.hypot(x, y) - box.width / 2) < 0.1
    if outline is Outline.DIAMOND:
        return abs(x / (box.width / 2) + y / (box.height / 2) - 1) < 0.01
    is_side = abs(x - box.width / 2) < 0.1 and y <= box.height / 2 + 0.1
    return is_side or (abs(y - box.height / 2) < 0.1 and x <= box.width / 2 + 0.1)


def list_together(contents: Contents, placed: Arrangement) -> dict[str, list[str]]:
    """The shapes of each container that must not overlap."""
    found: dict[str, list[str]] = {}
    for id_ in placed.boxes:
        shape = contents.shapes[id_]
        if not isinstance(shape, (BoundaryEvent, Lane)):
            found.setdefault(contents.parents[id_], []).append(id_)
    return found


@settings(max_examples=150, deadline=None)
@given(models)
def test_no_two_shapes_overlap(chosen: Chosen) -> None:
    contents, placed = place(make_definitions(**chosen))

    for ids in list_together(contents, placed).values():
        for one, other in combinations(ids, 2):
            assert not placed.boxes[one].meets(placed.boxes[other]), (one, other)


@settings(max_examples=150, deadline=None)
@given(models)
def test_every_shape_is_placed_inside_its_container(chosen: Chosen) -> None:
    contents, placed = place(make_definitions(**chosen))

    assert placed.boxes.keys() == contents.shapes.keys()
    for id_, box in placed.boxes.items():
        outside = placed.boxes.get(contents.parents[id_])
        if outside is not None and id_ not in placed.collapsed:
            assert outside.grow(0.01).holds((box.x, box.y)), id_
            assert outside.grow(0.01).holds((box.right, box.bottom)), id_


@settings(max_examples=150, deadline=None)
@given(models)
def test_boundary_events_stand_on_the_borders_of_their_hosts(chosen: Chosen) -> None:
    contents, placed = place(make_definitions(**chosen))

    seen: list[Box] = []
    for id_, shape in contents.shapes.items():
        if isinstance(shape, BoundaryEvent):
            box = placed.boxes[id_]
            assert is_on_border(placed.boxes[shape.attached_to], box.center, Outline.BOX)
            assert not any(box.meets(other) for other in seen)
            seen.append(box)


@settings(max_examples=150, deadline=None)
@given(models)
def test_every_line_ends_at_the_borders_of_its_shapes(chosen: Chosen) -> None:
    contents, placed = place(make_definitions(**chosen))

    for id_, line in contents.lines.items():
        points = placed.lines[id_]
        for end, point in ((line.source, points[0]), (line.target, points[-1])):
            assert is_on_border(placed.boxes[end], point, contents.find_outline(end)), (id_, end)


@settings(max_examples=150, deadline=None)
@given(models)
def test_flows_are_orthogonal_and_go_through_no_shape(chosen: Chosen) -> None:
    contents, placed = place(make_definitions(**chosen))

    for id_, line in contents.lines.items():
        if not isinstance(line, SequenceFlow):
            continue
        others = [
            other
            for other in placed.boxes
            if contents.parents[other] == contents.parents[id_]
            and not isinstance(contents.shapes[other], (Lane, BoundaryEvent, Participant))
        ]
        for a, b in pairwise(placed.lines[id_]):
            assert abs(a[0] - b[0]) < 0.02 or abs(a[1] - b[1]) < 0.02, id_
            way = Box(min(a[0], b[0]), min(a[1], b[1]), abs(a[0] - b[0]), abs(a[1] - b[1]))
            round_ends = {end for end in (line.source, line.target) if contents.find_outline(end) is not Outline.BOX}
            for other in others:
                assert other in round_ends or not meets_line(placed.boxes[other].grow(-0.1), way), (id_, other)


def meets_line(box: Box, way: Box) -> bool:
    return way.x < box.right and box.x < way.right + 1e-9 and way.y < box.bottom and box.y < way.bottom + 1e-9


@settings(max_examples=100, deadline=None)
@given(models)
def test_same_model_is_always_drawn_the_same(chosen: Chosen) -> None:
    assert draw(make_definitions(**chosen)) == draw(make_definitions(**chosen))


@pytest.mark.parametrize(
    ("size", "density", "lanes", "most"),
    [(380, 1.3, 0, 8.0), (380, 1.3, 4, 8.0), (380, 4.0, 0, 16.0), (3800, 1.0, 0, 60.0), (3800, 0.0, 0, 60.0)],
)
def test_large_models_are_drawn_without_hanging(size: int, density: float, lanes: int, most: float) -> None:
    definitions = make_definitions(7, size=size, density=density, lanes=lanes)

    begun = time.process_time()
    draw(definitions)

    assert time.process_time() - begun < most
