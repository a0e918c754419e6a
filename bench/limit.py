"""The share of the machine's limit: steps of a chain, against bare group commits of the same number of rows."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from bench.measuring import bounded, report, scratch_engine
from bench.workflows import chain, hello

ROWS_PER_COMMIT = 200
SECONDS = 2.0
BODY = b'{"type":"activity_completed","number":7,"result":{"data":42}}' + b" " * 120


def run() -> None:
    """Print steps/s, bare rows/s, and their ratio."""
    rows = bare_rows_per_second()
    steps = asyncio.run(steps_per_second())
    report("limit: group commit", bare_rows_per_s=rows)
    report("limit: chain of activities", steps_per_s=steps, rows_per_step=2, share_of_limit=2 * steps / rows)
    report("limit: time per step", microseconds=1e6 / steps, aim="at most 90")
    report("limit: one activity", executions_per_s=asyncio.run(executions_per_second()))


def bare_rows_per_second() -> float:
    """Rows that SQLite takes with full durability when nothing else is done."""
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, execution TEXT, sequence INTEGER, body BLOB)")
        batch = [(f"execution-{number}", number, BODY) for number in range(ROWS_PER_COMMIT)]
        commits, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < SECONDS:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO rows (execution, sequence, body) VALUES (?, ?, ?)", batch)
            database.execute("COMMIT")
            commits += 1
        database.close()
        return commits * ROWS_PER_COMMIT / elapsed


async def steps_per_second(executions: int = 200, steps: int = 10, rounds: int = 5) -> float:
    """Steps of chains, best of some rounds."""
    best = 0.0
    async with scratch_engine() as engine:
        for number in range(rounds):
            begin = time.perf_counter()
            handles = await asyncio.gather(
                *(engine.start(chain, steps, workflow_id=f"chain-{number}-{i}") for i in range(executions))
            )
            await asyncio.gather(*(handle.result() for handle in handles))
            best = max(best, executions * steps / (time.perf_counter() - begin))
    return best


async def executions_per_second(executions: int = 2_000, rounds: int = 3) -> float:
    """Executions of one activity, best of some rounds."""
    best = 0.0
    async with scratch_engine() as engine:
        for number in range(rounds):
            begin = time.perf_counter()

            async def start(i: int, number: int = number) -> None:
                await engine.start(hello, i, workflow_id=f"hello-{number}-{i}")

            await bounded(executions, start)
            await asyncio.gather(*(engine.handle(f"hello-{number}-{i}").result() for i in range(executions)))
            best = max(best, executions / (time.perf_counter() - begin))
    return best
