"""What the processes of these tests run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast import Activity, ApplicationFailure, Context, Workflow, activity, activity_info, workflow


@dataclass
class Item:
    name: str
    at: datetime


@workflow
async def order(ctx: Context, item: Item, count: int = 1) -> Item:
    await ctx.wait_for_signal("paid", str)
    return Item(f"{item.name}*{count}", item.at)


@workflow
async def collect(ctx: Context, count: int) -> list[Any]:
    return [await ctx.wait_for_signal("value") for _ in range(count)]


@workflow
async def fails(ctx: Context) -> None:
    raise ApplicationFailure("no stock", type="OutOfStock", details={"left": 0})


@activity
async def signal_async(target: str) -> str:
    client = activity_info().client
    await client.signal_workflow(target, "value", "from the loop", request_id="a")
    return str((await client.query_status(target)).workflow)


@activity
def signal_in_thread(target: str) -> str:
    client = activity_info().sync_client
    client.signal_workflow(target, "value", "from a thread", request_id="b")
    return str(client.handle(target).status().workflow)


@workflow
async def calls(ctx: Context, target: str) -> list[str]:
    return [await ctx.run(signal_async, target), await ctx.run(signal_in_thread, target)]


@workflow
async def till(ctx: Context, cash: int) -> int:
    is_closed = asyncio.Event()

    def check(amount: int) -> None:
        if amount > cash:
            raise ValueError(f"only {cash} are left")

    @ctx.on_update(validator=check)
    def withdraw(amount: int) -> int:
        nonlocal cash
        cash -= amount
        return cash

    @ctx.on_update
    def close() -> Item:
        is_closed.set()
        return Item("closed", datetime(2030, 1, 2, tzinfo=UTC))

    ctx.on_query("cash", lambda: cash)
    ctx.on_query("times", lambda factor: cash * factor)
    await is_closed.wait()
    return cash


@workflow(name="changing")
async def before_change(ctx: Context) -> str:
    await ctx.wait_for_signal("ready")
    await ctx.wait_for_signal("go")
    return "done"


@workflow(name="changing")
async def after_change(ctx: Context) -> str:
    """Does not fit what the code before it recorded: an execution of that is blocked by its next turn."""
    await ctx.sleep(3600)
    return "done"


WORKFLOWS: list[Workflow[..., Any]] = [order, collect, fails, calls, till, after_change]
ACTIVITIES: list[Activity[..., Any]] = [signal_async, signal_in_thread]
