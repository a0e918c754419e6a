"""The timer of a human task: one from before its dates were changed is stale, and leaves the timer of the next date."""

from __future__ import annotations

from holdfast.core import codec, commands, envelopes, events
from holdfast.core.effects import TimerSet, Turn
from holdfast.core.envelopes import TimerDue
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.turn import take_turn
from tests.core.test_turn import NOW, START, Script, commit

DUE, LATER = NOW + 10, NOW + 1_000


def create(due: Instant | None, escalate_at: Instant | None = None) -> tuple[Execution, Script]:
    """An execution that waits for a human task with these dates."""
    task = commands.CreateTask(number=1, name="ask", due=due, escalate_at=escalate_at, escalate_to=("managers",))
    execution, program = Execution.register("default", START, NOW), Script([task])
    commit(take_turn(execution, program, [START], NOW))
    return execution, program


def tell(execution: Execution, program: Script, envelope: TimerDue, at: Instant) -> Turn:
    return commit(take_turn(execution, program, [envelope], at))


def test_T3_a_timer_of_a_task_without_dates_is_ignored_and_its_row_goes() -> None:
    for envelope in (TimerDue(number=1, due=DUE), TimerDue(number=1)):
        turn = tell(*create(None), envelope, DUE)

        assert turn.events == []
        assert turn.ended_timers == [1]
        assert turn.writes


def test_T3_a_timer_from_before_a_change_is_ignored_and_the_next_date_stays() -> None:
    turn = tell(*create(LATER), TimerDue(number=1, due=DUE), DUE)

    assert turn.events == []
    assert turn.task_changes == []
    assert (turn.started_timers, turn.ended_timers) == ([TimerSet(1, LATER)], [])
    assert turn.writes


def test_H2_each_date_is_told_once_when_its_own_timer_is_due() -> None:
    execution, program = create(DUE, LATER)

    overdue = tell(execution, program, TimerDue(number=1, due=DUE), DUE)
    repeated = tell(execution, program, TimerDue(number=1, due=DUE), DUE)
    escalated = tell(execution, program, TimerDue(number=1, due=LATER), LATER)

    assert overdue.events == [events.TaskReminded(number=1, overdue=True)]
    assert (repeated.events, repeated.started_timers) == ([], [TimerSet(1, LATER)])
    assert escalated.events == [events.TaskReminded(number=1, escalated=True)]
    assert escalated.ended_timers == [1]


def test_H2_a_timer_whose_due_time_is_not_known_is_about_the_next_date() -> None:
    turn = tell(*create(DUE), TimerDue(number=1), DUE)

    assert turn.events == [events.TaskReminded(number=1, overdue=True)]


def test_a_due_timer_without_a_time_is_stored_as_before() -> None:
    assert codec.encode(TimerDue(number=1)) == b'{"type":"timer_due","number":1}'
    assert codec.decode_envelope(b'{"type":"timer_due","number":1}') == envelopes.TimerDue(number=1)
