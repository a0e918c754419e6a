"""A till: queries ask what it holds, updates change that and are answered after the change is durable."""

import asyncio

from holdfast import Context, Engine, UpdateRejected, workflow


@workflow
async def till(ctx: Context, cash: int) -> int:
    closed = asyncio.Event()

    def check(amount: int) -> None:
        if amount > cash:
            raise ValueError(f"only {cash} are left")

    @ctx.on_update(validator=check)
    def withdraw(amount: int) -> int:
        nonlocal cash
        cash -= amount
        return cash

    @ctx.on_update
    def close() -> int:
        closed.set()
        return cash

    ctx.on_query("cash", lambda: cash)
    await closed.wait()
    return cash


async def main() -> None:
    async with Engine("memory://", workflows=[till]) as engine:
        handle = await engine.start(till, 100, workflow_id="till-1")
        print("left:", await handle.update("withdraw", 30, request_id="receipt-1"))
        print("once more:", await handle.update("withdraw", 30, request_id="receipt-1"))
        try:
            await handle.update("withdraw", 1000)
        except UpdateRejected as error:
            print(error)
        print("asked:", await handle.query("cash"))
        await handle.update("close")
        print("closed with", await handle.result(), "and asked again:", await handle.query("cash"))


if __name__ == "__main__":
    asyncio.run(main())
