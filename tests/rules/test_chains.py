"""S1, S7 and C5 in chains of runs that each take one of many waiting signals, several runs in one transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Status, WorkflowCancelled, workflow
from holdfast.code.definitions import Workflow
from tests.rules.world import Nodes, World

LONG = 450
"""Runs that need several transactions."""


@workflow
async def one_each(ctx: Context, taken: int, last: int) -> list[Any]:
    """Takes one message in each run, the first only when told; fails unless they are in order. Ends with what is left."""
    if taken == 0:
        await ctx.wait_for_signal("go")
    message = await ctx.wait_for_signal("m")
    if message != taken:
        raise ValueError(f"message {message} came in the place of {taken}")
    if taken + 1 < last:
        ctx.continue_as(taken + 1, last)
    return [taken + 1, ctx.drain_signals("m"), ctx.drain_signals("x")]


@workflow
async def two_each(ctx: Context, runs: int, last: int) -> int:
    """Takes a message in every other run."""
    if runs == 0:
        await ctx.wait_for_signal("go")
    if runs % 2 == 0:
        await ctx.wait_for_signal("m")
    if runs + 1 < 2 * last:
        ctx.continue_as(runs + 1, last)
    return runs + 1


@workflow
async def on_ticks(ctx: Context, ticks: int) -> list[Any]:
    """Takes a tick in each run and no message; ends with the messages."""
    await ctx.wait_for_signal("tick")
    if ticks > 1:
        ctx.continue_as(ticks - 1)
    return ctx.drain_signals("m")


ALL: list[Workflow[..., Any]] = [one_each, two_each, on_ticks]


async def send(engine: Any, *numbers: int) -> None:
    """Messages, in order, each answered before the next but one is sent."""
    await asyncio.gather(*(engine.signal_workflow("w", "m", number) for number in numbers))


async def test_S7_a_chain_takes_waiting_signals_one_by_one_and_in_order(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, LONG, workflow_id="w")
    await send(engine, *range(LONG))

    await engine.signal_workflow("w", "go")

    assert await handle.result() == [LONG, [], []]
    runs = await engine.list(workflow_id="w", limit=2 * LONG)
    assert len(runs) == LONG
    middle = await engine.history(runs[LONG // 2].execution_id)
    assert middle.kinds == ["WorkflowStarted", "SignalReceived", "ContinuedAs"]


async def test_S7_signals_of_other_names_go_along_from_run_to_run(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, LONG, workflow_id="w")
    for first in range(0, LONG, 50):
        await engine.signal_workflow("w", "x", first)
        await send(engine, *range(first, first + 50))
    await engine.signal_workflow("w", "x", "end")

    await engine.signal_workflow("w", "go")

    assert await handle.result() == [LONG, [], [*range(0, LONG, 50), "end"]]


@pytest.mark.parametrize("before", [20, 300])
async def test_S1_what_runs_were_given_and_did_not_take_stays_in_front(alone: World, before: int) -> None:
    engine = await alone.open(ALL)
    await engine.start(on_ticks, 250, workflow_id="w")
    await send(engine, *range(before))

    signals = [signal for number in range(before, before + 250) for signal in (("tick", None), ("m", number))]
    await asyncio.gather(*(engine.signal_workflow("w", name, value) for name, value in signals))

    assert await engine.handle("w").result() == [*range(before + 250)]


async def test_S7_a_chain_goes_on_after_a_crash_in_the_middle(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, LONG, workflow_id="w")
    await engine.signal_workflow("w", "x", 1, request_id="r")
    await send(engine, *range(LONG))
    await engine.signal_workflow("w", "go")

    await engine.restart()
    await engine.signal_workflow("w", "x", 1, request_id="r")

    assert await handle.result() == [LONG, [], [1]]


async def test_S7_a_chain_that_ends_is_given_all_that_still_waits(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, LONG - 150, workflow_id="w")
    await send(engine, *range(LONG))

    await engine.signal_workflow("w", "go")

    assert await handle.result() == [LONG - 150, [*range(LONG - 150, LONG)], []]


async def test_S1_signals_that_come_while_a_chain_is_under_way_keep_their_order(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, LONG, workflow_id="w")
    await send(engine, *range(LONG - 100))
    await engine.signal_workflow("w", "go")

    for number in range(LONG - 100, LONG):
        answers = [engine.signal_workflow("w", "m", number, request_id=f"m-{number}") for _ in range(2)]
        await asyncio.gather(*answers)

    assert await handle.result() == [LONG, [], []]


async def test_S7_a_cancel_reaches_a_chain_that_is_under_way(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(one_each, 0, 2 * LONG, workflow_id="w")
    await send(engine, *range(LONG))

    _, cancelled = await asyncio.gather(engine.signal_workflow("w", "go"), engine.cancel("w"))

    assert cancelled
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    statuses = {run.status for run in await engine.list(workflow_id="w", limit=2 * LONG)}
    assert statuses == {Status.CONTINUED, Status.CANCELLED}


async def test_C5_a_chain_may_be_longer_than_one_without_signals(alone: World) -> None:
    engine = await alone.open(ALL, max_signals=100)
    handle = await engine.start(two_each, 0, 700, workflow_id="w")
    await send(engine, *range(99))
    await engine.signal_workflow("w", "go")

    for first in range(99, 700, 99):
        await engine.settle()
        await send(engine, *range(first, min(700, first + 99)))

    assert await handle.result() == 1400


async def test_S1_signals_of_another_node_reach_a_chain_in_order(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    await one.start(one_each, 0, LONG, workflow_id="w")
    await send(one, *range(LONG - 60))
    going = asyncio.ensure_future(one.signal_workflow("w", "go"))

    for number in range(LONG - 60, LONG):
        await two.signal_workflow("w", "m", number)
    await going
    await nodes.clock.settle()

    assert await two.query_result("w") == [LONG, [], []]


async def test_S7_a_chain_loses_nothing_where_its_beginning_is_lost_to_a_delivery(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    await one.start(one_each, 0, LONG, workflow_id="w")
    await send(one, *range(LONG))
    nodes.pause("one")
    going = asyncio.ensure_future(one.signal_workflow("w", "go"))
    await nodes.paused("one")

    await two.signal_workflow("w", "x", 7)
    nodes.resume("one")
    await going
    await nodes.clock.settle()

    assert await two.query_result("w") == [LONG, [], [7]]


@pytest.mark.parametrize("replaces", [False, True])
async def test_C5_a_chain_under_way_is_terminated_at_once(world: World, *, replaces: bool) -> None:
    engine = await world.open(ALL)
    await engine.start(one_each, 0, 2 * LONG, workflow_id="w")
    await send(engine, *range(2 * LONG))
    await engine.signal_workflow("w", "go")

    if replaces:
        await engine.start(on_ticks, 1, workflow_id="w", on_open="terminate_existing")
    else:
        assert await engine.terminate("w")
    await engine.settle()

    runs = await engine.list(workflow_id="w", limit=2 * LONG)
    ends = [run.status for run in runs if run.status is not Status.CONTINUED]
    assert sorted(ends) == sorted([Status.TERMINATED, *[Status.SUSPENDED] * replaces])
    assert len(runs) < 2 * LONG
