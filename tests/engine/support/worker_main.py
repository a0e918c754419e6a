"""A process that works until it is told to stop. It says what it does, line by line."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.code.definitions import Workflow

ONCE = Retry(max_attempts=1)
LEASE = 3.0
"""In heartbeats."""


UNTIL_TOLD = -1.0
"""Instead of seconds: an activity goes on until `let_end`."""


def let_end(folder: Path, workflow_id: str) -> None:
    """Let the activity of a workflow end that takes until it is told."""
    (folder / f"{workflow_id} may end").touch()


def say(*words: object) -> None:
    print(*words, flush=True)


@activity(retry=ONCE)
async def work(folder: str, seconds: float) -> int:
    """Takes that long, unless it is the second attempt."""
    info = activity_info()
    say("begun", info.workflow_id, info.attempt)
    with (Path(folder) / info.workflow_id).open("a", encoding="utf-8") as file:
        file.write(f"{info.attempt}\n")
    if info.attempt == 1 and seconds == UNTIL_TOLD:
        while not (Path(folder) / f"{info.workflow_id} may end").exists():
            await asyncio.sleep(0.01)
    elif info.attempt == 1:
        await asyncio.sleep(seconds)
    return info.attempt


@workflow
async def order(ctx: Context, folder: str, seconds: float) -> int:
    return await ctx.run(work, folder, seconds)


@workflow
async def chain(ctx: Context, folder: str, seconds: float) -> list[int]:
    return [await ctx.run(work, folder, seconds), await ctx.run(work, folder, 0)]


WORKFLOWS: list[Workflow[..., Any]] = [order, chain]
ACTIVITIES = [work]


async def main(url: str, folder: str, grace: str, heartbeat: str, *jobs: str) -> None:
    """Jobs are `workflow:id:seconds`."""
    beats = float(heartbeat)
    options: dict[str, Any] = {"heartbeat": beats, "lease": LEASE * beats, "shutdown_grace": float(grace)}
    engine = Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, node="worker", **options)
    await engine.open()
    for job in jobs:
        name, workflow_id, seconds = job.split(":")
        await engine.start(name, folder, float(seconds), workflow_id=workflow_id)
    say("open")
    await engine.run_until_stopped()
    say("stopped")


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr)
    asyncio.run(main(*sys.argv[1:]))
