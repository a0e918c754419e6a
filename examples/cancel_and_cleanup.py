"""Cancelling reaches the workflow as CancelledError: it can clean up, with activities, before it ends."""

import asyncio

from holdfast import Context, Engine, WorkflowCancelled, activity, workflow

has_begun = asyncio.Event()


@activity
async def rent_machine() -> str:
    return "machine-7"


@activity
async def return_machine(machine: str) -> None:
    print(f"returned {machine}")


@activity
async def train(machine: str) -> str:
    print(f"training on {machine}")
    has_begun.set()
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        print("training stopped")
        raise
    return "a model"


@workflow
async def training(ctx: Context) -> str:
    machine = await ctx.run(rent_machine)
    try:
        return await ctx.run(train, machine)
    finally:
        await ctx.run(return_machine, machine)


async def main() -> None:
    async with Engine("memory://", workflows=[training], activities=[rent_machine, return_machine, train]) as engine:
        handle = await engine.start(training, workflow_id="training")
        await has_begun.wait()
        print("accepted:", await handle.cancel("too expensive"))
        try:
            await handle.result()
        except WorkflowCancelled:
            print((await handle.status()).status)


if __name__ == "__main__":
    asyncio.run(main())
