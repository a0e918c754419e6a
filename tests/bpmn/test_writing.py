"""Timer and signal elements go from XML to the model and back, and nothing of them is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bpmn import model
from holdfast.bpmn.model import SignalEventDefinition, TimerEventDefinition, TimerKind
from holdfast.bpmn.reading import read
from holdfast.bpmn.writing import list_events, write_event, write_events
from tests.bpmn.checks.model_files import END, START, flow, make_process, read_model

TIMES = [
    (TimerKind.DURATION, "PT5M"),
    (TimerKind.DATE, "2026-03-01T10:00:00Z"),
    (TimerKind.CYCLE, "R3/PT10M"),
    (TimerKind.DURATION, "=pause"),
]


def timer(kind: TimerKind, text: str) -> str:
    return f'<bpmn:timerEventDefinition id="when"><bpmn:{kind}>{text}</bpmn:{kind}></bpmn:timerEventDefinition>'


def place(definition: str) -> bytes:
    """A process with the definition at a start, an intermediate catch, a boundary and an event sub-process."""
    one, two, three, four = (definition.replace('id="', f'id="{number}_') for number in ("a", "b", "c", "d"))
    starts = f'<bpmn:startEvent id="begin" name="Begin">{one}</bpmn:startEvent>'
    catch = f'<bpmn:intermediateCatchEvent id="wait">{two}</bpmn:intermediateCatchEvent>'
    task = '<bpmn:userTask id="work"/>'
    boundary = f'<bpmn:boundaryEvent id="late" attachedToRef="work" cancelActivity="false">{three}</bpmn:boundaryEvent>'
    inner = f'<bpmn:startEvent id="inner" isInterrupting="false">{four}</bpmn:startEvent>'
    handler = f'<bpmn:subProcess id="handler" triggeredByEvent="true">{inner}</bpmn:subProcess>'
    flows = flow("begin", "wait") + flow("wait", "work") + flow("work", "end") + flow("late", "end")
    return make_process(starts + catch + task + boundary + handler + END + flows, beside='<bpmn:signal id="s" name="stop"/>')


def list_all(container: model.AnyContainer) -> list[model.FlowNode]:
    found: list[model.FlowNode] = list(list_events(container))
    for node in container.nodes:
        if isinstance(node, model.SubProcess):
            found += list_all(node)
    return found


def without_lines(value: object) -> Any:
    """A value without the lines in which its parts stood."""
    return _strip(msgspec.to_builtins(value))


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(one) for key, one in value.items() if key != "line"}
    return [_strip(one) for one in value] if isinstance(value, list | tuple) else value


def go_round(data: bytes) -> tuple[list[model.FlowNode], list[model.FlowNode]]:
    """The events of a file, and those of the file that is written from them."""
    first = read_model(data)
    again = read(write_events(first), "again.bpmn").definitions
    assert again is not None
    assert without_lines(again.signals) == without_lines(first.signals)
    assert write_events(again) == write_events(first)
    return list_all(first.processes[0]), list_all(again.processes[0])


@pytest.mark.parametrize(("kind", "text"), TIMES)
def test_seed_001_11_timer_elements_go_to_xml_and_back(kind: TimerKind, text: str) -> None:
    before, after = go_round(place(timer(kind, text)))

    assert [event.id for event in before] == ["begin", "wait", "late", "inner"]
    assert without_lines(after) == without_lines(before)


@pytest.mark.parametrize(("kind", "text"), TIMES)
def test_seed_001_12_timer_definitions_of_duration_date_and_cycle_are_parsed(kind: TimerKind, text: str) -> None:
    for event in list_all(read_model(place(timer(kind, text))).processes[0]):
        (definition,) = event.definitions  # type: ignore[attr-defined]
        assert isinstance(definition, TimerEventDefinition)
        assert definition.kind is kind
        assert definition.when is not None
        assert (definition.when.text, definition.when.is_static) == (text.removeprefix("="), not text.startswith("="))


def test_seed_001_11_timer_elements_become_start_catch_and_boundary_events() -> None:
    events = list_all(read_model(place(timer(TimerKind.DURATION, "PT5M"))).processes[0])

    assert [type(event) for event in events] == [
        model.StartEvent,
        model.IntermediateCatchEvent,
        model.BoundaryEvent,
        model.StartEvent,
    ]


def test_seed_000_9_signal_elements_are_parsed() -> None:
    definition = '<bpmn:signalEventDefinition signalRef="s"/>'
    content = (
        START
        + f'<bpmn:intermediateCatchEvent id="catch">{definition}</bpmn:intermediateCatchEvent>'
        + f'<bpmn:intermediateThrowEvent id="throw">{definition}</bpmn:intermediateThrowEvent>'
        + f'<bpmn:task id="work"/><bpmn:boundaryEvent id="stop" attachedToRef="work">{definition}</bpmn:boundaryEvent>'
        + END
        + flow("start", "catch")
        + flow("catch", "throw")
        + flow("throw", "work")
        + flow("work", "end")
        + flow("stop", "end")
    )
    definitions = read_model(make_process(content, beside='<bpmn:signal id="s" name="order-approved"/>'))
    events = {event.id: event for event in list_events(definitions.processes[0])}

    assert definitions.signals["s"].name == "order-approved"
    assert isinstance(events["catch"], model.IntermediateCatchEvent)
    assert isinstance(events["throw"], model.IntermediateThrowEvent)
    stop = events["stop"]
    assert isinstance(stop, model.BoundaryEvent)
    assert (stop.attached_to, stop.cancel_activity) == ("work", True)
    for event in events.values():
        (one,) = event.definitions
        assert isinstance(one, SignalEventDefinition)
        assert one.signal == "s"


def test_seed_000_9_signal_elements_go_to_xml_and_back() -> None:
    before, after = go_round(place('<bpmn:signalEventDefinition id="sig" signalRef="s"/>'))

    assert without_lines(after) == without_lines(before)


def test_P9_mappings_listeners_and_properties_of_events_go_to_xml_and_back() -> None:
    extensions = (
        '<bpmn:extensionElements><zeebe:ioMapping><zeebe:output source="=a &lt; 1" target="b"/></zeebe:ioMapping>'
        '<zeebe:executionListeners><zeebe:executionListener eventType="start" type="log" retries="2"/>'
        '</zeebe:executionListeners><zeebe:properties><zeebe:property name="n" value="&quot;v&quot;"/></zeebe:properties>'
        "</bpmn:extensionElements>"
    )
    event = (
        f'<bpmn:intermediateCatchEvent id="it">{extensions}{timer(TimerKind.DURATION, "PT1M")}</bpmn:intermediateCatchEvent>'
    )
    before, after = go_round(make_process(START + event + END + flow("start", "it") + flow("it", "end")))

    assert without_lines(after) == without_lines(before)
    assert after[0].listeners
    assert after[0].mappings is not None


def test_P9_one_event_is_written_as_it_stands_in_a_process() -> None:
    event = read_model(place(timer(TimerKind.CYCLE, "R3/PT10M"))).processes[0].nodes[0]

    assert isinstance(event, model.StartEvent)
    assert b"<bpmn:timeCycle>R3/PT10M</bpmn:timeCycle>" in write_event(event)


_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=30
)


@given(kind=st.sampled_from(TimerKind), text=_TEXTS, name=_TEXTS, is_marked=st.booleans())
def test_P9_timers_of_any_text_and_name_go_to_xml_and_back(kind: TimerKind, text: str, name: str, is_marked: bool) -> None:
    process = model.Process(
        id="p",
        is_executable=True,
        nodes=(
            model.IntermediateCatchEvent(
                id="it",
                name=name,
                definitions=(
                    TimerEventDefinition(
                        id="d",
                        kind=kind,
                        when=model.Expression(
                            text=text.strip() or "x", is_static=not is_marked and text[:1] not in ("=", "")
                        ),
                    ),
                ),
            ),
        ),
    )
    written = write_events(model.Definitions(file="a", processes=(process,)))
    once = read(written, "a").definitions
    assert once is not None

    assert write_events(once) == written
