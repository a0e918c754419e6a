"""Memory of suspended executions, start with many of them, and what an idle engine costs."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from bench.measuring import bounded, make_engine, report, resident_bytes
from bench.workflows import wait

SUSPENDED = 20_000
STORED = 100_000
IDLE_SECONDS = 10.0


def run() -> None:
    """Measure each figure in a process of its own, so that none affects another, and print them."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few.db", Path(folder) / "many.db"
        grown = _in_process(_weigh, few)
        report("memory: 20,000 suspended", megabytes=grown / 2**20, limit=20, of_limit=grown / 2**20 / 20)
        _in_process(_fill, many)
        empty = _in_process(_open_seconds, Path(folder) / "empty.db")
        opened = _in_process(_open_seconds, many)
        report("start: 100,000 suspended", seconds=opened, empty=empty, delay=opened - empty, limit=1.0)
        share = _in_process(_idle_share, many)
        report("idle: share of a core", percent=100 * share, limit=1.0)


async def _suspend(path: Path, n: int) -> None:
    async with make_engine(path, max_live_programs=100) as engine:

        async def start(i: int) -> None:
            await engine.start(wait, workflow_id=f"wait-{i}")

        await bounded(n, start, 256)


def _fill(path: Path) -> float:
    asyncio.run(_suspend(path, STORED))
    return 0.0


def _weigh(path: Path) -> float:
    async def weigh() -> float:
        async with make_engine(path, max_live_programs=100) as engine:

            async def start(i: int) -> None:
                await engine.start(wait, workflow_id=f"wait-{i}")

            await bounded(500, start)
            before = resident_bytes()

            async def start_more(i: int) -> None:
                await engine.start(wait, workflow_id=f"more-{i}")

            await bounded(SUSPENDED, start_more)
            return resident_bytes() - before

    return asyncio.run(weigh())


def _open_seconds(path: Path) -> float:
    async def open_once() -> float:
        begin = time.perf_counter()
        async with make_engine(path) as engine:
            opened = time.perf_counter() - begin
            assert engine.recovery_report is not None
            return opened

    return asyncio.run(open_once())


def _idle_share(path: Path) -> float:
    async def idle() -> float:
        async with make_engine(path):
            await asyncio.sleep(1)
            process = psutil.Process()
            before = process.cpu_times()
            await asyncio.sleep(IDLE_SECONDS)
            after = process.cpu_times()
            return (after.user + after.system - before.user - before.system) / IDLE_SECONDS

    return asyncio.run(idle())


def _in_process(function: object, path: Path) -> float:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, path))
    process.start()
    value: float = receiver.recv()
    process.join()
    return value


def _send(sender: Connection, function: object, path: Path) -> None:
    sender.send(function(path))  # type: ignore[operator]
