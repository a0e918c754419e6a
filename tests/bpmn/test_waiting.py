"""What events wait for: times that expressions make."""

from __future__ import annotations

from tests.bpmn.support.diagrams import boundary, catch, diagram, job, path, start, task, timer
from tests.bpmn.support.playing import PlayedProcess


def test_T1_cycle_that_an_expression_makes_fires_as_often_as_it_says() -> None:
    timing = timer('=cycle(n, duration("PT10S"))', "timeCycle")
    process = diagram(
        start(),
        job("a"),
        boundary("b", "a", timing, interrupting=False),
        task("late"),
        path("start", "a"),
        path("b", "late"),
    )
    play = PlayedProcess(process, {"n": 2})

    play.advance(60)
    play.complete_job("a")

    assert sum(record[:2] == ["passed", "late"] for record in play.records) == 2


def test_T1_duration_until_what_has_passed_fires_now() -> None:
    until = timer('=date and time("2020-01-01T00:00:00Z") - now()')
    play = PlayedProcess(diagram(start(), catch("c", until), path("start", "c")))

    play.settle()

    assert play.is_closed
    assert not play.incidents
