"""Variables: which scope has them, what mappings make of them, and what leaves an element."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import events
from tests.bpmn.support.diagrams import (
    catch,
    diagram,
    end,
    flow,
    gateway,
    job,
    mappings,
    message,
    path,
    script,
    start,
    sub,
    task,
)
from tests.bpmn.support.playing import PlayedProcess


def play_job(result: Any, *, mapping: str = "", variables: dict[str, Any] | None = None) -> PlayedProcess:
    play = PlayedProcess(diagram(start(), job("a", mapping=mapping), end(), path("start", "a", "end")), variables)
    play.complete_job("a", result)
    return play


def test_P5_result_without_mapping_merges_into_the_process() -> None:
    assert play_job({"x": 1, "y": [2]}, variables={"x": 0}).result == {"x": 1, "y": [2]}


def test_P5_result_merges_into_the_nearest_scope_that_has_the_variable() -> None:
    inner = sub("inner", start("in"), job("a"), path("in", "a"), mapping=mappings({"x": "0"}, {"inner": "x"}))
    outer = sub("outer", start("o"), inner, path("o", "inner"), mapping=mappings({"y": "0"}, {"outer": "y"}))
    play = PlayedProcess(diagram(start(), outer, path("start", "outer")), {"x": "outside", "y": "outside"})

    play.complete_job("a", {"x": 1, "y": 2, "z": 3})

    assert play.result == {"x": "outside", "y": "outside", "z": 3, "inner": 1, "outer": 2}


def test_P5_scope_without_output_mapping_keeps_its_locals() -> None:
    inner = sub("inner", start("in"), job("a"), path("in", "a"), mapping=mappings({"x": "0"}))
    play = PlayedProcess(diagram(start(), inner, path("start", "inner")))

    play.complete_job("a", {"x": 1})

    assert play.result == {}


def test_P5_with_output_mappings_only_mapped_names_leave() -> None:
    mapping = mappings({"n": "total * 2"}, {"sum": "r + n", "order.total": "r"})
    play = play_job({"r": 5, "secret": 1}, mapping=mapping, variables={"total": 10, "order": {"id": 1, "total": 0}})

    assert play.result == {"total": 10, "order": {"id": 1, "total": 5}, "sum": 25}


def test_P5_mappings_see_those_before_them() -> None:
    mapping = mappings({"a.b.c": "1", "a.b.d": "a.b.c + 1"}, {"x": "a", "y": "x.b.d + 1"})

    assert play_job({}, mapping=mapping).result == {"x": {"b": {"c": 1, "d": 2}}, "y": 3}


def test_P5_dotted_target_over_what_is_no_context_makes_one() -> None:
    assert play_job({}, mapping=mappings(outputs={"x.y": "1"}), variables={"x": 7}).result == {"x": {"y": 1}}


def test_P5_own_variables_take_the_result_of_a_script_with_their_name() -> None:
    mapped = script("a", "x + 1", "x", mapping=mappings({"x": "10"}))
    assert PlayedProcess(diagram(start(), mapped, path("start", "a")), {"x": 0}).result == {"x": 0}

    mapped = script("a", "x + 1", "x", mapping=mappings({"x": "10"}, {"y": "x"}))
    assert PlayedProcess(diagram(start(), mapped, path("start", "a")), {"x": 0}).result == {"x": 0, "y": 11}


def test_P5_parallel_branches_do_not_see_each_others_locals() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        job("a", mapping=mappings({"local": "1"}, {"seen_a": "is defined(other)"})),
        job("b", mapping=mappings({"other": "2"}, {"seen_b": "is defined(local)"})),
        path("start", "f", "a"),
        flow("f", "b"),
    )
    play = PlayedProcess(process)

    play.complete_job("a")
    play.complete_job("b")

    assert play.result == {"seen_a": False, "seen_b": False}


@pytest.mark.parametrize("result", [None, {}, {"x": None}])
def test_P5_null_and_empty_results_are_fine(result: Any) -> None:
    assert play_job(result).result == (result or {})


@pytest.mark.parametrize("result", [1, "text", [1], True])
def test_P10_result_that_is_no_object_is_an_incident(result: Any) -> None:
    play = play_job(result)
    assert list(play.incidents.values()) == [("a", "job")]

    play.resolve_incident()
    play.complete_job("a", {})

    assert play.is_closed


def test_P5_result_that_is_no_object_can_be_mapped() -> None:
    assert play_job([1, 2], mapping=mappings(outputs={"count": "count(result)"})).result == {"count": 2}


def test_P10_output_mapping_that_fails_is_left_again_with_what_the_job_gave() -> None:
    play = play_job({"r": 1}, mapping=mappings(outputs={"x": "r + assert(missing, missing != null)"}))
    assert list(play.incidents.values()) == [("a", "mapping")]

    play.resolve_incident(None, {"missing": 2})

    assert play.result == {"missing": 2, "x": 3}


def test_P10_input_mapping_that_fails_is_entered_again() -> None:
    process = diagram(
        start(), job("a", mapping=mappings({"x": "assert(missing, missing != null) + 1"}, {"y": "x"})), path("start", "a")
    )
    play = PlayedProcess(process)
    assert list(play.incidents.values()) == [("a", "mapping")]
    assert not play.execution.activities

    play.resolve_incident(None, {"missing": 1})
    play.complete_job("a")

    assert play.result == {"missing": 1, "y": 2}


def test_P5_output_mapping_of_a_catch_takes_its_message_apart() -> None:
    play = PlayedProcess(diagram(start(), catch("c", message(), mapping=mappings(outputs={"x": "got"})), path("start", "c")))

    play.message("m", value={"got": 1, "other": 2})

    assert play.result == {"x": 1}


def test_P5_numbers_stay_exact_and_times_become_texts() -> None:
    process = diagram(
        start(),
        script("a", "0.1 + 0.2", "sum"),
        script("b", 'date("2026-01-02") + duration("P1D")', "day"),
        script("c", "12345678901234567890123456789", "big"),
        path("start", "a", "b", "c"),
    )
    play = PlayedProcess(process)

    last = play.events[-1]
    assert isinstance(last, events.WorkflowCompleted)
    assert bytes(last.result.data) == b'{"sum":0.3,"day":"2026-01-03","big":12345678901234567890123456789}'


@pytest.mark.parametrize("expression", ["[1..3]", "function(x) x", "{f: function(x) x}"])
def test_P10_value_that_json_cannot_hold_is_an_incident(expression: str) -> None:
    play = PlayedProcess(diagram(start(), script("a", expression, "x"), path("start", "a")))

    assert list(play.incidents.values()) == [("a", "expression")]


def test_P5_what_cannot_be_computed_is_null_in_a_mapping_and_a_script() -> None:
    process = diagram(start(), script("a", "missing.x + 1", "x"), path("start", "a"))

    assert PlayedProcess(process).result == {"x": None}


@pytest.mark.parametrize("expression", ["for i in 1..1000000 return i", "assert(missing, missing != null)"])
def test_P10_expression_that_fails_or_never_ends_is_an_incident(expression: str) -> None:
    play = PlayedProcess(diagram(start(), script("a", expression, "x"), task("b"), path("start", "a", "b")))

    assert list(play.incidents.values()) == [("a", "expression")]


def test_P5_random_values_of_one_turn_differ() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        catch("a", message()),
        catch("b", message("m2")),
        script("x", "uuid()", "u1"),
        script("y", "uuid()", "u2"),
        path("start", "f", "a", "x"),
        path("f", "b", "y"),
    )
    play = PlayedProcess(process)
    [first], [second] = play.find_waits("a"), play.find_waits("b")

    play.tell(play.make_trigger(first), play.make_trigger(second))

    assert play.result["u1"] != play.result["u2"]


@pytest.mark.parametrize("expression", ["big * big", "[big * big]", "{x: -big * big}"])
def test_P10_number_that_other_programs_cannot_read_is_an_incident(expression: str) -> None:
    process = diagram(start(), script("s", expression, "r"), end(), path("start", "s", "end"))

    play = PlayedProcess(process, {"big": 1e200})

    assert list(play.incidents.values()) == [("s", "expression")]
