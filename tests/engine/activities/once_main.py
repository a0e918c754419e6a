"""A process that runs an activity at most once, and is killed in it; or that finds out what became of it."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from holdfast import ActivityLost, Context, Engine, activity, workflow


@activity(at_most_once=True)
def charge(folder: str) -> str:
    """Notes that it was called, and never returns."""
    with (Path(folder) / "calls").open("a") as file:
        file.write("called\n")
    print("called", flush=True)
    time.sleep(3600)
    return "charged"


@workflow
async def order(ctx: Context, folder: str) -> str:
    """What it answers says whether the activity was lost."""
    try:
        return await ctx.run(charge, folder)
    except ActivityLost as error:
        return f"{type(error).__name__} in attempt {error.attempt}"


async def main(path: str, folder: str) -> None:
    """Start the order, or go on with it, and say how it ends."""
    async with Engine(f"sqlite:///{path}", workflows=[order], activities=[charge], shutdown_grace=0.1) as engine:
        handle = await engine.start(order, folder, workflow_id="order-1", idempotency_key="order-1")  # also if it has ended
        print(await handle.result(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
