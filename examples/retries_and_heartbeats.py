"""An activity that fails is tried again; what it reported by heartbeat tells the next attempt where to go on."""

import asyncio

from holdfast import ActivityFailed, ActivityTimedOut, Context, Engine, Retry, activity, activity_info, heartbeat, workflow

QUICK = Retry(max_attempts=3, initial=0.01)


@activity(retry=QUICK)
async def copy_pages(pages: int) -> str:
    info = activity_info()
    first = (info.heartbeat_details or 0) + 1
    for page in range(first, pages + 1):
        heartbeat(page)
        if page == 3 and info.attempt == 1:
            raise ConnectionError("the line is dead")
    return f"attempt {info.attempt} copied pages {first} to {pages}"


@activity(retry=QUICK)
async def always_fail() -> None:
    raise ConnectionError("still dead")


@activity(retry=QUICK, heartbeat=0.05)
async def fall_silent() -> None:
    await asyncio.sleep(60)


@workflow
async def copy(ctx: Context) -> str:
    return await ctx.run(copy_pages, 5)


@workflow
async def give_up(ctx: Context) -> list[str]:
    reasons = []
    try:
        await ctx.run(always_fail)
    except ActivityFailed as failure:
        reasons.append(f"{failure.type} after {failure.attempt} attempts")
    try:
        await ctx.run(fall_silent.with_options(retry=Retry(max_attempts=1)))
    except ActivityTimedOut as failure:
        reasons.append(f"no {failure.type}")
    return reasons


async def main() -> None:
    async with Engine("memory://", workflows=[copy, give_up], activities=[copy_pages, always_fail, fall_silent]) as engine:
        print(await (await engine.start(copy)).result())
        print(await (await engine.start(give_up)).result())


if __name__ == "__main__":
    asyncio.run(main())
