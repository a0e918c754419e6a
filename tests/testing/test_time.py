"""Workflows in virtual time, moved by the test."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from holdfast import Status
from holdfast.testing import TestEngine, VirtualClock, assert_history, assert_no_gaps, count_events, event, find_events
from tests.testing import flows
from tests.testing.flows import result_now


def make_patient(url: str) -> TestEngine:
    """An engine that waits for activities as long as a slow machine may need."""
    return TestEngine(url, workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, auto_advance=False, patience=60)


async def test_a_month_of_hourly_waking_is_as_many_alarms_as_hours(engine: TestEngine) -> None:
    handle = await engine.start(flows.wake_hourly, 30 * 24)

    alarms = await engine.clock.advance(days=30)

    assert alarms == 30 * 24
    assert await result_now(handle) == 30 * 24
    assert count_events(await handle.history(), "TimerFired") == 30 * 24


async def test_a_sleep_of_a_month_is_one_alarm(still: TestEngine) -> None:
    handle = await still.start(flows.sleep_for, 30)

    alarms = await still.clock.advance(days=30)

    assert alarms == 1
    assert (await handle.status()).status == Status.COMPLETED


async def test_a_timer_fires_at_its_very_moment_and_not_before(still: TestEngine) -> None:
    start = still.clock.present
    handle = await still.start(flows.sleep_for, 1)

    await still.clock.advance(hours=23, minutes=59, seconds=59)
    before = (await handle.status()).status
    await still.clock.advance(seconds=1)

    assert before == Status.SUSPENDED
    assert_history(
        await handle.history(),
        [
            event("WorkflowStarted", at=start),
            event("TimerStarted", due=start + timedelta(days=1)),
            event("TimerFired", at=start + timedelta(days=1)),
            event("ActivityScheduled", input=["slept 1 days"]),
            event("ActivityCompleted", result="slept 1 days"),
            "WorkflowCompleted",
        ],
    )


async def test_timers_of_many_executions_fire_in_due_order(still: TestEngine) -> None:
    start = still.clock.present
    handles = [await still.start(flows.sleep_for, days) for days in (3, 1, 2, 5, 4)]

    await still.clock.advance(days=10)

    assert flows.notes == [f"slept {days} days" for days in (1, 2, 3, 4, 5)]
    fired = [find_events(await handle.history(), "TimerFired")[0].at for handle in handles]
    assert fired == [start + timedelta(days=days) for days in (3, 1, 2, 5, 4)]


async def test_timers_of_one_moment_all_fire_then(still: TestEngine) -> None:
    handles = [await still.start(flows.sleep_for, 1) for _ in range(20)]

    await still.clock.advance(days=1)

    assert [(await handle.status()).status for handle in handles] == [Status.COMPLETED] * 20


async def test_everything_an_alarm_causes_has_happened_when_advance_returns(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)

    await still.clock.advance(days=2)

    assert flows.notes == ["before", "after"]
    assert (await handle.status()).status == Status.COMPLETED
    assert_no_gaps(await handle.history())


async def test_settle_waits_for_work_and_moves_no_time(still: TestEngine) -> None:
    start = still.clock.present
    handle = await still.start(flows.run_and_sleep)

    await still.settle()

    assert flows.notes == ["before"]
    assert (await handle.status()).waiting_until == start + timedelta(days=2)
    assert still.clock.present == start
    assert still.is_at_rest(strictly=True)


async def test_nothing_ends_without_time_when_it_does_not_jump_by_itself(still: TestEngine) -> None:
    handle = await still.start(flows.sleep_for, 1)
    waiting = asyncio.create_task(handle.result())

    await still.settle()
    was_done = waiting.done()
    await still.clock.advance(days=1)

    assert not was_done
    assert await waiting == "slept 1 days"


async def test_work_in_threads_is_waited_for_at_each_step(url: str) -> None:
    async with make_patient(url) as engine:
        handle = await engine.start(flows.work_daily, "thread", 5)

        alarms = await engine.clock.advance(days=5)

        assert await result_now(handle) == "06 00:00:00"
        assert alarms == 5


async def test_real_waiting_of_async_work_is_waited_for_at_each_step(url: str) -> None:
    async with make_patient(url) as engine:
        handle = await engine.start(flows.work_daily, "slow", 5)

        alarms = await engine.clock.advance(days=5)

        assert await result_now(handle) == "06 00:00:00"
        assert alarms == 5


async def test_time_begins_where_the_test_says() -> None:
    async with TestEngine(workflows=flows.WORKFLOWS, start=datetime(2024, 2, 29, 12, tzinfo=UTC)) as engine:
        handle = await engine.start(flows.wake_hourly, 1)

        await handle.result()

        assert (await handle.status()).closed_at == datetime(2024, 2, 29, 13, tzinfo=UTC)


async def test_several_engines_share_one_clock() -> None:
    clock = VirtualClock()
    async with (
        TestEngine(workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, clock=clock) as one,
        TestEngine(workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, clock=clock) as other,
    ):
        await one.start(flows.sleep_for, 2)
        await other.start(flows.sleep_for, 1)
        await one.start(flows.sleep_for, 3)

        alarms = await clock.advance(days=3)

    assert flows.notes == ["slept 1 days", "slept 2 days", "slept 3 days"]
    assert alarms == 3
