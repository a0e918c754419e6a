"""A9: which failures are retried, and when, as the policy and the activity itself say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import ActivityFailed, ApplicationFailure, Context, Retry, RetryAfter, activity, workflow
from holdfast.errors import InvalidConfiguration, InvalidDuration
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.eventually import eventually


@pytest.mark.parametrize(
    ("only", "error", "calls"),
    [
        ([ConnectionError], ConnectionError("gone"), 3),
        ([ConnectionError], ConnectionResetError("gone"), 3),
        (["ConnectionError"], ConnectionResetError("gone"), 3),
        (["Busy"], ApplicationFailure("later", type="Busy"), 3),
        ([ConnectionError], ValueError("no"), 1),
        (["Busy"], ApplicationFailure("never", type="Declined"), 1),
        ([ConnectionError], RetryAfter(1), 3),
    ],
)
async def test_A9_only_the_named_types_and_their_subclasses_are_retried(
    open_engine: OpenEngine, only: list[Any], error: Exception, calls: int
) -> None:
    called: list[int] = []

    @activity(retry=Retry(only=only, max_attempts=3, initial=1))
    async def charge() -> None:
        called.append(1)
        raise error

    @workflow
    async def order(ctx: Context) -> int:
        try:
            await ctx.run(charge)
        except ActivityFailed as failed:
            return failed.attempt
        return 0

    engine = await open_engine(order, charge, auto_advance=True)
    handle = await engine.start(order)

    assert await handle.result() == calls
    assert len(called) == calls


async def test_A9_function_in_a_process_is_retried_by_the_same_types(open_engine: OpenEngine) -> None:
    busy = process_activities.raise_busy

    @workflow
    async def order(ctx: Context) -> list[Any]:
        found: list[Any] = []
        for kind in ("reset", "value", "after"):
            try:
                await ctx.run(busy, kind)
            except ActivityFailed as failed:
                found.append([failed.type, failed.attempt, failed.details])
        return found

    engine = await open_engine(order, busy, auto_advance=True)
    handle = await engine.start(order)

    assert await handle.result() == [
        ["ConnectionResetError", 2, None],
        ["ValueError", 1, None],
        ["RetryAfter", 2, {"limit": 5}],
    ]


@pytest.mark.parametrize("after", [90, 90.0, timedelta(seconds=90)])
async def test_A9_next_attempt_begins_when_the_activity_says(open_engine: OpenEngine, after: Any) -> None:
    called: list[int] = []

    @activity(retry=Retry(initial=1, maximum=2, jitter=0))
    async def charge() -> str:
        called.append(1)
        if len(called) == 1:
            raise RetryAfter(after, "the service is full")
        return "charged"

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(charge)

    engine = await open_engine(order, charge)
    handle = await engine.start(order)
    await eventually(lambda: called)
    await engine.clock.advance(89)
    assert len(called) == 1

    await engine.restart()
    await engine.clock.advance(2)

    assert await engine.wait_for_result(handle.workflow_id) == "charged"


async def test_A9_attempt_that_asks_for_another_counts_as_failed(open_engine: OpenEngine) -> None:
    @activity(retry=Retry(max_attempts=2, non_retryable=["RetryAfter"]))
    def charge() -> None:
        raise RetryAfter(0, details={"limit": 5})

    @workflow
    async def order(ctx: Context) -> list[Any]:
        try:
            await ctx.run(charge)
        except ActivityFailed as failed:
            return [failed.type, failed.attempt, failed.details]
        return []

    engine = await open_engine(order, charge, auto_advance=True)
    handle = await engine.start(order)

    assert await handle.result() == ["RetryAfter", 2, {"limit": 5}]


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "10", None, True, timedelta(seconds=-1)])
def test_pause_that_cannot_be_right_is_refused(after: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"^Expected RetryAfter\(…\) to get a timedelta or a number of seconds"):
        RetryAfter(after)


@pytest.mark.parametrize("only", ["ValueError", [3], [], [int], 3, [""]])
def test_types_that_cannot_be_right_are_refused(only: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^Expected Retry\(only=…\) to be a list of exception types"):
        Retry(only=only)


class Odd(RetryAfter):
    """Says what it wants about its pause, or nothing."""

    def __init__(self, after: Any) -> None:
        super().__init__(1)
        self.after = after

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name == "after" and found is None:
            raise SystemExit("no answer")
        return found


@pytest.mark.parametrize("after", [timedelta.min, timedelta.max, None, 7])
async def test_A9_odd_pause_is_bounded_or_left_to_the_policy(open_engine: OpenEngine, after: Any) -> None:
    called: list[int] = []

    @activity(retry=Retry(max_attempts=2, initial=1))
    async def charge() -> None:
        called.append(1)
        raise Odd(after)

    @workflow
    async def order(ctx: Context) -> int:
        try:
            await ctx.run(charge)
        except ActivityFailed as failed:
            return failed.attempt
        return 0

    engine = await open_engine(order, charge)
    handle = await engine.start(order)
    await eventually(lambda: called)
    await engine.settle()
    info = await engine.query_status(handle.workflow_id)
    if after == timedelta.max:
        assert info.waiting_until is not None
        assert info.waiting_until.year > 2100
        return
    await engine.clock.advance(5)

    assert await handle.result() == 2
