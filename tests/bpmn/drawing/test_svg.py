"""Drawings: what stands in the SVG, and that nothing of a file can break out of it."""

from __future__ import annotations

import msgspec
import pytest
from lxml import etree

from holdfast.bpmn import model
from holdfast.bpmn.drawing import Overlay, draw
from holdfast.bpmn.model import (
    Annotation,
    Association,
    BoundaryEvent,
    Bounds,
    Definitions,
    Diagram,
    Edge,
    EndEvent,
    ExclusiveGateway,
    Participant,
    Process,
    SequenceFlow,
    Shape,
    StartEvent,
    SubProcess,
    Task,
    UserTask,
)
from holdfast.bpmn.reading import read
from tests.bpmn.checks.model_files import END, START, flow, make_process

SVG = "{http://www.w3.org/2000/svg}"


def make_order(**changes: object) -> Definitions:
    process = Process(
        id="order",
        name="Order",
        nodes=(
            StartEvent(id="begin"),
            UserTask(id="check", name="Check the order"),
            BoundaryEvent(id="late", attached_to="check", definitions=(model.TimerEventDefinition(),)),
            ExclusiveGateway(id="choose", name="Paid?", default="no"),
            EndEvent(id="done"),
            EndEvent(id="failed"),
        ),
        flows=(
            SequenceFlow(id="f1", source="begin", target="check"),
            SequenceFlow(id="f2", source="check", target="choose"),
            SequenceFlow(id="yes", name="yes", source="choose", target="done"),
            SequenceFlow(id="no", name="no", source="choose", target="failed"),
            SequenceFlow(id="f5", source="late", target="failed"),
        ),
    )
    return msgspec.structs.replace(Definitions(file="order.bpmn", processes=(process,)), **changes)


def draw_whole(order: Definitions, places: dict[str, Bounds]) -> Definitions:
    shapes = tuple(Shape(element=id_, bounds=bounds) for id_, bounds in places.items())
    return msgspec.structs.replace(order, diagrams=(Diagram(plane="order", shapes=shapes),))


PLACES = {
    "begin": Bounds(x=0, y=22, width=36, height=36),
    "check": Bounds(x=100, y=0, width=100, height=80),
    "late": Bounds(x=130, y=62, width=36, height=36),
    "choose": Bounds(x=250, y=15, width=50, height=50),
    "done": Bounds(x=350, y=22, width=36, height=36),
    "failed": Bounds(x=350, y=122, width=36, height=36),
}


def parse(svg: str) -> etree._Element:
    return etree.fromstring(svg.encode())


def find(svg: str, element: str) -> etree._Element:
    found = [one for one in parse(svg).iter(f"{SVG}g") if one.get("data-element") == element]
    assert len(found) == 1
    return found[0]


def list_texts(svg: str) -> list[str]:
    return ["".join(str(part) for part in one.itertext()) for one in parse(svg).iter(f"{SVG}text")]


def test_each_element_and_flow_is_drawn_once() -> None:
    svg = draw(make_order())

    drawn = [one.get("data-element") for one in parse(svg).iter(f"{SVG}g") if one.get("data-element")]
    assert sorted(str(one) for one in drawn) == sorted([*PLACES, "f1", "f2", "yes", "no", "f5"])


def test_svg_has_title_description_and_white_background() -> None:
    root = parse(draw(make_order()))

    assert root.get("role") == "img"
    assert root.get("aria-label") == "Order"
    assert root.findtext(f"{SVG}title") == "Order"
    assert "1 user task" in (root.findtext(f"{SVG}desc") or "")
    background = root.find(f"{SVG}rect")
    assert background is not None
    assert background.get("fill") == "#ffffff"


def test_places_of_the_file_are_kept() -> None:
    svg = draw(draw_whole(make_order(), PLACES))

    task = find(svg, "check").find(f"{SVG}rect")
    assert task is not None
    assert [task.get(name) for name in ("x", "y", "width", "height")] == ["100", "0", "100", "80"]


def test_flows_that_the_file_does_not_draw_are_added() -> None:
    svg = draw(draw_whole(make_order(), PLACES))

    assert find(svg, "f1").find(f"{SVG}path") is not None


def test_missing_boundary_event_is_put_on_its_host() -> None:
    svg = draw(draw_whole(make_order(), {id_: box for id_, box in PLACES.items() if id_ != "late"}))

    circle = find(svg, "late").find(f"{SVG}circle")
    assert circle is not None
    assert (circle.get("cx"), circle.get("cy")) == ("150", "80")


def test_process_with_a_missing_node_gets_a_layout() -> None:
    partly = draw(draw_whole(make_order(), {id_: box for id_, box in PLACES.items() if id_ != "done"}))

    assert find(partly, "done") is not None
    assert partly == draw(make_order())


def test_undrawn_process_is_put_below_the_drawn_one() -> None:
    other = Process(id="other", name="Other", nodes=(Task(id="alone", name="Alone"),))
    order = draw_whole(make_order(), PLACES)

    svg = draw(msgspec.structs.replace(order, processes=(*order.processes, other)))

    task = find(svg, "alone").find(f"{SVG}rect")
    assert task is not None
    assert float(task.get("y", "0")) > 158
    assert "Other" in list_texts(svg)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(x=float("nan"), y=0, width=1, height=1),
        Bounds(x=float("inf"), y=0, width=1, height=1),
        Bounds(x=0, y=0, width=-5, height=1),
        Bounds(x=0, y=0, width=0, height=0),
        Bounds(x=1e300, y=0, width=1, height=1),
    ],
)
def test_impossible_places_of_a_file_are_replaced_by_a_layout(bounds: Bounds) -> None:
    svg = draw(draw_whole(make_order(), {**PLACES, "check": bounds}))

    assert svg == draw(make_order())
    assert "nan" not in svg
    assert "inf" not in svg


def test_edges_without_points_or_ends_do_no_harm() -> None:
    order = draw_whole(make_order(), PLACES)
    edges = (Edge(element="f1"), Edge(element="f2", points=((1.0, 1.0),)), Edge(element="nothing", points=((0, 0), (1, 1))))
    diagram = msgspec.structs.replace(order.diagrams[0], edges=edges)
    lost = SequenceFlow(id="lost", source="nobody", target="nowhere")
    process = msgspec.structs.replace(order.processes[0], flows=(*order.processes[0].flows, lost))

    svg = draw(msgspec.structs.replace(order, diagrams=(diagram,), processes=(process,)))

    assert find(svg, "f1").find(f"{SVG}path") is not None
    assert "nobody" not in svg


HOSTILE = "</text><script>alert(1)</script>\"'&\x00\x1b\ud800]]>"


def test_texts_of_a_file_cannot_break_out_of_the_svg() -> None:
    process = Process(
        id=HOSTILE,
        name=HOSTILE,
        nodes=(Task(id=f"t{HOSTILE}", name=HOSTILE), StartEvent(id="s", name=HOSTILE)),
        flows=(SequenceFlow(id=f"f{HOSTILE}", name=HOSTILE, source="s", target=f"t{HOSTILE}"),),
        annotations=(Annotation(id="a", text=HOSTILE),),
        associations=(Association(id="as", source="a", target="s"),),
    )

    svg = draw(
        Definitions(file=HOSTILE, processes=(process,), participants=(Participant(id="p", name=HOSTILE, process=HOSTILE),))
    )

    names = {str(one.tag).removeprefix(SVG) for one in parse(svg).iter()}
    assert names <= {"svg", "g", "title", "desc", "rect", "circle", "path", "polygon", "text", "tspan"}
    attributes = {str(name) for one in parse(svg).iter() for name in one.attrib}
    assert not any(name.startswith("on") or "href" in name or name == "style" for name in attributes)
    assert "url(" not in svg


def test_overlay_marks_path_tokens_and_incidents_with_counts() -> None:
    overlay = Overlay(taken_flows={"f1": 2, "gone": 1}, completed={"begin": 2}, active={"check": 3}, incidents={"check": 1})

    svg = draw(make_order(), overlay=overlay)

    assert find(svg, "f1").findtext(f"{SVG}title") == "f1 (2 taken)"
    assert find(svg, "check").findtext(f"{SVG}title") == "Check the order (3 active, 1 incidents)"
    assert {"✓2", "●3", "!1"} <= set(list_texts(svg))
    assert "3 active, 1 incidents" in (parse(svg).findtext(f"{SVG}desc") or "")


def test_collapsed_sub_process_hides_its_inside_unless_it_has_a_diagram() -> None:
    inner = SubProcess(id="sub", name="Sub", nodes=(Task(id="inside", name="Inside"),))
    order = Definitions(file="x", processes=(Process(id="p", nodes=(inner,)),))
    box = Bounds(x=0, y=0, width=100, height=80)
    outer = Diagram(plane="p", shapes=(Shape(element="sub", bounds=box, is_expanded=False),))
    plane = Diagram(plane="sub", shapes=(Shape(element="inside", bounds=box),))

    hidden = draw(msgspec.structs.replace(order, diagrams=(outer,)))
    shown = draw(msgspec.structs.replace(order, diagrams=(outer, plane)))

    assert 'data-element="inside"' not in hidden
    task = find(shown, "inside").find(f"{SVG}rect")
    assert task is not None
    assert float(task.get("y", "0")) > 80


def test_file_without_anything_is_an_empty_drawing() -> None:
    assert "no elements" in draw(Definitions(file="empty.bpmn"))


def test_elements_with_the_same_id_or_none_do_no_harm() -> None:
    nodes = (Task(id="a"), Task(id="a"), StartEvent(id=""), SubProcess(id="s", nodes=(Task(id="a"), Task(id="s"))))

    assert draw(Definitions(file="x", processes=(Process(id="p", nodes=nodes), Process(id="p", nodes=nodes))))


@pytest.mark.parametrize("tag", ["textAnnotation", "dataObject", "dataObjectReference", "dataStoreReference"])
def test_artifacts_without_an_id_are_drawn(tag: str) -> None:
    one = f"<bpmn:{tag} name='note'><bpmn:text>note</bpmn:text></bpmn:{tag}>"
    found = read(make_process(START + END + flow("start", "end") + one * 2), "order.bpmn").definitions
    assert found is not None

    assert list_texts(draw(found)).count("note") == 2
