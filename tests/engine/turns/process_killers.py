"""A process that is ended by what it runs: by an activity, or by the code of a workflow. It notes what it does in a file."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from holdfast import ActivityFailed, Context, Engine, Retry, activity, activity_info, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow


def note(path: str, what: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@activity(retry=Retry(max_attempts=1))
async def deadly(path: str) -> None:
    note(path, f"deadly {activity_info().attempt}")
    os._exit(9)


@activity(retry=Retry(max_attempts=1))
async def harmless(path: str, name: str) -> str:
    note(path, f"harmless {name}")
    await asyncio.sleep(0.02)
    return name


@workflow
async def dies_by_activity(ctx: Context, path: str) -> str:
    try:
        await ctx.run(deadly, path)
    except ActivityFailed as error:
        return f"{error.type}: {error}"
    return "lived"


@workflow
async def dies_by_code(ctx: Context, path: str) -> str:
    await ctx.wait_for_signal("go")
    ctx.side_effect(lambda: note(path, "deadly turn"))
    os._exit(9)


@activity
async def endless() -> None:
    await asyncio.sleep(1_000)


class Deployed:
    """Which code of `dies_by_replay` is there."""

    is_deadly = False


@workflow
async def dies_by_replay(ctx: Context, path: str, length: int, waits_for: str) -> None:
    if Deployed.is_deadly:
        ctx.side_effect(lambda: None)
        os._exit(9)
    for _ in range(length):
        ctx.side_effect(ctx.now().isoformat)
    if waits_for == "activity":
        await ctx.run(endless)
    await ctx.sleep(0.01)
    await ctx.wait_for_signal("never")


@workflow
async def sends(ctx: Context) -> None:
    """What it sends is stored before it is taken."""
    await ctx.signal_external_workflow("doomed", "go")


@workflow
async def works(ctx: Context, path: str, name: str) -> list[str]:
    first = await ctx.run(harmless, path, f"{name}-1")
    await ctx.sleep(0.01)
    return [first, await ctx.run(harmless, path, f"{name}-2")]


WORKFLOWS: list[Workflow[..., Any]] = [dies_by_activity, dies_by_code, dies_by_replay, sends, works]
ACTIVITIES: list[Activity[..., Any]] = [deadly, endless, harmless]


async def main(url: str, path: str, how: str) -> None:
    Deployed.is_deadly = how == "replay"
    async with Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, node="killer") as engine:
        others = [
            await engine.start(works, path, f"w{number}", workflow_id=f"w{number}", idempotency_key=f"w{number}")
            for number in range(3)
        ]
        if how == "activity":
            await engine.start(dies_by_activity, path, workflow_id="doomed", idempotency_key="doomed")
            print(await engine.handle("doomed").result(), flush=True)
        elif how == "replay":
            while (await engine.query_status("doomed")).status != "blocked":
                await asyncio.sleep(0.01)
        else:
            await engine.start(dies_by_code, path, workflow_id="doomed", idempotency_key="doomed")
            if how == "call":
                for other in others:  # else they would be lost with each process, and be suspects too
                    await other.result()
                await engine.signal_workflow("doomed", "go", request_id="go")
            else:
                await engine.start(sends, workflow_id="sends", idempotency_key="sends")
            while (await engine.query_status("doomed")).status != "blocked":
                await asyncio.sleep(0.01)
        for other in others:
            await other.result()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
