"""A soak with retention on: memory, file and log have to stay level. `SOAK_MINUTES` says for how long, 20 by default.

The same mix of work all the time, at a steady pace: chains, waits with and without an end, runs that continue, children,
activities that are retried, and payloads. What has closed is removed after half a minute, so that after some minutes as much
goes as comes: from then on nothing may grow.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.measuring import report, resident_bytes, scratch_server
from bench.workflows import add, chain, hello, wait
from holdfast import Context, Engine, Retry, activity, workflow

MINUTES: Final = float(os.environ.get("SOAK_MINUTES") or 20.0)
RETENTION: Final = 30.0
PACE: Final = 0.02
"""Seconds between two starts."""
SAMPLES: Final = 24
"""Lines of the curve."""
LEVEL: Final = 1.15
"""How much more the last quarter may have than the second, in the median."""
LONG_TEXT: Final = "x" * 5_000


@activity(retry=Retry(max_attempts=3, initial=0.01), schedule_to_close=60.0)
async def stumble(x: int) -> int:
    """An activity that fails every fifth time."""
    if x % 5 == 0:
        raise ValueError(LONG_TEXT[:100])
    return x


@workflow
async def loop(ctx: Context, rounds: int) -> int:
    """Waits for a signal that seldom comes, again and again, then continues as a new run."""
    for _ in range(3):
        with suppress(TimeoutError):
            await ctx.wait_for_signal("tick", timeout=0.05)
    if rounds:
        ctx.continue_as(rounds - 1)
    return rounds


@workflow
async def family(ctx: Context, x: int) -> int:
    """Runs two children, and an activity that may fail for good."""
    results = await asyncio.gather(ctx.run_child(hello, x), ctx.run_child(chain, 3))
    try:
        return await ctx.run(stumble, x) + sum(results)
    except Exception:  # noqa: BLE001 - whatever it was: the parent goes on
        return 0


@workflow
async def talk(ctx: Context, text: str) -> str:
    """Takes three signals with payloads."""
    for _ in range(3):
        text = await ctx.wait_for_signal("say", str)
    return text


def run() -> None:
    """Print the curves on SQLite and on PostgreSQL, and whether each is level."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "soak.db"

        async def weigh() -> Sequence[tuple[str, float]]:
            files = {"file_mb": path, "log_mb": path.with_name("soak.db-wal")}
            return [(name, file.stat().st_size / 2**20 if file.exists() else 0.0) for name, file in files.items()]

        asyncio.run(_soak("sqlite", f"sqlite:///{path}", weigh))
    with scratch_server() as server:
        url = server.url(schema="bench")
        asyncio.run(_soak("postgres", url, lambda: _weigh_database(url)))


async def _weigh_database(url: str) -> Sequence[tuple[str, float]]:
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        size = await connection.fetchval("SELECT pg_database_size(current_database())")
    finally:
        await connection.close()
    return [("file_mb", size / 2**20)]


async def _soak(name: str, url: str, weigh: Callable[[], Awaitable[Sequence[tuple[str, float]]]]) -> None:
    curves: dict[str, list[float]] = {}
    async with Engine(
        url,
        workflows=[hello, chain, wait, loop, family, talk],
        activities=[add, stumble],
        retention=RETENTION,
        max_live_programs=500,
    ) as engine:
        begin, done = time.monotonic(), 0
        tasks: set[asyncio.Task[None]] = set()
        for sample in range(1, SAMPLES + 1):
            end = begin + sample * MINUTES * 60 / SAMPLES
            while time.monotonic() < end:
                done += 1
                task = asyncio.create_task(_one(engine, done))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                await asyncio.sleep(PACE)
            figures = [("resident_mb", resident_bytes() / 2**20), *await weigh()]
            for key, value in figures:
                curves.setdefault(key, []).append(value)
            report(f"soak {name}", minute=(time.monotonic() - begin) / 60, started=done, open=len(tasks), **dict(figures))
        await asyncio.gather(*tasks)
    for key, curve in curves.items():
        quarter = SAMPLES // 4
        second, last = statistics.median(curve[quarter : 2 * quarter]), statistics.median(curve[-quarter:])
        ratio = last / second if second else 1.0
        report(
            f"soak {name}: {key}", last_over_second_quarter=ratio, limit=LEVEL, most=max(curve), level=str(ratio <= LEVEL)
        )


async def _one(engine: Engine, number: int) -> None:
    workflow_id = f"soak-{number}"

    async def start(what: Any, *args: object) -> Any:
        return await engine.start(what, *args, workflow_id=workflow_id)

    match number % 5:
        case 0:
            handle = await start(chain, 5)
        case 1:
            handle = await start(loop, 3)
        case 2:
            handle = await start(family, number)
        case 3:
            handle = await start(talk, LONG_TEXT)
            for _ in range(3):
                await engine.signal_workflow(workflow_id, "say", LONG_TEXT, request_id=f"{workflow_id}-{_}")
        case _:
            handle = await start(wait)
            await asyncio.sleep(1)
            await engine.signal_workflow(workflow_id, "go", number)
    await handle.result()
