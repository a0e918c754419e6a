"""What `wait_any` of five things costs beside a plain wait: start, wait and end, by turns in one process, on SQLite."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.measuring import bounded, report
from holdfast import Context, Engine, Workflow, event, workflow

ROUNDS: Final = 7
CALLS: Final = 400
AT_ONCE: Final = 64


@event
@dataclass
class Paid:
    """What nobody sends here."""

    order: str


@workflow
async def waits_for_signal(ctx: Context, key: str) -> int:
    """Waits for a signal."""
    return await ctx.wait_for_signal("go", int)


@workflow
async def waits_for_message(ctx: Context, key: str) -> int:
    """Waits for a message."""
    return await ctx.wait_for_message("go", key, int)


@workflow
async def waits_for_five(ctx: Context, key: str) -> Any:
    """Waits for whichever of five comes first."""
    winner = await ctx.wait_any(
        ctx.signal("go", int),
        ctx.message("go", key, int),
        ctx.event(Paid, {"order": key}),
        ctx.broadcast("go"),
        ctx.timer(3600),
    )
    return winner.value


def run() -> None:
    """Print the processor time of both, and the ratio, for waits that a signal ends and for those that a message ends."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "waits.db"))


async def _compare(path: Path) -> None:
    async with Engine(f"sqlite:///{path}", workflows=[waits_for_signal, waits_for_message, waits_for_five]) as engine:

        async def signal(key: str) -> None:
            await engine.signal_workflow(key, "go", 1)

        async def message(key: str) -> None:
            await engine.send_message("go", key, 1)

        for name, plain, send in (("signal", waits_for_signal, signal), ("message", waits_for_message, message)):
            times: dict[Workflow[[str], Any], list[float]] = {plain: [], waits_for_five: []}
            for number in range(ROUNDS):
                for waiting, measured in times.items():
                    measured.append(await _measure(engine, waiting, f"{name}-{waiting.name}-{number}", send))
            one, five = median(times[plain]), median(times[waits_for_five])
            report(f"wait_any of five, ended by a {name}", plain_us=one, five_us=five, ratio=five / one, limit_ratio=2.0)


async def _measure(
    engine: Engine, waiting: Workflow[[str], Any], prefix: str, send: Callable[[str], Awaitable[None]]
) -> float:
    """The processor time of a workflow from its start to its result, among as many at once as callers have."""

    async def call(i: int) -> None:
        key = f"{prefix}-{i}"
        handle = await engine.start(waiting, key, workflow_id=key)
        await send(key)
        await handle.result()

    gc.collect()  # else one that is due falls into the rounds of one side
    began = time.process_time()
    await bounded(CALLS, call, AT_ONCE)
    return (time.process_time() - began) / CALLS * 1e6
