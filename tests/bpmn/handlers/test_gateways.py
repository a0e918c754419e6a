"""Gateways: exclusive, parallel and event-based; and flows with conditions out of activities."""

from __future__ import annotations

import pytest

from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import catch, diagram, end, flow, gateway, job, message, path, signal, start, task, timer
from tests.bpmn.support.playing import PlayedProcess

CHOICE = diagram(
    start(),
    gateway("exclusive", "x", default="x_c"),
    task("a"),
    task("b"),
    task("c"),
    path("start", "x"),
    flow("x", "a", "n &gt; 10"),
    flow("x", "b", "n &gt; 5"),
    flow("x", "c"),
)


@pytest.mark.parametrize(("n", "taken"), [(11, "a"), (6, "b"), (1, "c")])
def test_P8_exclusive_gateway_takes_the_first_that_holds_else_the_default(n: int, taken: str) -> None:
    play = PlayedProcess(CHOICE, {"n": n})

    assert count_completed(play) == {"start": 1, "x": 1, taken: 1}


def test_P8_exclusive_gateway_without_a_match_is_an_incident_that_can_be_resolved() -> None:
    process = diagram(
        start(),
        gateway("exclusive", "x"),
        task("a"),
        task("b"),
        path("start", "x"),
        flow("x", "a", "n &gt; 10"),
        flow("x", "b", "n &gt; 5"),
    )
    play = PlayedProcess(process, {"n": 1})
    assert list(play.incidents.values()) == [("x", "condition")]

    play.resolve_incident()
    assert list(play.incidents.values()) == [("x", "condition")], "nothing changed: it is raised again"
    play.resolve_incident(None, {"n": 7})

    assert play.is_closed
    assert count_completed(play)["b"] == 1


@pytest.mark.parametrize("condition", ["n", "missing &gt; 1", "1 / 0", '"text"'])
def test_P10_condition_that_is_neither_true_nor_false_is_an_incident(condition: str) -> None:
    process = diagram(
        start(),
        gateway("exclusive", "x", default="x_b"),
        task("a"),
        task("b"),
        path("start", "x"),
        flow("x", "a", condition),
        flow("x", "b"),
    )
    play = PlayedProcess(process, {"n": 1})

    assert list(play.incidents.values()) == [("x", "condition")]


def test_P1_parallel_join_takes_one_token_of_each_flow_per_firing() -> None:
    # Two tokens come to the join by one flow, and two by the other: it fires twice.
    process = diagram(
        start(),
        gateway("parallel", "f"),
        task("a"),
        task("b"),
        gateway("exclusive", "x"),
        gateway("parallel", "j"),
        gateway("parallel", "g"),
        gateway("exclusive", "y"),
        task("done"),
        end(),
        path("start", "f"),
        flow("f", "a"),
        flow("f", "b"),
        flow("f", "g"),
        flow("a", "x"),
        flow("b", "x"),
        flow("x", "j"),
        '<sequenceFlow id="g1" sourceRef="g" targetRef="y"/><sequenceFlow id="g2" sourceRef="g" targetRef="y"/>',
        flow("y", "j"),
        path("j", "done", "end"),
    )
    play = PlayedProcess(process)

    assert play.is_closed
    assert count_completed(play)["j"] == 2
    assert count_completed(play)["done"] == 2


def test_P1_join_does_not_fire_for_two_tokens_of_one_flow() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        task("a"),
        task("b"),
        gateway("exclusive", "x"),
        job("c"),
        gateway("parallel", "j"),
        end(),
        path("start", "f"),
        flow("f", "a"),
        flow("f", "b"),
        flow("f", "c"),
        flow("a", "x"),
        flow("b", "x"),
        flow("x", "j"),
        flow("c", "j"),
        flow("j", "end"),
    )
    play = PlayedProcess(process)
    assert count_completed(play)["j"] == 0

    play.complete_job("c")

    assert count_completed(play)["j"] == 1
    assert [kind for _, kind in play.incidents.values()] == ["deadlock"], "a token is left that nothing can join"


def test_P1_deadlock_is_an_incident_and_stays_one_when_it_is_resolved() -> None:
    process = diagram(
        start(),
        gateway("exclusive", "x", default="x_a"),
        task("a"),
        task("b"),
        gateway("parallel", "j"),
        end(),
        path("start", "x"),
        flow("x", "a"),
        flow("x", "b", "false"),
        path("a", "j", "end"),
        flow("b", "j"),
    )
    play = PlayedProcess(process)
    assert list(play.incidents.values()) == [("j", "deadlock")]

    play.resolve_incident()

    assert list(play.incidents.values()) == [("j", "deadlock")]
    play.cancel()
    assert play.is_closed


def test_P1_end_event_ends_its_token_alone() -> None:
    process = diagram(
        start(),
        gateway("parallel", "f"),
        end("first"),
        job("a"),
        end("second"),
        path("start", "f", "first"),
        path("f", "a", "second"),
    )
    play = PlayedProcess(process)
    assert not play.is_closed

    play.complete_job("a")

    assert play.is_closed


def test_P8_flows_with_conditions_out_of_an_activity_are_all_taken_that_hold() -> None:
    xml = diagram(
        start(),
        job("a"),
        task("b"),
        task("c"),
        task("d"),
        path("start", "a"),
        flow("a", "b", "n &gt; 1"),
        flow("a", "c", "n &gt; 2"),
        flow("a", "d"),
    )
    play = PlayedProcess(xml, {"n": 2})

    play.complete_job("a")

    assert count_completed(play) == {"start": 1, "a": 1, "b": 1, "d": 1}


RACE = diagram(
    start(),
    gateway("eventBased", "g"),
    catch("paid", message()),
    catch("told", signal()),
    catch("late", timer("PT1H")),
    task("a"),
    task("b"),
    task("c"),
    path("start", "g", "paid", "a"),
    path("g", "told", "b"),
    path("g", "late", "c"),
)


@pytest.mark.parametrize(("winner", "then"), [("paid", "a"), ("told", "b"), ("late", "c")])
def test_P4_first_event_wins_and_the_others_end_in_the_same_turn(winner: str, then: str) -> None:
    play = PlayedProcess(RACE)
    assert sorted(play.waits.values()) == ["late", "paid", "told"]

    play.trigger(winner, None if winner == "late" else {"got": 1})

    assert count_completed(play) == {"start": 1, "g": 1, winner: 1, then: 1}
    assert play.result == ({} if winner == "late" else {"got": 1})


def test_P4_event_of_the_same_turn_as_the_winner_is_stale() -> None:
    play = PlayedProcess(RACE)
    [number] = play.find_waits("paid")
    paid = play.make_trigger(number, {"got": 1})
    [late] = play.find_waits("late")

    play.now = play.execution.timers[late]
    play.tell(play.make_due(late), paid)

    assert count_completed(play)["c"] == 1
    assert count_completed(play)["a"] == 0
    assert [one.name for one in play.outbox] == ["m"], "the message is put back, for somebody else"


def test_P4_signal_by_the_workflow_id_decides_the_race() -> None:
    play = PlayedProcess(RACE)

    play.send_signal("m", {"got": 2})

    assert play.result == {"got": 2}
