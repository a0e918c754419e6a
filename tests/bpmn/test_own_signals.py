"""A process that waits for a signal which it throws itself: its waits get it at once, before the thrower's scope may end."""

from __future__ import annotations

from typing import Final

from holdfast.core import events
from holdfast.core.events import SignalBroadcast
from tests.bpmn.support.playing import PlayedProcess, compile_xml

HEAD: Final = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'id="d" targetNamespace="urn:test"><signal id="s" name="done"/><process id="p" isExecutable="true">'
)
SIGNAL: Final = '<signalEventDefinition signalRef="s"/>'


def play(*elements: str) -> PlayedProcess:
    return PlayedProcess(compile_xml(HEAD + "".join(elements) + "</process></definitions>"), {})


def flow(id_: str, source: str, target: str) -> str:
    return f'<sequenceFlow id="{id_}" sourceRef="{source}" targetRef="{target}"/>'


def list_entered(played: PlayedProcess) -> list[str]:
    """The elements that were entered, in order, without the process itself."""
    return [one[2] if one[0] == "entered" else one[1] for one in played.records if one[0] in ("entered", "passed")][1:]


def find_thrown(played: PlayedProcess) -> SignalBroadcast:
    [thrown] = [one for one in played.events if isinstance(one, SignalBroadcast)]
    return thrown


def test_B2_boundary_event_around_the_throw_interrupts_it() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "sub"),
        '<subProcess id="sub"><startEvent id="begin"/>',
        flow("i1", "begin", "throw"),
        f'<intermediateThrowEvent id="throw">{SIGNAL}</intermediateThrowEvent>',
        flow("i2", "throw", "after"),
        '<task id="after"/></subProcess>',
        f'<boundaryEvent id="caught" attachedToRef="sub">{SIGNAL}</boundaryEvent>',
        flow("f2", "caught", "end"),
        '<endEvent id="end"/>',
    )

    assert played.result == {}
    assert list_entered(played) == ["start", "sub", "begin", "throw", "caught", "end"]


def test_B2_end_event_starts_an_event_sub_process_before_the_process_ends() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "throw"),
        f'<endEvent id="throw">{SIGNAL}</endEvent>',
        '<subProcess id="sub" triggeredByEvent="true">',
        f'<startEvent id="caught" isInterrupting="false">{SIGNAL}</startEvent>',
        flow("i1", "caught", "work"),
        '<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="work"/></extensionElements></serviceTask>',
        "</subProcess>",
    )

    assert not played.is_closed
    played.complete_job("work")
    assert played.is_closed


def test_B2_own_signal_is_published_once_and_given_once() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "fork"),
        '<parallelGateway id="fork"/>',
        flow("f2", "fork", "one"),
        flow("f3", "fork", "two"),
        flow("f4", "fork", "throw"),
        f'<intermediateCatchEvent id="one">{SIGNAL}</intermediateCatchEvent>',
        f'<intermediateCatchEvent id="two">{SIGNAL}</intermediateCatchEvent>',
        f'<intermediateThrowEvent id="throw">{SIGNAL}</intermediateThrowEvent>',
    )

    assert played.is_closed
    assert [one.name for one in played.outbox] == ["done"]
    assert find_thrown(played).caught == 2
    assert not [one for one in played.events if isinstance(one, events.SubscriptionTriggered)]


def test_B2_wait_that_begins_after_the_throw_does_not_get_it() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "throw"),
        f'<intermediateThrowEvent id="throw">{SIGNAL}</intermediateThrowEvent>',
        flow("f2", "throw", "late"),
        f'<intermediateCatchEvent id="late">{SIGNAL}</intermediateCatchEvent>',
    )

    assert not played.is_closed
    assert find_thrown(played).caught == 0
    played.signal("done")
    assert played.is_closed


def test_B2_interrupting_wait_ends_others_that_would_get_the_same_signal() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "fork"),
        '<parallelGateway id="fork"/>',
        flow("f2", "fork", "sub"),
        flow("f3", "fork", "throw"),
        '<subProcess id="sub"><startEvent id="begin"/>',
        flow("i1", "begin", "inner"),
        f'<intermediateCatchEvent id="inner">{SIGNAL}</intermediateCatchEvent>',
        flow("i2", "inner", "never"),
        '<task id="never"/></subProcess>',
        f'<boundaryEvent id="caught" attachedToRef="sub">{SIGNAL}</boundaryEvent>',
        f'<intermediateThrowEvent id="throw">{SIGNAL}</intermediateThrowEvent>',
    )

    assert played.is_closed
    assert "caught" in list_entered(played)
    assert "never" not in list_entered(played)


def test_process_that_answers_its_own_signal_for_ever_rests_between_turns() -> None:
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "throw"),
        f'<endEvent id="throw">{SIGNAL}</endEvent>',
        '<subProcess id="sub" triggeredByEvent="true">',
        f'<startEvent id="caught" isInterrupting="false">{SIGNAL}</startEvent>',
        flow("i1", "caught", "again"),
        f'<endEvent id="again">{SIGNAL}</endEvent>',
        "</subProcess>",
    )

    first = len(played.records)
    assert not played.is_closed
    assert first < 2_000
    played.fire()
    assert not played.is_closed
    assert len(played.records) > first


def test_B2_wait_that_begins_after_the_throw_gets_nothing_of_it() -> None:
    mapping = (
        '<extensionElements><zeebe:ioMapping><zeebe:input source="=assert(ready, ready = true)" target="z"/>'
        "</zeebe:ioMapping></extensionElements>"
    )
    played = play(
        '<startEvent id="start"/>',
        flow("f1", "start", "fork"),
        '<parallelGateway id="fork"/>',
        flow("f2", "fork", "throw"),
        flow("f3", "fork", "catch"),
        f'<intermediateThrowEvent id="throw">{mapping}{SIGNAL}</intermediateThrowEvent>',
        f'<intermediateCatchEvent id="catch">{mapping}{SIGNAL}</intermediateCatchEvent>',
        flow("f4", "throw", "end"),
        flow("f5", "catch", "end"),
        '<endEvent id="end"/>',
    )
    assert len(played.incidents) == 2

    played.resolve_incident(variables={"ready": True})

    assert list(played.waits.values()) == ["catch"]
