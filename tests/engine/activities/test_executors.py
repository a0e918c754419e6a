"""A4: where activities run — in the loop, in threads, in processes — and what ends there becomes of the workflow."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast import (
    ActivityError,
    ActivityFailed,
    Context,
    Retry,
    activity,
    activity_info,
    heartbeat,
    is_cancelled,
    workflow,
)
from holdfast.errors import HoldfastError, InvalidDefinition
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.eventually import eventually


async def test_A4_async_activity_runs_in_the_loop(open_engine: OpenEngine) -> None:
    @activity
    async def where() -> list[Any]:
        return [threading.current_thread() is threading.main_thread(), activity_info().activity]

    @workflow
    async def order(ctx: Context) -> list[Any]:
        return await ctx.run(where)

    engine = await open_engine(order, where)

    assert await (await engine.start(order)).result() == [True, "where"]


async def test_A4_sync_activity_runs_in_a_thread_with_its_info(open_engine: OpenEngine) -> None:
    @activity
    def where() -> list[Any]:
        info = activity_info()
        return [
            threading.current_thread().name.startswith("holdfast-activity"),
            info.activity,
            info.workflow_id,
            info.attempt,
        ]

    @workflow
    async def order(ctx: Context) -> list[Any]:
        return await ctx.run(where)

    engine = await open_engine(order, where)

    assert await (await engine.start(order, workflow_id="o")).result() == [True, "where", "o", 1]


async def test_A4_idempotency_key_is_the_same_for_every_attempt_and_no_other(open_engine: OpenEngine) -> None:
    keys: list[str] = []

    @activity(retry=Retry(initial=0))
    async def pay(number: int) -> None:
        keys.append(activity_info().idempotency_key)
        if activity_info().attempt < 3:
            raise ValueError("again")

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(pay, 1)
        await ctx.run(pay, 2)

    engine = await open_engine(order, pay)
    await (await engine.start(order)).result()

    assert keys[:3] == [keys[0]] * 3
    assert keys[3:] == [keys[3]] * 3
    assert keys[0] != keys[3]


async def test_A4_what_belongs_to_an_activity_is_refused_elsewhere() -> None:
    for ask in (activity_info, heartbeat, is_cancelled):
        with pytest.raises(
            HoldfastError, match=r"^Expected to be called inside a running activity, but none is running here\."
        ):
            ask()


# --- processes ---


async def test_A4_activity_runs_in_a_process_when_asked(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> list[list[int]]:
        return await asyncio.gather(
            *(ctx.run(process_activities.compute, process_activities.Job(number)) for number in range(3))
        )

    engine = await open_engine(order, process_activities.compute)
    found = await (await engine.start(order)).result()

    assert [value for _, value in found] == [0, 2, 4]
    assert os.getpid() not in {process for process, _ in found}


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("plain", "ValueError", "no"),
        ("details", "Declined", "no"),
        ("awkward", "Awkward", "awkward 7, x"),
        ("exit", "SystemExit", "3"),
        ("unencodable", "EncodingError", "Expected the result of activity 'fail' to be a value that JSON can hold"),
        ("die", "BrokenProcessPool", ""),
    ],
)
async def test_A4_failure_in_a_process_reaches_the_workflow_and_the_others_go_on(
    open_engine: OpenEngine, how: str, kind: str, message: str
) -> None:
    @workflow
    async def order(ctx: Context) -> list[Any]:
        try:
            await ctx.run(process_activities.fail, how)
        except ActivityFailed as error:
            _, value = await ctx.run(process_activities.compute, process_activities.Job(21))
            return [error.type, str(error), error.details, value]
        return []

    engine = await open_engine(order, process_activities.fail, process_activities.compute, store="memory://")
    found = await (await engine.start(order)).result()

    assert found[0] == kind
    assert message in found[1]
    assert found[2:] == [{"code": 51} if how == "details" else None, 42]


async def test_A4_process_that_dies_is_replaced(open_engine: OpenEngine, tmp_path: Path) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(process_activities.die_once, str(tmp_path / "marker"))

    engine = await open_engine(order, process_activities.die_once, store="memory://")

    assert await (await engine.start(order)).result() == "lived"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the pipes of a process tell that it has ended")
async def test_A4_process_that_dies_is_replaced_though_one_that_it_forked_lives(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(process_activities.fork_and_die_once, str(marker))

    engine = await open_engine(order, process_activities.fork_and_die_once, store="memory://")
    try:
        assert await asyncio.wait_for((await engine.start(order)).result(), 25) == "lived"
    finally:
        os.kill(int(marker.read_text()), signal.SIGKILL)


async def test_A4_process_that_dies_while_it_is_idle_fails_no_attempt(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> list[int]:
        return await ctx.run(process_activities.compute, process_activities.Job(1))

    engine = await open_engine(order, process_activities.compute, store="memory://", max_processes=1)
    pid, _ = await (await engine.start(order)).result()
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)

    assert (await (await engine.start(order)).result())[0] != pid


async def test_A4_function_that_was_decorated_elsewhere_runs_in_a_process(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(process_activities.decorated_elsewhere, 1)

    engine = await open_engine(order, process_activities.decorated_elsewhere, store="memory://")

    assert await (await engine.start(order)).result() == 2


def test_A4_function_that_a_process_cannot_find_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"^Expected activity 'inner' to run in a process, but "):

        @activity(executor="process")
        def inner() -> None: ...


# --- cancelling ---


async def test_cancelled_workflow_cancels_an_async_activity(open_engine: OpenEngine) -> None:
    door = Door()

    @activity
    async def slow() -> None:
        await door.wait()

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(slow)

    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await handle.cancel()

    await eventually(lambda: door.turned_away)
    assert (await handle.status()).status == "cancelled"


async def test_cancelled_workflow_is_heard_by_a_thread_at_its_next_heartbeat(open_engine: OpenEngine) -> None:
    door = Door()
    heard: list[Any] = []

    @activity
    def slow() -> None:
        door.block()
        heard.append(is_cancelled())
        try:
            heartbeat("still here")
        except asyncio.CancelledError:
            heard.append("stopped")
            raise

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(slow)

    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await handle.cancel()
    door.open()

    await eventually(lambda: len(heard) == 2)
    assert heard == [True, "stopped"]


async def test_cancelled_activity_that_waited_for_a_place_never_starts(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(max_concurrent=1)
    async def slow(name: str) -> str:
        await door.wait(name)
        return name

    @workflow
    async def order(ctx: Context) -> str:
        first, second = ctx.run(slow, "first"), ctx.run(slow, "second")
        await ctx.wait_for_signal("go")
        second.cancel()
        await ctx.wait_for_signal("go")
        return await first

    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await handle.signal("go")
    await engine.settle()
    await handle.signal("go")
    door.open()

    assert await handle.result() == "first"
    assert door.came == ["first"]


async def test_cancelled_activity_that_waited_for_a_retry_leaves_no_timer(open_engine: OpenEngine) -> None:
    attempts: list[int] = []

    @activity(retry=Retry(initial=60, jitter=0))
    async def fail() -> None:
        attempts.append(1)
        raise ValueError("no")

    @workflow
    async def order(ctx: Context) -> str:
        future = ctx.run(fail)
        await ctx.wait_for_signal("go")
        future.cancel()
        await ctx.wait_for_signal("end")
        return "done"

    engine = await open_engine(order, fail)
    handle = await engine.start(order)
    await eventually(lambda: attempts)
    await engine.settle()
    await handle.signal("go")
    assert (await engine.store.count()).timers == 0
    await engine.clock.advance(120)
    await handle.signal("end")

    assert await handle.result() == "done"
    assert attempts == [1]


async def test_activity_that_ignores_its_cancel_has_no_effect(open_engine: OpenEngine) -> None:
    door, ended = Door(), []

    @activity
    async def stubborn() -> str:
        try:
            await door.wait()
        except asyncio.CancelledError:
            ended.append("ignored")
        return "too late"

    @workflow
    async def order(ctx: Context) -> str:
        try:
            async with asyncio.timeout(5):
                await ctx.run(stubborn)
        except (TimeoutError, ActivityError) as error:
            await ctx.wait_for_signal("go")
            return type(error).__name__
        return "done"

    engine = await open_engine(order, stubborn)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(5)
    await eventually(lambda: ended)
    await handle.signal("go")

    assert await handle.result() == "TimeoutError"
    assert "ActivityCompleted" not in (await handle.history()).kinds
