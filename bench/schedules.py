"""What schedules cost: 10,000 of them in an idle engine, and 3,000 that are due at once against as many plain starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from bench.measuring import bounded, report, scratch_engine, scratch_server
from bench.workflows import nothing
from holdfast import Engine

STORED = 10_000
DUE = 3_000
ROUNDS = 2
IDLE = 12.0
"""Seconds: longer than an engine goes without a look at its schedules."""


def run() -> None:
    """Print the CPU of idle engines, and the rates of starts, on each store."""
    asyncio.run(_measure("sqlite", None))
    with scratch_server() as server:
        asyncio.run(_measure("postgres", server.url(schema="bench")))


@asynccontextmanager
async def _open(url: str | None) -> AsyncIterator[Engine]:
    if url is None:
        async with scratch_engine() as engine:
            yield engine
    else:
        async with Engine(url, workflows=[nothing]) as engine:
            yield engine


async def _measure(store: str, url: str | None) -> None:
    async with _open(url) as engine:
        plain = [await _idle()]
        for number in range(ROUNDS):
            await _compare_rates(store, engine, number)
        await bounded(STORED, lambda i: engine.create_schedule(f"s-{i:05}", "0 6 1 1 *", nothing), 256)
        await asyncio.sleep(1.0)
        full = [await _idle()]
        await bounded(STORED, lambda i: engine.delete_schedule(f"s-{i:05}"), 256)
        await asyncio.sleep(1.0)
        plain.append(await _idle())
        report(f"schedules: {store}, idle with {STORED:,}", cpu_ms_per_s=min(full), without=min(plain), and_again=max(plain))


async def _idle() -> float:
    """CPU milliseconds per second of an engine that has nothing to do."""
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(IDLE)
    return 1e3 * (time.process_time() - cpu) / (time.monotonic() - began)


async def _compare_rates(store: str, engine: Engine, number: int) -> None:
    plain, due = f"plain-{number}", f"due-{number}"
    began = time.monotonic()
    await bounded(DUE, lambda i: engine.start(nothing, org=plain), DUE)
    started = await _wait(engine, plain) - began
    at = datetime.now(UTC) + timedelta(seconds=10)
    await bounded(DUE, lambda i: engine.create_schedule(f"s-{i}", at, nothing, org=due), 256)
    await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
    began = time.monotonic()
    fired = await _wait(engine, due) - began
    await bounded(DUE, lambda i: engine.delete_schedule(f"s-{i}", org=due), 256)
    report(
        f"schedules: {store}, {DUE:,} due at once", fired_per_s=DUE / fired, plain_per_s=DUE / started, ratio=started / fired
    )


async def _wait(engine: Engine, org: str) -> float:
    """When all executions of an org had ended."""
    while (await engine.count(org=org, status="completed")).total < DUE:  # noqa: ASYNC110 - as callers see it
        await asyncio.sleep(0.05)
    return time.monotonic()
