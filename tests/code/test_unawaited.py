"""What a workflow asks for and never awaits: that is said loudly when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Engine, Retry, activity, workflow
from holdfast.core.events import ActivityFailed, ChildFailed
from tests.eventually import eventually

calls: list[str] = []


@activity(retry=Retry(max_attempts=1))
async def fail(reason: str) -> None:
    raise ValueError(reason)


@activity
async def add(left: int, right: int = 1) -> int:
    calls.append("add")
    return left + right


@workflow
async def child(ctx: Context) -> str:
    return "child"


@workflow
async def failing_child(ctx: Context) -> str:
    raise ValueError("lost")


def warned(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if getattr(one, "event", None) == event]


FORGOTTEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "run": (lambda ctx: ctx.run(add, 1), "activity 'add'"),
    "run_by_name": (lambda ctx: ctx.run("add", 1), "activity 'add'"),
    "run_child": (lambda ctx: ctx.run_child(child), "child workflow 'child'"),
    "sleep": (lambda ctx: ctx.sleep(60), "a sleep"),
    "wait_for_signal": (lambda ctx: ctx.wait_for_signal("go"), "a wait for signal 'go'"),
    "wait_for_signal_with_timeout": (lambda ctx: ctx.wait_for_signal("go", timeout=60), "a wait for signal 'go'"),
}


@pytest.mark.parametrize("forgotten", FORGOTTEN)
async def test_call_that_is_never_awaited_is_warned_of(forgotten: str, caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        FORGOTTEN[forgotten][0](ctx)
        return "done"

    async with Engine("memory://", workflows=[story, child], activities=[add]) as engine:
        assert await (await engine.start(story, workflow_id="s")).result() == "done"

    (message,) = warned(caplog, "call_not_awaited")
    assert message.startswith(f"[s] the workflow asked for {FORGOTTEN[forgotten][1]}, never awaited it, and has ended: ")


async def test_what_is_meant_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def story(ctx: Context) -> Any:
        for one in (child, failing_child):
            _ = ctx.start_child(one)
        first = await ctx.wait_any(ctx.run(add, 1), ctx.run(add, 2), ctx.timer(60), ctx.signal("go"))
        waits: list[asyncio.Future[Any]] = [ctx.run(add, 3), ctx.sleep(3600)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        later = ctx.run(add, 4)
        await ctx.sleep(0.01)
        ctx.sleep(60).cancel()
        return [first.value, await later]

    async with Engine("memory://", workflows=[story, child, failing_child], activities=[add]) as engine:
        await (await engine.start(story)).result()

    assert warned(caplog, "call_not_awaited") == []
    assert warned(caplog, "task_not_awaited") == []


async def test_failure_that_nobody_awaits_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        loose: Any = ctx
        loose.run(fail, "broken")
        kept = ctx.run_child(failing_child)
        await ctx.wait_for_signal("go")
        return str(kept.done())

    async with Engine("memory://", workflows=[story, failing_child], activities=[fail]) as engine:
        handle = await engine.start(story, workflow_id="s")

        async def has_both() -> bool:
            kinds = {type(one.event) for one in (await engine.history("s")).events}
            return kinds >= {ActivityFailed, ChildFailed}

        await eventually(has_both)
        await handle.signal("go")
        assert await handle.result() == "True"

    first, second = sorted(warned(caplog, "task_not_awaited"))
    assert first.startswith("[s] activity 'fail' of the workflow raised ")
    assert second.startswith("[s] child workflow 'failing_child' of the workflow raised ")
