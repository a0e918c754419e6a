"""An application, until it is ended: `python -m tests.cli.app_process URL [changed]`. Says when it is ready."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from holdfast import Context, Engine, Retry, Workflow, activity, event, workflow

IS_CHANGED = sys.argv[2:] == ["changed"]


@event
@dataclass
class Paid:
    amount: int


@activity(retry=Retry(initial=3600, maximum=3600))
async def charge(amount: int) -> None:
    try:
        raise KeyError("card")
    except KeyError as error:
        raise ValueError(f"no card for {amount}") from error


@activity(queue="gpu")
async def render() -> None:
    """No node of these tests serves its queue."""


@workflow
async def echo(ctx: Context, first: Any = None, second: Any = None) -> list[Any]:
    return [first, second]


@workflow
async def options_as_names(ctx: Context, delay: int = 5, org: str = "", *, request_id: str = "none") -> list[Any]:
    return [delay, org, request_id]


@workflow
async def failing(ctx: Context) -> None:
    raise ValueError("out of stock")


@workflow
async def approval(ctx: Context, who: str = "ann") -> str:
    answer: str = await ctx.wait_for_signal("approve", str, timeout=36_000)
    return f"{who}: {answer}"


@workflow
async def order(ctx: Context) -> str:
    return str(await ctx.run_child(approval, name="ask the boss"))


@workflow
async def paying(ctx: Context) -> None:
    await ctx.run(charge.with_options(name="charge ann"), 7)


@workflow
async def rendering(ctx: Context) -> None:
    await ctx.run(render)


@workflow
async def hops(ctx: Context, left: int) -> str:
    await ctx.wait_for_signal("hop")
    if left:
        ctx.continue_as(left - 1)
    return "there"


@workflow
async def steps(ctx: Context) -> str:
    if IS_CHANGED:
        await ctx.sleep(1, name="a new step")
    await ctx.wait_for_signal("go")
    return "gone"


@workflow
async def stuck(ctx: Context) -> None:
    await asyncio.Event().wait()


@workflow
async def basket(ctx: Context) -> list[str]:
    items: list[str] = []

    def check(item: str) -> None:
        if not item:
            raise ValueError("nothing to add")

    @ctx.on_update("add", validator=check)
    def add(item: str) -> list[str]:
        items.append(item)
        return items

    ctx.on_update("clear", items.clear)

    @ctx.on_update("break")
    def break_off() -> None:
        raise KeyError("nothing")

    @ctx.on_update("wait")
    async def wait() -> None:
        await ctx.wait_for_signal("never")

    @ctx.on_query("items")
    def list_items() -> list[str]:
        return items

    @ctx.on_query("price")
    def price(item: str, count: int) -> str:
        return f"{item}: {count}"

    await ctx.wait_for_signal("pay")
    return items


WORKFLOWS: list[Workflow[..., Any]] = [
    echo,
    options_as_names,
    failing,
    approval,
    order,
    paying,
    rendering,
    hops,
    steps,
    stuck,
    basket,
]


async def main(url: str) -> None:
    options: dict[str, Any] = {"queues": ["default"], "node": "app", "shutdown_grace": 0.5}
    engine = Engine(url, workflows=WORKFLOWS, activities=[charge], events=[Paid], **options)
    async with engine:
        print("ready", flush=True)
        await engine.run_until_stopped()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
