"""What steps cost: as much in a long history as in a short one, and in a wide process as in a narrow one.

Counted in calls of functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.bpmn.support.diagrams import (
    boundary,
    diagram,
    gateway,
    job,
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


class _Play(PlayedProcess):
    checks_each_turn = False


def count_calls(function: Callable[[], object]) -> int:
    """How many calls of functions something makes."""
    calls = 0

    def note(_frame: Any, kind: str, _arg: Any) -> None:
        nonlocal calls
        calls += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def test_P1_step_5000_costs_what_step_100_costs() -> None:
    process = diagram(
        start(), gateway("exclusive", "g"), job("a"), script("b", "n + 1", "n"), path("start", "g", "a", "b", "g")
    )
    play = _Play(process, {"n": 0})
    costs = []
    for step in range(5_000):
        [number] = play.execution.activities
        if step in (100, 4_999):
            costs.append(count_calls(lambda: play.return_job(number)))  # noqa: B023  # called at once
        else:
            play.return_job(number)

    assert costs[1] <= 1.2 * costs[0]


WIDE = {
    "job": job("a", more=repeat("for i in 1..n return i", "r")),
    "user": user("a", more=repeat("for i in 1..n return i", "r")),
    "receive": receive("a", more=repeat("for i in 1..n return i", "r")),
    "sub": sub("a", start("in"), receive("b"), path("in", "b"), repeat("for i in 1..n return i", "r")),
}


def play_wide(kind: str, count: int) -> _Play:
    late = boundary("late", "a", timer("PT1H"))
    play = _Play(diagram(start(), WIDE[kind], path("start", "a"), late, task("t"), path("late", "t")), {"n": count})
    play.settle()
    return play


@pytest.mark.parametrize("kind", WIDE)
def test_P6_end_of_one_iteration_costs_the_same_among_many(kind: str) -> None:
    def end_one(play: _Play) -> int:
        if kind in ("receive", "sub"):
            return count_calls(lambda: play.send_signal("m", {"r": 1}))
        if kind == "job":
            number = play.find_job("a")
            return count_calls(lambda: play.return_job(number))
        return count_calls(lambda: play.set_variables({"x": 1}))

    few, many = end_one(play_wide(kind, 50)), end_one(play_wide(kind, 1_500))

    assert many <= 1.2 * few + 300  # what is awaited is described by the first hundred subscriptions


def test_P6_many_iterations_cost_as_much_each_as_few() -> None:
    few, many = count_calls(lambda: play_wide("sub", 200)), count_calls(lambda: play_wide("sub", 2_000))

    assert many <= 1.2 * 10 * few


def test_P2_ending_many_iterations_costs_as_much_each_as_few() -> None:
    plays = play_wide("sub", 200), play_wide("sub", 2_000)

    few, many = (count_calls(lambda play=play: play.fire("late")) for play in plays)  # type: ignore[misc]

    assert many <= 1.2 * 10 * few


def test_P10_resolving_many_incidents_costs_as_much_each_as_few() -> None:
    def play_failing(count: int) -> _Play:
        play = play_wide("job", count)
        for number in list(play.execution.activities):
            play.raise_in(number)
        return play

    plays = play_failing(50), play_failing(500)
    few, many = (count_calls(lambda play=play: play.resolve_incident()) for play in plays)  # type: ignore[misc]

    assert all(not play.incidents for play in plays)
    assert many <= 1.3 * 10 * few
