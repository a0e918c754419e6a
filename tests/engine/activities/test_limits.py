"""A4: how many activities run at once, per node, queue and activity, and how often per second."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.testing import TestEngine
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.eventually import eventually


def run_many(*tasks: Activity[..., Any]) -> Workflow[..., Any]:
    """A workflow that runs activities all at once, each with its number."""

    @workflow
    async def order(ctx: Context) -> list[Any]:
        return await asyncio.gather(*(ctx.run(task, number) for number, task in enumerate(tasks)))

    return order


async def come_in(engine: TestEngine, door: Door, expected: int) -> None:
    """Wait until so many have come, and see that no more do."""
    await eventually(lambda: len(door.came) >= expected, f"{expected} activities to start")
    await engine.settle()
    assert len(door.came) == expected


def make(door: Door, name: str = "work", **options: Any) -> Activity[..., Any]:
    @activity(name=name, **options)
    async def work(number: int) -> int:
        await door.wait(number)
        return number

    return work


def make_in_thread(door: Door) -> Activity[..., Any]:
    @activity
    def work(number: int) -> int:
        door.block(number)
        return number

    return work


async def test_A4_node_runs_at_most_so_many_async_activities(open_engine: OpenEngine) -> None:
    door = Door()
    work = make(door)
    order = run_many(*[work] * 10)

    engine = await open_engine(order, work, max_activities=3)
    handle = await engine.start(order)
    await come_in(engine, door, 3)
    door.open()

    assert await handle.result() == list(range(10))
    assert door.came == list(range(10))


async def test_A4_node_runs_at_most_so_many_threads(open_engine: OpenEngine) -> None:
    door = Door()
    work = make_in_thread(door)
    order = run_many(*[work] * 10)

    engine = await open_engine(order, work, max_threads=2)
    handle = await engine.start(order)
    await come_in(engine, door, 2)
    door.open()

    assert await handle.result() == list(range(10))


async def test_A4_node_runs_at_most_so_many_processes(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> list[list[int]]:
        return await asyncio.gather(
            *(ctx.run(process_activities.compute, process_activities.Job(number)) for number in range(5))
        )

    engine = await open_engine(order, process_activities.compute, store="memory://", max_processes=1)
    found = await (await engine.start(order)).result()

    assert len({process for process, _ in found}) == 1
    assert [value for _, value in found] == [0, 2, 4, 6, 8]


async def test_A4_queue_runs_at_most_so_many(open_engine: OpenEngine) -> None:
    slow, quick = Door(), Door()
    limited, free = make(slow, "limited", queue="slow"), make(quick, "free")
    order = run_many(*[limited] * 5, *[free] * 5)

    engine = await open_engine(order, limited, free, queue_limits={"slow": 2})
    handle = await engine.start(order)
    await come_in(engine, slow, 2)
    await come_in(engine, quick, 5)
    slow.open()
    quick.open()

    assert await handle.result() == list(range(10))


async def test_A4_queue_of_one_call_counts(open_engine: OpenEngine) -> None:
    door = Door()
    work = make(door)
    order = run_many(*[work.with_options(queue="slow")] * 3, work)

    engine = await open_engine(order, work, queue_limits={"slow": 1})
    handle = await engine.start(order)
    await come_in(engine, door, 2)
    door.open()

    assert await handle.result() == list(range(4))


async def test_A4_activity_runs_at_most_so_many_times_at_once_over_all_executions(open_engine: OpenEngine) -> None:
    rare, common = Door(), Door()
    limited, free = make(rare, "limited", max_concurrent=2), make(common, "free")
    order = run_many(limited, free)

    engine = await open_engine(order, limited, free)
    handles = [await engine.start(order) for _ in range(5)]
    await come_in(engine, rare, 2)
    await come_in(engine, common, 5)
    rare.open()
    common.open()

    assert [await handle.result() for handle in handles] == [[0, 1]] * 5


async def test_A4_place_is_given_back_whatever_the_end(open_engine: OpenEngine) -> None:
    door = Door()
    seen: list[int] = []

    @activity(max_concurrent=1, start_to_close=10)
    async def work(number: int) -> int:
        seen.append(number)
        match number:
            case 0:
                await door.wait()
            case 1:
                raise asyncio.CancelledError
            case 2:
                raise SystemExit
            case 3:
                return "no number"  # type: ignore[return-value]
        return number

    @workflow
    async def order(ctx: Context) -> int:
        from holdfast import Retry

        once = work.with_options(retry=Retry(max_attempts=1))
        found = await asyncio.gather(*(ctx.run(once, number) for number in range(5)), return_exceptions=True)
        return len(found)

    engine = await open_engine(order, work)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(10)

    assert await handle.result() == 5
    assert seen == [0, 1, 2, 3, 4]


async def test_A4_rate_spreads_starts_over_time(open_engine: OpenEngine) -> None:
    times: list[float] = []

    @activity(rate_per_second=2)
    async def call(number: int) -> int:
        times.append((engine.clock.now() - begin) / 1_000_000)
        return number

    order = run_many(*[call] * 6)
    engine = await open_engine(order, call)
    begin = engine.clock.now()
    handle = await engine.start(order)
    await engine.clock.advance(10)

    assert await handle.result() == list(range(6))
    assert times == [0, 0.5, 1, 1.5, 2, 2.5]


async def test_A4_rate_does_not_hold_up_other_activities(open_engine: OpenEngine) -> None:
    door = Door()
    slow, quick = make(door, "slow", rate_per_second=0.01), make(door, "quick")
    door.open()
    order = run_many(slow, slow, quick, quick)

    engine = await open_engine(order, slow, quick)
    handle = await engine.start(order)
    await eventually(lambda: len(door.left) == 3)
    await engine.settle()
    assert sorted(door.came) == [0, 2, 3]
    await engine.clock.advance(100)

    assert await handle.result() == list(range(4))


async def test_A4_pause_in_a_rate_is_not_saved_up(open_engine: OpenEngine) -> None:
    times: list[float] = []

    @activity(rate_per_second=1)
    async def call(number: int) -> int:
        times.append((engine.clock.now() - begin) / 1_000_000)
        return number

    order = run_many(call, call)
    engine = await open_engine(order, call)
    begin = engine.clock.now()
    first = await engine.start(order)
    await engine.clock.advance(100)
    await first.result()
    second = await engine.start(order)
    await engine.clock.advance(100)
    await second.result()

    assert times == [0, 1, 100, 101]


async def test_A4_slow_activity_does_not_hold_up_the_engine(open_engine: OpenEngine) -> None:
    door = Door()
    stuck = make_in_thread(door)

    @workflow
    async def quick(ctx: Context) -> str:
        return await ctx.wait_for_signal("go", str)

    order = run_many(*[stuck] * 40)
    engine = await open_engine(order, quick, stuck)
    handle = await engine.start(order)
    await eventually(lambda: len(door.came) == 32)
    other = await engine.start(quick)
    await other.signal("go", "went")

    assert await other.result() == "went"
    door.open()
    await handle.result()


@pytest.mark.parametrize("first", ["slow", "quick"])
async def test_A4_what_waits_starts_in_the_order_of_arrival(open_engine: OpenEngine, first: str) -> None:
    door = Door()
    slow, quick = make(door, "slow"), make(door, "quick")
    order = run_many(*([slow, quick] if first == "slow" else [quick, slow]) * 5)

    engine = await open_engine(order, slow, quick, max_activities=1)
    handle = await engine.start(order)
    await come_in(engine, door, 1)
    door.open()
    await handle.result()

    for parity in (0, 1):
        assert [one for one in door.came if one % 2 == parity] == list(range(parity, 10, 2))
