"""A process that works on a database until somebody kills it. It says what it was promised, line by line."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.code.definitions import Workflow


@activity(retry=Retry(max_attempts=1))
async def write(path: str, number: int) -> int:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{number} {activity_info().idempotency_key}\n")
    return number


@workflow
async def chain(ctx: Context, path: str, length: int) -> list[int]:
    return [await ctx.run(write, path, number) for number in range(length)]


@workflow
async def collect(ctx: Context) -> list[int]:
    found: list[int] = []
    while (number := await ctx.wait_for_signal("number", int)) >= 0:
        found.append(number)
    return found


@workflow
async def nap(ctx: Context, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "slept"


WORKFLOWS: list[Workflow[..., Any]] = [chain, collect, nap]
ACTIVITIES = [write]


def say(*words: object) -> None:
    print(*words, flush=True)


async def main(url: str, path: str) -> None:
    async with Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES) as engine:
        for number in range(5):
            await engine.start(chain, path, 200, workflow_id=f"chain-{number}")
            say("started", f"chain-{number}")
        await engine.start(collect, workflow_id="collect")
        await engine.start(nap, 0.2, workflow_id="nap")
        for number in range(1_000_000):
            await engine.signal_workflow("collect", "number", number)
            say("signalled", number)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
