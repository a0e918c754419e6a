"""D2: executions that compute for long, though each less than the limit of a turn, do not hold up others together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, Engine, Status, workflow
from holdfast.engine.turns import turn_taking

ROUNDS = 48


computed: list[None] = []
"""Grows by one with each long computation."""


def compute() -> None:
    computed.append(None)
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass


@workflow
async def computes(ctx: Context, number: int) -> int:
    ctx.side_effect(compute)
    return number


@workflow
async def starts_children(ctx: Context) -> int:
    return len(await asyncio.gather(*[ctx.run_child(computes, number) for number in range(ROUNDS)]))


@workflow
async def continues(ctx: Context, left: int) -> int:
    ctx.side_effect(compute)
    if left:
        ctx.continue_as(left - 1)
    return left


@workflow
async def computes_for_signals(ctx: Context) -> list[int]:
    got: list[int] = []
    while len(got) < ROUNDS:
        got.append(await ctx.wait_for_signal("number", int))
        ctx.side_effect(compute)
    return got


@workflow
async def computes_when_told(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    ctx.side_effect(compute)


@workflow
async def collects(ctx: Context, count: int) -> list[int]:
    return [len(await ctx.wait_for_signal("text", str)) for _ in range(count)]


@workflow
async def quick(ctx: Context) -> int:
    return 1


WORKFLOWS: list[Any] = [collects, computes, computes_for_signals, computes_when_told, continues, quick, starts_children]


async def begin_children(engine: Engine) -> Any:
    return await (await engine.start(starts_children)).result()


async def begin_runs(engine: Engine) -> Any:
    return await (await engine.start(continues, ROUNDS)).result()


async def begin_signals(engine: Engine) -> Any:
    handle = await engine.start(computes_for_signals, workflow_id="signals")
    await asyncio.gather(*(engine.signal_workflow("signals", "number", number) for number in range(ROUNDS)))
    return await handle.result()


@pytest.mark.parametrize(
    ("begin", "expected"),
    [(begin_children, ROUNDS), (begin_runs, 0), (begin_signals, list(range(ROUNDS)))],
    ids=["children", "next runs", "signals"],
)
async def test_D2_what_computes_for_long_lets_others_come_between(
    url: str, begin: Callable[[Engine], Awaitable[Any]], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_taking, "MOST_SECONDS", 0.02)
    async with Engine(url, workflows=WORKFLOWS) as engine:
        running = asyncio.ensure_future(begin(engine))
        waits: list[int] = []
        while not running.done():
            before = len(computed)
            await (await engine.start(quick)).result()
            waits.append(len(computed) - before)
            await asyncio.sleep(0.001)

        assert await running == expected
        assert len(waits) >= ROUNDS // 10, "others wait for some of them, not for all"
        assert max(waits) <= ROUNDS // 2, "nobody waits for most of them"


async def test_D2_request_behind_many_that_compute_for_long_waits_for_a_batch_or_two(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_taking, "MOST_SECONDS", 0.02)
    async with Engine(url, workflows=WORKFLOWS) as engine:
        handles = [await engine.start(computes_when_told) for _ in range(ROUNDS)]
        before = len(computed)
        told = [asyncio.ensure_future(handle.signal("go", None)) for handle in handles]
        await asyncio.sleep(0)

        await (await engine.start(quick)).result()

        assert len(computed) - before <= ROUNDS // 2, "those in front of it in the queue, whose code takes long"
        await asyncio.gather(*told)
        await asyncio.gather(*(handle.result() for handle in handles))


async def test_D2_signals_that_are_too_large_together_are_taken_in_several_turns_in_order(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=100_000) as engine:
        handle = await engine.start(collects, 40, workflow_id="collects")
        texts = ["x" * (5_000 + number) for number in range(40)]

        await asyncio.gather(*(engine.signal_workflow("collects", "text", text) for text in texts))

        assert await handle.result() == [len(text) for text in texts]
        assert (await handle.status()).status is Status.COMPLETED
