"""Time that jumps by itself while somebody waits for a result."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from holdfast import Context, Status, WorkflowFailed, activity, workflow
from holdfast.log_events import LogEvent
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine, rest, skipper
from tests.eventually import eventually
from tests.testing import flows


async def test_a_result_that_is_a_month_away_comes_at_once(engine: TestEngine) -> None:
    start = engine.clock.present
    handle = await engine.start(flows.sleep_for, 30)

    assert await handle.result() == "slept 30 days"

    assert engine.clock.present == start + timedelta(days=30)


async def test_time_jumps_no_further_than_the_result(engine: TestEngine) -> None:
    start = engine.clock.present
    later = await engine.start(flows.sleep_for, 2)
    sooner = await engine.start(flows.sleep_for, 1)

    await sooner.result()
    await engine.settle()

    assert engine.clock.present == start + timedelta(days=1)
    assert (await later.status()).status == Status.SUSPENDED


async def test_time_does_not_jump_while_nobody_waits(engine: TestEngine) -> None:
    start = engine.clock.present
    await engine.start(flows.sleep_for, 1)

    await engine.settle()

    assert engine.clock.present == start


async def test_time_does_not_jump_for_a_result_that_is_there(engine: TestEngine) -> None:
    done = await engine.start(flows.sleep_for, 1)
    await done.result()
    await engine.start(flows.sleep_for, 1)
    present = engine.clock.present

    await done.result()
    await engine.restart()
    await done.result()
    await engine.settle()

    assert engine.clock.present == present


async def test_many_results_are_awaited_at_once(engine: TestEngine) -> None:
    start = engine.clock.present
    handles = [await engine.start(flows.sleep_for, days) for days in range(20, 0, -1)]

    results = await asyncio.gather(*(handle.result() for handle in handles))

    assert results == [f"slept {days} days" for days in range(20, 0, -1)]
    assert flows.notes == [f"slept {days} days" for days in range(1, 21)]
    assert engine.clock.present == start + timedelta(days=20)


async def test_time_jumps_through_waits_between_attempts(engine: TestEngine) -> None:
    start = engine.clock.present
    handle = await engine.start(flows.retry_thrice)

    assert await handle.result() == 4

    assert engine.clock.present == start + timedelta(seconds=60 + 120 + 240)


async def test_time_jumps_for_a_rate_limit(engine: TestEngine) -> None:
    handle = await engine.start(flows.note_at_a_rate, 60)

    assert await handle.result() == "00:00:59"


@pytest.mark.parametrize("how", ["plain", "slow", "thread"])
async def test_time_does_not_jump_while_an_activity_runs(engine: TestEngine, how: str) -> None:
    handle = await engine.start(flows.work_daily, how, 5)

    assert await handle.result() == "06 00:00:00"


async def test_a_signal_that_comes_while_a_result_is_awaited_sets_time_in_motion(engine: TestEngine) -> None:
    start = engine.clock.present
    handle = await engine.start(flows.await_signal, 7)
    waiting = asyncio.create_task(handle.result())
    await engine.settle()

    await handle.signal("word", "hello")

    assert await waiting == "hello"
    assert engine.clock.present == start + timedelta(days=7)


async def test_a_test_may_move_time_while_a_result_is_awaited(engine: TestEngine) -> None:
    handle = await engine.start(flows.time_out, {"start_to_close": 60})
    waiting = asyncio.create_task(handle.result())
    await engine.settle()

    await engine.clock.advance(seconds=60)

    assert await waiting == "start_to_close in attempt 1"


async def test_runs_that_continue_are_followed_through_time(engine: TestEngine) -> None:
    handle = await engine.start(flows.continue_daily, 10)

    assert await handle.result() == "11"


async def test_a_failure_in_the_future_is_raised_now(engine: TestEngine) -> None:
    handle = await engine.start(flows.sleep_for, 1)
    waiting = asyncio.create_task(handle.result())
    await engine.terminate(handle.workflow_id, "enough")

    with pytest.raises(Exception, match="enough"):
        await waiting


async def test_a_workflow_that_fails_later_fails_at_its_time(engine: TestEngine) -> None:
    start = engine.clock.present
    handle = await engine.start(flows.fail_after, 5)
    waiting = asyncio.create_task(handle.result())
    await engine.clock.advance(hours=5, seconds=1)

    with pytest.raises(WorkflowFailed, match="too late"):
        await waiting
    assert engine.clock.present == start + timedelta(hours=5, seconds=1)


async def test_waiting_without_end_is_given_up_with_advice(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipper, "MOST_JUMPS", 10)
    handle = await engine.start(flows.wake_hourly, 1000)

    with pytest.raises(TimeoutError, match=r"jumped 10 times.*max_attempts"):
        await handle.result()


async def test_an_activity_that_keeps_time_from_jumping_is_reported(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "SUSPICIOUS", 0.01)
    reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(rest.log, "warning", lambda text, *args, **_: reported.set_result(text % args))
    handle = await engine.start(flows.time_out, {"start_to_close": 60}, workflow_id="stuck")
    waiting = asyncio.create_task(handle.result())

    message = await reported

    assert "activity 'hang' of 'stuck'" in message
    assert "engine.clock.advance" in message
    await engine.clock.advance(seconds=60)
    await waiting


async def test_the_pulse_of_a_node_alone_moves_no_time() -> None:
    shared = MemoryStore(MemoryDatabase())
    async with TestEngine(shared, workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES) as engine:
        start = engine.clock.present
        handle = await engine.start(flows.await_signal, 0.001)
        waiting = asyncio.create_task(handle.result())
        await engine.settle()
        before = engine.clock.present

        await handle.signal("word", "hello")

        assert await waiting == "hello"
        assert before == start
        assert engine.clock.present == start + timedelta(days=0.001)


async def test_jumping_can_be_turned_off_and_on(engine: TestEngine) -> None:
    handle = await engine.start(flows.sleep_for, 1)
    engine.auto_advance = False
    waiting = asyncio.create_task(handle.result())
    await engine.settle()
    was_done = waiting.done()

    engine.auto_advance = True
    result = await handle.result()

    assert not was_done
    assert result == await waiting


def list_waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if getattr(one, "event", None) == LogEvent.RESULT_WAITS_FOR_TEST]


async def test_a_wait_that_nothing_can_end_is_told_of_and_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @workflow
    async def forever(ctx: Context) -> str:
        return await ctx.wait_for_signal("go", str)

    monkeypatch.setattr(skipper, "PATIENCE", 0.05)
    monkeypatch.setattr(skipper, "RARER", 10_000)
    async with TestEngine(workflows=[forever]) as engine:
        handle = await engine.start(forever, workflow_id="w")
        waiting = asyncio.create_task(handle.result())
        await eventually(lambda: list_waits(caplog))

        await handle.signal("go", "gone")

        assert await waiting == "gone"
    (told,) = list_waits(caplog)
    assert "execution 'w' of workflow 'forever' is awaited, but nothing can happen" in told
    assert "it is suspended, and waits for signal go" in told


async def test_a_wait_for_time_or_an_activity_is_not_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @activity
    async def rest_a_while() -> None:
        await asyncio.sleep(0.3)

    @workflow
    async def sleepy(ctx: Context) -> str:
        await ctx.sleep(timedelta(days=3))
        await ctx.run(rest_a_while)
        return "done"

    monkeypatch.setattr(skipper, "PATIENCE", 0.05)
    async with TestEngine(workflows=[sleepy], activities=[rest_a_while]) as engine:
        assert await (await engine.start(sleepy)).result() == "done"

    assert list_waits(caplog) == []
