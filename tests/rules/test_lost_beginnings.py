"""An execution that begins in the batch of another, and whose wait another transaction has locked, begins later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Context, workflow
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.testing import TestEngine
from tests.rules.world import Nodes, once


@workflow
async def waits(ctx: Context, told: bool) -> str:
    first = await ctx.wait_for_signal("first", str) if told else ""
    return first + str(await ctx.wait_for_message("paid", "k"))


@workflow
async def parent(ctx: Context, told: bool) -> str:
    child = ctx.start_child(waits, told)
    if told:
        await child.signal("first", "told ")
    return str(await child)


@workflow
async def continues(ctx: Context, run: int) -> str:
    if run == 1:
        ctx.continue_as(2)
    return str(await ctx.wait_for_message("paid", "k"))


ALL: list[Any] = [waits, parent, continues]


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """A node for which the first begin of a wait is locked by somebody else."""
    nodes = Nodes()
    engine = await nodes.open("a", ALL)
    nodes.faults["a"] = once(Point.WRITE_SUBSCRIBE, FaultAction.SKIP)
    yield engine
    await nodes.close()


@pytest.mark.parametrize("told", [False, True])
async def test_C1_a_child_whose_first_wait_is_locked_begins_later(engine: TestEngine, told: bool) -> None:
    handle = await engine.start(parent, told, workflow_id="p")
    await engine.send_message("paid", "k", "now", ttl=60)

    assert await asyncio.wait_for(handle.result(), 20) == ("told now" if told else "now")


async def test_C5_a_run_whose_first_wait_is_locked_follows_later(engine: TestEngine) -> None:
    handle = await engine.start(continues, 1, workflow_id="c")
    await engine.send_message("paid", "k", "now", ttl=60)

    assert await asyncio.wait_for(handle.result(), 20) == "now"
