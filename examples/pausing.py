"""An execution is paused while somebody looks into it: what arrives meanwhile waits, and nothing is lost."""

import asyncio

from holdfast import Context, Engine, workflow


@workflow
async def order(ctx: Context, customer: str) -> str:
    items = [await ctx.wait_for_signal("item", str) for _ in range(2)]
    return f"{customer} gets {' and '.join(items)}"


async def main() -> None:
    async with Engine("memory://", workflows=[order]) as engine:
        handle = await engine.start(order, "Ann", workflow_id="order-1")
        await handle.signal("item", "tea")
        await engine.pause("order-1", reason="the address is wrong", by="bob")

        await handle.signal("item", "milk")
        info = await handle.status()
        print(f"{info.status}, {len(info.inbox)} waits: {info.pauses[0].reason}")

        await engine.resume("order-1")
        print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
