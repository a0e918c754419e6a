"""Activities, and workflow code that calls them as no workflow should."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from holdfast import Context, activity, transaction

module = sys.modules[__name__]


@activity
async def charge(amount: int = 1) -> int:
    return amount


@activity
def charge_now(amount: int = 1) -> int:
    return amount


@transaction
def pay_out(connection: Any, amount: int = 1) -> int:
    return amount


class Payments:
    @activity
    async def charge(self, amount: int = 1) -> int:
        return amount


payments = Payments()


def call(function: Any, *args: Any) -> Any:
    return function(*args)


async def call_later(function: Any) -> Any:
    return await function()


async def forgot_run(ctx: Context) -> None:
    await charge(1)


async def forgot_run_of_a_module(ctx: Context) -> None:
    await module.charge(1)


async def forgot_transaction(ctx: Context) -> None:
    pay_out(None, 1)


async def forgot_run_of_a_method(ctx: Context) -> None:
    await payments.charge(1)


async def forgot_run_of_a_class(ctx: Context) -> None:
    await Payments.charge(payments, 1)  # type: ignore[call-arg, arg-type]


async def forgot_run_in_gather(ctx: Context) -> None:
    await asyncio.gather(*(charge(one) for one in range(3)))


async def asks_for_it(ctx: Context) -> None:
    await ctx.run(charge, 1)
    await ctx.run(payments.charge, 1)
    await ctx.run(Payments.charge, 1)
    await ctx.transaction(pay_out, 1)


async def uses_options(ctx: Context) -> None:
    await ctx.run(charge.with_options(queue="other"), 1)


async def local_function_of_the_name(ctx: Context) -> None:
    def charge(amount: int) -> int:
        return amount

    charge(1)
