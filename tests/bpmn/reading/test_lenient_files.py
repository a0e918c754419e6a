"""What BPMN does not have, and what the engines that files were made for run all the same."""

from __future__ import annotations

import pytest

from holdfast.bpmn import model
from tests.bpmn.checks.model_files import (
    CAMUNDA,
    END,
    START,
    ZEEBE,
    find_codes,
    find_notices,
    flow,
    make_file,
    make_path,
    make_process,
    read_model,
    read_node,
)

FLOWABLE = 'xmlns:flowable="http://flowable.org/bpmn"'
TASK = '<bpmn:task id="it"/>'


def test_P9_flows_without_an_id_get_one_of_their_own() -> None:
    bare = '<bpmn:sequenceFlow sourceRef="start" targetRef="end"/>'
    named = '<bpmn:sequenceFlow id="start-end" sourceRef="start" targetRef="end"/>'
    data = make_process(START + END + bare + bare + named, vendor="")

    assert find_codes(data) == []
    assert [one.id for one in read_model(data).processes[0].flows] == ["start-end-2", "start-end-3", "start-end"]


@pytest.mark.parametrize("vendor", [CAMUNDA, FLOWABLE])
def test_P9_receive_task_without_a_message_waits_for_one_named_like_its_id(vendor: str) -> None:
    data = make_path('<bpmn:receiveTask id="it"/>', vendor=vendor)
    node = read_node(data)

    assert find_codes(data) == []
    assert ("it", "missing-reference") in find_notices(data)
    assert isinstance(node, model.ReceiveTask)
    assert read_model(data).messages[node.message].name == "it"


@pytest.mark.parametrize("vendor", [ZEEBE, ""])
def test_P9_receive_task_without_a_message_is_refused_elsewhere(vendor: str) -> None:
    assert find_codes(make_path('<bpmn:receiveTask id="it"/>', vendor=vendor)) == [("it", "missing-reference")]


def test_P3_reference_to_an_error_that_is_not_declared_is_its_code_in_camunda_7() -> None:
    ending = '<bpmn:errorEventDefinition errorRef="broken"/>'
    inside = f'<bpmn:startEvent id="s"/><bpmn:endEvent id="e">{ending}</bpmn:endEvent>{flow("s", "e")}'
    caught = f'<bpmn:boundaryEvent id="b" attachedToRef="it">{ending}</bpmn:boundaryEvent>{flow("b", "end")}'
    node = f'<bpmn:subProcess id="it">{inside}</bpmn:subProcess>{caught}'

    assert find_codes(make_path(node, vendor=FLOWABLE)) == []
    assert read_model(make_path(node, vendor=FLOWABLE)).errors["broken"].code == "broken"
    assert {code for _, code in find_codes(make_path(node, vendor=ZEEBE))} == {"unknown-reference"}


def test_P3_boundary_event_for_errors_always_interrupts_in_camunda_7() -> None:
    caught = (
        '<bpmn:boundaryEvent id="b" attachedToRef="it" cancelActivity="false"><bpmn:errorEventDefinition/>'
        f"</bpmn:boundaryEvent>{flow('b', 'end')}"
    )
    data = make_path(TASK + caught, vendor=CAMUNDA)
    node = read_node(data, "b")

    assert find_codes(data) == []
    assert ("b", "no-effect") in find_notices(data)
    assert isinstance(node, model.BoundaryEvent)
    assert node.cancel_activity
    assert find_codes(make_path(TASK + caught, vendor="")) == [("b", "misplaced-event")]


def test_B1_signal_of_camunda_7_carries_what_is_handed_over() -> None:
    thrown = (
        '<bpmn:intermediateThrowEvent id="it"><bpmn:signalEventDefinition signalRef="s"><bpmn:extensionElements>'
        '<camunda:in source="a" target="b"/><camunda:in sourceExpression="${c + 1}" target="d"/>'
        "</bpmn:extensionElements></bpmn:signalEventDefinition></bpmn:intermediateThrowEvent>"
    )
    data = make_path(thrown, beside='<bpmn:signal id="s" name="s"/>', vendor=CAMUNDA)
    node = read_node(data)

    assert find_codes(data) == []
    assert node.mappings is not None
    assert [(one.target, one.source.text) for one in node.mappings.inputs] == [("b", "a"), ("d", "c + 1")]


def test_P9_all_processes_that_do_not_say_it_are_executable_in_camunda_7() -> None:
    inside = '<bpmn:startEvent id="{0}s"/><bpmn:endEvent id="{0}e"/>'
    content = "".join(
        f'<bpmn:process id="{name}">{inside.format(name)}{flow(f"{name}s", f"{name}e")}</bpmn:process>' for name in "ab"
    )

    assert find_codes(make_file(content, CAMUNDA)) == []
    assert all(one.is_executable for one in read_model(make_file(content, CAMUNDA)).processes)
    assert find_codes(make_file(content, "")) == [("a", "not-executable")]


@pytest.mark.parametrize("text", ['"PT10M"', "'PT10M'", "PT10M"])
def test_T1_times_in_quotes_are_read(text: str) -> None:
    timed = (
        '<bpmn:intermediateCatchEvent id="it"><bpmn:timerEventDefinition>'
        f"<bpmn:timeDuration>{text}</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>"
    )
    data = make_path(timed, vendor="")
    node = read_node(data)

    assert find_codes(data) == []
    assert isinstance(node, model.IntermediateCatchEvent)
    (definition,) = node.definitions
    assert isinstance(definition, model.TimerEventDefinition)
    assert definition.when is not None
    assert definition.when.text == "PT10M"


@pytest.mark.parametrize(
    ("attributes", "dialect"),
    [
        ("", ""),
        (ZEEBE, "camunda-8"),
        (CAMUNDA, "camunda-7"),
        (FLOWABLE, "camunda-7"),
        ('xmlns:modeler="http://camunda.org/schema/modeler/1.0" modeler:executionPlatform="Camunda Cloud"', "camunda-8"),
        ('xmlns:modeler="http://camunda.org/schema/modeler/1.0" modeler:executionPlatform="Camunda Platform"', "camunda-7"),
    ],
)
def test_P9_for_what_a_file_was_made_is_found(attributes: str, dialect: str) -> None:
    assert read_model(make_path(TASK, vendor=attributes)).dialect == dialect
