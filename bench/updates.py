"""What an update costs beside a signal whose result is awaited: round trips on SQLite, by turns in one process."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Final

from bench.measuring import bounded, report
from holdfast import Context, Engine, workflow

ROUNDS: Final = 7
CALLS: Final = 400
AT_ONCE: Final = 64


@workflow
async def takes_a_signal(ctx: Context) -> int:
    """Returns what one signal brings."""
    return await ctx.wait_for_signal("value", int)


@workflow
async def takes_updates(ctx: Context) -> None:
    """Answers updates until it is terminated."""
    ctx.on_update("value", lambda number: number)
    await ctx.wait_for_signal("never")


def run() -> None:
    """Print the processor time of both, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder) / "updates.db"))


async def compare(path: Path) -> None:
    """Signals to executions that end with them, and updates of as many others, in turn."""
    signals: list[float] = []
    updates: list[float] = []
    async with Engine(f"sqlite:///{path}", workflows=[takes_a_signal, takes_updates]) as engine:
        for number in range(ROUNDS):
            signals.append(await measure_signals(engine, number))
            updates.append(await measure_updates(engine, number))
    signal, update = median(signals), median(updates)
    report("update beside a signal with result", signal_us=signal, update_us=update, ratio=update / signal, limit_ratio=1.5)


async def measure_signals(engine: Engine, number: int) -> float:
    """Processor time of a signal and its result, in microseconds."""
    handles = [await engine.start(takes_a_signal, workflow_id=f"signal-{number}-{i}") for i in range(CALLS)]

    async def call(i: int) -> None:
        await handles[i].signal("value", i)
        await handles[i].result()

    return await measure(call)


async def measure_updates(engine: Engine, number: int) -> float:
    """Processor time of an update, in microseconds."""
    handles = [await engine.start(takes_updates, workflow_id=f"update-{number}-{i}") for i in range(CALLS)]

    async def call(i: int) -> None:
        await handles[i].update("value", i)

    return await measure(call)


async def measure(call: Callable[[int], Awaitable[None]]) -> float:
    """The processor time of a call, among as many at once as callers have."""
    began = time.process_time()
    await bounded(CALLS, call, AT_ONCE)
    return (time.process_time() - began) / CALLS * 1e6
