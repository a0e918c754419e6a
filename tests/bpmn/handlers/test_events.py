"""Events: timers, messages, signals and what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import envelopes, events
from holdfast.core.instants import SECOND
from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import (
    boundary,
    catch,
    diagram,
    end,
    flow,
    gateway,
    job,
    mappings,
    message,
    path,
    receive,
    signal,
    start,
    sub,
    task,
    throw,
    timer,
    user,
)
from tests.bpmn.support.playing import BEGIN, PlayedProcess


@pytest.mark.parametrize(
    ("definition", "seconds"),
    [
        (timer("PT1H"), 3600),
        (timer('=duration("PT2M")'), 120),
        (timer("=wait"), 90),
        (timer("2020-01-01T00:00:00Z", "timeDate"), 0),
    ],
)
def test_T1_timer_fires_when_it_is_due(definition: str, seconds: int) -> None:
    play = PlayedProcess(diagram(start(), catch("c", definition), path("start", "c")), {"wait": "PT90S"})
    [due] = play.execution.timers.values()

    assert max(due, BEGIN) == BEGIN + seconds * SECOND
    play.advance(seconds)

    assert play.is_closed


@pytest.mark.parametrize("text", ["=1", "=null", '="tomorrow"', "=missing", '="R3/PT1M"', '="P200Y"'])
def test_P10_time_that_is_none_is_an_incident(text: str) -> None:
    play = PlayedProcess(diagram(start(), catch("c", timer(text)), path("start", "c")))

    assert list(play.incidents.values()) == [("c", "timer")]


def test_T1_cycle_counts_from_when_it_was_due() -> None:
    again = boundary("again", "u", timer("R3/PT10M", "timeCycle"), interrupting=False)
    play = PlayedProcess(diagram(start(), user("u"), path("start", "u"), task("t"), path("again", "t"), again))
    play.now += 25 * 60 * SECOND  # all nodes were down meanwhile

    times = []
    while play.execution.timers:
        [due] = play.execution.timers.values()
        times.append((due - BEGIN) // SECOND)
        play.fire()

    assert times == [600, 1200, 1800]
    assert count_completed(play)["t"] == 3
    assert not play.is_closed


def test_P5_cycle_of_a_catching_event_maps_its_output_each_time_it_fires() -> None:
    counting = mappings(outputs={"n": "n + 1"})
    process = diagram(start(), catch("c", timer("R3/PT1M", "timeCycle"), counting), user("u"), path("start", "c", "u"))
    play = PlayedProcess(process, {"n": 0})

    seen = []
    while play.execution.timers:
        play.fire()
        seen.append(play.query("holdfast.variables")["n"])

    assert seen == [1, 2, 3]
    assert len(play.find_waits("u")) == 3


@pytest.mark.parametrize("cycle", ["R3/PT1M", "R3/2025-06-15T15:07:40Z/PT1M"])
@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("resolves_late", [False, True])
def test_P10_fire_of_a_cycle_whose_output_mapping_fails_is_an_incident_of_its_own(
    cycle: str, failing: int, *, resolves_late: bool
) -> None:
    counting = mappings({"own": "7"}, {"n": f"if n = {failing} and x = 1 then assert(own, own = 8) else n + 1"})
    process = diagram(start(), catch("c", timer(cycle, "timeCycle"), counting), user("u"), path("start", "c", "u"))
    play = PlayedProcess(process, {"n": 0, "x": 1})

    for fire in range(3):
        play.fire()
        if fire == failing:
            assert list(play.incidents.values()) == [("c", "mapping")]
            if not resolves_late:
                play.resolve_incident(None, {"x": 2})
    if resolves_late:
        play.resolve_incident(None, {"x": 2})

    assert not play.execution.timers
    assert not play.incidents
    assert len(play.find_waits("u")) == 3


@pytest.mark.parametrize("key", [None, "", [1], True, "k" * 300, "a\nb"])
def test_M4_correlation_key_that_is_none_is_an_incident(key: Any) -> None:
    play = PlayedProcess(diagram(start(), receive("r", "keyed"), path("start", "r")), {"key": key})
    assert list(play.incidents.values()) == [("r", "message")]

    play.resolve_incident(None, {"key": 17})
    play.message("keyed", "17")

    assert play.is_closed


def test_M1_refused_subscription_is_an_incident_at_its_element() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        receive("r"),
        job("a"),
        path("start", "f", "r"),
        flow("f", "a"),
        boundary("b", "a", message("m2")),
        task("t"),
        path("b", "t"),
        gateway("eventBased", "g"),
        catch("c", message()),
        catch("d", signal()),
        path("f", "g", "c"),
        flow("g", "d"),
    )
    play = PlayedProcess(process)

    for element in ("r", "b", "c"):
        [number] = play.find_waits(element)
        play.tell(envelopes.SubscriptionRefused(number=number, holder="somebody"))
    assert sorted(play.incidents.values()) == [("b", "message"), ("c", "message"), ("r", "message")]
    play.resolve_incident()
    assert not play.incidents
    for element in ("r", "b", "c"):
        play.trigger(element)

    assert play.is_closed


def test_P4_winner_resolves_the_incidents_of_its_gateway() -> None:
    events = catch("c", message()) + catch("d", signal())
    play = PlayedProcess(diagram(start(), gateway("eventBased", "g"), events, path("start", "g", "c"), flow("g", "d")))
    [number] = play.find_waits("c")
    play.tell(envelopes.SubscriptionRefused(number=number, holder="somebody"))
    assert play.incidents

    play.trigger("d")

    assert play.is_closed


# --- signals ---


def test_B2_process_catches_the_signal_that_it_throws_itself() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        catch("c", signal()),
        task("t"),
        throw("up", signal(), mappings({"x": "1"})),
        path("start", "f", "c", "t"),
        flow("f", "up"),
    )
    play = PlayedProcess(process)

    assert play.is_closed
    assert count_completed(play)["t"] == 1
    assert play.result == {"x": 1}
    assert [one.name for one in play.outbox] == ["s"], "everybody else gets it too"


def test_B2_own_signal_interrupts_the_scope_that_throws_it() -> None:
    inner = sub("scope", start("in"), throw("up", signal()), job("a"), path("in", "up", "a"))
    caught = boundary("b", "scope", signal())
    play = PlayedProcess(diagram(start(), inner, end(), path("start", "scope", "end"), caught, task("t"), path("b", "t")))

    assert play.is_closed
    assert count_completed(play)["t"] == 1


def test_B3_signal_that_answers_itself_for_ever_rests_in_between() -> None:
    caught = boundary("b", "u", signal(), interrupting=False)
    play = PlayedProcess(diagram(start(), user("u"), path("start", "u"), caught, throw("up", signal()), path("b", "up")))

    play.trigger("b")
    assert play.program.state.kept
    play.fire()
    play.cancel()

    assert play.is_closed


def test_S2_signal_before_its_catch_is_kept() -> None:
    events = catch("c", message()) + catch("d", message())
    play = PlayedProcess(diagram(start(), job("a"), events, job("b"), path("start", "a", "c", "d", "b")))

    play.send_signal("m", {"one": 1})
    play.send_signal("m", {"two": 2})
    play.send_signal("m", {"three": 3})
    assert len(play.program.untaken_signals()) == 3
    play.complete_job("a")

    assert play.query("holdfast.variables") == {"one": 1, "two": 2}
    assert len(play.program.untaken_signals()) == 1


def test_S1_signals_reach_a_standing_wait_again_and_again() -> None:
    caught = boundary("b", "u", message(), interrupting=False)
    play = PlayedProcess(diagram(start(), job("a"), user("u"), path("start", "a", "u"), task("t"), path("b", "t"), caught))

    play.send_signal("m")
    play.send_signal("m")
    play.complete_job("a")
    play.send_signal("m")

    assert count_completed(play)["t"] == 3
    assert not play.program.untaken_signals()


def test_S1_signals_stay_in_order_while_a_long_turn_is_put_off() -> None:
    loop = "<multiInstanceLoopCharacteristics><loopCardinality>=2500</loopCardinality></multiInstanceLoopCharacteristics>"
    process = diagram(
        start(),
        gateway("parallel", "f"),
        job("a"),
        job("many", more=loop),
        receive("r"),
        receive("r2"),
        path("start", "f", "a", "r", "r2"),
        flow("f", "many"),
    )
    play = PlayedProcess(process)
    play.send_signal("m", {"first": 1, "last": 1})
    play.complete_job("a")
    play.send_signal("m", {"second": 2, "last": 2})
    play.settle()

    assert play.query("holdfast.variables") == {"first": 1, "last": 2, "second": 2}
    assert not play.find_waits("r2")


def test_E3_message_that_came_too_late_for_its_element_goes_to_another_wait() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        user("u"),
        user("v"),
        boundary("b", "u", message()),
        boundary("c", "v", message()),
        task("t"),
        task("w"),
        path("b", "t"),
        path("c", "w"),
        path("start", "f", "u"),
        flow("f", "v"),
    )
    play = PlayedProcess(process)
    [number] = play.find_waits("b")
    late = play.make_trigger(number, {"got": 1})
    play.complete_task("u", {})

    play.tell(late)

    assert count_completed(play)["w"] == 1


def test_M2_thrown_message_is_published_with_its_key_and_variables() -> None:
    thrown = throw("up", message("keyed"), mappings({"x": "n"})) + throw("own", message())
    play = PlayedProcess(diagram(start(), thrown, path("start", "up", "own")), {"key": "k", "n": 1})

    assert [(one.name, one.key, bytes(one.value.data)) for one in play.outbox] == [
        ("keyed", "k", b'{"x":1}'),
        ("m", "play", b"null"),
    ]


def test_P10_message_that_has_no_key_is_an_incident_and_is_not_sent() -> None:
    play = PlayedProcess(diagram(start(), throw("up", message("keyed")), path("start", "up")))

    assert list(play.incidents.values()) == [("up", "message")]
    assert not play.outbox
    play.resolve_incident(None, {"key": "k"})

    assert play.is_closed
    assert len(play.outbox) == 1


def test_P5_what_is_sent_along_is_what_the_input_mappings_made_once() -> None:
    inputs = mappings(inputs={"x": "x + 1"})
    process = diagram(start(), throw("t", signal("s"), inputs), end(), path("start", "t", "end"))

    play = PlayedProcess(process, {"x": 1})

    [sent] = [event for turn in play.history for event in turn.events if isinstance(event, events.SignalBroadcast)]
    assert bytes(sent.value.data) == b'{"x":2}'
