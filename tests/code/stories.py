"""Workflows that use all of asyncio, played to their end. Run as a program it prints what each of them asked for.

Whatever the hash seed and wherever objects lie in memory, two processes must print the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from holdfast import Context, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from tests.code.playing import Play, replay


@activity
async def work(name: str) -> str:
    return name


async def step(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


NAMES = [f"item-{number}" for number in range(12)]


@workflow
async def gathering(ctx: Context) -> list[str]:
    return await asyncio.gather(*(step(ctx, name) for name in NAMES))


@workflow
async def gathering_groups(ctx: Context) -> list[str]:
    inner = [asyncio.gather(step(ctx, f"{name}-a"), step(ctx, f"{name}-b")) for name in NAMES]
    done, _ = await asyncio.wait(inner)
    return [await step(ctx, "-".join(one.result())) for one in done]


@workflow
async def waiting_for_all(ctx: Context) -> list[str]:
    done, pending = await asyncio.wait([asyncio.create_task(step(ctx, name)) for name in NAMES])
    assert not pending
    return [await ctx.run(work, task.result()) for task in done]


@workflow
async def waiting_for_the_first(ctx: Context) -> list[str]:
    pending = {asyncio.create_task(step(ctx, name)) for name in NAMES}
    order = []
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        order += [await ctx.run(work, task.result()) for task in done]
    return order


@workflow
async def waiting_with_a_timeout(ctx: Context) -> list[str]:
    tasks = {asyncio.create_task(asyncio.sleep(number % 5, name)) for number, name in enumerate(NAMES)}
    done, pending = await asyncio.wait(tasks, timeout=2.5)
    for task in pending:
        task.cancel()
    return [await ctx.run(work, task.result()) for task in done]


@workflow
async def as_they_complete(ctx: Context) -> list[str]:
    return [await step(ctx, await one) for one in asyncio.as_completed([step(ctx, name) for name in NAMES])]


@workflow
async def as_sets_complete(ctx: Context) -> list[str]:
    tasks = {asyncio.create_task(step(ctx, name)) for name in NAMES}
    return [await step(ctx, await one) for one in asyncio.as_completed(tasks, timeout=60)]


@workflow
async def grouping(ctx: Context) -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(step(ctx, name)) for name in NAMES]
    return [task.result() for task in tasks]


@workflow
async def grouping_with_failures(ctx: Context) -> list[str]:
    cleaned: list[str] = []

    async def cautious(name: str) -> None:
        try:
            await step(ctx, name)
        finally:
            cleaned.append(name)
            await step(ctx, f"clean {name}")

    try:
        async with asyncio.TaskGroup() as group:
            for name in (*NAMES, "fails"):
                group.create_task(cautious(name))
    except* Exception as errors:
        cleaned += [type(error).__name__ for error in errors.exceptions]
    return cleaned


@workflow
async def cancelling_everything(ctx: Context) -> list[str]:
    async def cautious(name: str) -> None:
        try:
            await ctx.sleep(60)
        except asyncio.CancelledError:
            await step(ctx, name)

    tasks = [asyncio.create_task(cautious(name)) for name in NAMES]
    await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.gather(*tasks)
    return [task.get_name() for task in tasks]


@workflow
async def racing_for_a_lock(ctx: Context) -> list[str]:
    lock, limit, order = asyncio.Lock(), asyncio.Semaphore(3), []

    async def enter(name: str) -> None:
        async with limit:
            await step(ctx, name)
            async with lock:
                order.append(await step(ctx, f"locked {name}"))

    await asyncio.gather(*(enter(name) for name in NAMES))
    return order


@workflow
async def passing_things_on(ctx: Context) -> list[str]:
    queue: asyncio.Queue[str] = asyncio.Queue(maxsize=2)
    ready, order = asyncio.Condition(), []

    async def consume() -> None:
        while True:
            order.append(await step(ctx, await queue.get()))
            queue.task_done()
            async with ready:
                ready.notify_all()

    consumers = [asyncio.create_task(consume()) for _ in range(3)]
    for name in NAMES:
        await queue.put(name)
    async with ready:
        await ready.wait_for(lambda: len(order) == len(NAMES))
    await queue.join()
    for one in consumers:
        one.cancel()
    await asyncio.wait(consumers)
    return order


@workflow
async def waiting_for_signals(ctx: Context) -> list[str]:
    event, order = asyncio.Event(), []

    async def listen(name: str) -> str:
        value = await asyncio.wait_for(ctx.wait_for_signal(name, str), timeout=3600)
        event.set()
        return value

    tasks = {asyncio.create_task(listen(name)) for name in ("a", "b", "c")}
    await event.wait()
    while tasks:
        done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        order += [await step(ctx, task.result()) for task in done]
    winner = await ctx.wait_any(ctx.signal("d"), ctx.signal("e"), ctx.timer(5), asyncio.create_task(asyncio.sleep(9)))
    return [*order, str(winner.index)]


@workflow
async def everything_random(ctx: Context) -> list[str]:
    names = list(NAMES)
    ctx.random.shuffle(names)
    async with asyncio.timeout(3600):
        await asyncio.shield(asyncio.gather(*(step(ctx, name) for name in names)))
    await ctx.sleep(ctx.random.uniform(1, 10))
    return [*names, str(ctx.uuid4()), str(ctx.uuid4()), str(ctx.random.random()), ctx.now().isoformat()]


STORIES: dict[str, Workflow[..., Any]] = {
    one.name: one
    for one in (
        gathering,
        gathering_groups,
        waiting_for_all,
        waiting_for_the_first,
        waiting_with_a_timeout,
        as_they_complete,
        as_sets_complete,
        grouping,
        grouping_with_failures,
        cancelling_everything,
        racing_for_a_lock,
        passing_things_on,
        waiting_for_signals,
        everything_random,
    )
}
SIGNALS = [("b", "2"), ("c", "3"), ("a", "1"), ("e", "5")]


def answer(_name: str, args: list[Any]) -> Any:
    if args[0] == "fails":
        raise ValueError(args[0])
    return args[0]


def play(name: str) -> list[dict[str, Any]]:
    """The exported history of one story."""
    story = Play(STORIES[name])
    story.run(answer, SIGNALS)
    story.program.close()
    return codec.export_history(story.history)


def main(histories: str = "") -> None:
    """Print each story's history; those that are given are replayed first."""
    if histories:
        for name, history in json.loads(histories).items():
            error = replay(STORIES[name], codec.import_history(history))
            assert error is None, error
    print(json.dumps({name: play(name) for name in STORIES}))


if __name__ == "__main__":
    # So that nothing lies in memory where it lay in another process.
    garbage = [[object() for _ in range(hash(str(one)) % 97)] for one in range(int(sys.argv[1]))]
    main(sys.stdin.read())
