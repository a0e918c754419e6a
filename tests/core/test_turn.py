"""The turn: every message has its place in the tables, and stale ones change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from holdfast.core import commands, envelopes, events
from holdfast.core.activities import find_deadline
from holdfast.core.commands import AnyCommand
from holdfast.core.effects import (
    ACCEPTED,
    Checked,
    Limits,
    Refused,
    SignalRecorded,
    TimerKind,
    TimerSet,
    Turn,
    make_task,
)
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.events import CLOSING, GIVEN, RECORDED, Given, HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.lifecycle import Status
from holdfast.core.options import ActivityOptions, TimeoutKind
from holdfast.core.payloads import NULL, Payload
from holdfast.core.placing import place_activities
from holdfast.core.program import Step
from holdfast.core.retry import RetryPolicy
from holdfast.core.turn import DECIDE, EVOLVE, RECORD, WITHOUT_EFFECT, fold, hold, take_turn

NOW = 1_000_000_000
START = envelopes.Start(execution_id="e", workflow_id="w", workflow="order", input=NULL)
NO = Failure(type="ValueError", message="no")


class Script:
    """A program that asks for what it was told, one list of commands per event."""

    definition = None
    code_version = ""
    snapshot_schema = 0
    weight = None

    def __init__(self, *steps: Sequence[AnyCommand]) -> None:
        self._steps = list(steps)
        self.given: list[Given] = []

    def advance(self, event: Given, _now: int) -> Step:
        self.given.append(event)
        return Step(self._steps.pop(0) if self._steps else ())

    def apply(self, _turns: Iterable[HistoryTurn]) -> None: ...

    def untaken_signals(self) -> tuple[commands.UntakenSignal, ...]:
        return ()

    def check_update(self, _update: envelopes.Update) -> Checked:
        return ACCEPTED

    def check_form(self, _number: int, _form: Payload) -> Checked:
        return ACCEPTED

    def answer_query(self, name: str, args: Payload) -> Payload:
        raise NotImplementedError

    def update_names(self) -> tuple[str, ...]:
        return ()

    def waiting_signals(self) -> tuple[str, ...]:
        return ()

    def find_waits(self) -> None: ...

    def take_snapshot(self) -> None: ...

    def restore_snapshot(self, _body: bytes, _schema: int) -> bool:
        return False

    def close(self) -> None: ...


def start(*steps: Sequence[AnyCommand]) -> tuple[Execution, Script]:
    """An execution after its first turn."""
    execution, program = Execution.register("default", START, NOW), Script(*steps)
    commit(take_turn(execution, program, [START], NOW))
    return execution, program


def commit(turn: Turn, node: str = "node") -> Turn:
    turn.execution.sequence += len(turn.events)
    turn.execution.state_version += 1
    place_activities(turn, node)
    return turn


def names(turn: Turn) -> list[str]:
    return [type(event).__name__ for event in turn.events]


RUN = commands.RunActivity(number=1, name="charge", input=NULL)
ONE_RETRY = ActivityOptions(retry=RetryPolicy(max_attempts=2, initial_us=5_000_000, jitter=0.0))
RUN_TWICE = commands.RunActivity(number=1, name="charge", input=NULL, options=ONE_RETRY)

# --- the tables ---


def test_every_envelope_has_a_decision() -> None:
    assert set(DECIDE) == set(envelopes.AnyEnvelope.__args__)


def test_every_command_but_block_has_a_record() -> None:
    assert set(RECORD) == set(commands.AnyCommand.__args__) - {commands.Block}


def test_every_event_evolves_or_is_known_to_change_nothing() -> None:
    assert set(EVOLVE) | WITHOUT_EFFECT == GIVEN | RECORDED
    assert set(EVOLVE) & WITHOUT_EFFECT == set()


def test_event_is_either_given_or_recorded() -> None:
    assert set() == GIVEN & RECORDED
    assert set(events.AnyEvent.__args__) == GIVEN | RECORDED
    assert CLOSING <= RECORDED


# --- what a turn gathers ---


def test_first_turn_records_the_start_and_what_the_program_asked_for() -> None:
    execution, program = Execution.register("default", START, NOW), Script([RUN])

    turn = take_turn(execution, program, [START], NOW)

    assert names(turn) == ["WorkflowStarted", "ActivityScheduled"]
    assert turn.dispatched == [1]
    assert execution.status is Status.RUNNING


def test_events_are_given_one_at_a_time_in_the_order_of_arrival() -> None:
    execution, program = start()
    arrived = [envelopes.Signal(name=name, value=NULL) for name in ("a", "b", "a")]

    turn = take_turn(execution, program, arrived, NOW)

    assert [event.name for event in program.given if isinstance(event, events.SignalReceived)] == ["a", "b", "a"]
    assert turn.answers == {0: SignalRecorded(2), 1: SignalRecorded(3), 2: SignalRecorded(4)}


def test_turn_that_may_not_go_on_leaves_the_rest_for_the_next() -> None:
    execution, program = start()
    signals = [envelopes.Signal(name=name, value=NULL) for name in ("one", "two", "three")]

    turn = take_turn(execution, program, signals, NOW, may_go_on=lambda handled, _: handled < 2)

    assert turn.handled == 2
    assert names(turn) == ["SignalReceived", "SignalReceived"]
    assert sorted(turn.answers) == [0, 1]


def test_turn_that_handled_all_has_nothing_left_though_it_may_not_go_on() -> None:
    execution, program = start()

    turn = take_turn(execution, program, [envelopes.Signal(name="one", value=NULL)], NOW, may_go_on=lambda *_: False)

    assert turn.handled is None


def test_turn_that_closes_its_execution_leaves_nothing_for_another() -> None:
    execution, program = start([], [commands.Complete(result=NULL)])
    signals = [envelopes.Signal(name=name, value=NULL) for name in ("one", "two")]

    turn = take_turn(execution, program, signals, NOW, may_go_on=lambda *_: False)

    assert turn.handled is None
    assert turn.has_unseen, "the second was accepted, and is to be given before the end"


def test_time_never_goes_back_within_an_execution() -> None:
    execution, program = start()

    turn = take_turn(execution, program, [envelopes.Signal(name="a", value=NULL)], NOW - 5)

    assert turn.now == NOW


# --- the clock was set back ---

BACK = 900_000_000


def set_back(*steps: Sequence[AnyCommand]) -> tuple[Execution, Script, Turn]:
    """An execution that carries out steps for the first time after the clock was set back by an hour."""
    execution, program = start((), *steps)
    turn = commit(take_turn(execution, program, [envelopes.Signal(name="a", value=NULL)], NOW - BACK))
    return execution, program, turn


def test_T6_length_of_time_counts_from_what_the_clock_shows() -> None:
    execution, program, turn = set_back([commands.StartTimer(number=1, due=NOW + 500)])

    assert turn.started_timers == [TimerSet(1, NOW - BACK + 500)]
    assert turn.events[-1] == events.TimerStarted(number=1, due=NOW + 500), "by the time of the execution"

    fired = take_turn(execution, program, [envelopes.TimerDue(number=1)], NOW - BACK + 500)
    assert (names(fired), fired.now) == (["TimerFired"], NOW + 500), "nor is it earlier after the sleep than it was to last"


def test_T6_date_is_reached_when_the_clock_shows_it() -> None:
    _, _, turn = set_back([commands.StartTimer(number=1, due=NOW + 500, is_date=True)])

    assert turn.started_timers == [TimerSet(1, NOW + 500)]


def test_T6_timer_that_is_rounded_up_is_due_at_a_round_time_of_the_clock() -> None:
    execution, program = start((), [commands.StartTimer(number=1, due=NOW + 500)])
    signal = envelopes.Signal(name="a", value=NULL)

    turn = take_turn(execution, program, [signal], NOW - BACK - 7, Limits(timer_resolution=1_000))

    (timer,) = turn.started_timers
    assert timer.due % 1_000 == 0
    assert 0 <= timer.due - (NOW - BACK - 7 + 500) < 1_000


def test_T6_retry_waits_from_what_the_clock_shows() -> None:
    execution, program = start([RUN_TWICE])
    raised = envelopes.ActivityRaised(number=1, attempt=1, failure=NO)

    turn = take_turn(execution, program, [raised], NOW - BACK)

    assert turn.started_timers == [TimerSet(1, NOW - BACK + 5_000_000, TimerKind.RETRY, 2)]


def test_T6_deadline_counts_from_what_the_clock_shows_also_after_a_restart() -> None:
    timed = commands.RunActivity(number=1, name="charge", input=NULL, options=ActivityOptions(schedule_to_close_us=10))
    execution, _, turn = set_back([timed])
    assert find_deadline(execution.activities[1]) == NOW - BACK + 10

    loaded = Execution.register("default", START, NOW)
    fold(loaded, [HistoryTurn(1, turn.now, tuple(turn.events))], NOW - BACK + 7)

    assert find_deadline(loaded.activities[1]) == NOW - BACK + 17, "it counts from when it was found"


def test_block_ends_the_turn_at_once() -> None:
    execution, program = start()
    program._steps = [[commands.Block(error=NO)]]

    turn = take_turn(execution, program, [envelopes.Signal(name="a", value=NULL)] * 2, NOW)

    assert turn.blocked is NO
    assert len(program.given) == 2


def test_cancel_before_the_first_turn_runs_no_code() -> None:
    execution, program = Execution.register("default", START, NOW), Script()

    take_turn(execution, program, [START, envelopes.Cancel()], NOW)

    assert isinstance(program.given[0], events.WorkflowStarted)
    assert program.given[0].cancelled


@pytest.mark.parametrize("others", [[], [envelopes.Cancel(reason="too")]], ids=["alone", "with a cancel"])
def test_terminate_before_the_first_turn_runs_no_code(others: list[AnyEnvelope]) -> None:
    execution, program = Execution.register("default", START, NOW), Script()

    turn = take_turn(execution, program, [START, envelopes.Terminate(reason="enough"), *others], NOW)

    assert [(type(event), getattr(event, "held", None)) for event in turn.events] == [
        (events.WorkflowStarted, True),
        (events.WorkflowTerminated, None),
    ]
    assert execution.status is Status.TERMINATED


def test_what_is_open_is_folded_from_history() -> None:
    execution, _ = start(
        [RUN, commands.StartTimer(number=2, due=9), commands.StartChild(number=3, workflow="c", input=NULL)],
    )
    turns = [
        HistoryTurn(1, NOW, (*_started(execution), events.SignalReceived(name="a", value=NULL))),
        HistoryTurn(9, NOW + 1, (events.TimerFired(number=2), events.ActivityCompleted(number=1, result=NULL))),
    ]
    loaded = Execution.register("default", START, NOW)
    loaded.details.signals = 1

    fold(loaded, turns)

    assert (loaded.activities, loaded.running, loaded.timers, set(loaded.children)) == ({}, set(), {}, {3})
    assert loaded.details.signals == 1


def _started(execution: Execution) -> tuple[events.AnyEvent, ...]:
    return (
        events.WorkflowStarted(workflow="order", workflow_id="w", input=NULL),
        execution.activities[1].event,
        events.TimerStarted(number=2, due=9),
        execution.children[3],
    )


# --- stale envelopes ---

STALE: list[AnyEnvelope] = [
    envelopes.ActivityReturned(number=1, attempt=2, result=NULL),
    envelopes.ActivityReturned(number=9, attempt=1, result=NULL),
    envelopes.ActivityRaised(number=1, attempt=2, failure=NO),
    envelopes.ActivityExpired(number=1, attempt=2, timeout=TimeoutKind.HEARTBEAT),
    envelopes.ActivityStopped(number=1, attempt=2),
    envelopes.ActivityBeat(number=1, attempt=2, details=NULL),
    envelopes.Redispatch(node="another"),
    envelopes.ChildClosed(number=9, execution_id="x", result=NULL),
    envelopes.SignalAnswered(number=9),
]


@pytest.mark.parametrize("envelope", STALE, ids=lambda one: type(one).__name__)
def test_stale_envelope_changes_nothing(envelope: AnyEnvelope) -> None:
    execution, program = start([RUN])

    turn = take_turn(execution, program, [envelope], NOW)

    assert turn.events == []
    assert not turn.writes
    assert len(program.given) == 1


@pytest.mark.parametrize("envelope", [envelopes.TimerDue(number=9), envelopes.RetryDue(number=9, attempt=2)])
def test_T3_stale_timer_is_ignored_and_its_row_goes(envelope: AnyEnvelope) -> None:
    execution, program = start([RUN])

    turn = take_turn(execution, program, [envelope], NOW)

    assert turn.events == []
    assert turn.ended_timers == [9]
    assert turn.writes


def test_stale_retry_leaves_the_timer_of_the_present_one() -> None:
    execution, program = start([RUN_TWICE])
    commit(take_turn(execution, program, [envelopes.ActivityRaised(number=1, attempt=1, failure=NO)], NOW))

    turn = take_turn(execution, program, [envelopes.RetryDue(number=1, attempt=1)], NOW)

    assert turn.ended_timers == []


# --- retries ---


def test_A2_failure_waits_in_a_durable_timer() -> None:
    execution, program = start([RUN_TWICE])

    turn = commit(take_turn(execution, program, [envelopes.ActivityRaised(number=1, attempt=1, failure=NO)], NOW))

    assert turn.events == []
    assert turn.started_timers == [TimerSet(1, NOW + 5_000_000, TimerKind.RETRY, 2)]
    assert execution.status is Status.SUSPENDED
    assert execution.nodes == ()


def test_A2_last_failure_is_an_event() -> None:
    execution, program = start([RUN_TWICE])
    commit(take_turn(execution, program, [envelopes.ActivityRaised(number=1, attempt=1, failure=NO)], NOW))
    commit(take_turn(execution, program, [envelopes.RetryDue(number=1, attempt=2)], NOW))

    turn = take_turn(execution, program, [envelopes.ActivityRaised(number=1, attempt=2, failure=NO)], NOW)

    assert [(type(one), one.attempt) for one in turn.events if isinstance(one, events.ActivityFailed)] == [
        (events.ActivityFailed, 2)
    ]


def test_attempts_of_one_execution_are_not_those_of_another() -> None:
    one, program = start([RUN_TWICE])
    other, _ = start([RUN_TWICE])

    take_turn(one, program, [envelopes.ActivityRaised(number=1, attempt=1, failure=NO)], NOW)

    assert other.details.attempts == {}


# --- taking over ---


def test_taken_over_activity_begins_a_new_attempt_that_counts_as_no_failure() -> None:
    execution, program = start([RUN])

    turn = commit(take_turn(execution, program, [envelopes.Redispatch(node="node")], NOW), "heir")

    assert turn.dispatched == [1]
    assert (make_task(execution, 1).attempt, execution.attempt_of(1).failures, execution.nodes) == (2, 0, ("heir",))


def test_node_that_is_gone_twice_over_is_taken_over_once() -> None:
    execution, program = start([RUN])

    turn = commit(take_turn(execution, program, [envelopes.Redispatch(node="node")] * 2, NOW), "heir")

    assert turn.dispatched == [1]
    assert make_task(execution, 1).attempt == 2


def test_activity_that_is_taken_over_and_cancelled_in_one_turn_does_not_run() -> None:
    execution, program = start([RUN], [commands.CancelActivity(number=1)])

    turn = take_turn(execution, program, [envelopes.Redispatch(node="node"), envelopes.Cancel()], NOW)

    assert turn.dispatched == []


def test_activity_that_is_scheduled_and_withdrawn_in_one_turn_does_not_run() -> None:
    execution, program = start((), [RUN], [commands.CancelActivity(number=1)])

    turn = take_turn(execution, program, [envelopes.Signal(name="a", value=NULL)] * 2, NOW)

    assert names(turn) == ["SignalReceived", "ActivityScheduled", "SignalReceived", "ActivityCancelRequested"]
    assert turn.dispatched == []


# --- closing ---


def test_closing_ends_every_timer_and_stops_every_activity() -> None:
    execution, program = start(
        [RUN_TWICE, commands.RunActivity(number=2, name="ship", input=NULL), commands.StartTimer(number=3, due=NOW + 9)]
    )
    commit(take_turn(execution, program, [envelopes.ActivityRaised(number=1, attempt=1, failure=NO)], NOW))

    turn = take_turn(execution, program, [envelopes.Terminate()], NOW)

    assert sorted(turn.ended_timers) == [1, 3]
    assert turn.stopped == [2]
    assert names(turn) == ["WorkflowTerminated"]
    assert execution.status is Status.TERMINATED


# --- the resolution of timers ---


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        (NOW + 1, NOW + 1_000),
        (NOW + 1_000, NOW + 1_000),
        (NOW + 1_001, NOW + 2_000),
        (NOW, NOW),
        (NOW - 5, NOW - 5),
    ],
)
def test_due_times_are_rounded_up_to_the_resolution_of_timers_unless_they_have_passed(due: int, expected: int) -> None:
    execution = Execution.register("default", START, NOW)
    program = Script([commands.StartTimer(number=1, due=due)])

    turn = take_turn(execution, program, [START], NOW, Limits(timer_resolution=1_000))

    assert [timer.due for timer in turn.started_timers] == [expected]
    assert turn.events[-1] == events.TimerStarted(number=1, due=expected)
    assert execution.timers == {1: expected}


def test_S7_held_signals_are_recorded_without_a_word_of_the_program() -> None:
    execution, program = start()
    arrived = [envelopes.Signal(name="x", value=NULL), envelopes.Signal(name="y", value=NULL)]

    turn = commit(hold(execution, program, arrived, NOW, Limits(max_signals=1)))

    assert [type(event).__name__ for event in turn.events] == ["SignalReceived"]
    assert turn.events[0] == events.SignalReceived(name="x", value=NULL, held=True)
    assert (type(turn.answers[0]), type(turn.answers[1])) == (SignalRecorded, Refused)
