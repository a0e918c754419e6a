"""What an activity is asked to do is part of its key and of its results, for executions that began so."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core import behaviours, codec, commands, envelopes, events
from holdfast.core.effects import ActivityTask, make_task
from holdfast.core.events import HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.options import TimeoutKind
from holdfast.core.payloads import NULL, Payload
from holdfast.core.placing import place_activities
from holdfast.core.turn import fold, take_turn
from tests.core.test_turn import NOW, START, Script

PAY_ANN = commands.RunActivity(number=1, name="pay", input=Payload(msgspec.Raw(b'["Ann",100]')))
PAY_BOB = commands.RunActivity(number=1, name="pay", input=Payload(msgspec.Raw(b'["Bob",7]')))
REFUND_ANN = commands.RunActivity(number=1, name="refund", input=PAY_ANN.input)


def begin(command: commands.RunActivity) -> tuple[Execution, tuple[events.AnyEvent, ...]]:
    """An execution that asked for this activity, always under the same ids: as in two pasts of one database."""
    execution = Execution.register("default", START, NOW)
    turn = take_turn(execution, Script([command]), [START], NOW)
    place_activities(turn, "node")
    return execution, tuple(turn.events)


def ask_for(command: commands.RunActivity) -> ActivityTask:
    return make_task(begin(command)[0], 1)


def test_A1_key_of_an_activity_stands_for_one_work_only() -> None:
    keys = {ask_for(command).idempotency_key for command in (PAY_ANN, PAY_BOB, REFUND_ANN)}

    assert len(keys) == 3
    assert ask_for(PAY_ANN).idempotency_key in keys


def test_A1_key_is_the_same_after_a_replay_and_for_later_attempts() -> None:
    execution, history = begin(PAY_ANN)
    loaded = Execution.register("default", START, NOW)
    fold(loaded, [HistoryTurn(1, NOW, codec.decode_events(codec.encode(history), codec.SCHEMA))])
    loaded.nodes = ("node",)
    turn = take_turn(loaded, Script(), [envelopes.Redispatch(node="node")], NOW)

    assert turn.dispatched == [1]
    assert make_task(loaded, 1).attempt == 2
    assert make_task(loaded, 1).idempotency_key == make_task(execution, 1).idempotency_key


def test_A1_key_of_an_activity_on_offer_is_that_of_its_execution() -> None:
    task = ask_for(PAY_ANN)

    assert codec.decode_task(codec.encode_task(task)).idempotency_key == task.idempotency_key


def test_execution_that_began_without_digests_keeps_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behaviours, "PRESENT", ())
    _, history = begin(PAY_ANN)
    monkeypatch.undo()

    loaded = Execution.register("default", START, NOW)
    fold(loaded, [HistoryTurn(1, NOW, history)])
    task = make_task(loaded, 1)

    assert task.idempotency_key == "e/1"
    assert b"work" not in codec.encode_task(task)[codec.encode_task(task).index(b"attempt") :]


@pytest.mark.parametrize(
    "make",
    [
        lambda work: envelopes.ActivityReturned(number=1, attempt=1, work=work, result=NULL),
        lambda work: envelopes.ActivityReturned(number=1, attempt=1, work=work, result=NULL, committed=True),
        lambda work: envelopes.ActivityRaised(
            number=1, attempt=1, work=work, failure=Failure(type="No", message="no", non_retryable=True)
        ),
        lambda work: envelopes.ActivityExpired(number=1, attempt=1, work=work, timeout=TimeoutKind.SCHEDULE_TO_CLOSE),
        lambda work: envelopes.ActivityStopped(number=1, attempt=1, work=work),
        lambda work: envelopes.ActivityBeat(number=1, attempt=1, work=work, details=NULL),
    ],
    ids=["returned", "committed", "raised", "expired", "stopped", "beat"],
)
def test_A1_outcome_of_other_work_under_the_same_number_is_stale(make: object) -> None:
    assert callable(make)
    execution, _ = begin(PAY_BOB)

    stale = take_turn(execution, Script(), [make(ask_for(PAY_ANN).work)], NOW)
    assert not stale.writes

    own = take_turn(execution, Script(), [make(ask_for(PAY_BOB).work)], NOW)
    assert own.writes


def test_A1_outcome_that_names_no_work_counts_as_before() -> None:
    execution, _ = begin(PAY_BOB)

    turn = take_turn(execution, Script(), [envelopes.ActivityReturned(number=1, attempt=1, result=NULL)], NOW)

    assert [type(event) for event in turn.events] == [events.ActivityCompleted]


def test_A1_attempt_that_a_turn_gives_out_cannot_have_reported_in_it() -> None:
    execution, _ = begin(PAY_BOB)
    execution.nodes = ("gone",)
    late = envelopes.ActivityReturned(number=1, attempt=2, work=ask_for(PAY_BOB).work, result=NULL)

    turn = take_turn(execution, Script(), [envelopes.Redispatch(node="gone"), late], NOW)
    place_activities(turn, "node", lambda _event: False)

    assert turn.events == []
    assert turn.offered == [1]
