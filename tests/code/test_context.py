"""The context: every method asks for what it says, gives what it promises, and refuses what cannot be right."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import (
    ActivityCancelled,
    ActivityFailed,
    ActivityTimedOut,
    ApplicationFailure,
    ChildWorkflowFailed,
    Context,
    ExternalSignalFailed,
    Retry,
    activity,
    workflow,
)
from holdfast.core import envelopes, events
from holdfast.core.failures import Failure
from holdfast.core.options import ParentClose, TimeoutKind
from holdfast.core.parents import Parent
from holdfast.core.payloads import NULL
from holdfast.errors import SideEffectFailed
from tests.code.playing import BEGIN, EXECUTION_ID, Play, make_signal


@activity
async def add(left: int, right: int = 1) -> int:
    return left + right


@workflow
async def child(ctx: Context, name: str) -> str:
    return name


def find(story: Play, kind: type[Any]) -> Any:
    """The last event of a kind."""
    return [event for event in story.events if type(event) is kind][-1]


# --- activities ---


def test_run_asks_for_the_activity_with_its_arguments() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        return await ctx.run(add, 1, right=2)

    play = Play(story)
    scheduled = find(play, events.ActivityScheduled)
    play.complete(1, 3)

    assert (scheduled.name, bytes(scheduled.input.data)) == ("add", b"[1,2]")
    assert play.result == 3


def test_run_asks_when_it_is_called_and_not_when_it_is_awaited() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        first, second = ctx.run(add, 1), ctx.run(add, 2)
        return await second - await first

    play = Play(story)

    assert play.kinds == ["WorkflowStarted", "ActivityScheduled", "ActivityScheduled"]


def test_A2_options_of_one_call_override_those_of_the_activity() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        patient = add.with_options(retry=Retry(max_attempts=9), queue="slow", start_to_close=60, heartbeat=5)
        return await ctx.run(patient, 1)

    options = find(Play(story), events.ActivityScheduled).options

    assert (options.retry.max_attempts, options.queue) == (9, "slow")
    assert (options.start_to_close_us, options.heartbeat_us, options.schedule_to_start_us) == (60_000_000, 5_000_000, None)
    assert add.options.retry.max_attempts is None


def test_run_by_name_gives_plain_json() -> None:
    @workflow
    async def story(ctx: Context) -> Any:
        return await ctx.run("elsewhere", 1, {"a": 2})

    play = Play(story)
    assert bytes(find(play, events.ActivityScheduled).input.data) == b'[1,{"a":2}]'
    play.complete(1, {"b": [3]})

    assert play.result == {"b": [3]}


@pytest.mark.parametrize(
    ("ending", "kind", "fields"),
    [
        (
            envelopes.ActivityRaised(
                number=1, attempt=1, failure=Failure(type="Declined", message="no", details=NULL, non_retryable=True)
            ),
            ActivityFailed,
            {"type": "Declined", "name": "activity 'add'", "attempt": 1},
        ),
        (
            envelopes.ActivityExpired(number=1, attempt=1, timeout=TimeoutKind.SCHEDULE_TO_CLOSE),
            ActivityTimedOut,
            {"type": "schedule_to_close", "attempt": 1},
        ),
        (envelopes.ActivityStopped(number=1, attempt=1), ActivityCancelled, {"type": "CancelledError"}),
    ],
)
def test_A1_each_ending_reaches_the_workflow_as_its_own_exception_and_again_on_replay(
    ending: envelopes.AnyEnvelope, kind: type[Any], fields: dict[str, Any]
) -> None:
    caught: list[Exception] = []

    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.run(add, 1)
        except (ActivityFailed, ActivityTimedOut, ActivityCancelled) as error:
            caught.append(error)
            return type(error).__name__
        return "succeeded"

    play = Play(story)
    play.tell(ending)

    assert play.replay() is None
    assert [type(one) for one in caught] == [kind, kind]
    assert str(caught[0]) == str(caught[1])
    assert str(caught[0]).startswith("Expected activity 'add' to ")
    assert {name: getattr(caught[1], name) for name in fields} == fields


def test_result_that_does_not_fit_the_hint_is_an_error_in_the_workflow() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.run(add, 1)
        except Exception as error:
            return str(error)
        return "fits"

    play = Play(story)
    play.complete(1, "three")

    assert play.result.startswith("Expected the result of activity 'add' to be int, but expected `int`, got `str`")
    assert play.replay() is None


# --- children ---


def test_child_has_an_id_that_the_parent_knows_at_once() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        one, other = ctx.start_child(child, "a"), ctx.start_child(child, "b", workflow_id="chosen")
        return [one.workflow_id, one.execution_id, other.workflow_id, other.execution_id]

    play = Play(story)
    started = [event for event in play.events if isinstance(event, events.ChildStarted)]

    assert play.result == [one for event in started for one in (event.workflow_id, event.execution_id)]
    assert started[0].workflow_id == started[0].execution_id
    assert started[1].workflow_id == "chosen"
    assert play.replay() is None


def test_C1_child_that_is_started_is_independent_and_one_that_is_run_is_cancelled_with_its_parent() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        _kept = [
            ctx.start_child(child, "a"),
            ctx.run_child(child, "b"),
            ctx.start_child(child, "c", parent_close="terminate"),
        ]
        await ctx.wait_for_signal("go")

    play = Play(story)
    policies = [event.policy for event in play.events if isinstance(event, events.ChildStarted)]
    play.sent.clear()
    play.signal("go")

    assert policies == [ParentClose.ABANDON, ParentClose.CANCEL, ParentClose.TERMINATE]
    assert [type(one) for one in play.sent] == [envelopes.Cancel, envelopes.Terminate]


def test_child_that_is_awaited_gives_its_result() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        handle = ctx.start_child(child, "a")
        return [await handle, await handle.result(), await ctx.run_child(child, "b")]

    play = Play(story)
    play.finish_child(1, "A")
    play.finish_child(2, "B")

    assert play.result == ["A", "A", "B"]


def test_child_can_be_signalled_and_cancelled() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        handle = ctx.start_child(child, "a", workflow_id="kid")
        await ctx.sleep(1)
        _sent = handle.signal("go", 7)
        assert handle.cancel()
        assert not handle.cancel()

    play = Play(story)
    play.fire()

    assert play.kinds[-3:] == ["ExternalSignalInitiated", "ChildCancelRequested", "WorkflowCompleted"]
    assert find(play, events.ExternalSignalInitiated).workflow_id == "kid"


def test_failure_of_a_child_can_be_caught() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        try:
            await ctx.run_child(child, "a")
        except ChildWorkflowFailed as error:
            return [error.type, error.details, error.name]
        return []

    play = Play(story)
    kid = play.execution.children[1].execution_id
    failure = Failure(type="Broken", message="it broke", details=NULL)
    play.tell(envelopes.ChildClosed(number=1, execution_id=kid, failure=failure))

    assert play.result == ["Broken", None, "child workflow 'child'"]
    assert play.replay() is None


# --- time ---


def test_now_is_the_time_of_the_event_that_is_handled() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        first = ctx.now()
        await ctx.sleep(timedelta(days=30))
        return [first.isoformat(), ctx.now().isoformat()]

    play = Play(story)
    play.fire()

    assert play.result == ["2025-06-15T15:06:40+00:00", "2025-07-15T15:06:40+00:00"]
    assert play.replay() is None


@pytest.mark.parametrize(("length", "due"), [(5, 5_000_000), (0.25, 250_000), (timedelta(hours=1), 3_600_000_000)])
def test_sleep_takes_seconds_and_timedeltas(length: Any, due: int) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.sleep(length)

    assert find(Play(story), events.TimerStarted).due == BEGIN + due


def test_T1_sleep_until_a_past_date_is_over_at_once() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        await ctx.sleep_until(datetime(1999, 1, 1, tzinfo=UTC))
        await ctx.sleep_until(ctx.now())
        await ctx.sleep(0)
        return "over"

    play = Play(story)

    assert play.result == "over"
    assert "TimerStarted" not in play.kinds


def test_sleep_until_waits_for_the_date() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        await ctx.sleep_until(datetime(2030, 1, 1, tzinfo=UTC))
        return ctx.now().isoformat()

    play = Play(story)
    play.fire()

    assert play.result == "2030-01-01T00:00:00+00:00"


# --- signals to others ---


def test_signal_to_another_workflow_is_answered() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        await ctx.signal_external_workflow("other", "go", {"a": 1})
        try:
            await ctx.signal_external_workflow("gone", "go")
        except ExternalSignalFailed as error:
            return [error.type, error.name]
        return []

    play = Play(story)
    play.tell(envelopes.SignalAnswered(number=1))
    play.tell(envelopes.SignalAnswered(number=2, failure=Failure(type="ExecutionClosed", message="closed")))

    assert play.result == ["ExecutionClosed", "signal 'go' to 'gone'"]
    assert play.replay() is None


# --- the rest ---


def test_side_effect_is_called_once_and_its_value_kept() -> None:
    calls: list[int] = []

    def count() -> dict[Any, Any]:
        calls.append(1)
        return {"n": len(calls), 1: "one"}

    @workflow
    async def story(ctx: Context) -> list[Any]:
        value = ctx.side_effect(count)
        await ctx.sleep(1)
        return [value, ctx.side_effect(lambda: len(calls))]

    play = Play(story)
    play.fire()

    assert play.result == [{"n": 1, "1": "one"}, 1]
    assert play.replay() is None
    assert calls == [1]


def test_R3_side_effect_that_raised_is_not_called_again_on_replay() -> None:
    calls: list[int] = []

    def fail_once() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("first time")
        return 1

    @workflow
    async def story(ctx: Context) -> str:
        try:
            ctx.side_effect(fail_once)
        except SideEffectFailed as error:
            return f"{error.type}: {error.message}"
        return "succeeded"

    play = Play(story)

    assert str(play.result).startswith("ValueError: ")
    assert "first time" in str(play.result)
    assert play.replay() is None
    assert calls == [1]


def test_side_effect_may_do_what_workflow_code_may_not() -> None:
    import time

    @workflow
    async def story(ctx: Context) -> bool:
        return ctx.side_effect(time.time) > 0

    assert Play(story).result is True


def test_continue_as_begins_anew_with_the_signals_that_were_not_taken() -> None:
    @workflow
    async def story(ctx: Context, count: int) -> None:
        await ctx.wait_for_signal("go")
        ctx.continue_as(count + 1)

    play = Play(story, 1)
    play.signal("other", "kept")
    turn = play.tell(make_signal("go"))

    continued = find(play, events.ContinuedAs)
    assert (continued.workflow, bytes(continued.input.data), play.execution.status) == ("story", b"[2]", "continued")
    assert [(one.name, bytes(one.value.data)) for one in turn.successor_envelopes if isinstance(one, envelopes.Signal)] == [
        ("other", b'"kept"')
    ]
    assert play.replay() is None


def test_S1_continue_as_carries_signals_of_all_names_in_the_order_of_their_arrival() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.wait_for_signal("go")
        ctx.continue_as()

    play = Play(story)
    for number, name in enumerate(("b", "a", "b")):
        play.signal(name, number)

    turn = play.tell(make_signal("go"))

    assert [one.name for one in turn.successor_envelopes if isinstance(one, envelopes.Signal)] == ["b", "a", "b"]


def test_continue_as_can_go_on_as_another_workflow() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        ctx.continue_as("next", workflow=child)

    assert find(Play(story), events.ContinuedAs).workflow == "child"


def test_state_is_shown_and_leaves_no_event() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        ctx.set_state({"step": 1})
        await ctx.sleep(1)
        ctx.set_state({"step": 2})
        await ctx.sleep(1)

    play = Play(story)
    play.fire()

    state = play.execution.details.state
    assert state is not None
    assert bytes(state.data) == b'{"step":2}'
    assert play.kinds == ["WorkflowStarted", "TimerStarted", "TimerFired", "TimerStarted"]
    assert play.replay() is None


def test_of_many_states_in_one_turn_only_the_last_is_kept_in_memory() -> None:
    kept: list[int] = []

    @workflow
    async def story(ctx: Context) -> None:
        for step in range(1_000):
            ctx.set_state({"step": step})
        kept.append(len(ctx._issuer.commands))
        await ctx.sleep(1)

    state = Play(story).execution.details.state

    assert kept == [0]
    assert state is not None
    assert bytes(state.data) == b'{"step":999}'


def test_random_numbers_and_ids_are_the_same_on_every_replay_and_differ_between_executions() -> None:
    seen: list[list[str]] = []

    @workflow
    async def story(ctx: Context) -> None:
        seen.append([str(ctx.random.random()), str(ctx.uuid4()), str(ctx.random.random()), str(ctx.uuid4())])

    play = Play(story)
    play.replay()
    Play(story, execution_id="0197745a-0000-7abc-8def-ffffffffffff")

    assert seen[0] == seen[1]
    assert len({*seen[0], *seen[2]}) == 8


def test_info_says_who_it_is() -> None:
    @workflow(version="7")
    async def story(ctx: Context) -> list[Any]:
        info = ctx.info
        return [info.org, info.workflow, info.workflow_id, info.execution_id, info.code_version, info.parent_execution_id]

    play = Play(story, code_version="7", parent=Parent("boss", 3))

    assert play.result == ["default", "story", "play", EXECUTION_ID, "7", "boss"]


def test_logger_speaks_once(caplog: pytest.LogCaptureFixture) -> None:
    replaying: list[bool] = []

    @workflow
    async def story(ctx: Context) -> None:
        ctx.logger.info("beginning %s", "now")
        replaying.append(ctx.is_replaying)
        await ctx.sleep(1)

    with caplog.at_level(logging.INFO):
        Play(story).replay()

    (record,) = caplog.records
    assert record.getMessage() == "[play] beginning now"
    assert (record.name, vars(record)["execution_id"]) == ("holdfast.workflow.story", EXECUTION_ID)
    assert replaying == [False, True]


def test_failure_of_the_workflow_keeps_its_type_and_details() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        raise ApplicationFailure("no stock", type="OutOfStock", details={"sku": 5})

    failure = Play(story).failure

    assert (failure.type, failure.message) == ("OutOfStock", "no stock")
    assert "test_context.py" in failure.trace


def test_result_that_json_cannot_hold_fails_the_workflow() -> None:
    @workflow
    async def story(ctx: Context) -> Any:
        return object()

    failure = Play(story).failure

    assert failure.type == "EncodingError"
    assert failure.message.startswith("Expected the result of workflow 'story' to be a value that JSON can hold, but ")
