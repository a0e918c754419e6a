"""Records as people read them."""

from __future__ import annotations

from holdfast.bpmn.records import decode_records
from holdfast.bpmn.views import AuditKind, AuditLine, expand
from holdfast.core.events import ProcessAdvanced
from tests.bpmn.support.diagrams import boundary, diagram, end, job, mappings, message, path, start, sub, task
from tests.bpmn.support.playing import PlayedProcess


def list_lines(play: PlayedProcess) -> list[AuditLine]:
    made = [one.records for one in play.events if isinstance(one, ProcessAdvanced)]
    return expand(record for each in made for record in decode_records(each))


def test_P1_history_tells_elements_flows_and_variables_in_order() -> None:
    play = PlayedProcess(
        diagram(start(), job("a", mapping=mappings({"x": "n"})), end(), path("start", "a", "end")), {"n": 1}
    )
    play.complete_job("a", {"y": 2})

    lines = [(one.kind, one.element or one.flow or one.name) for one in list_lines(play)]

    assert lines == [
        (AuditKind.ENTERED, "p"),
        (AuditKind.VARIABLE, "n"),
        (AuditKind.ENTERED, "start"),
        (AuditKind.LEFT, "start"),
        (AuditKind.FLOW, "start_a"),
        (AuditKind.ENTERED, "a"),
        (AuditKind.VARIABLE, "x"),
        (AuditKind.WAITS, "a"),
        (AuditKind.VARIABLE, "y"),
        (AuditKind.LEFT, "a"),
        (AuditKind.FLOW, "a_end"),
        (AuditKind.ENTERED, "end"),
        (AuditKind.LEFT, "end"),
        (AuditKind.LEFT, "p"),
    ]


def test_P2_what_is_inside_of_an_interrupted_host_is_told_to_have_ended_first() -> None:
    host = sub("host", start("in"), job("deep"), path("in", "deep"))
    stop = boundary("stop", "host", message())
    play = PlayedProcess(diagram(start(), host, path("start", "host"), stop, task("t"), path("stop", "t")))
    play.message("m")

    lines = list_lines(play)

    assert [one.element for one in lines if one.kind is AuditKind.ENDED] == ["deep", "host"]
    assert [one.element for one in lines if one.kind is AuditKind.LEFT][-3:] == ["stop", "t", "p"]


def test_P10_incidents_are_told_at_their_elements() -> None:
    play = PlayedProcess(diagram(start(), job("a"), path("start", "a")))
    play.fail_job("a", "out of paper")
    play.resolve_incident()

    told = [one for one in list_lines(play) if one.kind in (AuditKind.INCIDENT, AuditKind.RESOLVED)]

    assert [(one.kind, one.element) for one in told] == [(AuditKind.INCIDENT, "a"), (AuditKind.RESOLVED, "a")]
    assert "out of paper" in told[0].text
