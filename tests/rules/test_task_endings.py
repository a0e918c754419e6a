"""H2: however an execution closes, none of its tasks stays open; a next run has its own."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Retry, workflow
from holdfast.testing import TestEngine
from tests.rules.world import World


@workflow
async def several(ctx: Context, how: str) -> None:
    tasks = [ctx.human_task(name, str, due=timedelta(days=9), escalate_after=timedelta(days=10)) for name in ("a", "b")]
    await ctx.wait_for_signal("go")
    if how == "continued":
        ctx.continue_as("completed")
    if how == "failed":
        raise ValueError("as asked")
    if how == "awaited":
        await asyncio.gather(*tasks)


CLOSINGS = ("completed", "failed", "continued", "retried", "run_timeout", "execution_timeout", "cancelled", "terminated")


def make_options(how: str) -> dict[str, Any]:
    if how == "retried":
        return {"retry": Retry(initial=1, max_attempts=2, jitter=0)}
    return {how: 60} if how.endswith("timeout") else {}


async def close(engine: TestEngine, handle: Any, how: str) -> None:
    if how in ("cancelled", "terminated"):
        await (handle.cancel() if how == "cancelled" else handle.terminate())
    elif how.endswith("timeout"):
        await engine.clock.advance(seconds=120)
    else:
        await handle.signal("go")
    await engine.settle()
    await engine.clock.advance(seconds=30)
    await engine.settle()


@pytest.mark.parametrize("how", CLOSINGS)
async def test_H2_a_closed_execution_has_no_open_task(world: World, how: str) -> None:
    engine = await world.open([several])
    handle = await engine.start(several, "failed" if how == "retried" else how, workflow_id="w", **make_options(how))
    await engine.settle()
    first = await engine.tasks()
    assert sorted(one.name for one in first) == ["a", "b"]
    await engine.claim_task(first[0].task_id, by="ann")

    await close(engine, handle, how)

    for one in first:
        ended = await engine.task(one.task_id)
        assert (ended.state, ended.ended_at is not None) == ("cancelled", True)
        assert (await engine.task_events(one.task_id))[-1].kind == "cancelled"
    rest = await engine.tasks()
    has_next = how in ("continued", "retried")
    assert sorted(one.name for one in rest) == (["a", "b"] if has_next else [])
    newest = (await engine.query_status("w")).execution_id
    assert {one.execution_id for one in rest} <= {newest}
    assert await engine.store.check() == []
    assert await engine.store.list_inbox("default", first[0].execution_id, "") == []


async def test_H2_one_task_of_several_ends_without_the_other(world: World) -> None:
    engine = await world.open([several])
    await engine.start(several, "awaited", workflow_id="w")
    await engine.settle()
    first, second = sorted(await engine.tasks(), key=lambda one: one.number)
    await engine.handle("w").signal("go")
    for one in (second, first):
        await engine.claim_task(one.task_id, by="ann")

    await engine.complete_task(second.task_id, "x", by="ann")
    assert (await engine.query_status("w")).active_task_id == first.task_id
    await engine.restart()
    await engine.complete_task(first.task_id, "y", by="ann")

    assert await engine.wait_for_result("w") is None
    assert (await engine.task(second.task_id)).result == "x"
