"""A saga: when a step fails for good, what was done before is undone in reverse order, by plain try and except."""

import asyncio
from collections.abc import Callable

from holdfast import ActivityFailed, ApplicationFailure, Context, Engine, activity, workflow


@activity
async def reserve_stock(order: str) -> str:
    return f"stock for {order}"


@activity
async def release_stock(reservation: str) -> None:
    print(f"released: {reservation}")


@activity
async def charge_card(order: str, cents: int) -> str:
    return f"{cents} cents for {order}"


@activity
async def refund_card(payment: str) -> None:
    print(f"refunded: {payment}")


@activity
async def book_courier(order: str) -> str:
    if order == "order-2":
        raise ApplicationFailure("nobody drives there", type="NoCourier", non_retryable=True)
    return f"courier for {order}"


@workflow
async def fulfil(ctx: Context, order: str, cents: int) -> str:
    undo: list[Callable[[], asyncio.Future[None]]] = []
    try:
        reservation = await ctx.run(reserve_stock, order)
        undo.append(lambda: ctx.run(release_stock, reservation))
        payment = await ctx.run(charge_card, order, cents)
        undo.append(lambda: ctx.run(refund_card, payment))
        return await ctx.run(book_courier, order)
    except ActivityFailed as failure:
        for compensate in reversed(undo):
            await compensate()
        return f"given up because of {failure.type}"


async def main() -> None:
    async with Engine(
        "memory://", workflows=[fulfil], activities=[reserve_stock, release_stock, charge_card, refund_card, book_courier]
    ) as engine:
        for order in ("order-1", "order-2"):
            print(f"{order}: {await (await engine.start(fulfil, order, 4200)).result()}")


if __name__ == "__main__":
    asyncio.run(main())
