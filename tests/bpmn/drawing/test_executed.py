"""From records to overlays."""

from __future__ import annotations

from holdfast.bpmn import records
from holdfast.bpmn.drawing.executed import make_overlay


def test_passed_and_left_elements_are_completed_and_their_flows_taken() -> None:
    overlay = make_overlay(
        [
            records.Entered(1, "order", 0, "working"),
            records.Passed("begin", 1, ("f1",)),
            records.Entered(2, "check", 1, "working"),
            records.Left(2, ("f2",)),
            records.Entered(3, "pay", 1, "working"),
        ]
    )

    assert overlay.completed == {"begin": 1, "check": 1}
    assert overlay.taken_flows == {"f1": 1, "f2": 1}
    assert overlay.active == {"pay": 1}


def test_ended_sub_process_takes_all_that_is_in_it_along() -> None:
    overlay = make_overlay(
        [
            records.Entered(1, "order", 0, "working"),
            records.Entered(2, "sub", 1, "working"),
            records.Entered(3, "inside", 2, "working"),
            records.Arrived("join", 2, "f1"),
            records.Ended(2),
        ]
    )

    assert overlay.active == {}
    assert overlay.completed == {}


def test_tokens_at_a_join_are_active_until_it_fires() -> None:
    waiting = [records.Arrived("join", 1, "a"), records.Arrived("join", 1, "a"), records.Arrived("join", 1, "b")]

    assert make_overlay(waiting).active == {"join": 3}
    fired = make_overlay([*waiting, records.Joined("join", 1, ("a", "b"), ("c",))])
    assert fired.active == {"join": 1}
    assert fired.completed == {"join": 1}
    assert make_overlay([*waiting, records.Cleared(1)]).active == {}


def test_iterations_count_and_the_body_does_not() -> None:
    overlay = make_overlay(
        [
            records.Entered(2, "each", 1, "working"),
            records.Looped(2, 2),
            records.Entered(3, "each", 2, "working", index=0),
            records.Entered(4, "each", 2, "working", index=1),
            records.Left(3),
        ]
    )

    assert overlay.completed == {"each": 1}
    assert overlay.active == {"each": 1}


def test_incident_is_marked_until_it_is_resolved() -> None:
    failed: list[records.AnyRecord] = [records.Entered(2, "pay", 1, "entering"), records.Incident(2, 7, "expression", "no")]

    assert make_overlay(failed).incidents == {"pay": 1}
    assert make_overlay([*failed, records.Resolved(2, 7)]).incidents == {}
    assert make_overlay([*failed, records.Ended(2)]).incidents == {}


def test_closed_execution_has_no_tokens() -> None:
    overlay = make_overlay([records.Entered(2, "pay", 1, "working")], is_closed=True)

    assert overlay.active == {}
