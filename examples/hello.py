"""The smallest workflow: one activity, whose recorded result counts once."""

import asyncio
import tempfile
from pathlib import Path

from holdfast import Context, Engine, activity, workflow


@activity
async def compose(name: str) -> str:
    return f"Hello, {name}!"


@workflow
async def greet(ctx: Context, name: str) -> str:
    return await ctx.run(compose, name)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'hello.db'}"
        async with Engine(url, workflows=[greet], activities=[compose]) as engine:
            handle = await engine.start(greet, "Ann", workflow_id="greet-ann")
            print(await handle.result())
            print(" > ".join((await handle.history()).kinds))

        # Another engine on the same file: the result is still there, and nothing runs again.
        async with Engine(url, workflows=[greet], activities=[compose]) as engine:
            print(await engine.query_result("greet-ann"))


if __name__ == "__main__":
    asyncio.run(main())
