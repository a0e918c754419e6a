"""Workflows whose order asyncio could spoil, and a loop to run them on.

`test_deterministic_asyncio.py` runs them in many processes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from holdfast.code import deterministic_asyncio
from holdfast.code.loop import WorkflowLoop, close_coroutine

deterministic_asyncio.set_loop_type(WorkflowLoop)
deterministic_asyncio.install()


class Clock:
    """Durable timers for a loop without an engine: they fire in the order of their due times."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = WorkflowLoop("order", seed, self.start, self.cancel)  # type: ignore[abstract]
        self.timers: dict[int, int] = {}
        self.count = 0

    def start(self, due: int) -> int:
        self.count += 1
        self.timers[self.count] = due
        return self.count

    def cancel(self, number: int) -> None:
        del self.timers[number]

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        task = self.loop.create_task(main)
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)
        try:
            self.loop.run_ready(10_000)
            while not task.done():
                number = min(self.timers, key=lambda one: (self.timers[one], one))
                self.loop.now = self.timers.pop(number)
                self.loop.fire_timer(number)
                self.loop.run_ready(10_000)
        finally:
            asyncio._set_running_loop(outer)
        return task.result()


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return Clock().run(main)


async def sleep_and_give(seconds: float, value: Any) -> Any:
    await asyncio.sleep(seconds)
    return value


async def _start_by_as_completed(log: list[str]) -> None:
    async def step(number: int) -> None:
        log.append(f"start {number}")
        await asyncio.sleep(number % 3)
        log.append(f"end {number}")

    for one in asyncio.as_completed([step(number) for number in range(20)]):
        await one


async def _wait_for_tasks(log: list[str]) -> None:
    tasks = {asyncio.ensure_future(sleep_and_give(n % 4, n)): n for n in range(30)}
    pending: set[asyncio.Future[Any]] = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        log.extend(f"done {tasks[one]}" for one in done)  # type: ignore[index]
        log.extend(f"pending {tasks[one]}" for one in pending)  # type: ignore[index]


async def _wait_for_gatherings(log: list[str]) -> None:
    gatherings: dict[Any, int] = {asyncio.gather(asyncio.sleep(n % 3)): n for n in range(30)}
    done, _ = await asyncio.wait(list(gatherings))
    log.extend(f"done {gatherings[one]}" for one in done)


async def _cancel_by_task_group(log: list[str]) -> None:
    async def step(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            log.append(f"cancelled {number}")

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(30):
                group.create_task(step(number))
            group.create_task(fail())
    except* ValueError:
        log.append("failed")


async def _cancel_all_tasks(log: list[str]) -> None:
    async def step(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            log.append(f"cancelled {number}")

    tasks, spacers = [], []
    for number in range(30):
        tasks.append(asyncio.ensure_future(step(number)))
        # So many that the hashes of the tasks meet in a set of this size.
        spacers.append([asyncio.get_running_loop().create_future() for _ in range(63)])
    await asyncio.sleep(0)
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _use_the_rest(log: list[str]) -> None:
    barrier, lock, condition = asyncio.Barrier(5), asyncio.Lock(), asyncio.Condition()
    work: asyncio.Queue[int] = asyncio.Queue(maxsize=2)

    async def step(number: int) -> int:
        async with lock:
            log.append(f"lock {number}")
        log.append(f"barrier {await barrier.wait()} {number}")
        async with condition:
            condition.notify(2)
            try:
                await asyncio.wait_for(condition.wait(), 1 + number)
            except TimeoutError:
                log.append(f"timeout {number}")
        await work.put(number)
        return await asyncio.shield(sleep_and_give(number % 2, number))

    gathering = asyncio.gather(*(step(number) for number in range(5)))
    log.extend([f"work {await work.get()}" for _ in range(5)])
    log.append(str(await gathering))


FLOWS: dict[str, Callable[[list[str]], Awaitable[None]]] = {
    "as_completed": _start_by_as_completed,
    "wait": _wait_for_tasks,
    "wait for gather": _wait_for_gatherings,
    "TaskGroup": _cancel_by_task_group,
    "all_tasks": _cancel_all_tasks,
    "the rest": _use_the_rest,
}


def print_log(name: str, disorder: int) -> None:
    """Run a flow beside other executions, with objects at other addresses than in the next process."""
    source = random.Random(disorder)
    holes = [bytes(size) for size in range(64, 1024, 16) for _ in range(100)]
    source.shuffle(holes)
    del holes[::2]
    others = [Clock(seed) for seed in range(disorder)]
    kept = [other.loop.create_task(sleep_and_give(1, other)) for other in others for _ in range(40)]
    log: list[str] = []

    async def main() -> None:
        await FLOWS[name](log)

    Clock(seed=12345).run(main())
    for other in others:
        other.loop.close_tasks(close_coroutine)
    assert len(kept) == 40 * disorder
    print("\n".join(log))
