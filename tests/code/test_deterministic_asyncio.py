from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.code import deterministic_asyncio
from tests.code.asyncio_flows import FLOWS, Clock, run, sleep_and_give

# --- as_completed ---


def test_as_completed_starts_coroutines_in_the_order_given() -> None:
    started: list[int] = []

    async def step(number: int) -> None:
        started.append(number)

    async def flow() -> None:
        for one in asyncio.as_completed([step(number) for number in range(50)]):
            await one

    run(flow())

    assert started == list(range(50))


def test_as_completed_yields_in_the_order_of_completion() -> None:
    async def flow() -> list[str]:
        steps = [sleep_and_give(3, "c"), sleep_and_give(1, "a"), sleep_and_give(2, "b")]
        return [await one for one in asyncio.as_completed(steps)]

    assert run(flow()) == ["a", "b", "c"]


def test_as_completed_yields_what_is_done_already_in_the_order_given() -> None:
    async def flow() -> list[int]:
        futures = [asyncio.get_running_loop().create_future() for _ in range(20)]
        for number, future in enumerate(futures):
            future.set_result(number)
        return [await one for one in asyncio.as_completed(futures)]

    assert run(flow()) == list(range(20))


def test_as_completed_runs_identical_awaitables_once() -> None:
    async def flow() -> list[str]:
        twice = sleep_and_give(1, "once")
        task = asyncio.ensure_future(sleep_and_give(2, "task"))
        return [await one for one in asyncio.as_completed([twice, task, twice, task])]

    assert run(flow()) == ["once", "task"]


def test_as_completed_raises_what_an_awaitable_raises() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def flow() -> None:
        for one in asyncio.as_completed([fail()]):
            await one

    with pytest.raises(ValueError, match="no"):
        run(flow())


def test_as_completed_gives_a_timeout_for_each_that_is_late() -> None:
    async def flow() -> list[str]:
        late = [asyncio.ensure_future(sleep_and_give(seconds, "late")) for seconds in (20, 30)]
        seen: list[str] = []
        for one in asyncio.as_completed([*late, sleep_and_give(1, "in time")], timeout=10):
            try:
                seen.append(await one)
            except TimeoutError:
                seen.append("timeout")
        seen.extend(await asyncio.gather(*late))
        return seen

    assert run(flow()) == ["in time", "timeout", "timeout", "late", "late"]


def test_as_completed_withdraws_its_timer_when_all_are_done() -> None:
    clock = Clock()

    async def flow() -> None:
        for one in asyncio.as_completed([sleep_and_give(1, "a")], timeout=10):
            await one

    clock.run(flow())

    assert clock.timers == {}


def test_as_completed_of_nothing_yields_nothing() -> None:
    async def flow() -> list[Any]:
        nothing: list[asyncio.Future[Any]] = []
        return [await one for one in asyncio.as_completed(nothing, timeout=1)]

    assert run(flow()) == []


def test_as_completed_refuses_a_single_awaitable() -> None:
    async def flow() -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.as_completed(future)

    with pytest.raises(TypeError, match="expects an iterable of awaitables"):
        run(flow())


def test_as_completed_yields_the_given_tasks_to_async_for() -> None:
    async def flow() -> list[str]:
        tasks = {asyncio.ensure_future(sleep_and_give(3 - n, n)): f"task {n}" for n in range(3)}
        completions: Any = asyncio.as_completed(tasks)
        return [tasks[one] async for one in completions]

    assert run(flow()) == ["task 2", "task 1", "task 0"]


def test_async_for_over_as_completed_raises_on_timeout() -> None:
    async def flow() -> list[str]:
        seen = []
        completions: Any = asyncio.as_completed([sleep_and_give(1, "in time"), sleep_and_give(20, "late")], timeout=10)
        try:
            async for one in completions:
                seen += [one.result()]
        except TimeoutError:
            seen.append("timeout")
        return seen

    assert run(flow()) == ["in time", "timeout"]


async def test_ordinary_loop_keeps_the_original_as_completed() -> None:
    completions: Any = asyncio.as_completed([sleep_and_give(0, "a"), sleep_and_give(0, "b")])

    assert not isinstance(completions, deterministic_asyncio.Completions)
    assert {await one for one in completions} == {"a", "b"}


# --- all_tasks and gather ---


async def test_ordinary_loop_keeps_its_tasks() -> None:
    task = asyncio.ensure_future(sleep_and_give(0, "a"))

    assert asyncio.all_tasks() == {task, asyncio.current_task()}
    await task


def test_all_tasks_are_those_of_the_workflow_that_are_not_done() -> None:
    async def flow() -> bool:
        done = asyncio.ensure_future(sleep_and_give(0, "done"))
        await done
        late = asyncio.ensure_future(sleep_and_give(1, "late"))
        found = asyncio.all_tasks()
        await late
        return found == {late, asyncio.current_task()}

    assert run(flow()) is True


async def test_ordinary_future_of_gather_hashes_by_identity() -> None:
    gathering = asyncio.gather(asyncio.sleep(0))

    assert hash(gathering) == object.__hash__(gathering)
    await gathering


def test_future_of_gather_hashes_the_same_on_every_replay() -> None:
    async def flow() -> list[int]:
        gatherings = [asyncio.gather(asyncio.sleep(0)) for _ in range(3)]
        hashes = [hash(one) for one in [*gatherings, *gatherings]]
        await asyncio.wait(gatherings)
        return hashes

    first, second = run(flow()), run(flow())

    assert first == second
    assert first[:3] == first[3:]
    assert len(set(first)) == 3


def test_installing_twice_changes_nothing() -> None:
    before = (asyncio.as_completed, asyncio.tasks.as_completed, asyncio.all_tasks, asyncio.tasks.all_tasks)

    deterministic_asyncio.install()

    assert (asyncio.as_completed, asyncio.tasks.as_completed, asyncio.all_tasks, asyncio.tasks.all_tasks) == before
    assert before[0] is before[1] is deterministic_asyncio.as_completed


# --- the same in every process: other hash seeds, other addresses, other executions ---


@pytest.mark.parametrize("name", FLOWS)
def test_order_is_the_same_in_every_process(name: str) -> None:
    processes = [start_process(name, seed) for seed in range(4)]

    logs = [read_output(process) for process in processes]

    assert len(logs[0]) >= 10
    assert all(log == logs[0] for log in logs)


def start_process(name: str, seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.code.asyncio_flows import print_log; print_log({name!r}, {seed})"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_output(process: subprocess.Popen[str]) -> list[str]:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.splitlines()
