"""A1, A2 and A6: how activities end, how often they are tried, and many at once."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from holdfast import (
    ActivityError,
    ActivityFailed,
    ActivityTimedOut,
    ApplicationFailure,
    Context,
    Retry,
    Status,
    activity,
    activity_info,
    workflow,
)
from holdfast.core import events
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually

ONCE = Retry(max_attempts=1)


# --- A1 ---


async def test_A1_first_result_counts_and_a_later_one_is_refused(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(start_to_close=5, retry=Retry(initial=1, jitter=0))
    def slow() -> str:
        attempt = activity_info().attempt
        if attempt == 1:
            door.block(attempt)
        return f"attempt {attempt}"

    @workflow
    async def order(ctx: Context) -> str:
        result = await ctx.run(slow)
        await ctx.wait_for_signal("go")
        return result

    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(7)
    await eventually(lambda: find_events(engine, handle.workflow_id, events.ActivityCompleted))
    door.open()
    await eventually(lambda: door.left)
    await handle.signal("go")
    assert await handle.result() == "attempt 2"

    assert [one.attempt for one in await find_events(engine, handle.workflow_id, events.ActivityCompleted)] == [2]


ENDINGS: dict[str, tuple[type[ActivityError], str, Any]] = {
    "failure": (ActivityFailed, "ValueError", None),
    "details": (ActivityFailed, "Declined", {"code": 51}),
    "timeout": (ActivityTimedOut, "start_to_close", None),
    "cancel": (ActivityFailed, "CancelledError", None),
    "exit": (ActivityFailed, "SystemExit", None),
    "odd": (ActivityFailed, "Odd", None),
    "silent": (ActivityFailed, "Silent", None),
    "unencodable": (ActivityFailed, "EncodingError", None),
    "unknown": (ActivityFailed, "UnknownActivity", None),
}


class Odd(BaseException):
    """No Exception."""


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I cannot be described")


@pytest.mark.parametrize("how", sorted(ENDINGS.keys() - {"unknown"}))
async def test_A1_every_ending_is_its_own_exception_also_after_a_crash(open_engine: OpenEngine, how: str) -> None:
    await check_ending(open_engine, how)


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_A1_activity_that_nobody_knows_fails_where_no_other_node_may_know_it(open_engine: OpenEngine) -> None:
    await check_ending(open_engine, "unknown")


async def check_ending(open_engine: OpenEngine, how: str) -> None:
    door = Door()
    caught: list[ActivityError] = []

    @activity(retry=ONCE, start_to_close=60)
    async def end(how: str) -> Any:
        match how:
            case "failure":
                raise ValueError("no")
            case "details":
                raise ApplicationFailure("no", type="Declined", details={"code": 51})
            case "timeout":
                await door.wait()
            case "cancel":
                raise asyncio.CancelledError
            case "exit":
                raise SystemExit(3)
            case "odd":
                raise Odd
            case "silent":
                raise Silent
        return object()

    @workflow
    async def order(ctx: Context, how: str) -> str:
        try:
            await (ctx.run("unheard_of", how) if how == "unknown" else ctx.run(end, how))
        except ActivityError as error:
            caught.append(error)
            await ctx.wait_for_signal("go")
            return type(error).__name__
        return "succeeded"

    engine = await open_engine(order, end)
    handle = await engine.start(order, how, workflow_id="order")
    if how == "timeout":
        await eventually(lambda: door.came)
        await engine.clock.advance(61)
    await eventually(lambda: caught)
    await engine.settle()
    await engine.restart()
    await engine.signal_workflow("order", "go")

    kind, name, details = ENDINGS[how]
    assert await handle.result() == kind.__name__
    assert [(one.type, one.details) for one in caught] == [(name, details)] * 2
    assert [isinstance(one, kind) for one in caught] == [True, True]
    assert type(caught[0]) is type(caught[1]), "of the same classes on replay; of the original's too, where that is known"
    assert str(caught[0]) == str(caught[1])


async def test_A1_failure_that_the_workflow_lets_through_fails_it(open_engine: OpenEngine) -> None:
    @activity(retry=ONCE)
    async def break_down() -> None:
        raise ApplicationFailure("boom", type="Broken", details=[1])

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(break_down)

    engine = await open_engine(order, break_down)
    handle = await engine.start(order)

    with pytest.raises(
        Exception, match=r"but it raised ActivityFailed: Expected activity 'break_down' to succeed"
    ) as caught:
        await handle.result()
    assert vars(caught.value)["details"] == [1]


# --- A2 ---


async def test_A2_attempts_are_counted_and_the_waits_grow(open_engine: OpenEngine) -> None:
    times: list[float] = []

    @activity(retry=Retry(max_attempts=5, initial=10, factor=3, maximum=60, jitter=0))
    async def fail() -> None:
        times.append(engine.clock.now() / 1_000_000)
        raise ValueError(f"attempt {activity_info().attempt}")

    @workflow
    async def order(ctx: Context) -> list[Any]:
        try:
            await ctx.run(fail)
        except ActivityFailed as error:
            return [error.attempt, str(error)]
        return []

    engine = await open_engine(order, fail)
    handle = await engine.start(order)
    await engine.clock.advance(hours=1)

    assert await handle.result() == [5, "Expected activity 'fail' to succeed, but it raised ValueError: attempt 5"]
    assert [after - before for before, after in itertools.pairwise(times)] == [10, 30, 60, 60]


async def test_A2_wait_before_a_retry_is_a_durable_timer(open_engine: OpenEngine) -> None:
    attempts: list[int] = []

    @activity(retry=Retry(initial=3600, maximum=3600, jitter=0))
    async def fail_once() -> int:
        attempts.append(activity_info().attempt)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return activity_info().attempt

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(fail_once)

    engine = await open_engine(order, fail_once)
    handle = await engine.start(order, workflow_id="order")
    await eventually(lambda: attempts)
    await engine.settle()
    info = await engine.query_status("order")
    await engine.crash()
    report = await engine.restart()
    await engine.clock.advance(minutes=59)
    assert attempts == [1]
    await engine.clock.advance(minutes=1)

    assert (info.status, info.waiting_for) == (Status.SUSPENDED, "retry")
    assert (report.timers, report.resumed) == (1, 0)
    assert await handle.result() == 2
    assert (await engine.store.count()).timers == 0


async def test_A2_retry_count_survives_a_crash(open_engine: OpenEngine) -> None:
    attempts: list[int] = []

    @activity(retry=Retry(max_attempts=3, initial=10, factor=1, jitter=0))
    async def fail() -> None:
        attempts.append(activity_info().attempt)
        raise ValueError("never")

    @workflow
    async def order(ctx: Context) -> int:
        try:
            await ctx.run(fail)
        except ActivityFailed as error:
            return error.attempt
        return 0

    engine = await open_engine(order, fail)
    await engine.start(order, workflow_id="order")
    await engine.clock.advance(15)
    assert attempts == [1, 2]
    await engine.restart()
    await engine.clock.advance(15)

    assert await engine.handle("order").result() == 3
    assert attempts == [1, 2, 3]


async def test_A2_attempt_that_a_crash_cut_off_is_no_failure(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=ONCE)
    async def slow() -> int:
        await door.wait()
        return activity_info().attempt

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(slow)

    engine = await open_engine(order, slow)
    await engine.start(order, workflow_id="order")
    for crashes in range(1, 4):
        await eventually(lambda crashes=crashes: len(door.came) == crashes)  # type: ignore[misc]
        await engine.restart()
    await eventually(lambda: len(door.came) == 4)
    door.open()

    assert await engine.handle("order").result() == 4


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (Retry(non_retryable=("Refused",)), ApplicationFailure("no", type="Refused")),
        (Retry(non_retryable=(ValueError,)), ValueError("no")),
        (Retry(), ApplicationFailure("no", non_retryable=True)),
    ],
)
async def test_A2_what_is_not_retryable_is_tried_once(open_engine: OpenEngine, policy: Any, error: Exception) -> None:
    attempts: list[int] = []

    @activity(retry=policy)
    async def fail() -> None:
        attempts.append(1)
        raise error

    @workflow
    async def order(ctx: Context) -> int:
        try:
            await ctx.run(fail)
        except ActivityFailed as failed:
            return failed.attempt
        return 0

    engine = await open_engine(order, fail)
    handle = await engine.start(order)

    assert await handle.result() == 1
    assert attempts == [1]


async def test_A2_one_call_can_have_a_policy_of_its_own(open_engine: OpenEngine) -> None:
    @activity(retry=Retry(max_attempts=7, initial=0))
    async def fail() -> None:
        raise ValueError("never")

    @workflow
    async def order(ctx: Context) -> list[int]:
        attempts = []
        for call in (fail, fail.with_options(retry=Retry(max_attempts=2, initial=0)), fail.with_options(retry=ONCE)):
            try:
                await ctx.run(call)
            except ActivityFailed as failed:
                attempts.append(failed.attempt)
        return attempts

    engine = await open_engine(order, fail)
    handle = await engine.start(order)

    assert await handle.result() == [7, 2, 1]


async def test_A2_attempt_one_thousand_comes_in_its_time(open_engine: OpenEngine) -> None:
    @activity(retry=Retry(max_attempts=1_000, initial=1, factor=10, maximum=2))
    async def fail() -> None:
        raise ValueError("never")

    @workflow
    async def order(ctx: Context) -> int:
        try:
            await ctx.run(fail)
        except ActivityFailed as failed:
            return failed.attempt
        return 0

    engine = await open_engine(order, fail, store="memory://", auto_advance=True, patience=1.0)
    handle = await engine.start(order)

    assert await handle.result() == 1_000


# --- A6 ---


async def test_A6_two_hundred_activities_at_once_are_recorded_once_each_without_a_gap(open_engine: OpenEngine) -> None:
    order_of_ends = random.Random(6).sample(range(200), 200)
    doors = [asyncio.Event() for _ in range(200)]

    @activity
    async def item(number: int) -> int:
        await doors[number].wait()
        return number * number

    @workflow
    async def order(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.run(item, number) for number in range(200)))

    engine = await open_engine(order, item)
    handle = await engine.start(order)
    for number in order_of_ends:
        doors[number].set()
        if number % 7 == 0:
            await asyncio.sleep(0)

    assert await handle.result() == [number * number for number in range(200)]
    history = (await handle.history()).events
    assert [one.sequence for one in history] == list(range(1, 403))
    ended = [one.event.number for one in history if isinstance(one.event, events.ActivityCompleted)]
    assert sorted(ended) == list(range(1, 201))
    assert await engine.store.check() == []
