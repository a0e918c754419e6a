"""Calls that wait for an answer or a status: virtual time moves for them as it does for results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from holdfast import AnswerTimedOut, Context, workflow
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine, VirtualClock, wait_time


@workflow
async def ages(ctx: Context) -> str:
    for year in range(3):
        ctx.set_state(year=year)
        await ctx.sleep(timedelta(days=365))
    return "old"


@workflow
async def slow(ctx: Context) -> str:
    async def think(days: int) -> str:
        await ctx.sleep(timedelta(days=days))
        return f"thought for {days} days"

    ctx.on_update("think", think)
    await ctx.wait_for_signal("end")
    return "ended"


@workflow
async def asks(ctx: Context) -> str:
    return await ctx.human_task("answer", str)


@pytest.fixture
async def timed(url: str) -> AsyncIterator[TestEngine]:
    async with TestEngine(url, workflows=[ages, slow, asks]) as engine:
        yield engine


async def test_a_status_that_is_a_year_away_comes_at_once(timed: TestEngine) -> None:
    start = timed.clock.present
    handle = await timed.start(ages)

    info = await handle.wait_for(lambda info: info.state == {"year": 1}, timeout=timedelta(days=400))

    assert info.state == {"year": 1}
    assert timed.clock.present == start + timedelta(days=365)


async def test_an_update_that_sleeps_is_answered_at_once(timed: TestEngine) -> None:
    start = timed.clock.present
    await timed.start(slow, workflow_id="w")

    assert await timed.update("w", "think", 30, timeout=timedelta(days=31)) == "thought for 30 days"
    answer = await timed.update_with_start("v", slow, update_name="think", update_value=2)

    assert answer == "thought for 2 days"
    assert timed.clock.present == start + timedelta(days=32)


async def test_timeouts_are_in_virtual_time(timed: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_time, "GRACE", 0.0)
    start = timed.clock.present
    handle = await timed.start(slow, workflow_id="w")

    with pytest.raises(AnswerTimedOut, match=r"execution 'w' \(.*\) .* within 3600 s, but it did not: it is suspended"):
        await handle.wait_for(lambda info: info.closed_at is not None, timeout=3600)
    assert timed.clock.present == start + timedelta(hours=1)
    with pytest.raises(AnswerTimedOut, match="update 'think'"):
        await handle.update("think", 2, timeout=timedelta(days=1))
    assert timed.clock.present == start + timedelta(days=1, hours=1)
    with pytest.raises(AnswerTimedOut):
        await timed.update_with_start("w", slow, update_name="think", update_value=9, timeout=60)
    assert timed.clock.present == start + timedelta(days=1, hours=1, minutes=1)


async def test_a_timeout_counts_from_the_call_however_often_the_status_changes(
    timed: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_time, "GRACE", 0.0)
    start = timed.clock.present
    handle = await timed.start(ages)

    with pytest.raises(AnswerTimedOut):
        await handle.wait_for(lambda info: info.state == {"year": 2}, timeout=timedelta(days=500))

    assert timed.clock.present == start + timedelta(days=500)


async def test_a_step_of_a_task_of_a_paused_execution_times_out_in_virtual_time(
    timed: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_time, "GRACE", 0.0)
    await timed.start(asks, workflow_id="w")
    await timed.settle()
    (task,) = await timed.tasks()
    await timed.claim_task(task.task_id, by="ann")
    await timed.pause("w")
    start = timed.clock.present

    with pytest.raises(AnswerTimedOut, match="a step of task"):
        await timed.complete_task(task.task_id, "yes", by="ann", request_id="r")
    assert timed.clock.present == start + timedelta(seconds=30)
    await timed.resume("w")

    assert await timed.handle("w").result() == "yes"


async def test_another_task_of_the_test_may_do_what_a_call_waits_for(timed: TestEngine) -> None:
    start = timed.clock.present
    handle = await timed.start(slow)
    waits = asyncio.ensure_future(handle.wait_for(lambda info: info.closed_at is not None, timeout=60))

    await timed.settle()
    await handle.signal("end")

    assert (await waits).status == "completed"
    assert timed.clock.present == start


async def test_without_auto_advance_only_the_test_moves_the_time_of_calls(url: str) -> None:
    async with TestEngine(url, workflows=[slow], auto_advance=False) as engine:
        handle = await engine.start(slow, workflow_id="w")
        answers = asyncio.ensure_future(handle.update("think", 30))
        await engine.settle()
        assert not answers.done()

        await engine.clock.advance(days=30)

        assert await answers == "thought for 30 days"
        with pytest.raises(AnswerTimedOut):
            await handle.update("think", 30, timeout=0.01)


async def test_engines_that_share_a_clock_wait_for_answers_in_real_time() -> None:
    clock, database = VirtualClock(), MemoryDatabase()
    async with (
        TestEngine(MemoryStore(database), workflows=[slow], clock=clock) as first,
        TestEngine(MemoryStore(database), clock=clock),
    ):
        await first.start(slow, workflow_id="w")
        present = clock.present

        with pytest.raises(AnswerTimedOut):
            await first.update("w", "think", 30, timeout=0.01)

        assert clock.present == present
