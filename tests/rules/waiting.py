"""Workflows that wait, at every point where a workflow can, and clean up when they are cancelled."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast import Context, Retry, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from tests.rules.steps import CALLS, call, gate, pass_gate


@activity
async def stubborn(name: str) -> str:
    """Takes no notice of being cancelled."""
    opening = gate(name)
    while not opening.is_set():
        try:
            await opening.wait()
        except asyncio.CancelledError:
            CALLS.append(f"{name} asked")
    return name


@activity(retry=Retry(initial=60, max_attempts=100))
async def failing(name: str) -> str:
    CALLS.append(name)
    raise ValueError(name)


@workflow
async def waits(ctx: Context, where: str) -> str:
    """Waits at one of the points where a workflow can."""
    if where == "signal":
        await ctx.wait_for_signal("never")
    elif where == "timed signal":
        await ctx.wait_for_signal("never", timeout=600)
    elif where == "sleep":
        await ctx.sleep(600)
    elif where == "asyncio sleep":
        await asyncio.sleep(600)
    elif where == "activity":
        await ctx.run(pass_gate, "gate")
    elif where == "retry":
        await ctx.run(failing, "again")
    elif where == "child":
        await ctx.run_child(waits, "signal", workflow_id="child")
    elif where == "gather":
        await asyncio.gather(ctx.sleep(600), ctx.run(pass_gate, "gate"), ctx.wait_for_signal("never"))
    elif where == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(600))
            group.create_task(_wait(ctx))
    elif where == "any":
        await ctx.wait_any(ctx.signal("never"), ctx.timer(600))
    elif where == "event":
        await asyncio.Event().wait()
    return "not cancelled"


async def _wait(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


PLACES = [
    "signal",
    "timed signal",
    "sleep",
    "asyncio sleep",
    "activity",
    "retry",
    "child",
    "gather",
    "group",
    "any",
    "event",
]


@workflow
async def cleans_up(ctx: Context, then: str) -> str:
    """On cancellation runs an activity and takes a signal; then does as told."""
    try:
        await ctx.wait_for_signal("never")
    except asyncio.CancelledError:
        await ctx.run(call, "clean-up")
        word = await ctx.wait_for_signal("word", str)
        if then == "return":
            return f"swallowed with {word}"
        if then == "fail":
            raise ValueError(f"failed with {word}") from None
        if then == "continue":
            ctx.continue_as("return")
        raise
    return "not cancelled"


ACTIVITIES: Final[list[Activity[..., Any]]] = [pass_gate, stubborn, call, failing]
WAITING: Final[list[Workflow[..., Any]]] = [waits, cleans_up]
