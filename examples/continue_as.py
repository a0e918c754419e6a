"""A workflow that lives for ever: it begins again with a fresh history, and no signal is lost on the way."""

import asyncio

from holdfast import Context, Engine, workflow

PER_RUN = 3


@workflow
async def counter(ctx: Context, total: int = 0) -> int:
    taken = 0
    while True:
        number = await ctx.wait_for_signal("add", int)
        if number == 0:
            return total
        total, taken = total + number, taken + 1
        if taken == PER_RUN:
            ctx.continue_as(total)


async def main() -> None:
    async with Engine("memory://", workflows=[counter]) as engine:
        handle = await engine.start(counter, workflow_id="counter")
        for number in range(1, 11):
            await engine.signal_workflow("counter", "add", number)
        await engine.signal_workflow("counter", "add", 0)
        print("total:", await handle.result())

        for run in reversed(await engine.list(workflow_id="counter")):
            print(f"{run.status}: {run.history_length} events")


if __name__ == "__main__":
    asyncio.run(main())
