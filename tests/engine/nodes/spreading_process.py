"""A process that broadcasts to many, and stands still in the middle of it until somebody kills it: `URL between|within`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from typing import Any, Final

from holdfast import Context, Engine, workflow

LISTENERS: Final = 90
BATCH: Final = 20
OPTIONS: Final[dict[str, Any]] = {"heartbeat": 0.3, "lease": 1.0, "shutdown_grace": 0.1}


@workflow
async def listener(ctx: Context) -> list[Any]:
    return [await ctx.wait_for_broadcast("news"), await ctx.wait_for_broadcast("end")]


def shrink_batches() -> None:
    """Let broadcasts reach more than a few subscribers in batches of a few, in this process."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("holdfast.store", "holdfast.engine")) and hasattr(module, "SPREAD_FROM"):
            vars(module)["SPREAD_FROM"] = BATCH


def stand_still(engine: Engine, where: str) -> None:
    """Let the third batch not begin, or not be committed; both are said."""
    begin, batches = engine.store.begin, []

    async def begin_watched() -> Any:
        transaction: Any = await begin()
        spread = transaction.spread

        async def spread_or_stop(limit: int, now: int, skip: Collection[int] = ()) -> int:
            batches.append(limit)
            if len(batches) == 3 and where == "between":
                await stop()
            count: int = await spread(limit, now, skip)
            if len(batches) == 3:
                await stop()
            return count

        transaction.spread = spread_or_stop
        return transaction

    vars(engine.store)["begin"] = begin_watched


async def stop() -> None:
    print("stands still", flush=True)
    await asyncio.Event().wait()


async def main(url: str, where: str) -> None:
    async with Engine(url, workflows=[listener], node="victim", **OPTIONS) as engine:
        shrink_batches()
        for number in range(LISTENERS):
            await engine.start(listener, workflow_id=f"w{number}")
        stand_still(engine, where)
        print("delivered", (await engine.broadcast_signal("news", 7)).delivered, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
