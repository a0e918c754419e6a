"""D2: executions that compute for long, though each less than the limit of a turn, do not hold up others together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, Engine, Status, workflow
from holdfast.engine.turns import turn_taking
from holdfast.errors import ExecutionNotFound, TurnTooLarge
from tests.eventually import eventually

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
async def never_rests(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    while True:
        pass


@workflow
async def collects(ctx: Context, count: int) -> list[int]:
    return [len(await ctx.wait_for_signal("text", str)) for _ in range(count)]


@workflow
async def collects_in_next_run(ctx: Context, count: int) -> list[int]:
    await ctx.wait_for_signal("go")
    ctx.continue_as(count, workflow=collects)


@workflow
async def echoes(ctx: Context, text: str) -> str:
    return text


@workflow
async def quick(ctx: Context) -> int:
    return 1


WORKFLOWS: list[Any] = [
    collects,
    collects_in_next_run,
    computes,
    computes_for_signals,
    computes_when_told,
    continues,
    echoes,
    never_rests,
    quick,
    starts_children,
]


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


async def test_D2_many_that_never_rest_hold_up_others_for_some_tries_and_not_for_all(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, turn_limit=0.2) as engine:
        handles = [await engine.start(never_rests) for _ in range(20)]
        told = [asyncio.ensure_future(handle.signal("go", None)) for handle in handles]
        await asyncio.sleep(0)
        tries: list[int] = []
        for _ in range(2):
            before = await count_blocked(engine)
            await (await engine.start(quick)).result()
            tries.append(await count_blocked(engine) - before)

        assert max(tries) <= len(handles) // 2, "each start waits for the batches that are under way"
        await asyncio.gather(*told)
        await eventually(lambda: is_all_blocked(engine, len(handles)))


async def count_blocked(engine: Engine) -> int:
    return len(await engine.list(status="blocked"))


async def is_all_blocked(engine: Engine, count: int) -> bool:
    return await count_blocked(engine) == count


async def test_D2_signals_that_are_too_large_together_are_taken_in_several_turns_in_order(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=100_000) as engine:
        handle = await engine.start(collects, 40, workflow_id="collects")
        texts = ["x" * (5_000 + number) for number in range(40)]

        await asyncio.gather(*(engine.signal_workflow("collects", "text", text) for text in texts))

        assert await handle.result() == [len(text) for text in texts]
        assert (await handle.status()).status is Status.COMPLETED


async def test_I3_signals_that_are_too_large_for_a_first_turn_follow_in_order(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=100_000) as engine:
        texts = ["x" * (5_000 + number) for number in range(40)]

        opened = await asyncio.gather(
            *(
                engine.signal_with_start_workflow("new", collects, 40, signal_name="text", signal_value=text)
                for text in texts
            )
        )

        assert sorted(await engine.handle("new").result()) == [len(text) for text in texts]
        assert [one.workflow_created for one in opened].count(True) == 1


async def test_C5_run_that_carries_more_than_a_turn_may_write_begins_all_the_same(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=100_000) as engine:
        handle = await engine.start(collects_in_next_run, 40, workflow_id="carries")
        texts = ["x" * (5_000 + number) for number in range(40)]
        for text in texts:
            await handle.signal("text", text)

        await handle.signal("go", None)

        assert await handle.result() == [len(text) for text in texts]


async def test_D2_start_that_is_larger_than_a_turn_may_write_is_refused_alone(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=10_000) as engine:
        large, small = await asyncio.gather(
            engine.start(echoes, "x" * 20_000, workflow_id="large"), engine.start(quick), return_exceptions=True
        )

        assert isinstance(large, TurnTooLarge)
        assert not isinstance(small, BaseException)
        assert await small.result() == 1
        with pytest.raises(ExecutionNotFound):
            await engine.query_status("large")


async def test_D2_end_with_more_signals_than_a_turn_may_write_is_blocked_before_its_first_turn(url: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, max_turn_bytes=100_000) as engine:
        await asyncio.gather(
            *(
                engine.signal_with_start_workflow("new", quick, signal_name="text", signal_value="x" * 5_000)
                for _ in range(40)
            )
        )

        await eventually(lambda: is_all_blocked(engine, 1))
        info = await engine.query_status("new")
        assert info.last_error is not None
        assert "to write at most 100,000 bytes of history" in str(info.last_error)
        assert len(info.inbox) == 41, "the start and what came with it"
