"""Test a workflow that takes a month in milliseconds: virtual time, and a crash in the middle."""

import asyncio
from datetime import UTC, datetime, timedelta

from holdfast import Context, activity, workflow
from holdfast.testing import TestEngine

SENT: list[str] = []


@activity
async def send_reminder(user: str, day: int) -> None:
    SENT.append(f"{user}: day {day}")


@workflow
async def trial(ctx: Context, user: str) -> str:
    for day in (7, 25):
        await ctx.sleep_until(datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=day))
        await ctx.run(send_reminder, user, day)
    try:
        plan: str = await ctx.wait_for_signal("subscribe", str, timeout=timedelta(days=5))
    except TimeoutError:
        return f"{user}: trial is over"
    return f"{user}: subscribed to {plan}"


async def main() -> None:
    async with TestEngine(workflows=[trial], activities=[send_reminder], start=datetime(2030, 1, 1, tzinfo=UTC)) as engine:
        ann = await engine.start(trial, "ann", workflow_id="ann")
        ben = await engine.start(trial, "ben", workflow_id="ben")

        await engine.clock.advance(days=8)
        assert sorted(SENT) == ["ann: day 7", "ben: day 7"]

        await engine.restart()  # as if the process had been killed: no reminder is sent again
        await engine.clock.advance(days=18)
        assert len(SENT) == 4

        await engine.signal_workflow("ann", "subscribe", "gold")
        print(await ann.result())
        print(await ben.result())  # time jumps ahead by itself
        print("it is", engine.clock.present.date())


if __name__ == "__main__":
    asyncio.run(main())
