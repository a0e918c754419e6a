"""S7, C1: a first turn that loses the lock of what it waits for does not leave its chain or its parent behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, ExecutionClosed, MessageOutcome, MessageRefused, workflow
from holdfast.store.memory.faults import FaultAction, Point
from tests.eventually import eventually
from tests.rules.world import Nodes, once

DELIVERED = MessageOutcome(delivered=True)


@workflow
async def first_go_then_paid(ctx: Context, has_gone: bool = False) -> Any:
    """Waits for a signal, and in its next run for a message."""
    if not has_gone:
        await ctx.wait_for_signal("go")
        ctx.continue_as(has_gone=True)
    return await ctx.wait_for_message("paid", "k")


@workflow
async def payee(ctx: Context) -> Any:
    return await ctx.wait_for_message("paid", "k")


@workflow
async def parent(ctx: Context) -> Any:
    return await ctx.run_child(payee)


async def test_S7_next_run_that_does_not_get_the_lock_of_its_wait_comes_later(nodes: Nodes) -> None:
    engine = await nodes.open("one", [first_go_then_paid])
    handle = await engine.start(first_go_then_paid)
    nodes.faults["one"] = once(Point.WRITE_SUBSCRIBE, FaultAction.SKIP)

    await handle.signal("go")

    await eventually(lambda: send(engine))
    assert await handle.result() == 1


async def test_C1_child_that_does_not_get_the_lock_of_its_wait_comes_later(nodes: Nodes) -> None:
    engine = await nodes.open("one", [parent, payee])
    nodes.faults["one"] = once(Point.WRITE_SUBSCRIBE, FaultAction.SKIP)

    handle = await engine.start(parent)

    await eventually(lambda: send(engine))
    assert await handle.result() == 1


async def send(engine: Any) -> bool:
    """Whether somebody waited for the message."""
    try:
        return bool(await engine.send_message("paid", "k", 1) == DELIVERED)
    except Exception:
        return False


@workflow
async def go_or_paid(ctx: Context, gone: int = 0) -> list[Any]:
    """Continues when it is told to; what else has come is for the next run."""
    winner = await ctx.wait_any(ctx.signal("go"), ctx.message("paid", "k"))
    if winner.index == 0:
        ctx.continue_as(gone + 1)
    return [gone, winner.value]


async def test_S7_message_that_arrives_while_an_execution_continues_reaches_the_next_run(nodes: Nodes) -> None:
    one = await nodes.open("one", [go_or_paid])
    two = await nodes.open("two", [go_or_paid])
    handle = await one.start(go_or_paid)
    nodes.pause("one")
    going = asyncio.create_task(handle.signal("go"))
    await nodes.paused("one")

    sent = await two.send_message("paid", "k", 7)
    nodes.resume("one")
    (outcome,) = await asyncio.gather(going, return_exceptions=True)

    assert sent == DELIVERED
    if isinstance(outcome, ExecutionClosed):  # the message came first, and ended it
        assert await handle.result() == [0, 7]
    else:
        assert await handle.result() == [1, 7]
    assert await two.dead_letters() == []


@workflow
async def hands_on(ctx: Context) -> Any:
    """Continues as a workflow for which nobody may have the code yet."""
    winner = await ctx.wait_any(ctx.signal("go"), ctx.message("paid", "k"))
    if winner.index == 0:
        ctx.continue_as(workflow="payee")
    return winner.value


async def test_S7_message_that_was_delivered_waits_for_a_next_run_that_has_not_begun(nodes: Nodes) -> None:
    one = await nodes.open("one", [hands_on])
    two = await nodes.open("two", [hands_on])
    handle = await one.start(hands_on, workflow_id="w")
    nodes.pause("one")
    going = asyncio.create_task(handle.signal("go"))
    await nodes.paused("one")
    assert await two.send_message("paid", "k", 7) == DELIVERED
    nodes.resume("one")
    (outcome,) = await asyncio.gather(going, return_exceptions=True)
    if isinstance(outcome, ExecutionClosed):  # the message came first, and ended it
        return

    await eventually(lambda: has_arrived(two))
    assert await two.dead_letters() == []
    three = await nodes.open("three", [payee])
    await nodes.clock.advance(seconds=5)

    assert await three.handle("w").result() == 7
    with pytest.raises(MessageRefused):
        await three.send_message("paid", "k", 8)


async def has_arrived(engine: Any) -> bool:
    """Whether the message waits for the next run, or is a dead letter."""
    return len((await engine.query_status("w")).inbox) > 1 or bool(await engine.dead_letters())
