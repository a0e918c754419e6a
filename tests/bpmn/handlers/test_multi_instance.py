"""Multi-instance activities: how often, in which order, with which results, and how they end early."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.bpmn.executable import CompiledProcess
from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import (
    boundary,
    call,
    catch,
    diagram,
    end,
    error,
    flow,
    gateway,
    job,
    mappings,
    message,
    path,
    receive,
    repeat,
    script,
    start,
    sub,
    task,
    timer,
    user,
)
from tests.bpmn.support.playing import PlayedProcess


def make(loop: str, *more: str, **options: Any) -> CompiledProcess:
    return diagram(start(), job("a", more=loop, **options), end(), path("start", "a", "end"), *more)


@pytest.mark.parametrize("sequential", [True, False])
def test_P6_empty_collection_completes_at_once(sequential: bool) -> None:
    play = PlayedProcess(make(repeat("[]", "x", sequential=sequential)))

    assert play.result == {"results": []}


@pytest.mark.parametrize("collection", ["null", "1", '"text"', "{a: 1}", "missing", "for i in 1..100001 return i"])
def test_P6_collection_that_is_no_list_or_too_long_is_an_incident(collection: str) -> None:
    play = PlayedProcess(make(repeat(collection, "x")))

    assert list(play.incidents.values()) == [("a", "multi-instance")]


def test_P6_cardinality_counts_and_must_be_a_whole_number() -> None:
    loop = "<multiInstanceLoopCharacteristics><loopCardinality>=n</loopCardinality></multiInstanceLoopCharacteristics>"
    process = diagram(start(), job("a", more=loop), end(), path("start", "a", "end"))
    assert len(PlayedProcess(process, {"n": 3}).execution.activities) == 3
    assert PlayedProcess(process, {"n": 0}).is_closed
    for bad in (-1, 1.5, "3", None, 100_001):
        assert list(PlayedProcess(process, {"n": bad}).incidents.values()) == [("a", "multi-instance")], bad


def test_P5_outputs_are_in_the_order_of_the_collection_and_items_stay_local() -> None:
    play = PlayedProcess(make(repeat("[10, 20, 30]", "r")))
    jobs = sorted(play.execution.activities)

    for number, value in reversed(list(zip(jobs, [1, 2, 3], strict=True))):
        play.return_job(number, {"r": value})

    assert play.result == {"results": [1, 2, 3]}


def test_P6_sequential_iterations_follow_each_other() -> None:
    play = PlayedProcess(make(repeat("[10, 20]", "item + loopCounter", sequential=True)))
    assert len(play.execution.activities) == 1
    assert play.query("holdfast.variables", {"scope": "3"}) == {"loopCounter": 1, "item": 10}

    play.complete_job("a")
    assert len(play.execution.activities) == 1
    play.complete_job("a")

    assert play.result == {"results": [11, 22]}


@pytest.mark.parametrize("sequential", [True, False])
def test_P6_completion_condition_ends_the_rest(sequential: bool) -> None:
    until = "numberOfCompletedInstances = 2 and numberOfInstances in (2, 4) and numberOfTerminatedInstances = 0"
    play = PlayedProcess(make(repeat("[1, 2, 3, 4]", "item", sequential=sequential, until=until)))

    play.complete_job("a")
    play.complete_job("a")

    assert play.is_closed
    assert play.result == {"results": [1, 2, None, None]}


@pytest.mark.parametrize("kind", ["job", "script"])
def test_P6_output_mapping_of_an_iteration_may_make_its_output_element(kind: str) -> None:
    outputs = mappings(outputs={"r": "item * 2", "last": "loopCounter"})
    loop = repeat("[1, 2, 3]", "r")
    element = job("a", more=loop, mapping=outputs) if kind == "job" else script("a", "item", "s", more=loop, mapping=outputs)
    play = PlayedProcess(diagram(start(), element, path("start", "a")))

    for _ in range(3 if kind == "job" else 0):
        play.complete_job("a", {"r": 100})

    assert play.result == {"results": [2, 4, 6], "last": 3}


def test_P6_completion_condition_sees_the_results_so_far() -> None:
    play = PlayedProcess(make(repeat("[1, 2, 3]", "item * 10", until="sum(results[item != null]) > 15")))

    play.complete_job("a")
    assert not play.is_closed
    play.complete_job("a")

    assert play.result == {"results": [10, 20, None]}


def test_P6_all_iterations_of_a_parallel_one_count_as_active() -> None:
    process = diagram(
        start(),
        script("a", "item", "r", more=repeat("[1, 2, 3]", "r", until="numberOfActiveInstances = 0")),
        path("start", "a"),
    )
    assert PlayedProcess(process).result == {"results": [1, 2, 3]}


def test_P6_completion_condition_that_fails_is_an_incident_of_its_iteration() -> None:
    play = PlayedProcess(make(repeat("[1, 2]", "item", until="missing")))

    play.complete_job("a")
    assert list(play.incidents.values()) == [("a", "condition")]
    play.resolve_incident(None, {"missing": True})

    assert play.is_closed


def test_P6_failing_iteration_is_an_incident_while_others_go_on() -> None:
    play = PlayedProcess(make(repeat("[1, 2]", "r")))
    first, second = sorted(play.execution.activities)

    play.fail_job("a")
    play.return_job(second, {"r": "second"})
    assert not play.is_closed
    play.resolve_incident()
    assert first not in play.execution.activities
    play.complete_job("a", {"r": "first"})

    assert play.result == {"results": ["first", "second"]}


def test_P6_error_that_leaves_an_iteration_ends_its_siblings() -> None:
    process = make(repeat("[1, 2, 3]"), boundary("caught", "a", error()), task("handled"), path("caught", "handled"))
    play = PlayedProcess(process)

    play.throw_error("a", "E1", {"why": "x"})

    assert play.is_closed
    assert not play.execution.activities
    assert count_completed(play) == {"start": 1, "caught": 1, "handled": 1}
    assert play.result == {"why": "x"}


KINDS = {
    "job": job("a", more=repeat("[1, 2]")),
    "user": user("a", more=repeat("[1, 2]")),
    "receive": receive("a", more=repeat("[1, 2]")),
    "call": call("a", more=repeat("[1, 2]")),
    "sub": sub("a", start("in"), job("b"), path("in", "b"), repeat("[1, 2]")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_P2_boundaries_of_a_multi_instance_activity_belong_to_the_body(kind: str) -> None:
    process = diagram(
        start(),
        KINDS[kind],
        end(),
        path("start", "a", "end"),
        boundary("late", "a", timer("PT1H")),
        task("t"),
        boundary("asked", "a", message("m2"), interrupting=False),
        path("late", "t"),
        task("u"),
        path("asked", "u"),
    )
    play = PlayedProcess(process)
    assert len(play.find_waits("late")) == 1
    assert len(play.find_waits("asked")) == 1

    play.message("m2")
    assert play.find_waits("late")
    play.fire("late")

    assert play.is_closed
    completed = count_completed(play)
    completed.pop("in", None)
    assert completed == {"start": 1, "asked": 1, "u": 1, "late": 1, "t": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_P6_every_kind_of_activity_is_repeated(kind: str) -> None:
    process = diagram(start(), KINDS[kind], end(), path("start", "a", "end"))
    play = PlayedProcess(process)

    for _ in range(2):
        play.trigger("b" if kind == "sub" else "a")

    assert play.is_closed
    assert count_completed(play)["a"] == 3


def test_P6_nested_loops_have_their_own_items() -> None:
    inner = script("b", "outer * 10 + item", "r", more=repeat("[1, 2]", "r", into="row"))
    process = diagram(
        start(),
        sub(
            "a",
            start("in"),
            inner,
            path("in", "b"),
            repeat("[1, 2]", "row", into="table"),
            mapping=mappings({"outer": "item"}),
        ),
        path("start", "a"),
    )

    assert PlayedProcess(process).result == {"table": [[11, 12], [21, 22]]}


def test_P6_body_interrupted_while_iterations_are_queued_begins_no_more() -> None:
    loop = repeat("for i in 1..3000 return i")
    process = make(loop, boundary("stop", "a", message()), task("t"), path("stop", "t"))
    play = PlayedProcess(process)
    assert play.program.state.kept
    assert len(play.execution.activities) < 3000

    play.message("m")

    assert play.is_closed
    assert count_completed(play) == {"start": 1, "stop": 1, "t": 1}


def test_P6_huge_activity_begins_turn_by_turn() -> None:
    play = PlayedProcess(make(repeat("for i in 1..1200 return i")))
    begun = len(play.execution.activities)
    assert 0 < begun < 1200

    play.settle()

    assert len(play.execution.activities) == 1200


def test_P6_signals_reach_iterations_oldest_first() -> None:
    play = PlayedProcess(diagram(start(), receive("a", more=repeat("[1, 2]", "got")), path("start", "a")))

    play.send_signal("m", {"got": "one"})
    play.send_signal("m", {"got": "two"})

    assert play.result == {"results": ["one", "two"]}


def test_P6_catch_inside_a_repeated_sub_process_waits_in_each() -> None:
    inside = sub("a", start("in"), catch("c", timer("PT1M")), path("in", "c"), repeat("[1, 2, 3]"))
    play = PlayedProcess(diagram(start(), inside, end(), path("start", "a", "end")))
    assert len(play.find_waits("c")) == 3

    play.advance(60)

    assert play.is_closed


def test_P6_terminate_inside_an_iteration_ends_that_alone() -> None:
    inside = sub(
        "a",
        start("in"),
        gateway("parallel", "f"),
        job("b"),
        end("stop", "<terminateEventDefinition/>"),
        gateway("exclusive", "x", default="x_b2"),
        job("b2"),
        path("in", "f", "b"),
        flow("f", "x"),
        flow("x", "b2"),
        flow("x", "stop", "item = 1"),
        repeat("[1, 2]"),
    )
    play = PlayedProcess(diagram(start(), inside, end(), path("start", "a", "end")))

    assert sorted(play.waits.values()) == ["b", "b2"]


def test_P6_complete_activity_that_fails_to_be_left_begins_no_more_iterations() -> None:
    loop = repeat("[1, 2, 3]", until="numberOfCompletedInstances = 1")
    process = diagram(start(), script("a", "item", "r", more=loop), task("b"), path("start", "a"), flow("a", "b", "ready"))
    play = PlayedProcess(process)
    assert list(play.incidents.values()) == [("a", "condition")]
    assert count_completed(play)["a"] == 1

    play.resolve_incident(None, {"ready": True})

    assert count_completed(play) == {"start": 1, "a": 2, "b": 1}


def test_P6_iterations_see_the_results_so_far() -> None:
    total = "item + sum(for one in results return if one = null then 0 else one)"
    loop = repeat("[1, 2, 3]", "r", sequential=True)
    process = diagram(start(), script("a", total, "r", more=loop), end(), path("start", "a", "end"))

    play = PlayedProcess(process, {"results": [100]})

    assert play.result == {"results": [1, 3, 7]}


def test_P6_results_so_far_are_given_to_jobs_by_mappings_alone() -> None:
    loop = repeat("[1, 2]", "r", sequential=True)
    process = diagram(start(), job("a", mapping=mappings({"seen": "results"}), more=loop), end(), path("start", "a", "end"))
    play = PlayedProcess(process)
    play.complete_job("a", {"r": 7})

    [activity] = play.execution.activities.values()

    assert b'"seen":[7,null]' in bytes(activity.event.input.data)
    assert b'"results"' not in bytes(activity.event.input.data)
