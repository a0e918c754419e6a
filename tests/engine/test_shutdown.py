"""A5: an engine that shuts down lets activities finish, then hands them back; whoever waits hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.errors import EngineClosed, StoreUnavailable
from holdfast.store.memory.faults import FaultAction, Faults, Point
from holdfast.store.memory.store import MemoryStore
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.eventually import eventually

ONCE = Retry(max_attempts=1)


async def test_A5_running_activities_finish_within_the_grace(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=ONCE)
    async def quick() -> int:
        await door.wait()
        return activity_info().attempt

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(quick)

    engine = await open_engine(order, quick, shutdown_grace=30.0)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    closing = asyncio.create_task(engine.shutdown())
    await asyncio.sleep(0)
    door.open()
    await closing
    await engine.restart()

    assert await engine.handle("order").result() == 1
    assert door.left == [None]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_A5_activities_that_take_longer_are_handed_back_unfailed(open_engine: OpenEngine, kind: str) -> None:
    door = Door()

    @activity(retry=ONCE)
    async def slow() -> int:
        await door.wait(activity_info().attempt)
        return activity_info().attempt

    @activity(name="slow", retry=ONCE)
    def slow_in_thread() -> int:
        door.block(activity_info().attempt)
        return activity_info().attempt

    chosen = slow if kind == "loop" else slow_in_thread

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(chosen)

    engine = await open_engine(order, chosen, shutdown_grace=0.01)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    await engine.shutdown()
    report = await engine.restart()
    await eventually(lambda: len(door.came) == 2)
    door.open()

    assert report.resumed == 1
    assert await engine.handle("order").result() == 2
    assert "ActivityFailed" not in (await engine.history("order")).kinds


async def test_A5_activities_that_waited_for_a_place_run_after_the_restart(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=ONCE, max_concurrent=1)
    async def work(number: int) -> int:
        await door.wait(number)
        return number

    @workflow
    async def order(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.run(work, number) for number in range(5)))

    engine = await open_engine(order, work, shutdown_grace=0.01)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    await engine.shutdown()
    door.open()
    await engine.restart()

    assert await engine.handle("order").result() == list(range(5))
    assert sorted(door.left) == list(range(5))


async def test_A5_result_that_comes_in_the_grace_is_committed(open_engine: OpenEngine) -> None:
    door = Door()
    runs: list[str] = []

    @activity(retry=ONCE)
    async def first() -> str:
        await door.wait()
        runs.append("first")
        return "first"

    @activity(retry=ONCE)
    async def second() -> str:
        runs.append("second")
        return "second"

    @workflow
    async def order(ctx: Context) -> list[str]:
        return [await ctx.run(first), await ctx.run(second)]

    engine = await open_engine(order, first, second, shutdown_grace=30.0)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    closing = asyncio.create_task(engine.shutdown())
    await asyncio.sleep(0)
    door.open()
    await closing
    await engine.restart()

    assert await engine.handle("order").result() == ["first", "second"]
    assert runs == ["first", "second"]


async def test_who_waits_for_a_result_hears_of_the_shutdown(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> None:
        await ctx.wait_for_signal("go")

    engine = await open_engine(order)
    handle = await engine.start(order)
    waiting = asyncio.create_task(handle.result())
    await engine.settle()
    await engine.shutdown()

    with pytest.raises(EngineClosed, match=r"^Expected to wait for a result, but the engine was shut down\."):
        await waiting


async def test_closed_engine_refuses_every_verb(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> None: ...

    engine = await open_engine(order)
    await engine.shutdown()
    await engine.shutdown()

    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: engine.start(order),
        lambda: engine.signal_workflow("a", "b"),
        lambda: engine.signal_with_start_workflow("a", order, signal_name="b"),
        lambda: engine.cancel("a"),
        lambda: engine.terminate("a"),
        lambda: engine.retry_blocked("a"),
        lambda: engine.query_status("a"),
        lambda: engine.query_result("a"),
        lambda: engine.handle("a").result(),
        lambda: engine.history("a"),
        engine.list,
        engine.recover,
        engine.dead_letters,
        lambda: engine.requeue_dead_letters([1]),
        lambda: engine.discard_dead_letters([1]),
    ]
    for call in calls:
        with pytest.raises(EngineClosed, match=r"^Expected the engine to be open, but it is not\."):
            await call()


async def test_engine_that_was_shut_down_cannot_be_opened_again(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}")
    await engine.open()
    await engine.shutdown()

    with pytest.raises(EngineClosed, match=r"^Expected to open a new engine, but this one was shut down\."):
        await engine.open()


async def test_engine_that_is_open_is_not_opened_twice(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}")
    first = await engine.open()

    assert await engine.open() is first
    await engine.shutdown()


async def test_engine_that_could_not_open_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_text("this is no database, but it is long enough to look like a file that matters to somebody else")
    engine = Engine(f"sqlite:///{path}")

    with pytest.raises(Exception, match=r"^Expected "):
        await engine.open()

    with pytest.raises(EngineClosed):
        await engine.list()


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_callers_hear_of_it_if_the_store_is_out_of_reach_until_the_engine_is_shut_down(
    open_engine: OpenEngine,
) -> None:
    @workflow
    async def order(ctx: Context) -> None: ...

    is_down = False

    def decide(point: str, _node: str) -> FaultAction:
        return FaultAction.FAIL if is_down and point == Point.BEGIN else FaultAction.NONE

    store = MemoryStore(node="a", faults=Faults(decide))
    engine = await open_engine(order, store=store, storage_retry=Retry(max_attempts=1_000))
    is_down = True
    calls = [asyncio.create_task(engine.start(order, workflow_id=f"order-{number}")) for number in range(3)]
    await eventually(lambda: hooks.is_backing_off(engine), "a batch to fail")

    await asyncio.wait_for(engine.shutdown(), 30)

    answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
