"""P9: what would be left out in silence behind gateways, at hosts and in mappings is refused."""

from __future__ import annotations

import pytest

from tests.bpmn.checks.model_files import CAMUNDA, END, START, find_codes, flow, make_path, make_process
from tests.bpmn.checks.test_checks import DECLARED, MESSAGE_EVENT, TIMER_EVENT

RECEIVE = '<bpmn:receiveTask id="{0}" messageRef="m"/>'
GATEWAY = '<bpmn:eventBasedGateway id="g"/>'
PAUSE = f'<bpmn:intermediateCatchEvent id="pause">{TIMER_EVENT}</bpmn:intermediateCatchEvent>'


def make_choice(*events: str) -> bytes:
    """An event-based gateway with these events behind it, called `a`, `b` and so on, and a timer."""
    names = "abc"[: len(events)]
    flows = "".join(flow("g", name) + flow(name, "end") for name in [*names, "pause"])
    return make_process(START + GATEWAY + PAUSE + "".join(events) + END + flow("start", "g") + flows, beside=DECLARED)


def test_P9_multi_instance_behind_an_event_based_gateway_is_refused() -> None:
    loop = "<bpmn:multiInstanceLoopCharacteristics><bpmn:loopCardinality>3</bpmn:loopCardinality>"
    receive = f'<bpmn:receiveTask id="a" messageRef="m">{loop}</bpmn:multiInstanceLoopCharacteristics></bpmn:receiveTask>'

    assert find_codes(make_choice(receive)) == [("a", "bad-gateway")]


def test_P9_a_message_behind_a_gateway_or_at_a_host_is_awaited_once() -> None:
    boundaries = "".join(
        f'<bpmn:boundaryEvent id="{name}" attachedToRef="it" cancelActivity="false">{MESSAGE_EVENT}</bpmn:boundaryEvent>'
        + flow(name, "end")
        for name in "ab"
    )

    assert find_codes(make_choice(RECEIVE.format("a"), RECEIVE.format("b"))) == [("b", "duplicate-catch")]
    assert find_codes(make_path('<bpmn:userTask id="it"/>', beside=DECLARED, more=boundaries)) == [("b", "duplicate-catch")]


@pytest.mark.parametrize(
    "mapping",
    [
        '<zeebe:input source="=1" target="a-b"/>',
        '<zeebe:input source="=1" target="a.1b"/>',
        '<zeebe:output source="5" target="a"/>',
    ],
)
def test_P9_mappings_that_no_expression_could_read_are_refused(mapping: str) -> None:
    extensions = f"<bpmn:extensionElements><zeebe:ioMapping>{mapping}</zeebe:ioMapping></bpmn:extensionElements>"

    assert find_codes(make_path(f'<bpmn:manualTask id="it">{extensions}</bpmn:manualTask>')) == [("it", "bad-mapping")]


def test_P9_mappings_at_a_parallel_gateway_are_refused() -> None:
    mapping = '<zeebe:ioMapping><zeebe:output source="=1" target="a"/></zeebe:ioMapping>'
    extensions = f"<bpmn:extensionElements>{mapping}</bpmn:extensionElements>"

    assert find_codes(make_path(f'<bpmn:parallelGateway id="it">{extensions}</bpmn:parallelGateway>')) == [
        ("it", "bad-mapping")
    ]


def test_P9_a_process_of_event_sub_processes_alone_has_no_beginning() -> None:
    inside = f'<bpmn:startEvent id="begin">{MESSAGE_EVENT}</bpmn:startEvent>'
    sub = f'<bpmn:subProcess id="sub" triggeredByEvent="true">{inside}</bpmn:subProcess>'

    assert find_codes(make_process(sub, beside=DECLARED)) == [("order", "missing-start")]


def test_P9_many_notices_leave_errors_their_room() -> None:
    tasks = "".join(f'<bpmn:task id="t{number}"/>{flow("start", f"t{number}")}' for number in range(1_100))

    codes = find_codes(make_process(START + tasks + '<bpmn:serviceTask id="it"/>' + flow("start", "it"), vendor=CAMUNDA))

    assert ("it", "missing-work") in codes
