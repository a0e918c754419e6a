"""Measuring: bounded concurrency, resident memory, and engines on scratch files and servers."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.workflows import ACTIVITIES, WORKFLOWS
from holdfast import Engine
from tests.postgres.server import PostgresServer

CLIENTS = 64
SERVER_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "checkpoint_timeout": "15min"}
"""Beside full durability, which the tests' server has: as the side-by-side harness sets up its own."""


async def bounded(n: int, call: Callable[[int], Awaitable[Any]], limit: int = CLIENTS) -> None:
    """Call `call(0..n-1)` with at most `limit` under way."""
    numbers = iter(range(n))

    async def lane() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(lane() for _ in range(min(limit, n))))


def resident_bytes() -> int:
    """What this process holds in memory, after a collection."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def make_engine(path: Path, **options: Any) -> Engine:
    """An engine with the benchmark's workflows on a file."""
    return Engine(f"sqlite:///{path}", workflows=WORKFLOWS, activities=ACTIVITIES, **options)


@asynccontextmanager
async def scratch_engine(**options: Any) -> AsyncIterator[Engine]:
    """An open engine on a file that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        async with make_engine(Path(folder) / "bench.db", **options) as engine:
            yield engine


@contextmanager
def scratch_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL with full durability, which is gone afterwards."""
    with PostgresServer(settings=SERVER_SETTINGS) as server:
        yield server


def make_shared_engine(url: str, **options: Any) -> Engine:
    """An engine with the benchmark's workflows on a database that others may share."""
    return Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, **options)


def report(name: str, **figures: object) -> None:
    """Print one line with the figures of a benchmark."""
    shown = "  ".join(f"{key}={_show(value)}" for key, value in figures.items())
    print(f"{name:<28} {shown}", flush=True)


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
