"""Programs are unloaded when there are too many: what they do on the way out has no effect, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging

import pytest

from holdfast import Context, Status, activity, workflow
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.eventually import eventually

RUNS: list[str] = []
COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


@pytest.fixture(autouse=True)
def _forget() -> None:
    RUNS.clear()


@activity
async def work(name: str) -> str:
    RUNS.append(name)
    return name


@workflow
async def tidy(ctx: Context, name: str) -> list[str]:
    try:
        words = [await ctx.wait_for_signal("word", str), await ctx.wait_for_signal("word", str)]
    finally:
        ctx.logger.info("tidying up %s", name)
        task = asyncio.create_task(_clean(ctx, name))
        await ctx.sleep(1)
        await ctx.run(work, f"clean {name}")
        await task
    return words


async def _clean(ctx: Context, name: str) -> None:
    await ctx.run(work, f"task of {name}")


async def test_evicted_programs_do_nothing_on_the_way_out_and_go_on_later(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast.workflow.tidy")
    engine = await open_engine(tidy, work, max_live_programs=1)
    handles = [await engine.start(tidy, str(number), workflow_id=f"tidy-{number}") for number in range(5)]
    for _ in range(2):
        for handle in handles:
            assert (await handle.history()).kinds.count("ActivityScheduled") == 0
            await handle.signal("word", "again")
            gc.collect()
    said = [record for record in caplog.records if record.name == "holdfast.workflow.tidy"]
    assert len(said) == 5, "each said it once, when it really ended"
    await engine.clock.advance(1)
    await eventually(lambda: len(RUNS) == 10)

    assert [await handle.result() for handle in handles] == [["again", "again"]] * 5
    assert sorted(RUNS) == sorted([f"clean {n}" for n in range(5)] + [f"task of {n}" for n in range(5)])
    assert await engine.store.check() == []


async def test_program_is_replayed_where_it_stood(open_engine: OpenEngine) -> None:
    starts: list[str] = []

    @workflow
    async def order(ctx: Context, name: str) -> str:
        starts.append(name)
        return await ctx.wait_for_signal("word", str)

    engine = await open_engine(order, max_live_programs=1)
    one = await engine.start(order, "one")
    other = await engine.start(order, "other")
    await other.signal("word", "cached")
    await one.signal("word", "replayed")

    assert [await one.result(), await other.result()] == ["replayed", "cached"]
    assert starts == ["one", "other", "one"]


async def test_history_that_is_too_heavy_is_unloaded(open_engine: OpenEngine) -> None:
    starts: list[int] = []

    @workflow
    async def order(ctx: Context, number: int) -> str:
        starts.append(number)
        await ctx.wait_for_signal("word")
        return await ctx.wait_for_signal("word", str)

    engine = await open_engine(order, max_live_bytes=10_000)
    handles = [await engine.start(order, number) for number in range(3)]
    for handle in handles:
        await handle.signal("word", "x" * 8_000)
    for handle in handles:
        await handle.signal("word", "end")

    assert [await handle.result() for handle in handles] == ["end"] * 3
    assert len(starts) > 3


async def test_cancel_reaches_an_execution_that_is_not_loaded(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> None:
        try:
            await ctx.wait_for_signal("word")
        except asyncio.CancelledError:
            await ctx.run(work, "clean up")
            raise

    engine = await open_engine(order, work, max_live_programs=1)
    first = await engine.start(order)
    await engine.start(order)
    await first.cancel()
    await eventually(lambda: RUNS)
    await engine.settle()

    assert (await first.status()).status is Status.CANCELLED
    assert RUNS == ["clean up"]


async def test_context_of_whoever_calls_reaches_no_workflow(open_engine: OpenEngine) -> None:
    @workflow
    async def curious(ctx: Context) -> list[str]:
        seen = [COLOUR.get()]
        await ctx.wait_for_signal("word")
        seen.append(COLOUR.get())
        await ctx.sleep(1)
        return [*seen, COLOUR.get()]

    COLOUR.set("of the opener")
    engine = await open_engine(curious, max_live_programs=1)
    COLOUR.set("of the caller")
    handle = await engine.start(curious)
    COLOUR.set("of the signaller")
    await handle.signal("word")
    await engine.clock.advance(1)

    assert await handle.result() == ["none", "none", "none"]


async def test_programs_that_ended_are_not_kept(open_engine: OpenEngine) -> None:
    @workflow
    async def quick(ctx: Context) -> str:
        return await ctx.run(work, "a")

    engine = await open_engine(quick, work)
    for _ in range(20):
        await (await engine.start(quick)).result()

    assert hooks.count_programs(engine) == 0


async def test_bare_except_does_not_hold_up_the_engine_when_it_is_unloaded(open_engine: OpenEngine) -> None:
    @workflow
    async def careless(ctx: Context) -> str:
        for _ in range(3):
            try:
                return await ctx.wait_for_signal("word", str)
            except:  # noqa: E722 - that is the point
                await ctx.run(work, "again")
        return "gave up"

    engine = await open_engine(careless, work, max_live_programs=1)
    handles = [await engine.start(careless) for _ in range(3)]
    for handle in handles:
        await handle.signal("word", "fine")

    assert [await handle.result() for handle in handles] == ["fine"] * 3
    assert RUNS == []
