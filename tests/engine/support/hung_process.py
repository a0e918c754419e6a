"""A process whose activities never end. It shuts its engine down, and is to end nevertheless; told to `stay`, it waits."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from holdfast import Context, Engine, activity, workflow
from tests.engine.activities.process_activities import sleep_in_process
from tests.eventually import eventually

RUNNING: set[str] = set()


@activity
async def swallow() -> None:
    RUNNING.add("swallow")
    while True:
        try:
            await asyncio.sleep(3600)
        except BaseException:
            pass


@activity
async def clean_up_slowly() -> None:
    RUNNING.add("clean up")
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(3600)


@activity
def hang() -> None:
    RUNNING.add("hang")
    threading.Event().wait()


@workflow
async def run_all(ctx: Context, marker: str) -> None:
    await asyncio.gather(
        ctx.run(swallow), ctx.run(clean_up_slowly), ctx.run(hang), ctx.run(hang), ctx.run(sleep_in_process, marker)
    )


@workflow
async def run_swallowers(ctx: Context) -> None:
    await asyncio.gather(*(ctx.run(swallow) for _ in range(3)))


async def main(url: str, marker: str, then: str = "end") -> None:
    engine = Engine(
        url,
        workflows=[run_all, run_swallowers],
        activities=[swallow, clean_up_slowly, hang, sleep_in_process],
        shutdown_grace=0.05,
    )
    await engine.open()
    if then == "swallow":
        await engine.start(run_swallowers)
        await eventually(lambda: RUNNING)
    else:
        await engine.start(run_all, marker, workflow_id="w")
        await eventually(lambda: len(RUNNING) == 3)
        await eventually(Path(marker).exists)
    if then == "stay":
        await asyncio.sleep(60)
    await engine.shutdown()
    print("closed", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
