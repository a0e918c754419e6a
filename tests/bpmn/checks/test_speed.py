"""How reading and checking grow with the model: no step is quadratic. How long they take is measured by `bench`."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

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


def _count_lines(data: bytes) -> int:
    """How many lines of Python run to read and check a file: unlike a time, the same on each machine."""
    count = 0

    def trace(_frame: FrameType, what: str, _argument: Any) -> Any:
        nonlocal count
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert not find_errors(data)
    finally:
        sys.settrace(before)
    return count


def test_P9_ten_times_the_elements_take_ten_times_the_steps() -> None:
    small, large = _count_lines(_make_chain(200)), _count_lines(_make_chain(2_000))

    assert large < 11 * small


def test_P9_a_million_problems_are_not_all_told() -> None:
    tasks = "".join(f'<bpmn:serviceTask id="t{number}"/>' for number in range(5_000))

    assert len(find_errors(make_process(START + tasks))) <= 2_000
