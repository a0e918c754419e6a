"""Broadcast signals: everybody who waits at that moment gets it, one failing subscriber does not touch the others."""

from __future__ import annotations

import asyncio

from holdfast import ApplicationFailure, BroadcastSignal, Context, Engine, WorkflowFailed, workflow


@workflow
async def shop(ctx: Context, name: str) -> str:
    """Wait for a new price; one of the shops cannot handle it."""
    price = await ctx.wait_for_broadcast("price", type=int)
    if name == "broken":
        raise ApplicationFailure("no shelf", type="NoShelf", non_retryable=True)
    return f"{name} sells tea for {price}"


@workflow(starts_on=BroadcastSignal("price"))
async def audit(ctx: Context, price: int) -> int:
    """Each broadcast starts one."""
    return price


async def main() -> None:
    """Tell every shop at once."""
    async with Engine("memory://", workflows=[shop, audit]) as engine:
        shops = [await engine.start(shop, name) for name in ("north", "broken", "south")]
        answer = await engine.broadcast_signal("price", 3)
        print(f"delivered: {answer.delivered}, started: {answer.started}")
        for one in shops:
            try:
                print(await one.result())
            except WorkflowFailed as error:
                print(f"failed: {error.type}")
        print(f"nobody waits now: {(await engine.broadcast_signal('other')).delivered}")


if __name__ == "__main__":
    asyncio.run(main())
