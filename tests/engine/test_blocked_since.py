"""Since when an execution is blocked: from the turn that could not be taken, however often it is tried in vain."""

from __future__ import annotations

from holdfast import Context, workflow
from holdfast.core.lifecycle import Status
from tests.engine.conftest import OpenEngine


@workflow(name="changing")
async def before_change(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    await ctx.sleep(5)


@workflow(name="changing")
async def after_change(ctx: Context) -> None:
    await ctx.sleep(5)
    await ctx.wait_for_signal("go")


async def test_O3_blocked_execution_says_since_when(open_engine: OpenEngine) -> None:
    engine = await open_engine(before_change)
    handle = await engine.start(before_change, workflow_id="w")
    await engine.settle()
    assert (await engine.query_status("w")).blocked_since is None
    await engine.clock.advance(hours=2)
    await engine.restart(workflows=[after_change])
    blocked_at = engine.clock.present
    await handle.signal("go")
    await engine.settle()

    told = await engine.query_status("w")
    assert told.status is Status.BLOCKED
    assert told.blocked_since == blocked_at

    await engine.clock.advance(hours=1)
    await engine.retry_blocked("w")
    await engine.settle()
    again, listed = await engine.query_status("w"), await engine.list(status="blocked")
    assert (again.status, again.blocked_since) == (Status.BLOCKED, told.blocked_since), "tried in vain, blocked all the time"
    assert [one.blocked_since for one in listed] == [told.blocked_since]

    await engine.restart(workflows=[before_change])
    await engine.retry_blocked("w")
    await engine.settle()
    assert (await engine.query_status("w")).blocked_since is None
    await engine.clock.advance(seconds=5)
    await handle.result()
