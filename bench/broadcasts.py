"""One broadcast signal to 10,000 waiting executions beside a signal to each of as many, until all of them have ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

from bench.measuring import bounded, report, scratch_engine, scratch_server
from bench.workflows import ACTIVITIES, WORKFLOWS, wait, wait_for_broadcast
from holdfast import Engine, Workflow, WorkflowHandle

WAITING = 10_000
ROUNDS = 3
AT_ONCE = 256
SETTLING = 5.0
"""Seconds until whoever waits for results is known to do so."""


def run() -> None:
    """Print both rates, and their ratio, on each store."""
    asyncio.run(_measure("sqlite", None))
    with scratch_server() as server:
        asyncio.run(_measure("postgres", server.url(schema="bench")))


@asynccontextmanager
async def _open(url: str | None) -> AsyncIterator[Engine]:
    if url is None:
        async with scratch_engine() as engine:
            yield engine
    else:
        async with Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES) as engine:
            yield engine


async def _measure(store: str, url: str | None) -> None:
    signals: list[float] = []
    broadcasts: list[float] = []
    async with _open(url) as engine:
        for number in range(ROUNDS):
            signals.append(await _time_signals(engine, f"signals-{number}"))
            broadcasts.append(await _time_broadcast(engine, f"broadcast-{number}"))
    report(
        f"broadcasts: {store}, {WAITING:,} waiting",
        broadcast_per_s=WAITING / median(broadcasts),
        signals_per_s=WAITING / median(signals),
        ratio=median(signal / broadcast for signal, broadcast in zip(signals, broadcasts, strict=True)),
        least_ratio=0.5,
    )


async def _time_signals(engine: Engine, org: str) -> float:
    """How many seconds it takes to send each its signal, and until all have ended."""
    handles, ends = await _begin(engine, wait, org)
    began = time.monotonic()
    await bounded(WAITING, lambda i: handles[i].signal("go", i), AT_ONCE)
    await ends
    return time.monotonic() - began


async def _time_broadcast(engine: Engine, org: str) -> float:
    """How many seconds one broadcast signal takes until all have ended."""
    _, ends = await _begin(engine, wait_for_broadcast, org)
    began = time.monotonic()
    found = await engine.broadcast_signal("go", 1, org=org)
    assert found.delivered == WAITING, found
    await ends
    return time.monotonic() - began


async def _begin(
    engine: Engine, waiting: Workflow[[], int], org: str
) -> tuple[list[WorkflowHandle[int]], asyncio.Future[list[int]]]:
    """Start as many executions as are to wait, and begin to wait for their ends, which asks the store for each of them."""
    handles: dict[int, WorkflowHandle[int]] = {}

    async def start(i: int) -> None:
        handles[i] = await engine.start(waiting, workflow_id=f"w-{i}", org=org)

    await bounded(WAITING, start, AT_ONCE)
    ends = asyncio.gather(*(handles[i].result() for i in range(WAITING)))
    await asyncio.sleep(SETTLING)
    return [handles[i] for i in range(WAITING)], ends
