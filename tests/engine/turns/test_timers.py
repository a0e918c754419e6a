"""T1 to T3 for code: timers fire when they are due, once, in order, and leave nothing behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.core import codec, events
from holdfast.core.envelopes import TimerDue
from holdfast.store.rows import InboxRow
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.histories import find_events
from tests.eventually import eventually

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


@workflow
async def nap(ctx: Context, seconds: float) -> str:
    await ctx.sleep(seconds)
    return ctx.now().isoformat()


@workflow
async def reminder(ctx: Context, when: datetime) -> str:
    await ctx.sleep_until(when)
    return ctx.now().isoformat()


async def count_timers(engine: TestEngine) -> int:
    return (await engine.store.count()).timers


# --- T1 ---


async def test_timers_are_rounded_up_to_the_resolution_and_fire_together(open_engine: OpenEngine) -> None:
    engine = await open_engine(nap, store="memory://", start=BEGIN, timer_resolution=timedelta(seconds=10))
    handles = [await engine.start(nap, seconds) for seconds in (1, 7.5, 10, 11)]
    await engine.clock.advance(seconds=9.999)
    assert [one.status for one in await engine.list()] == [Status.SUSPENDED] * 4
    await engine.clock.advance(seconds=20)

    ends = [(BEGIN + timedelta(seconds=seconds)).isoformat() for seconds in (10, 10, 10, 20)]
    assert [await one.result() for one in handles] == ends


@pytest.mark.parametrize(("method", "seconds"), [("ctx", 3600.0), ("ctx", 0.001), ("asyncio", 86_400.0), ("asyncio", 0.5)])
async def test_T1_timer_fires_when_it_is_due_to_the_microsecond(
    open_engine: OpenEngine, method: str, seconds: float
) -> None:
    @workflow
    async def order(ctx: Context) -> float:
        before = ctx.now()
        await (ctx.sleep(seconds) if method == "ctx" else asyncio.sleep(seconds))
        return (ctx.now() - before).total_seconds()

    engine = await open_engine(order)
    handle = await engine.start(order)
    await engine.clock.advance(timedelta(seconds=seconds) - timedelta(microseconds=1))
    assert (await handle.status()).status is Status.SUSPENDED
    await engine.clock.advance(timedelta(microseconds=1))

    assert await handle.result() == seconds
    assert await count_timers(engine) == 0


@pytest.mark.parametrize(
    "when", [BEGIN, BEGIN - timedelta(days=1), datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC)]
)
async def test_T1_past_date_fires_now(open_engine: OpenEngine, when: datetime) -> None:
    engine = await open_engine(reminder)
    handle = await engine.start(reminder, when)

    assert await handle.result() == BEGIN.isoformat()
    assert await count_timers(engine) == 0


async def test_T1_date_that_passed_while_the_engine_was_down_fires_on_start(open_engine: OpenEngine) -> None:
    engine = await open_engine(reminder)
    await engine.start(reminder, BEGIN + timedelta(hours=1), workflow_id="r")
    await engine.crash()
    await engine.clock.advance(days=2)
    await engine.restart()
    await engine.settle()

    assert await engine.handle("r").result() == (BEGIN + timedelta(days=2)).isoformat()


async def test_T1_century_is_the_longest_sleep(open_engine: OpenEngine) -> None:
    engine = await open_engine(nap)
    handle = await engine.start(nap, 100 * 366 * 24 * 3600.0)

    assert (await handle.status()).waiting_until == BEGIN + timedelta(days=36_600)


# --- T2 ---


async def test_T2_timers_that_came_due_in_downtime_fire_in_due_order_over_all_executions(
    open_engine: OpenEngine, url: str
) -> None:
    # Of several batches at once, only the order in which they begin is certain.
    store = f"{url}&max_transactions=1" if url.startswith("postgresql:") else url
    fired: list[int] = []

    @workflow
    async def order(ctx: Context, number: int) -> None:
        await ctx.sleep((number * 37) % 101 + 1)
        fired.append((number * 37) % 101 + 1)

    engine = await open_engine(order, batch_size=7, store=store)
    for number in range(50):
        await engine.start(order, number)
    await engine.crash()
    await engine.clock.advance(1_000)
    fired.clear()
    await engine.restart()
    await engine.settle()

    assert len(fired) == 50
    assert fired == sorted(fired)
    assert await count_timers(engine) == 0


async def test_T2_timers_of_one_execution_fire_in_due_order(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> list[int]:
        fired: list[int] = []

        async def wait(seconds: int) -> None:
            await ctx.sleep(seconds)
            fired.append(seconds)

        await asyncio.gather(*(wait(seconds) for seconds in (5, 1, 4, 2, 3)))
        return fired

    engine = await open_engine(order)
    await engine.start(order, workflow_id="order")
    await engine.crash()
    await engine.clock.advance(60)
    await engine.restart()

    assert await engine.handle("order").result() == [1, 2, 3, 4, 5]


async def test_T2_each_of_many_timers_fires_once(open_engine: OpenEngine) -> None:
    engine = await open_engine(nap, batch_size=64)
    handles = [await engine.start(nap, 10.0 + number % 7) for number in range(300)]
    await engine.clock.advance(60)

    for number, handle in enumerate(handles):
        assert await handle.result() == (BEGIN + timedelta(seconds=10 + number % 7)).isoformat()
        assert len(await find_events(engine, handle.workflow_id, events.TimerFired)) == 1


async def test_T2_timer_told_while_the_next_one_is_looked_up_is_not_overslept(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(nap)
    look_up, asked, answer = engine.store.find_next_due, asyncio.Event(), asyncio.Event()

    async def look_up_slowly(*which: Any) -> Any:
        found = await look_up(*which)
        if not asked.is_set():
            asked.set()
            await answer.wait()  # and another worker commits a timer meanwhile
        return found

    monkeypatch.setattr(engine.store, "find_next_due", look_up_slowly)
    hooks.look_for_work(engine)
    await asked.wait()
    starting = asyncio.ensure_future(engine.start(nap, 60.0))
    if engine.store.max_transactions > 1:
        handle = await starting
        await eventually(lambda: engine.clock.alarms)
    answer.set()
    handle = await starting
    await engine.clock.advance(minutes=2)

    assert (await handle.status()).status is Status.COMPLETED


async def test_T2_earlier_timer_that_comes_later_is_not_overslept(open_engine: OpenEngine) -> None:
    engine = await open_engine(nap)
    late = await engine.start(nap, 1_000.0)
    await engine.settle()
    early = await engine.start(nap, 5.0)
    await engine.clock.advance(5)

    assert (await early.status()).status is Status.COMPLETED
    assert (await late.status()).status is Status.SUSPENDED


# --- T3 ---


@workflow
async def impatient(ctx: Context) -> str:
    try:
        return await ctx.wait_for_signal("go", str, timeout=60)
    except TimeoutError:
        return "too late"


async def test_T3_late_fire_of_a_cancelled_timer_is_ignored(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        value = await ctx.wait_for_signal("go", str, timeout=60)
        await ctx.wait_for_signal("end")
        return value

    engine = await open_engine(order)
    handle = await engine.start(order, workflow_id="order")
    await handle.signal("go", "in time")
    await leave_in_inbox(engine, handle.execution_id, TimerDue(number=1))
    await handle.signal("end")

    assert await handle.result() == "in time"
    assert "TimerFired" not in (await handle.history()).kinds


async def test_T3_late_fire_after_the_end_is_ignored(open_engine: OpenEngine) -> None:
    engine = await open_engine(impatient, nap)
    handle = await engine.start(impatient)
    await handle.signal("go", "in time")
    await handle.result()
    before = await handle.history()
    await engine.clock.advance(120)

    assert (await handle.history()).kinds == before.kinds
    assert await count_timers(engine) == 0


async def leave_in_inbox(engine: TestEngine, execution_id: str | None, envelope: TimerDue) -> None:
    """Put an envelope where another node would have left it."""
    assert execution_id is not None
    await engine.store.deliver([InboxRow("default", execution_id, "", codec.encode(envelope))])


async def test_T3_rescheduled_timeout_fires_once_at_its_new_time(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        try:
            async with asyncio.timeout(10) as limit:
                await ctx.wait_for_signal("more")
                limit.reschedule(asyncio.get_running_loop().time() + 10)
                await ctx.wait_for_signal("never")
        except TimeoutError:
            return ctx.now().isoformat()
        return ""

    engine = await open_engine(order)
    handle = await engine.start(order)
    await engine.clock.advance(9)
    await handle.signal("more")
    await engine.clock.advance(9.5)
    assert (await handle.status()).status is Status.SUSPENDED
    await engine.clock.advance(1)

    assert await handle.result() == (BEGIN + timedelta(seconds=19)).isoformat()
    assert len(await find_events(engine, handle.workflow_id, events.TimerFired)) == 1


@activity
async def work() -> str:
    return "worked"


@workflow
async def busy(ctx: Context) -> str:
    """Has timers of every kind when it ends."""
    _kept = [ctx.sleep(60), asyncio.create_task(asyncio.sleep(70)), ctx.wait_for_signal("never", timeout=80)]
    async with asyncio.timeout(90):
        winner = await ctx.wait_any(ctx.signal("go"), ctx.timer(100))
    if winner.value == "continue":
        ctx.continue_as()
    if winner.value == "fail":
        raise ValueError("no")
    return await ctx.run(work)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("complete", Status.COMPLETED),
        ("fail", Status.FAILED),
        ("cancel", Status.CANCELLED),
        ("terminate", Status.TERMINATED),
        ("continue", Status.CONTINUED),
    ],
)
async def test_T3_no_end_leaves_a_timer_behind(open_engine: OpenEngine, end: str, status: Status) -> None:
    engine = await open_engine(busy, work)
    handle = await engine.start(busy, workflow_id="busy")
    assert await count_timers(engine) == 5
    if end == "cancel":
        await handle.cancel()
    elif end == "terminate":
        await handle.terminate()
    else:
        await handle.signal("go", end)
    await eventually(lambda: has_status(engine, handle.execution_id or "", status))

    assert await count_timers(engine) == (5 if end == "continue" else 0), "the next run has its own"
    await engine.clock.advance(hours=1)
    assert await count_timers(engine) == 0


async def has_status(engine: TestEngine, target: str, status: Status) -> bool:
    return (await engine.query_status(target)).status is status


async def test_T3_timer_of_a_terminated_execution_does_not_wake_the_next_of_its_id(open_engine: OpenEngine) -> None:
    engine = await open_engine(nap)
    first = await engine.start(nap, 60.0, workflow_id="nap")
    await engine.clock.advance(30)
    await first.terminate()
    second = await engine.start(nap, 60.0, workflow_id="nap")
    await engine.clock.advance(45)

    assert (await second.status()).status is Status.SUSPENDED
    await engine.clock.advance(15)
    assert await second.result() == (BEGIN + timedelta(seconds=90)).isoformat()
