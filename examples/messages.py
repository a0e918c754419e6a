"""Messages: a name and a correlation key find the one execution that waits for them, or start it."""

from __future__ import annotations

import asyncio

from holdfast import Context, DuplicateMessage, Engine, Message, MessageRefused, workflow


@workflow(starts_on=Message("order"))
async def order(ctx: Context, item: str) -> str:
    """Begin with a message, and wait for another with the same key."""
    paid = await ctx.wait_for_message("paid", ctx.info.workflow_id, type=int)
    return f"{item} for {paid}"


async def main() -> None:
    """Send messages in every order."""
    async with Engine("memory://", workflows=[order]) as engine:
        try:
            await engine.send_message("paid", "order-1", 10)
        except MessageRefused:
            print("refused: nobody waits for it")

        await engine.send_message("paid", "order-1", 10, ttl=60, message_id="payment-1")
        try:
            await engine.send_message("paid", "order-1", 10, ttl=60, message_id="payment-1")
        except DuplicateMessage:
            print("refused: it is kept already")

        outcome = await engine.send_message("order", "order-1", "tea")
        print(f"started: {outcome.started}")
        print(await engine.handle("order-1").result())


if __name__ == "__main__":
    asyncio.run(main())
