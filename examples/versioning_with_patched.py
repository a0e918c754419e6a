"""Change a workflow while executions are in flight: old ones keep the old path, new ones take the new one."""

import asyncio
import tempfile
from pathlib import Path

from holdfast import Context, Engine, activity, workflow


@activity
async def send_letter(name: str) -> str:
    return f"letter to {name}"


@activity
async def send_mail(name: str) -> str:
    return f"mail to {name}"


@workflow(name="welcome")
async def welcome_before(ctx: Context, name: str) -> str:
    sent = await ctx.run(send_letter, name)
    await ctx.wait_for_signal("go")
    return sent


@workflow(name="welcome")
async def welcome_now(ctx: Context, name: str) -> str:
    # An execution that already ran `send_letter` must find it again when it is replayed.
    if ctx.patched("mail instead of letters"):
        sent = await ctx.run(send_mail, name)
    else:
        sent = await ctx.run(send_letter, name)
    await ctx.wait_for_signal("go")
    return sent


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'app.db'}"
        async with Engine(url, workflows=[welcome_before], activities=[send_letter]) as engine:
            await engine.start(welcome_before, "Ann", workflow_id="ann")

        async with Engine(url, workflows=[welcome_now], activities=[send_letter, send_mail]) as engine:
            await engine.start(welcome_now, "Ben", workflow_id="ben")
            for name in ("ann", "ben"):
                await engine.signal_workflow(name, "go")
                print(f"{name}: {await engine.handle(name).result()}")


if __name__ == "__main__":
    asyncio.run(main())
