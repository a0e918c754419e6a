"""Typed events: one consumer or everybody, selected by their fields, kept until somebody waits for them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holdfast import Context, Engine, event, workflow


@event
@dataclass
class OrderPaid:
    """One consumer gets it: the workflow that waits for that order."""

    order: int
    amount: int


@event(consume_on_read=False, delivery_mode="after_wait")
@dataclass
class DayEnded:
    """Everybody who waits for it gets it; nothing is kept."""

    day: str


@workflow
async def ship(ctx: Context, order: int) -> str:
    """Wait for the payment, or for the end of the day, whichever comes first."""
    winner = await ctx.wait_any(ctx.event(OrderPaid, where={"order": order}), ctx.event(DayEnded))
    if isinstance(winner.value, OrderPaid):
        return f"order {order}: paid {winner.value.amount}"
    return f"order {order}: not paid on {winner.value.day}"


async def main() -> None:
    """Send events before and after workflows wait for them."""
    async with Engine("memory://", workflows=[ship], events=[OrderPaid, DayEnded]) as engine:
        early = await engine.send_event(OrderPaid(order=1, amount=10))
        print(f"kept: {early.kept}, {[one.value for one in await engine.pending_events(OrderPaid)]}")
        first, second, third = [await engine.start(ship, order) for order in (1, 2, 3)]
        print(await first.result())

        await engine.send_event("OrderPaid", {"order": 3, "amount": 30})
        print(await third.result())

        ended = await engine.send_event(DayEnded("Monday"))
        print(f"waits found: {ended.delivered}")
        print(await second.result())


if __name__ == "__main__":
    asyncio.run(main())
