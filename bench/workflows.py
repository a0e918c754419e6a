"""The workflows that the benchmarks run."""

from __future__ import annotations

from typing import Any

from holdfast import Activity, Context, Workflow, activity, workflow


@activity
async def add(x: int) -> int:
    """The activity of all benchmarks: returns its argument plus one."""
    return x + 1


@workflow
async def hello(ctx: Context, x: int) -> int:
    """A workflow that runs one activity."""
    return await ctx.run(add, x)


@workflow
async def chain(ctx: Context, n: int) -> int:
    """A workflow that runs `n` activities, one after the other."""
    x = 0
    for _ in range(n):
        x = await ctx.run(add, x)
    return x


@workflow
async def wait(ctx: Context) -> int:
    """A workflow that waits for one signal."""
    value: int = await ctx.wait_for_signal("go", int)
    return value


@workflow
async def wait_for_broadcast(ctx: Context) -> int:
    """A workflow that waits for one broadcast signal."""
    value: int = await ctx.wait_for_broadcast("go", int)
    return value


@workflow
async def count(ctx: Context, n: int) -> int:
    """A workflow that takes `n` signals: a history of 2 events and one per signal."""
    for _ in range(n):
        await ctx.wait_for_signal("tick")
    return n


@workflow
async def sleep(ctx: Context, seconds: float) -> float:
    """A workflow that sleeps, and returns how late it woke, in seconds."""
    due = ctx.now().timestamp() + seconds
    await ctx.sleep(seconds)
    return ctx.now().timestamp() - due


@workflow
async def nothing(ctx: Context) -> None:
    """A workflow that ends in its first turn."""


@workflow
async def chain_of_runs(ctx: Context, taken: int, last: int) -> int:
    """A workflow that takes one signal in each run, the first when it is told to."""
    if taken == 0:
        await ctx.wait_for_signal("go")
    await ctx.wait_for_signal("message")
    if taken + 1 < last:
        ctx.continue_as(taken + 1, last)
    return taken + 1


@workflow
async def chain_of_steps(ctx: Context, taken: int, last: int, wait_for: str) -> int:
    """A workflow that waits for one activity or timer in each run."""
    if wait_for == "timer":
        await ctx.sleep(0.001)
    else:
        await ctx.run(add, taken)
    if taken + 1 < last:
        ctx.continue_as(taken + 1, last, wait_for)
    return taken + 1


@workflow
async def count_after_go(ctx: Context, n: int) -> int:
    """A workflow that takes `n` signals in one run, once it is told to."""
    await ctx.wait_for_signal("go")
    for _ in range(n):
        await ctx.wait_for_signal("message")
    return n


WORKFLOWS: list[Workflow[..., Any]] = [
    hello,
    chain,
    wait,
    wait_for_broadcast,
    count,
    sleep,
    nothing,
    chain_of_runs,
    chain_of_steps,
    count_after_go,
]
ACTIVITIES: list[Activity[..., Any]] = [add]
