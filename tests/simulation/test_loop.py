"""The simulated world's loop: time jumps, and what a dead node had arranged never happens."""

import asyncio
from contextvars import copy_context

import pytest

from holdfast.core.instants import SECOND
from holdfast.simulation.loop import NODE, NothingScheduled, SimulatedClock, SimulationLoop, TooManyCallbacks


def make_loop(most: int = 10_000) -> SimulationLoop:
    return SimulationLoop(0, most)  # type: ignore[abstract]  # what nothing here calls is left out


def test_a_month_passes_at_once() -> None:
    loop = make_loop()

    async def sleep() -> float:
        await asyncio.sleep(30 * 24 * 3600)
        return loop.time()

    assert loop.run(sleep()) == 30 * 24 * 3600


def test_the_clock_calls_back_in_due_order() -> None:
    loop, seen = make_loop(), list[int]()
    clock = SimulatedClock(loop)

    async def arrange() -> None:
        for seconds in (3, 1, 2):
            clock.call_at(seconds * SECOND, lambda seconds=seconds: seen.append(seconds))  # type: ignore[misc]
        clock.call_at(SECOND, lambda: seen.append(9)).cancel()
        await asyncio.sleep(5)

    loop.run(arrange())

    assert seen == [1, 2, 3]


def test_T6_alarm_of_a_clock_that_is_set_forward_rings_soon() -> None:
    loop, seen, shifts = make_loop(), list[float](), [0]
    clock = SimulatedClock(loop, read_shift=lambda: shifts[-1])

    async def arrange() -> None:
        clock.call_at(3600 * SECOND, lambda: seen.append(loop.time()))
        shifts.append(3600 * SECOND)
        await asyncio.sleep(60)

    loop.run(arrange())

    assert len(seen) == 1


def test_nothing_of_a_dead_node_runs_again() -> None:
    loop, seen = make_loop(), list[str]()

    async def live(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                seen.append(name)
        finally:
            seen.append(f"{name} cleaned up")

    async def watch() -> None:
        for name in ("a", "b"):
            context = copy_context()
            context.run(NODE.set, name)
            _ = loop.create_task(live(name), context=context)
        await asyncio.sleep(2.5)
        loop.kill("a")
        await asyncio.sleep(2)

    loop.run(watch())

    assert seen == ["a", "b", "a", "b", "b", "b"]


def test_a_frozen_node_goes_on_later_in_its_order() -> None:
    loop, seen = make_loop(), list[tuple[float, int]]()

    async def live() -> None:
        for number in range(4):
            await asyncio.sleep(1)
            seen.append((loop.time(), number))

    async def watch() -> None:
        context = copy_context()
        context.run(NODE.set, "a")
        task = loop.create_task(live(), context=context)
        await asyncio.sleep(1.5)
        loop.freeze("a", 10 * SECOND)
        await task

    loop.run(watch())

    assert seen == [(1, 0), (10, 1), (11, 2), (12, 3)]


def test_a_world_in_which_nothing_can_happen_is_noticed() -> None:
    loop = make_loop()

    async def wait() -> None:
        await loop.create_future()

    with pytest.raises(NothingScheduled):
        loop.run(wait())
    loop.close()


def test_a_world_that_spins_is_noticed() -> None:
    loop = make_loop(100)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(TooManyCallbacks):
        loop.run(spin())
    loop.close()


def test_other_threads_are_not_needed() -> None:
    loop = make_loop()

    async def ask() -> int:
        return await loop.run_in_executor(None, lambda: 7)

    assert loop.run(ask()) == 7
