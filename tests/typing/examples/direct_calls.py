"""Decorated functions that tests call: what has `# refused` must be refused by every checker, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

from holdfast import Activity, Context
from tests.typing.examples.workflows import Payments, book, book_async, charge, count, order


async def calls(ctx: Context, payments: Payments, some: Activity[[int], str]) -> None:
    assert_type(await charge(1), str)
    assert_type(await charge(amount=1, currency="CHF"), str)
    assert_type(count(["a"]), int)
    assert_type(await payments.refund(1), str)
    assert_type(payments.tell("a"), int)
    assert_type(book(None, 1), float)
    assert_type(await book_async(None, 1), float)
    assert_type(await order(ctx, 1), bool)
    assert_type(await order(ctx, 1, customer="bob"), bool)
    assert_type(some(1), Any)
    assert_type(await ctx.run(some, 1), str)
    await asyncio.create_task(charge(1))

    await charge("one")  # refused
    await charge()  # refused
    await charge(1, curency="CHF")  # refused
    (await charge(1)).bit_length()  # refused
    count("a")  # refused
    count(["a"]).upper()  # refused
    await payments.refund("one")  # refused
    payments.tell(1)  # refused
    book(None, "one")  # refused
    book(1)  # refused
    await order(ctx, "one")  # refused
    await order(1, "bob")  # refused
    (await order(ctx, 1)).upper()  # refused
    await ctx.run(some, "one")  # refused
