"""How reading and checking grow with the model: no step is quadratic. How long they take is measured by `bench`."""

from __future__ import annotations

from time import process_time

from tests.bpmn.checks.model_files import END, START, find_errors, flow, make_process


def _make_chain(count: int) -> bytes:
    nodes, flows, before = [START], [], "start"
    for number in range(count):
        id_ = f"t{number}"
        nodes.append(
            f'<bpmn:serviceTask id="{id_}" name="Task {number}"><bpmn:extensionElements><zeebe:taskDefinition type="work"/>'
            f'<zeebe:ioMapping><zeebe:input source="=order.total + {number}" target="x"/></zeebe:ioMapping>'
            "</bpmn:extensionElements></bpmn:serviceTask>\n"
        )
        flows.append(flow(before, id_))
        before = id_
    return make_process("".join([*nodes, END, *flows, flow(before, "end")]))


def _measure(data: bytes) -> float:
    begin = process_time()
    find_errors(data)
    return process_time() - begin


def test_P9_ten_times_the_elements_take_about_ten_times_as_long() -> None:
    small = min(_measure(_make_chain(500)) for _ in range(3))

    assert _measure(_make_chain(5_000)) < 30 * small


def test_P9_a_million_problems_are_not_all_told() -> None:
    tasks = "".join(f'<bpmn:serviceTask id="t{number}"/>' for number in range(5_000))

    assert len(find_errors(make_process(START + tasks))) <= 2_000
