"""A process that is told to end by a signal while user code runs: in a workflow, or in an async activity."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from holdfast import Context, Engine, Retry, activity, workflow

IS_BUSY = True


def be_busy(where: str) -> None:
    """Run on and on, in a process of its own, until a signal comes."""
    if IS_BUSY:
        print(f"busy in {where}", flush=True)
    while IS_BUSY:
        pass


@activity(retry=Retry(max_attempts=1))
async def compute() -> str:
    be_busy("activity")
    return "computed"


@workflow
async def busy(ctx: Context, where: str) -> str:
    await ctx.sleep(0.01)
    if where == "workflow":
        be_busy("workflow")
        return "computed"
    return await ctx.run(compute)


def leave(_number: int, _frame: Any) -> None:
    """A handler as many programs have one."""
    sys.exit(9)


async def main(url: str, where: str, handler: str) -> None:
    if handler == "default":
        signal.signal(signal.SIGINT, signal.default_int_handler)
    elif handler == "exit":
        signal.signal(signal.SIGINT, leave)
    async with Engine(url, workflows=[busy], activities=[compute], turn_limit=5) as engine:
        await engine.start(busy, where, workflow_id="w")
        await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
