"""Input and output mappings: what is not there is null, and where entries of contexts go."""

from __future__ import annotations

import pytest

from tests.bpmn.support.diagrams import diagram, end, job, mappings, message, path, script, start, sub
from tests.bpmn.support.playing import PlayedProcess


@pytest.mark.parametrize("source", ["missing", "missing.entry", "[][1].id", "1 + null", 'number("x")'])
def test_P5_mapping_of_what_is_not_there_gives_null(source: str) -> None:
    process = diagram(start(), job("a", mapping=mappings({"x": source}, {"y": "x", "z": source})), path("start", "a"))
    play = PlayedProcess(process)

    play.complete_job("a")

    assert play.result == {"y": None, "z": None}


def test_P10_mapping_that_asserts_what_is_not_so_is_an_incident() -> None:
    play = PlayedProcess(diagram(start(), job("a", mapping=mappings({"x": "assert(n, n > 1)"})), path("start", "a")))
    assert list(play.incidents.values()) == [("a", "mapping")]

    play.resolve_incident(None, {"n": 2})
    play.complete_job("a")

    assert play.result == {"n": 2}


def test_P5_input_mapping_to_an_entry_makes_a_new_context() -> None:
    inputs = {"a.first": "1", "a.second": "a.first + 1"}
    process = diagram(start(), job("t", mapping=mappings(inputs, {"seen": "a"})), path("start", "t"))
    play = PlayedProcess(process, {"a": {"outer": True}})

    play.complete_job("t")

    assert play.result == {"a": {"outer": True}, "seen": {"first": 1, "second": 2}}


def test_P5_output_mapping_to_an_entry_keeps_the_others() -> None:
    process = diagram(start(), job("t", mapping=mappings(outputs={"a.new": "got"})), path("start", "t"))
    play = PlayedProcess(process, {"a": {"old": 1}})

    play.complete_job("t", {"got": 2})

    assert play.result == {"a": {"old": 1, "new": 2}}


@pytest.mark.parametrize("interrupting", [True, False])
def test_P5_input_mappings_of_an_event_sub_process_are_its_locals(interrupting: bool) -> None:
    handled = sub(
        "handled",
        start("came", message(), interrupting=interrupting),
        script("s", "local + 1", "result"),
        end("e"),
        path("came", "s", "e"),
        event=True,
        mapping=mappings({"local": "n * 10"}),
    )
    play = PlayedProcess(diagram(start(), job("a"), path("start", "a"), handled), {"n": 2})

    play.message("m", value={"told": True})
    if not interrupting:
        play.complete_job("a")

    assert play.result == {"n": 2, "told": True, "result": 21}
