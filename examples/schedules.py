"""Workflows at six in the morning, every ten minutes and on given days: schedules, in virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from holdfast import Calendar, Context, workflow
from holdfast.testing import TestEngine

START = datetime(2030, 3, 30, 12, tzinfo=UTC)  # a Saturday; clocks go forward in the night


@workflow
async def report(ctx: Context, what: str) -> str:
    return f"{what} at {ctx.now():%a %H:%M}"


@workflow
async def slow(ctx: Context) -> None:
    await ctx.sleep(25 * 60)


async def main() -> None:
    async with TestEngine(workflows=[report, slow], start=START, auto_advance=False) as engine:
        daily = await engine.create_schedule("daily", "0 6 * * *", report, "daily", time_zone="Europe/Berlin")
        print("daily:", *(f"{at:%a %H:%M}" for at in daily.next_fires[:3]))
        await engine.create_schedule("tick", "R3/PT10M", slow, overlap="skip")
        await engine.create_schedule("weekly", Calendar(times=["09:00"], weekdays=["mon"]), report, "weekly")

        await engine.clock.advance(hours=1)
        tick = await engine.describe_schedule("tick")
        print(f"tick: {tick.state}, {tick.fired} fired, {tick.skipped} skipped")

        await engine.pause_schedule("daily")
        await engine.clock.advance(days=1)
        await engine.resume_schedule("daily")
        run = await engine.run_schedule("weekly")
        print("now:", await engine.handle(run.workflow_id).result())

        await engine.clock.advance(days=1)
        for info in await engine.list(workflow=report):
            print(info.workflow_id, "->", await engine.query_result(info.execution_id))


asyncio.run(main())
