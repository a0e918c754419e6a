"""Boundary events of every kind on activities of every kind, and event sub-processes."""

from __future__ import annotations

import pytest

from holdfast.core import envelopes
from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import (
    TERMINATE,
    boundary,
    call,
    catch,
    diagram,
    end,
    error,
    escalation,
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
from tests.bpmn.support.playing import PlayedProcess, encode

HOSTS = {
    "job": job("host"),
    "user": user("host"),
    "receive": receive("host", "m2"),
    "call": call("host"),
    "sub": sub("host", start("in"), job("deep"), path("in", "deep")),
}
EVENTS = {"timer": timer("PT1H"), "message": message(), "signal": signal(), "cycle": timer("R3/PT10M", "timeCycle")}


def make_host(host: str, event: str, *, interrupting: bool) -> PlayedProcess:
    """A host with one boundary event under test, and three others beside it."""
    others = [
        boundary("o1", "host", timer("PT9H")),
        boundary("o2", "host", message("m2")),
        boundary("o3", "host", signal("s2")),
    ]
    others = others[:1] + others[2:] if host == "receive" else others  # it waits for that message itself
    ends = "".join(end(f"e{one}") + flow(f"o{one}", f"e{one}") for one in (1, 2, 3) if f'"o{one}"' in "".join(others))
    return PlayedProcess(
        diagram(
            start(),
            HOSTS[host],
            end(),
            path("start", "host", "end"),
            *others,
            ends,
            task("then"),
            end("other"),
            boundary("event", "host", EVENTS[event], interrupting=interrupting),
            path("event", "then", "other"),
        )
    )


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("host", HOSTS)
def test_P2_interrupting_boundary_ends_the_host_and_all_its_waits(host: str, event: str) -> None:
    play = make_host(host, event, interrupting=True)

    play.trigger("event", None if event in ("timer", "cycle") else {"got": 1})

    completed = count_completed(play)
    assert completed["event"] == completed["then"] == completed["other"] == 1
    assert completed["host"] == completed["end"] == 0
    assert play.is_closed
    assert play.result == ({} if event in ("timer", "cycle") else {"got": 1})


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("host", HOSTS)
def test_P2_non_interrupting_boundary_leaves_the_host_alone(host: str, event: str) -> None:
    play = make_host(host, event, interrupting=False)
    often = 1 if event == "timer" else 3  # a cycle fires again, and messages and signals come again

    for _ in range(often):
        play.trigger("event")
    assert count_completed(play)["then"] == often
    assert bool(play.find_waits("event")) is (event in ("message", "signal"))
    play.trigger("deep" if host == "sub" else "host")

    assert count_completed(play)["host"] == 1
    assert play.is_closed


@pytest.mark.parametrize("host", HOSTS)
def test_P2_host_that_completes_first_ends_its_boundary_events(host: str) -> None:
    play = make_host(host, "timer", interrupting=True)

    play.trigger("deep" if host == "sub" else "host")

    assert play.is_closed
    assert count_completed(play)["then"] == 0


def test_P2_boundary_event_in_the_same_turn_as_the_end_of_its_host_is_stale() -> None:
    play = make_host("job", "timer", interrupting=True)
    [number] = play.find_waits("event")
    job_number = play.find_job("host")
    returned = envelopes.ActivityReturned(
        number=job_number, attempt=play.execution.attempt_of(job_number).attempt, result=encode(None)
    )

    play.now = play.execution.timers[number]
    play.tell(returned, play.make_due(number))

    assert play.is_closed
    assert count_completed(play)["then"] == 0


def test_P2_interrupting_boundary_ends_a_host_with_an_incident() -> None:
    play = make_host("job", "message", interrupting=True)
    play.fail_job("host")
    assert play.incidents

    play.trigger("event")

    assert play.is_closed
    assert not play.incidents


def test_P2_interrupting_boundary_ends_a_host_that_failed_to_be_left() -> None:
    failing = mappings(outputs={"x": "assert(missing, missing != null) + 1"})
    process = diagram(
        start(),
        job("host", mapping=failing),
        end(),
        path("start", "host", "end"),
        task("then"),
        boundary("event", "host", message()),
        path("event", "then"),
    )
    play = PlayedProcess(process)
    play.complete_job("host")
    assert list(play.incidents.values()) == [("host", "mapping")]

    play.trigger("event")

    assert play.is_closed
    assert count_completed(play) == {"start": 1, "event": 1, "then": 1}


def test_P5_output_mappings_of_a_boundary_event_take_its_message_apart() -> None:
    process = diagram(
        start(),
        job("host"),
        end(),
        path("start", "host", "end"),
        task("then"),
        path("event", "then"),
        boundary("event", "host", message(), mapping=mappings(outputs={"order.id": "id", "twice": "id * 2"})),
    )
    play = PlayedProcess(process, {"order": {"name": "n"}})

    play.message("m", value={"id": 7, "more": 1})

    assert play.result == {"order": {"name": "n", "id": 7}, "twice": 14}


def test_P10_message_that_is_no_object_is_an_incident_of_its_boundary_event() -> None:
    play = make_host("job", "message", interrupting=True)

    play.trigger("event", "a text")
    assert list(play.incidents.values()) == [("event", "message")]
    play.resolve_incident()
    play.trigger("event", {"fine": 1})

    assert play.result == {"fine": 1}


def test_P10_resolving_the_incident_of_a_standing_wait_subscribes_once() -> None:
    play = make_host("job", "message", interrupting=False)

    play.trigger("event", "a text")
    play.resolve_incident()

    assert len(play.find_waits("event")) == 1
    assert not play.incidents


# --- event sub-processes ---


def make_handled(definition: str, *, interrupting: bool) -> PlayedProcess:
    """A process with a job in a sub-process, and an event sub-process beside the job."""
    handler = sub(
        "handler",
        start("caught", definition, interrupting=interrupting),
        job("repair"),
        end("repaired"),
        path("caught", "repair", "repaired"),
        event=True,
    )
    inner = sub("scope", start("in"), job("work"), end("out"), path("in", "work", "out"), handler)
    late = boundary("late", "scope", timer("PT9H"))
    return PlayedProcess(
        diagram(start(), inner, end(), path("start", "scope", "end"), late, task("then"), path("late", "then"))
    )


@pytest.mark.parametrize("event", EVENTS)
def test_P2_interrupting_event_sub_process_takes_over_its_scope_once(event: str) -> None:
    play = make_handled(EVENTS[event], interrupting=True)

    play.trigger("caught")
    assert sorted(play.waits.values()) == ["late", "repair"], "its own boundary stays, nothing else"
    play.complete_job("repair")

    assert play.is_closed
    assert count_completed(play)["scope"] == 1
    assert count_completed(play)["work"] == 0


@pytest.mark.parametrize("event", EVENTS)
def test_P2_non_interrupting_event_sub_process_runs_beside_its_scope(event: str) -> None:
    play = make_handled(EVENTS[event], interrupting=False)

    play.trigger("caught")
    if event != "timer":
        play.trigger("caught")
    play.complete_job("work")
    assert play.waits, "the scope is done when its event sub-processes are"
    while not play.is_closed:
        play.complete_job("repair")

    assert count_completed(play)["handler"] == (1 if event == "timer" else 2)
    assert count_completed(play)["scope"] == 1


def test_P2_boundary_of_the_scope_ends_its_event_sub_processes() -> None:
    play = make_handled(message(), interrupting=False)
    play.trigger("caught")

    play.fire("late")

    assert play.is_closed
    assert count_completed(play)["then"] == 1


def test_P3_error_inside_a_non_interrupting_event_sub_process_leaves_its_scope() -> None:
    handler = sub(
        "handler",
        start("caught", message(), interrupting=False),
        end("thrown", error()),
        path("caught", "thrown"),
        event=True,
    )
    inner = sub("scope", start("in"), job("work"), path("in", "work"), handler)
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        boundary("failed", "scope", error()),
        task("then"),
        path("failed", "then"),
    )
    play = PlayedProcess(process)

    play.trigger("caught")

    assert play.is_closed
    assert count_completed(play)["then"] == 1


def test_M4_event_sub_process_of_the_process_that_cannot_wait_is_an_incident() -> None:
    handler = sub("handler", start("caught", message("keyed")), end("handled"), path("caught", "handled"), event=True)
    process = diagram(start(), job("work"), end(), path("start", "work", "end"), handler)
    play = PlayedProcess(process, {"key": None})
    assert list(play.incidents.values()) == [("p", "message")]
    assert not play.execution.activities, "nothing works without it"

    play.resolve_incident()
    assert list(play.incidents.values()) == [("p", "message")]
    play.resolve_incident(None, {"key": "k"})
    assert sorted(play.waits.values()) == ["caught", "work"]
    play.message("keyed", "k")

    assert play.is_closed


def test_P10_event_sub_process_that_cannot_begin_keeps_what_it_got() -> None:
    inner = sub("inner", start("again", message("keyed")), end("x"), path("again", "x"), event=True)
    handler = sub("handler", start("caught", message()), job("repair"), path("caught", "repair"), inner, event=True)
    process = diagram(start(), job("work"), end(), path("start", "work", "end"), handler)
    play = PlayedProcess(process)

    play.message("m", value={"got": 1})
    assert list(play.incidents.values()) == [("handler", "message")]
    play.resolve_incident(None, {"key": "k"})
    play.complete_job("repair")

    assert play.result == {"got": 1, "key": "k"}


def test_P2_event_sub_process_begun_while_its_scope_fails_to_be_left_is_not_lost() -> None:
    handler = sub(
        "handler", start("caught", message(), interrupting=False), job("repair"), path("caught", "repair"), event=True
    )
    inner = sub(
        "scope",
        start("in"),
        job("work"),
        path("in", "work"),
        handler,
        mapping=mappings(outputs={"x": "assert(missing, missing != null) + 1"}),
    )
    play = PlayedProcess(diagram(start(), inner, end(), path("start", "scope", "end")))
    play.complete_job("work")
    assert list(play.incidents.values()) == [("scope", "mapping")]

    play.message("m")
    play.resolve_incident(None, {"missing": 1})
    assert list(play.waits.values()) == ["caught", "repair"]
    play.complete_job("repair")

    assert play.result == {"missing": 1, "x": 2}


# --- terminate, links ---


def test_P1_terminate_ends_the_other_tokens_of_its_own_scope() -> None:
    inner = sub(
        "scope",
        start("in"),
        gateway("parallel", "f"),
        job("work"),
        end("stop", TERMINATE),
        path("in", "f", "work"),
        flow("f", "stop"),
    )
    process = diagram(
        start(), gateway("parallel", "g"), inner, job("other"), path("start", "g", "scope"), flow("g", "other")
    )
    play = PlayedProcess(process)

    assert list(play.waits.values()) == ["other"]
    assert count_completed(play)["scope"] == 1


def test_P1_link_goes_on_at_the_catch_of_its_name() -> None:
    process = diagram(
        start(),
        throw("out", '<linkEventDefinition name="L"/>'),
        path("start", "out"),
        catch("in", '<linkEventDefinition name="L"/>'),
        task("then"),
        path("in", "then"),
    )

    assert count_completed(PlayedProcess(process)) == {"start": 1, "out": 1, "in": 1, "then": 1}


def test_P2_two_tokens_in_one_host_have_their_own_boundary_events() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        task("a"),
        task("b"),
        job("host"),
        end(),
        path("start", "f", "a", "host"),
        path("f", "b", "host", "end"),
        boundary("late", "host", timer("PT1H")),
        task("t"),
        path("late", "t"),
    )
    play = PlayedProcess(process)
    assert len(play.find_waits("late")) == 2

    play.complete_job("host")
    play.fire("late")

    assert play.is_closed
    assert count_completed(play) == {"start": 1, "f": 1, "a": 1, "b": 1, "host": 1, "end": 1, "late": 1, "t": 1}


def test_P2_escalation_boundaries_catch_by_code() -> None:
    inner = sub("scope", start("in"), throw("raised", escalation("X1")), job("work"), path("in", "raised", "work"))
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        task("t"),
        task("u"),
        boundary("one", "scope", escalation("X1"), interrupting=False),
        path("one", "t"),
        boundary("two", "scope", escalation("X2"), interrupting=False),
        path("two", "u"),
    )
    play = PlayedProcess(process)

    assert count_completed(play)["t"] == 1
    assert count_completed(play)["u"] == 0
    assert list(play.waits.values()) == ["work"]


def test_P2_interrupted_scope_waits_for_no_other_event_even_after_an_incident() -> None:
    first = sub("first", start("c1", message()), job("one"), path("c1", "one"), event=True)
    second = sub("second", start("c2", message("m2")), job("two"), path("c2", "two"), event=True)
    play = PlayedProcess(diagram(start(), job("work"), path("start", "work"), first, second))
    [number] = play.find_waits("c2")
    play.tell(envelopes.SubscriptionRefused(number=number, holder="somebody"))
    assert list(play.incidents.values()) == [("c2", "message")]

    play.message("m")

    assert not play.incidents, "what could be tried again is over"
    assert list(play.waits.values()) == ["one"]


def test_P2_scope_that_failed_to_be_left_is_left_after_what_interrupted_it() -> None:
    handler = sub("handler", start("caught", message()), job("repair"), path("caught", "repair"), event=True)
    failing = mappings(outputs={"x": "assert(missing, missing != null) + 1"})
    inner = sub("scope", start("in"), job("work"), path("in", "work"), handler, mapping=failing)
    play = PlayedProcess(diagram(start(), inner, path("start", "scope")))
    play.complete_job("work")
    assert list(play.incidents.values()) == [("scope", "mapping")]

    play.message("m")
    assert not play.incidents
    play.complete_job("repair", {"missing": 1})

    assert play.result == {"missing": 1, "x": 2}


def test_P1_tokens_that_hoped_for_an_event_are_a_deadlock_after_it() -> None:
    inner = sub(
        "scope",
        start("in"),
        gateway("exclusive", "x", default="x_a"),
        task("a"),
        task("b"),
        gateway("parallel", "j"),
        path("in", "x"),
        flow("x", "a"),
        flow("x", "b", "false"),
        flow("a", "j"),
        flow("b", "j"),
    )
    once = boundary("once", "scope", timer("PT1H"), interrupting=False)
    play = PlayedProcess(diagram(start(), inner, path("start", "scope"), once, task("t"), path("once", "t")))
    assert not play.incidents

    play.fire("once")

    assert list(play.incidents.values()) == [("j", "deadlock")]


def test_M4_key_of_a_boundary_event_is_read_around_its_host() -> None:
    mapping = mappings({"key": "order.id"})
    process = diagram(
        start(),
        job("a", mapping=mapping),
        end(),
        path("start", "a", "end"),
        boundary("b", "a", message("keyed")),
        task("t"),
        flow("b", "t"),
    )

    play = PlayedProcess(process, {"key": "outer", "order": {"id": "inner"}})

    assert [one.key for one in play.execution.subscriptions.values()] == ["outer"]


MAPPED = mappings({"key": "orderId"})


def list_keys(*parts: str) -> list[str]:
    """The correlation keys of everything that a process waits for."""
    play = PlayedProcess(diagram(*parts), {"orderId": "o-1"})
    return [one.key for one in play.execution.subscriptions.values()]


def test_P5_input_mappings_of_events_without_an_instance_are_evaluated() -> None:
    keyed = message("keyed")
    around = (start(), end(), task("t"))
    boundary_event = boundary("b", "a", keyed, mapping=MAPPED)
    behind_gateway = catch("c", keyed, MAPPED)

    assert list_keys(*around, job("a"), path("start", "a", "end"), boundary_event, flow("b", "t")) == ["o-1"]
    assert list_keys(
        *around,
        gateway("eventBased", "g"),
        behind_gateway,
        catch("w", timer("PT1H")),
        path("start", "g", "c", "end"),
        path("g", "w", "t"),
    ) == ["o-1"]


@pytest.mark.parametrize("definition", [escalation(), TERMINATE])
def test_P5_output_mappings_of_throwing_end_events_are_applied(definition: str) -> None:
    play = PlayedProcess(diagram(start(), end("end", definition, mappings(None, {"x": "1 + 1"})), path("start", "end")))

    assert play.result == {"x": 2}


def test_P10_message_that_is_no_object_keeps_its_event_based_gateway_waiting() -> None:
    process = diagram(
        start(),
        gateway("eventBased", "g"),
        catch("c", message()),
        catch("w", timer("PT1H")),
        end(),
        path("start", "g", "c", "end"),
        path("g", "w", "end"),
    )
    play = PlayedProcess(process)
    play.message("m", value=5)
    assert list(play.incidents.values()) == [("c", "message")]
    assert list(play.waits.values()) == ["w"]

    play.resolve_incident()
    assert sorted(play.waits.values()) == ["c", "w"]
    play.message("m", value={"x": 1})

    assert play.result == {"x": 1}
