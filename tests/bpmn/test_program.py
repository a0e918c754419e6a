"""The program of a process: how it begins, is cancelled, corrected and held, and goes on after long turns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.core import envelopes, events
from holdfast.core.instants import SECOND
from holdfast.core.payloads import Payload
from holdfast.core.request_keys import RequestKey
from holdfast.core.turn import hold, take_turn
from holdfast.errors import InvalidArguments, UnknownQuery
from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import (
    boundary,
    call,
    catch,
    diagram,
    end,
    flow,
    gateway,
    job,
    mappings,
    message,
    path,
    repeat,
    script,
    start,
    sub,
    task,
    timer,
    user,
)
from tests.bpmn.support.playing import PlayedProcess, encode, make_start

SIMPLE = diagram(start(), job("a"), end(), path("start", "a", "end"))


def start_with(given: str) -> PlayedProcess:
    return PlayedProcess(SIMPLE, start=msgspec.structs.replace(make_start("p"), input=Payload(msgspec.Raw(given.encode()))))


# --- beginning ---


@pytest.mark.parametrize("given", ["{}", "null", "[]", "[null]", '[{"x": 1}]', '{"x": 1}'])
def test_P5_process_begins_with_an_object_of_variables(given: str) -> None:
    assert start_with(given).query("holdfast.variables") == ({"x": 1} if "x" in given else {})


@pytest.mark.parametrize("given", ["1", '"text"', "[1]", "[{}, {}]", "true"])
def test_P5_process_that_is_started_with_anything_else_fails(given: str) -> None:
    assert isinstance(start_with(given).events[-1], events.WorkflowFailed)


def test_P1_process_begins_at_the_start_event_that_is_named() -> None:
    process = diagram(start(), start("told", message()), task("a"), task("b"), path("start", "a"), path("told", "b"))

    assert count_completed(PlayedProcess(process)) == {"start": 1, "a": 1}
    assert count_completed(PlayedProcess(process, element="told")) == {"told": 1, "b": 1}
    assert isinstance(PlayedProcess(process, element="other").events[-1], events.WorkflowFailed)


def test_P5_start_event_with_output_mapping_lets_only_mapped_names_in() -> None:
    mapped = f"<extensionElements>{mappings(outputs={'x': 'got'})}</extensionElements>"
    told = f'<startEvent id="told">{mapped}{message()}</startEvent>'
    play = PlayedProcess(diagram(told, job("a"), path("told", "a")), {"got": 1, "more": 2}, element="told")

    assert play.query("holdfast.variables") == {"x": 1}


# --- cancelling ---


def test_C3_cancel_ends_everything_that_is_open() -> None:
    inner = sub("scope", start("in"), user("u"), path("in", "u"), boundary("b", "u", message()), task("t"), path("b", "t"))
    process = diagram(
        start(),
        gateway("parallel", "f"),
        job("a", more=repeat("[1, 2]")),
        inner,
        call("c"),
        catch("w", timer("PT1H")),
        path("start", "f", "a"),
        flow("f", "scope"),
        flow("f", "c"),
        flow("f", "w"),
    )
    play = PlayedProcess(process)
    play.fail_job("a")

    play.cancel()

    assert isinstance(play.events[-1], events.WorkflowCancelled)
    assert any(isinstance(one, envelopes.Cancel) for _, one in play.sent), "the child is told"


def test_C3_cancelled_call_stays_open_until_its_child_has_closed() -> None:
    late = boundary("late", "c", timer("PT1H"))
    play = PlayedProcess(diagram(start(), call("c"), path("start", "c"), late, user("u"), path("late", "u")))
    [number] = play.find_waits("c")

    play.fire("late")
    child = play.execution.children[number].execution_id
    play.tell(envelopes.ChildClosed(number=number, execution_id=child, cancelled=True))

    assert list(play.waits.values()) == ["u"]
    assert not play.incidents


# --- held events ---


def test_S7_held_signal_is_given_before_the_event_that_would_close() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        job("a"),
        end("e", "<terminateEventDefinition/>"),
        catch("c", message()),
        script("s", "1", "x"),
        path("start", "f", "a", "e"),
        path("f", "c", "s"),
    )
    play = PlayedProcess(process)
    number = play.find_job("a")
    attempt = play.execution.attempt_of(number).attempt
    returned = envelopes.ActivityReturned(number=number, attempt=attempt, result=encode(None))
    sent = envelopes.Signal(name="m", value=encode(None))

    play.keep(take_turn(play.execution, play.program, [returned, sent], play.now, holds=True))

    assert play.result == {"x": 1}


def test_R2_update_that_was_held_and_changes_nothing_is_made_once() -> None:
    play = PlayedProcess(SIMPLE)
    request = RequestKey("update", "once", play.now + 3600 * SECOND)
    update = envelopes.Update(name="holdfast.set_variables", value=encode({"variables": {}}), request=request)
    play.keep(hold(play.execution, play.program, [update], play.now))

    play.set_variables({})

    assert sum(isinstance(one, events.UpdateCompleted) for one in play.events) == 2
    rebuilt = play.make_program()
    rebuilt.apply(play.history)
    assert not rebuilt.state.held


# --- updates and queries ---


def test_P10_variables_are_set_in_a_scope_and_outward() -> None:
    inner = sub("scope", start("in"), user("u"), path("in", "u"), mapping=mappings({"x": "0"}, {"out": "[x, y]"}))
    play = PlayedProcess(diagram(start(), inner, path("start", "scope")), {"x": "outside"})

    play.set_variables({"x": 1, "y": 2}, "scope")
    assert play.query("holdfast.variables", {"scope": "scope"}) == {"x": 1}
    assert play.query("holdfast.variables") == {"x": "outside", "y": 2}
    play.set_variables({"y": 3}, "scope", local=True)
    play.complete_task("u", {})

    assert play.result == {"x": "outside", "y": 2, "out": [1, 3]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("holdfast.set_variables", {"variables": 1}),
        ("holdfast.set_variables", {"variables": {}, "scope": "nothing"}),
        ("holdfast.set_variables", {"variables": {}, "scope": "9" * 6000}),
        ("holdfast.set_variables", None),
        ("holdfast.resolve_incident", {"number": 99}),
        ("holdfast.resolve_incident", {"other": 1}),
        ("approve", {}),
    ],
)
def test_P10_update_that_cannot_be_made_is_refused(name: str, value: Any) -> None:
    play = PlayedProcess(SIMPLE)

    turn = play.update(name, value)

    assert not any(isinstance(one, events.UpdateAccepted) for one in turn.events)


def test_P10_queries_answer_what_is_active() -> None:
    play = PlayedProcess(SIMPLE, {"x": 1})

    shown = play.query("holdfast.state")["elements"]

    assert [(one["element"], one["kind"], one["phase"]) for one in shown] == [
        ("p", "process", "working"),
        ("a", "serviceTask", "working"),
    ]
    with pytest.raises(UnknownQuery):
        play.query("other")
    with pytest.raises(InvalidArguments):
        play.query("holdfast.variables", {"scope": "nothing"})


# --- long turns ---

ENDLESS = diagram(start(), gateway("exclusive", "g"), script("a", "n + 1", "n"), path("start", "g", "a", "g"))


def test_D2_endless_loop_rests_after_a_thousand_records_and_can_be_cancelled() -> None:
    play = PlayedProcess(ENDLESS, {"n": 0})
    assert 300 < play.query("holdfast.variables")["n"] < 1_000

    for _ in range(3):
        play.fire()
    assert play.query("holdfast.variables")["n"] > 1_200
    play.set_variables({"n": -1_000_000})
    assert play.query("holdfast.variables")["n"] < 0, "it is corrected while it runs"
    play.cancel()

    assert play.is_closed


def test_D2_loop_of_expensive_expressions_rests_early() -> None:
    costly = script("a", "count(for i in 1..20000 return i)", "c")
    process = diagram(
        start(), gateway("exclusive", "g"), costly, script("b", "n + 1", "n"), path("start", "g", "a", "b", "g")
    )

    play = PlayedProcess(process, {"n": 0})

    assert play.query("holdfast.variables")["n"] < 50


def test_D2_loop_that_records_much_rests_early() -> None:
    large = script("a", 'string join(for i in 1..1000 return "0123456789")', "text")
    process = diagram(
        start(), gateway("exclusive", "g"), large, script("b", "n + 1", "n"), path("start", "g", "a", "b", "g")
    )

    play = PlayedProcess(process, {"n": 0})

    assert play.query("holdfast.variables")["n"] < 150


def test_D2_two_endless_loops_take_turns() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        gateway("exclusive", "g"),
        script("a", "n + 1", "n"),
        gateway("exclusive", "h"),
        script("b", "k + 1", "k"),
        path("start", "f", "g", "a", "g"),
        path("f", "h", "b", "h"),
    )
    play = PlayedProcess(process, {"n": 0, "k": 0})
    play.fire()

    found = play.query("holdfast.variables")
    assert abs(found["n"] - found["k"]) <= 1


def test_D2_tokens_kept_by_a_long_turn_go_on_with_any_event() -> None:
    play = PlayedProcess(ENDLESS, {"n": 0})
    before = play.query("holdfast.variables")["n"]

    play.send_signal("nobody")

    assert play.query("holdfast.variables")["n"] > before
    assert len(play.execution.timers) == 1


def test_P2_time_passes_for_others_while_a_loop_runs() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        gateway("exclusive", "g"),
        script("a", "n + 1", "n"),
        catch("c", timer("PT1S")),
        end("stop", "<terminateEventDefinition/>"),
        path("start", "f", "g", "a", "g"),
        path("f", "c", "stop"),
    )
    play = PlayedProcess(process, {"n": 0})

    play.now += SECOND
    play.fire("c")

    assert play.is_closed


def test_P1_deadlock_that_a_long_turn_leaves_behind_is_an_incident() -> None:
    stuck = sub(
        "scope",
        start("in"),
        job("work"),
        gateway("exclusive", "x", default="x_t"),
        task("t"),
        task("u"),
        gateway("parallel", "j"),
        path("in", "work", "x"),
        flow("x", "t"),
        flow("x", "u", "false"),
        flow("t", "j"),
        flow("u", "j"),
    )
    process = diagram(
        start(),
        gateway("parallel", "f"),
        stuck,
        gateway("exclusive", "g"),
        script("a", "n + 1", "n"),
        path("start", "f", "scope"),
        path("f", "g", "a", "g"),
    )
    play = PlayedProcess(process, {"n": 0})

    play.complete_job("work")

    assert play.program.state.kept
    assert list(play.incidents.values()) == [("j", "deadlock")]


def test_P10_message_of_an_incident_is_a_text_that_every_store_holds() -> None:
    play = PlayedProcess(SIMPLE)

    play.fail_job("a", "a\0b")

    [raised] = play.execution.incidents.values()
    assert "\0" not in raised.message


def test_P10_resolving_where_no_incident_is_open_is_refused_and_sets_nothing() -> None:
    play = PlayedProcess(SIMPLE)

    turn = play.resolve_incident(variables={"x": 1})

    assert turn.events == []
    assert play.query("holdfast.variables") == {}
