"""C2: children have ids of their own, the same on every replay, and inherit queue and org."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Context, workflow
from holdfast.core import events
from tests.rules.world import World


@workflow
async def child(ctx: Context, how: str) -> str:
    if how == "wait":
        return await ctx.wait_for_signal("go", str)
    return how


@workflow
async def runs_one(ctx: Context, how: str) -> str:
    return await ctx.run_child(child, how, workflow_id="child")


@workflow
async def two_in_a_row(ctx: Context) -> list[str]:
    first = ctx.start_child(child, "first")
    second = ctx.start_child(child, "second")
    results = [await first, await second]
    await ctx.wait_for_signal("end")
    third = ctx.start_child(child, "third")
    return [first.execution_id, second.execution_id, third.execution_id, *results, await third]


@pytest.mark.parametrize("crash", [False, True])
async def test_C2_two_children_in_a_row_have_different_ids_on_every_replay(world: World, crash: bool) -> None:
    engine = await world.open([child, runs_one, two_in_a_row])
    handle = await engine.start(two_in_a_row)
    await engine.settle()
    for _ in range(2):
        if crash:
            await engine.restart()

    await handle.signal("end")
    *ids, first, second, third = await handle.result()

    history = (await handle.history()).events
    recorded = [one.event.execution_id for one in history if isinstance(one.event, events.ChildStarted)]
    assert len(set(ids)) == 3
    assert ids == recorded
    assert [first, second, third] == ["first", "second", "third"]
    assert {info.execution_id for info in await engine.list(workflow=child)} == set(ids)


async def test_C2_children_of_two_parents_have_different_ids(world: World) -> None:
    engine = await world.open([child, runs_one, two_in_a_row])

    handles = await asyncio.gather(*(engine.start(two_in_a_row) for _ in range(10)))
    await engine.settle()

    assert len(handles) == 10
    assert len({info.execution_id for info in await engine.list(workflow=child)}) == 20


async def test_C2_a_child_inherits_queue_and_org(world: World) -> None:
    engine = await world.open([child, runs_one, two_in_a_row], queues=["slow"])
    handle = await engine.start(runs_one, "wait", org="ours", queue="slow")
    await engine.settle()

    info = await engine.query_status("child", org="ours")

    assert (info.org, info.queue, info.parent_execution_id) == ("ours", "slow", handle.execution_id)
    assert await engine.list() == []


async def test_C2_grandchildren_inherit_queue_and_org(world: World) -> None:
    engine = await world.open([child, runs_one, grandparent], queues=["slow"])
    await engine.start(grandparent, org="ours", queue="slow")
    await engine.settle()

    infos = await engine.list(org="ours")

    assert {info.queue for info in infos} == {"slow"}
    assert {info.workflow for info in infos} == {"grandparent", "runs_one", "child"}


@workflow
async def grandparent(ctx: Context) -> str:
    return await ctx.run_child(runs_one, "wait")


async def test_C2_a_child_records_the_version_of_its_own_code(world: World) -> None:
    engine = await world.open([parent_of_versioned, versioned])
    await (await engine.start(parent_of_versioned)).result()

    info = await engine.query_status("child")

    assert info.code_version == "7"


@workflow(version="7")
async def versioned(ctx: Context) -> None:
    pass


@workflow
async def parent_of_versioned(ctx: Context) -> None:
    await ctx.run_child(versioned, workflow_id="child")
