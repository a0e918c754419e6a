"""An engine that crashes and comes back on the same store."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.errors import ApplicationFailure, EngineClosed, WorkflowFailed
from holdfast.testing import TestEngine, assert_history, assert_no_gaps, count_events, event
from tests.testing import flows
from tests.testing.flows import result_now


async def test_a_workflow_goes_on_after_a_restart_half_way(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)
    await still.clock.advance(days=1)

    report = await still.restart()
    await still.clock.advance(days=1)

    assert (report.waiting, report.timers) == (1, 1)
    assert await result_now(handle) == "before, after"
    assert flows.notes == ["before", "after"]
    assert_no_gaps(await handle.history())


async def test_restarting_at_every_step_leads_to_the_same_history() -> None:
    async def live(*, restarts: bool) -> list[str]:
        async with TestEngine(workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES) as engine:
            handle = await engine.start(flows.work_daily, "plain", 5)
            for _ in range(10):
                await engine.clock.advance(hours=12)
                if restarts:
                    await engine.restart()
            return (await handle.history()).kinds

    assert await live(restarts=True) == await live(restarts=False)


async def test_programs_are_lost_and_replayed(still: TestEngine) -> None:
    started: list[bool] = []

    @workflow
    async def look(ctx: Context) -> int:
        started.append(ctx.is_replaying)
        await ctx.sleep(timedelta(days=1))
        return len(started)

    await still.restart(workflows=[look])
    handle = await still.start(look)

    await still.restart()
    await still.clock.advance(days=1)

    assert await result_now(handle) == 2
    assert started == [False, True]


async def test_an_activity_that_was_running_begins_a_new_attempt(still: TestEngine) -> None:
    handle = await still.start(flows.time_out, {"start_to_close": 60})
    await still.settle()

    report = await still.restart()
    await still.settle()
    hanging = list(flows.notes)
    await still.clock.advance(seconds=60)

    assert report.resumed == 1
    assert hanging == ["hanging in attempt 1", "hanging in attempt 2"]
    assert await result_now(handle) == "start_to_close in attempt 2"


async def test_an_activity_begins_a_new_attempt_also_on_a_node_of_the_same_name() -> None:
    async with TestEngine(
        workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, node="the-only-one", patience=0, auto_advance=False
    ) as engine:
        await engine.start(flows.time_out, {"start_to_close": 60})
        await engine.settle()

        report = await engine.restart()
        await engine.settle()

    assert report.resumed == 1
    assert flows.notes == ["hanging in attempt 1", "hanging in attempt 2"]


async def test_timers_that_came_due_while_it_was_down_fire_at_once_in_due_order(still: TestEngine) -> None:
    start = still.clock.present
    handles = [await still.start(flows.sleep_for, days) for days in (3, 1, 2)]

    await still.crash()
    await still.clock.advance(days=10)
    await still.restart()
    await still.settle()

    assert flows.notes == ["slept 1 days", "slept 2 days", "slept 3 days"]
    for handle, days in zip(handles, (3, 1, 2), strict=True):
        history = await handle.history()
        assert count_events(history, "TimerFired", at=start + timedelta(days=days)) == 1
        assert history.events[-1].taken_at == start + timedelta(days=10)


async def test_who_asks_a_crashed_engine_is_refused(still: TestEngine) -> None:
    await still.crash()

    with pytest.raises(EngineClosed):
        await still.start(flows.sleep_for, 1)
    with pytest.raises(EngineClosed):
        await still.settle()


async def test_who_waits_when_it_crashes_is_told(still: TestEngine) -> None:
    handle = await still.start(flows.sleep_for, 1)
    waiting = asyncio.create_task(handle.result())
    asking = asyncio.create_task(still.start(flows.sleep_for, 2))
    await asyncio.sleep(0)

    await still.crash()

    for task in (waiting, asking):
        with pytest.raises(EngineClosed, match="crashed"):
            await task


async def test_a_result_can_be_awaited_again_after_a_restart(still: TestEngine) -> None:
    handle = await still.start(flows.sleep_for, 1)

    await still.restart()
    still.auto_advance = True

    assert await handle.result() == "slept 1 days"


async def test_crashing_twice_is_crashing_once(still: TestEngine) -> None:
    await still.crash()
    await still.crash()

    await still.restart()

    assert (await still.list()) == []


async def test_what_a_thread_returns_after_the_crash_is_not_heard(still: TestEngine) -> None:
    handle = await still.start(flows.time_out_in_thread)
    await still.settle()

    await still.crash()
    flows.release_threads()
    await still.restart()
    await still.clock.advance(seconds=60)

    assert await result_now(handle) == "start_to_close"
    assert count_events(await handle.history(), "ActivityCompleted") == 0


async def test_other_code_can_be_deployed_with_a_restart(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)
    await still.settle()

    @workflow(name="run_and_sleep")
    async def changed(ctx: Context) -> str:
        await ctx.run(flows.note, "before")
        await ctx.sleep(timedelta(days=2))
        return "changed"

    await still.restart(workflows=[changed])
    await still.clock.advance(days=2)

    assert await result_now(handle) == "changed"


async def test_code_that_does_not_fit_blocks_until_a_restart_with_code_that_does(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)
    await still.settle()

    @workflow(name="run_and_sleep")
    async def wrong(ctx: Context) -> str:
        return str(await ctx.wait_for_signal("never"))

    await still.restart(workflows=[wrong])
    await still.clock.advance(days=2)
    status = await handle.status()
    await still.restart(workflows=flows.WORKFLOWS)
    await still.settle()

    assert status.status == Status.BLOCKED
    assert "NonDeterminismError" in str(status.last_error)
    assert await result_now(handle) == "before, after"


async def test_activities_can_be_replaced_with_a_restart(still: TestEngine) -> None:
    @activity(name="note")
    async def refuse(text: str) -> str:
        raise ApplicationFailure(text, type="Refused", non_retryable=True)

    handle = await still.start(flows.run_and_sleep)
    await still.settle()

    await still.restart(activities=[refuse])
    await still.clock.advance(days=2)

    with pytest.raises(WorkflowFailed, match="after"):
        await handle.result()
    assert_history(await handle.history(), [..., event("ActivityFailed", failure={"type": "Refused"}), ...])
