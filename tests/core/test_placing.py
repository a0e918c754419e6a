"""Who runs an activity: noted in the execution so that whatever dies, it is known what was lost with it."""

from __future__ import annotations

import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import envelopes, events
from holdfast.core.effects import Acknowledged, Limits, TimerKind, TimerSet, Turn, make_task
from holdfast.core.execution import FIRST_ATTEMPT, AttemptState, Execution, OpenActivity
from holdfast.core.options import ActivityOptions, TimeoutKind
from holdfast.core.payloads import NULL
from holdfast.core.placing import (
    SUSPECT,
    clear_ended_suspects,
    decide_began,
    decide_offer_due,
    decide_redispatch,
    place_activities,
)


def make_execution(count: int, options: ActivityOptions | None = None) -> Execution:
    """An execution with that many running activities, numbered from 1."""
    start = envelopes.Start(execution_id="e", workflow_id="w", workflow="order", input=NULL)
    execution = Execution.register("default", start, 100)
    for number in range(1, count + 1):
        event = events.ActivityScheduled(number=number, name=f"a{number}", input=NULL, options=options or ActivityOptions())
        execution.activities[number] = OpenActivity(event, 100)
        execution.running.add(number)
    return execution


def dispatch(execution: Execution, *numbers: int, node: str = "one", keep: set[int] | None = None, now: int = 100) -> Turn:
    """A turn that dispatches these; the node keeps those of `keep`, or all."""
    turn = Turn(execution, now, Limits())
    turn.dispatched = list(numbers)
    place_activities(turn, node, None if keep is None else lambda event: event.number in keep)
    return turn


def end(execution: Execution, *numbers: int, node: str = "one") -> Turn:
    """A turn in which these ended."""
    turn = Turn(execution, 200, Limits())
    for number in numbers:
        execution.activities.pop(number)
        execution.running.discard(number)
        execution.details.attempts.pop(number, None)
    place_activities(turn, node)
    return turn


def answer(keeps: bool, _event: events.ActivityScheduled) -> bool:
    return keeps


# --- noting ---


def test_what_the_node_runs_itself_needs_no_note_beside_its_name() -> None:
    execution = make_execution(3)
    turn = dispatch(execution, 1, 2, 3)

    assert execution.nodes == ("one",)
    assert execution.details.attempts == {}
    assert (turn.dispatched, turn.offered) == ([1, 2, 3], [])


def test_offered_activities_name_no_node() -> None:
    execution = make_execution(2)
    turn = dispatch(execution, 1, 2, keep=set())

    assert execution.nodes == ()
    assert [execution.runner_of(number) for number in (1, 2)] == [None, None]
    assert (turn.dispatched, turn.offered) == ([], [1, 2])


def test_node_that_keeps_some_is_named_for_those_alone() -> None:
    execution = make_execution(3)
    dispatch(execution, 1, 2, 3, keep={2})

    assert execution.nodes == ("one",)
    assert [execution.runner_of(number) for number in (1, 2, 3)] == [None, "one", None]

    end(execution, 2)
    assert list(execution.nodes) == []
    assert [execution.runner_of(number) for number in (1, 3)] == [None, None]


@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two", "three"]), st.sets(st.integers(1, 6)), st.booleans(), st.booleans()),
        max_size=12,
    )
)
def test_runner_of_each_activity_is_known_after_whatever_happened(
    steps: list[tuple[str, set[int], bool, bool]],
) -> None:
    execution = make_execution(0)
    expected: dict[int, str | None] = {}
    following = iter(range(1, 1000))
    for node, ended, keeps, dispatches in steps:
        for number in ended & expected.keys():
            execution.activities.pop(number)
            execution.running.discard(number)
            execution.details.attempts.pop(number, None)
            del expected[number]
        turn = Turn(execution, 200, Limits())
        if dispatches:
            number = next(following)
            event = events.ActivityScheduled(number=number, name="a", input=NULL)
            execution.activities[number] = OpenActivity(event, 100)
            execution.running.add(number)
            turn.dispatched = [number]
            expected[number] = node if keeps else None
        place_activities(turn, node, partial(answer, keeps))

        assert {number: execution.runner_of(number) for number in execution.running} == expected
        assert {number for number in execution.running if execution.attempt_of(number).offered} == {
            number for number, runner in expected.items() if runner is None
        }
        assert set(execution.nodes) == set(expected.values()) - {None}


# --- withdrawing ---


def test_offer_is_withdrawn_when_its_activity_ends() -> None:
    execution = make_execution(2)
    dispatch(execution, 1, 2, keep=set())

    turn = end(execution, 1)
    assert turn.withdrawn == [1]
    assert 1 in turn.ended_timers


def test_offer_that_is_still_wanted_stays() -> None:
    execution = make_execution(2)
    dispatch(execution, 1, 2, keep=set())

    assert dispatch(execution).withdrawn == []


def test_offer_that_is_offered_anew_replaces_the_old_one() -> None:
    execution = make_execution(1)
    dispatch(execution, 1, keep=set())
    turn = Turn(execution, 200, Limits())
    decide_redispatch(turn, envelopes.Redispatch(node="two", number=1, attempt=1))
    place_activities(turn, "one", lambda _event: False)

    assert (turn.withdrawn, turn.offered) == ([1], [1])
    assert execution.attempt_of(1) == AttemptState(attempt=2, lost=1, offered=True)


def test_closed_execution_withdraws_everything() -> None:
    execution = make_execution(2)
    dispatch(execution, 1, 2, keep=set())

    assert end(execution, 1, 2).withdrawn == [1, 2]
    assert execution.nodes == ()


# --- waiting ---


@pytest.mark.parametrize(
    ("options", "due"),
    [
        (ActivityOptions(), None),
        (ActivityOptions(schedule_to_start_us=50), 150),
        (ActivityOptions(schedule_to_close_us=70), 170),
        (ActivityOptions(schedule_to_start_us=50, schedule_to_close_us=70), 150),
        (ActivityOptions(schedule_to_start_us=90, schedule_to_close_us=70), 170),
    ],
)
def test_how_long_an_offer_may_wait_is_a_timer(options: ActivityOptions, due: int | None) -> None:
    turn = dispatch(make_execution(1, options), 1, keep=set())

    assert turn.started_timers == ([] if due is None else [TimerSet(1, due, TimerKind.OFFER, 1)])


def test_each_attempt_waits_for_its_own_place() -> None:
    execution = make_execution(1, ActivityOptions(schedule_to_start_us=50))
    execution.details.attempts = {1: AttemptState(attempt=3)}
    turn = dispatch(execution, 1, keep=set(), now=1_000)

    assert turn.started_timers == [TimerSet(1, 1_050, TimerKind.OFFER, 3)]


def test_timer_of_an_offer_is_not_ended_by_the_retry_that_made_it() -> None:
    execution = make_execution(1, ActivityOptions(schedule_to_start_us=50))
    turn = Turn(execution, 100, Limits())
    turn.dispatched, turn.ended_timers = [1], [1]
    place_activities(turn, "one", lambda _event: False)

    assert turn.ended_timers == []


@pytest.mark.parametrize(("now", "timeout"), [(150, TimeoutKind.SCHEDULE_TO_START), (170, TimeoutKind.SCHEDULE_TO_CLOSE)])
def test_offer_that_waited_too_long_is_over(now: int, timeout: TimeoutKind) -> None:
    execution = make_execution(1, ActivityOptions(schedule_to_start_us=50, schedule_to_close_us=70))
    dispatch(execution, 1, keep=set())

    event = decide_offer_due(Turn(execution, now, Limits()), envelopes.OfferDue(number=1, attempt=1))
    assert event == events.ActivityTimedOut(number=1, timeout=timeout, attempt=1)


def test_stale_timer_of_an_offer_goes_and_changes_nothing() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    turn = Turn(execution, 150, Limits())

    assert decide_offer_due(turn, envelopes.OfferDue(number=1, attempt=1)) is None
    assert (turn.ended_timers, turn.changed) == ([1], True)


def test_stale_timer_of_an_offer_does_not_take_the_retrys() -> None:
    execution = make_execution(1)
    execution.running.clear()
    execution.details.attempts = {1: AttemptState(attempt=2, retry_at=500)}
    turn = Turn(execution, 150, Limits())

    assert decide_offer_due(turn, envelopes.OfferDue(number=1, attempt=1)) is None
    assert (turn.ended_timers, turn.changed) == ([], False)


# --- losing ---


def lose(execution: Execution, *, has_left: bool = False, node: str = "one") -> AttemptState:
    turn = Turn(execution, 200, Limits())
    decide_redispatch(turn, envelopes.Redispatch(node=node, has_left=has_left))
    place_activities(turn, node)
    return execution.attempt_of(1)


def test_first_losses_count_whatever_happened() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)

    assert [lose(execution).lost for _ in range(SUSPECT)] == list(range(1, SUSPECT + 1))


def test_suspect_that_had_not_begun_is_not_to_blame() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    attempts = [lose(execution) for _ in range(SUSPECT + 5)]

    attempt = attempts[-1]
    assert attempt.lost == SUSPECT
    assert attempt.attempt == 1 + SUSPECT + 5, "late results are refused all the same"


def test_suspect_that_had_begun_is_to_blame() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    for _ in range(SUSPECT):
        lose(execution)
    turn = Turn(execution, 200, Limits())
    decide_began(turn, envelopes.ActivityBegan(number=1, attempt=execution.attempt_of(1).attempt))

    assert turn.answers == {0: Acknowledged(True)}
    attempt = lose(execution)
    assert (attempt.lost, attempt.begun) == (SUSPECT + 1, False)


def begin_suspect(execution: Execution) -> int:
    """Let its first activity become a suspect that has begun; the number of the attempt."""
    for _ in range(SUSPECT):
        lose(execution)
    attempt = execution.attempt_of(1).attempt
    decide_began(Turn(execution, 200, Limits()), envelopes.ActivityBegan(number=1, attempt=attempt))
    return attempt


def test_suspect_whose_outcome_has_arrived_is_not_to_blame() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    attempt = begin_suspect(execution)

    assert clear_ended_suspects(execution, [envelopes.ActivityReturned(number=1, attempt=attempt, result=NULL)])
    assert lose(execution).lost == SUSPECT


def test_suspect_whose_function_may_still_run_is_to_blame() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    attempt = begin_suspect(execution)
    stale = envelopes.ActivityReturned(number=1, attempt=attempt - 1, result=NULL)
    expired = envelopes.ActivityExpired(number=1, attempt=attempt, timeout=TimeoutKind.START_TO_CLOSE)

    assert not clear_ended_suspects(execution, [stale, expired])
    assert lose(execution).lost == SUSPECT + 1


def test_node_that_said_goodbye_lost_nothing() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)

    assert lose(execution, has_left=True) == AttemptState(attempt=2)


def test_stale_beginning_is_refused() -> None:
    execution = make_execution(1)
    dispatch(execution, 1)
    turn = Turn(execution, 200, Limits())
    decide_began(turn, envelopes.ActivityBegan(number=1, attempt=7))

    assert (turn.answers, turn.changed) == ({0: Acknowledged(False)}, False)
    assert execution.attempt_of(1) is FIRST_ATTEMPT


@pytest.mark.parametrize("attempt", [0, 2])
def test_offer_of_another_attempt_is_not_redispatched(attempt: int) -> None:
    execution = make_execution(1)
    dispatch(execution, 1, keep=set())
    turn = Turn(execution, 200, Limits())
    decide_redispatch(turn, envelopes.Redispatch(node="two", number=1, attempt=attempt))

    assert (turn.dispatched, turn.changed) == ([], False)


def test_node_that_is_gone_takes_no_offers_along() -> None:
    execution = make_execution(2)
    dispatch(execution, 1, 2, keep={1})
    turn = Turn(execution, 200, Limits())
    decide_redispatch(turn, envelopes.Redispatch(node="one"))

    assert turn.dispatched == [1]


def test_task_tells_how_often_it_was_lost_and_whether_it_is_offered() -> None:
    execution = make_execution(1)
    dispatch(execution, 1, keep=set())
    turn = Turn(execution, 200, Limits())
    decide_redispatch(turn, envelopes.Redispatch(node="two", number=1, attempt=1))
    place_activities(turn, "one", lambda _event: False)

    task = make_task(execution, 1, "route")
    assert (task.attempt, task.lost, task.route, task.is_offered) == (2, 1, "route", True)


# --- many at once ---


def measure_take_over(count: int, *, are_kept: bool) -> float:
    """Processor seconds in which a node takes over what another ran of one execution."""
    execution = make_execution(count, ActivityOptions(schedule_to_close_us=1_000_000))
    dispatch(execution, *range(1, count + 1))
    turn = Turn(execution, 200, Limits())
    began = time.process_time()
    decide_redispatch(turn, envelopes.Redispatch(node="one"))
    decide_redispatch(turn, envelopes.Redispatch(node="one"))
    place_activities(turn, "two", partial(answer, are_kept))
    spent = time.process_time() - began
    assert len(turn.dispatched if are_kept else turn.offered) == count
    return spent


@pytest.mark.parametrize("are_kept", [True, False])
def test_N1_take_over_of_many_activities_of_one_execution_takes_linear_time(*, are_kept: bool) -> None:
    ratio = min(measure_take_over(8_000, are_kept=are_kept) / measure_take_over(500, are_kept=are_kept) for _ in range(3))

    assert ratio < 64, "16 times as many; it would be 256 times the work if each looked at all"
