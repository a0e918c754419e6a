"""A4: an async activity that blocks the loop is named in the log with its place; one that waits or works is not."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from holdfast import Context, activity, workflow
from tests.engine.conftest import OpenEngine
from tests.eventually import PATIENCE, eventually


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_async_activity_that_blocks_the_loop_is_named_with_its_place(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    @activity
    async def block() -> bool:
        give_up = time.monotonic() + PATIENCE
        while "has blocked the event loop" not in caplog.text and time.monotonic() < give_up:
            time.sleep(0.01)
        return True

    @workflow
    async def order(ctx: Context) -> bool:
        return await ctx.run(block)

    engine = await open_engine(order, block, slow_turn=0.05)

    assert await (await engine.start(order, workflow_id="w")).result()
    assert "activity 'block' of 'w' (attempt 1) has blocked the event loop for 0." in caplog.text
    assert f"{__file__}" in caplog.text
    await eventually(lambda: "activity 'block' of 'w' (attempt 1) has let the event loop go on" in caplog.text)


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_loop_that_is_busy_or_waits_is_not_reported(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    end = threading.Event()

    @activity
    async def wait() -> None:
        await asyncio.sleep(0.8)

    @activity
    async def work() -> None:
        give_up = time.monotonic() + 0.8
        while time.monotonic() < give_up:
            await asyncio.sleep(0)

    @activity
    def block() -> None:
        end.wait(0.8)

    @workflow
    async def order(ctx: Context) -> None:
        await asyncio.gather(ctx.run(wait), ctx.run(work), ctx.run(block))

    engine = await open_engine(order, wait, work, block, slow_turn=0.5)
    await (await engine.start(order)).result()

    assert "blocked the event loop" not in caplog.text
