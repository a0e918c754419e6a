"""The workflows whose histories are kept in `histories/`: whatever changes in Holdfast, these must replay.

`python -m tests.testing.golden` records those that are missing. A file that is there is never recorded again: it stands for
the histories that are out there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from holdfast import ActivityFailed, ChildWorkflowFailed, Context, Retry, WorkflowHandle, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.testing import TestEngine, save_history

FOLDER: Final = Path(__file__).parent / "histories"


@activity
async def reserve(item: str) -> str:
    return f"{item} reserved"


@activity(retry=Retry(max_attempts=2, initial=30, jitter=0))
async def charge(amount: int) -> int:
    raise ConnectionError("the bank does not answer")


@activity
async def release(item: str) -> None:
    """Undo what `reserve` did."""


@workflow
async def order(ctx: Context, items: list[str]) -> dict[str, Any]:
    """Steps at once, a choice by chance, a side effect, a failure that is caught."""
    ctx.set_state("reserving")
    reserved = await asyncio.gather(*(ctx.run(reserve, item) for item in items))
    for _ in range(5):
        await ctx.run(ctx.random.choice(["reserve", "release"]), str(ctx.uuid4()))
    discount = ctx.side_effect(lambda: 5)
    if discount > 3:
        await ctx.sleep(discount)
    try:
        await ctx.run(charge, 100 - discount)
    except ActivityFailed as error:
        return {"reserved": reserved, "reason": error.type}
    return {"reserved": reserved}


@workflow
async def remind(ctx: Context, days: int) -> list[str]:
    """Signals, one of which does not come in time, and timers that lose."""
    heard = [await ctx.wait_for_signal("word", str, timeout=timedelta(days=days))]
    try:
        heard.append(await ctx.wait_for_signal("word", str, timeout=timedelta(days=days)))
    except TimeoutError:
        heard.append("silence")
    winner = await ctx.wait_any(ctx.signal("word", str), ctx.timer(timedelta(days=1)))
    heard.extend([str(winner.index), *ctx.drain_signals("word", str)])
    return heard


@workflow
async def child(ctx: Context, name: str) -> str:
    if name == "bad":
        raise ValueError("a bad child")
    return f"{name} heard {await ctx.wait_for_signal('hello', str)}"


@workflow
async def family(ctx: Context) -> list[str]:
    """Children, one of which fails, and signals between executions."""
    good, bad = ctx.start_child(child, "good"), ctx.start_child(child, "bad")
    await good.signal("hello", "its parent")
    said = [await good]
    try:
        said.append(await bad)
    except ChildWorkflowFailed as error:
        said.append(error.type)
    return said


@workflow(name="ship")
async def ship_before(ctx: Context, item: str) -> str:
    await ctx.run(reserve, item)
    await ctx.sleep(timedelta(days=1))
    return "shipped"


@workflow
async def ship(ctx: Context, item: str) -> str:
    """What became of `ship_before`: histories from before keep their path."""
    if ctx.patched("check-first"):
        await ctx.run(release, item)
    await ctx.run(reserve, item)
    await ctx.sleep(timedelta(days=1))
    return "shipped"


@workflow
async def clean_up(ctx: Context, item: str) -> str:
    """Cancelled while it waits; its clean-up runs an activity, and the cancellation goes through."""
    try:
        await asyncio.gather(ctx.run(reserve, item), ctx.sleep(timedelta(days=365)))
    finally:
        await asyncio.shield(ctx.run(release, item))
    return "not cancelled"


@workflow
async def dun(ctx: Context, amount: int) -> str:
    """Another path for the class that an activity raised than for ActivityFailed, which alone was raised before."""
    try:
        await ctx.run(charge, amount)
    except OSError as error:
        await ctx.run(release, "goods")
        return type(error.__cause__).__name__
    except ActivityFailed as error:
        await ctx.sleep(timedelta(hours=1))
        return error.type
    return "paid"


WORKFLOWS: Final[list[Workflow[..., Any]]] = [order, remind, child, family, ship, clean_up, dun]
ACTIVITIES: Final[list[Activity[..., Any]]] = [reserve, charge, release]


# --- how they were recorded ---


async def _order(engine: TestEngine) -> WorkflowHandle[Any]:
    return await engine.start(order, ["pen", "ink", "paper"], workflow_id="order-1")


async def _remind(engine: TestEngine) -> WorkflowHandle[Any]:
    handle = await engine.start(remind, 3)
    await engine.clock.advance(days=1)
    await handle.signal("word", "one")
    await engine.clock.advance(days=3, hours=1)
    await handle.signal("word", "two")
    return handle


async def _family(engine: TestEngine) -> WorkflowHandle[Any]:
    return await engine.start(family, workflow_id="family-1", org="acme")


async def _ship(engine: TestEngine) -> WorkflowHandle[Any]:
    await engine.restart(workflows=[ship_before])
    return await engine.start(ship_before, "pen")


async def _clean_up(engine: TestEngine) -> WorkflowHandle[Any]:
    handle = await engine.start(clean_up, "pen")
    await engine.clock.advance(days=10)
    await handle.cancel("changed my mind")
    return handle


async def _dun(engine: TestEngine) -> WorkflowHandle[Any]:
    return await engine.start(dun, 100)


RECORDINGS: Final[dict[str, Callable[[TestEngine], Awaitable[WorkflowHandle[Any]]]]] = {
    "order": _order,
    "remind": _remind,
    "family": _family,
    "ship": _ship,
    "clean_up": _clean_up,
    "dun": _dun,
}


async def record(folder: Path) -> list[Path]:
    """Write the histories that a folder lacks."""
    written = []
    for name, live in RECORDINGS.items():
        path = folder / f"{name}.json"
        if path.exists():
            continue
        async with TestEngine(workflows=WORKFLOWS, activities=ACTIVITIES) as engine:
            handle = await live(engine)
            await engine.clock.advance(days=2)
            written.append(save_history(await handle.history(), path))
    return written


if __name__ == "__main__":
    for path in asyncio.run(record(FOLDER)):
        print(path.name)
