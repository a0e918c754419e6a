"""What workflow code asks for: what has `# refused` must be refused by every checker, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Literal, assert_type

from holdfast import ChildHandle, ChildWorkflowFailed, Context, workflow
from tests.typing.examples.workflows import Cart, Payments, book, charge, count, named, order, ping, plain, ship


async def children(ctx: Context) -> None:
    assert_type(await ctx.run_child(order, 1), bool)
    assert_type(await ctx.run_child(order, 1, "bob", workflow_id="o-1", name="first"), bool)
    assert_type(await ctx.run_child(order, number=1, customer="bob"), bool)
    assert_type(await ctx.run_child(order.bind(1, customer="bob"), parent_close="abandon"), bool)
    assert_type(await ctx.run_child(order, 1, propagate_child_failures=False), bool | ChildWorkflowFailed)
    assert_type(await ctx.run_child(order.bind(1), propagate_child_failures=False), bool | ChildWorkflowFailed)
    assert_type(await ctx.run_child("order", 1), Any)
    assert_type(ctx.start_child(ship, Cart("ann"), None), ChildHandle[Cart])
    assert_type(await ctx.start_child(ship, Cart("ann"), None, headers={"a": "b"}), Cart)
    assert_type(await ctx.start_child(ping, propagate_child_failures=False), str | ChildWorkflowFailed)
    assert_type(ctx.start_child(named.bind(queue="q"), name="it"), ChildHandle[int])
    assert_type(ctx.start_child("order", 1), ChildHandle[Any])
    assert_type(await asyncio.gather(ctx.run_child(order, 1), ctx.run_child(ping)), tuple[bool, str])

    await ctx.run_child(order, "one")  # refused
    await ctx.run_child(order)  # refused
    await ctx.run_child(order, "one", workflow_id="o-1")  # refused
    await ctx.run_child(order, 1, wrokflow_id="o-1")  # refused
    await ctx.run_child(order, "one", propagate_child_failures=False)  # refused
    await ctx.run_child(plain, 1)  # refused
    await ctx.run_child(order.bind("one"))  # refused
    (await ctx.run_child(order, 1)).upper()  # refused
    (await ctx.run_child(ping, propagate_child_failures=False)).upper()  # refused
    ctx.start_child(ship, "ann", None)  # refused
    ctx.start_child(ship, Cart("ann"), [1], name="it")  # refused
    ctx.start_child(ship, Cart("ann"))  # refused
    ctx.start_child(order, 1, queue="q")  # refused


@workflow
async def counter(ctx: Context, start: int, step: int = 1) -> None:
    if start == 1:
        ctx.continue_as(2)
    elif start == 2:
        ctx.continue_as(3, step=2)
    elif start == 3:
        ctx.continue_as(4, workflow=counter)
    elif start == 4:
        ctx.continue_as(counter.bind(5, step=2))
    elif start == 5:
        ctx.continue_as(workflow=counter.bind(6, step=2))
    elif start == 6:
        ctx.continue_as(7, workflow="counter")
    elif start == 7:
        ctx.continue_as("eight", workflow=counter)  # refused
    elif start == 8:
        ctx.continue_as(workflow=counter)  # refused
    elif start == 9:
        ctx.continue_as(counter.bind("ten"))  # refused
    elif start == 10:
        ctx.continue_as(11, workflow=plain)  # refused
    elif start == 11:
        ctx.continue_as(1, 2, 3, workflow=counter)  # refused
    elif start == 12:
        ctx.continue_as(counter.bind(5), 6, workflow=counter)  # refused


async def activities(ctx: Context, payments: Payments) -> None:
    assert_type(await ctx.run(charge, 1), str)
    assert_type(await ctx.run(charge, 1, currency="CHF"), str)
    assert_type(await ctx.run(charge.with_options(name="deposit", start_to_close=1), 1, "CHF"), str)
    assert_type(await ctx.run(count, ["a"]), int)
    assert_type(await ctx.run("charge", 1), Any)
    assert_type(await ctx.run(payments.refund, 1), str)
    assert_type(await ctx.run(Payments.refund, 1), str)
    assert_type(await ctx.run(Payments.tell.with_options(queue="q"), "a"), int)
    assert_type(await ctx.transaction(book, 1), float)

    await ctx.run(charge, "one")  # refused
    await ctx.run(charge)  # refused
    await ctx.run(charge.with_options(name="deposit"), "one")  # refused
    await ctx.run(charge, 1, curency="CHF")  # refused
    await ctx.run(count, "a")  # refused
    await ctx.run(payments.refund, "one")  # refused
    await ctx.run(Payments.tell, 1)  # refused
    await ctx.transaction(book, "one")  # refused
    (await ctx.run(charge, 1)).bit_length()  # refused


async def signals(ctx: Context) -> None:
    assert_type(await ctx.wait_for_signal("paid", Cart), Cart)
    assert_type(await ctx.wait_for_signal("paid", Cart, timeout=5), Cart)
    assert_type(await ctx.wait_for_signal("paid"), Any)
    assert_type(await ctx.wait_for_signal("paid", list[int]), list[int])
    assert_type(await ctx.drain_signals("paid", Cart), list[Cart])
    drained: list[Cart] = ctx.drain_signals("paid", Cart)
    assert_type([one.customer for one in drained], list[str])
    assert_type(ctx.drain_signals("paid", int)[0], int)
    assert_type(await ctx.drain_signals("paid"), list[Any])
    either: int | str = await ctx.wait_for_signal("paid", int | str)
    literal: Any = await ctx.wait_for_signal("paid", Literal["yes", "no"])
    several: list[int | None] = ctx.drain_signals("paid", int | None)
    maybe: int | None = await ctx.wait_for_signal("paid", int)
    print(either, literal, several, maybe)

    (await ctx.wait_for_signal("paid", int)).upper()  # refused
    ctx.drain_signals("paid", int)[0].upper()  # refused
    (await ctx.drain_signals("paid", int))[0].upper()  # refused
    wrong: list[str] = ctx.drain_signals("paid", int)  # refused
    text: str = await ctx.wait_for_signal("paid", int)  # refused
    texts: list[str] = await ctx.drain_signals("paid", int)  # refused
    ctx.drain_signals(1, int)  # refused
    print(wrong, text, texts)


async def what_is_published(ctx: Context) -> None:
    assert_type(await ctx.wait_for_message("paid", "o-1", int, timeout=5), int)
    assert_type(await ctx.wait_for_message("paid", "o-1"), Any)
    assert_type(await ctx.wait_for_broadcast("stop", Cart), Cart)
    assert_type(await ctx.wait_for_event(Cart, where={"owner": "ann"}), Cart)
    assert_type((await ctx.send_message("paid", "o-1", 5, ttl=60)).kept, bool)
    assert_type((await ctx.send_event(Cart("ann"))).delivered, int)
    assert_type((await ctx.broadcast_signal("stop")).started, int)

    (await ctx.wait_for_message("paid", "o-1", int)).upper()  # refused
    await ctx.wait_for_message("paid")  # refused
    await ctx.send_message("paid", 7)  # refused


async def first_of_several(ctx: Context, tasks: list[asyncio.Future[bytes]]) -> None:
    winner = await ctx.wait_any(ctx.signal("paid", int), ctx.timer(5))
    assert_type(winner.value, int | datetime)
    assert_type(winner.index, int)
    assert_type((await ctx.wait_any(ctx.signal("paid", Cart))).value, Cart)
    assert_type((await ctx.wait_any(ctx.timer(5))).value, datetime)
    both = await ctx.wait_any(ctx.run(charge, 1), ctx.start_child(ship, Cart("ann"), None))
    assert_type(both.value, str | Cart)
    three = await ctx.wait_any(ctx.signal("a", int), ctx.run_child(ping), ctx.timer(1))
    assert_type(three.value, int | str | datetime)
    many = await ctx.wait_any(ctx.signal("a", int), ctx.run_child(ping), ctx.timer(1), ctx.sleep(2), ctx.signal("b", Cart))
    assert_type(many.value, int | str | datetime | Cart | None)
    assert_type((await ctx.wait_any(*tasks)).value, bytes)
    assert_type((await ctx.wait_any(ctx.signal("a"))).value, Any)
    await ctx.wait_any(*tasks, ctx.timer(5))
    published = await ctx.wait_any(ctx.message("paid", "o-1", int), ctx.event(Cart), ctx.broadcast("stop", str))
    assert_type(published.value, int | Cart | str)
    await ctx.wait_any(ctx.signal("a", int | str), ctx.signal("b", Literal["yes"]))

    winner.value.bit_length()  # refused
    both.value.upper()  # refused
    await ctx.signal("a", int)  # refused
    await ctx.event(Cart)  # refused
    await ctx.message("paid", "o-1", int)  # refused
    await ctx.broadcast("stop", str)  # refused
    await ctx.timer(5)  # refused
    await ctx.wait_any(5)  # refused
    await ctx.wait_any(ctx.timer(5), "paid")  # refused
