"""How late timers are: 3,000 due within one second, and 10,000 due at once."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench.measuring import bounded, make_engine, report
from bench.workflows import sleep
from holdfast import Engine


def run() -> None:
    """Print lateness."""
    with tempfile.TemporaryDirectory() as folder:
        late = asyncio.run(lateness(make_engine(Path(folder) / "spread.db"), 3_000, spread=1.0))
        report("timers: 3,000 in one second", p50_ms=late[1_500] * 1e3, p99_ms=late[2_970] * 1e3, limit_p99_ms=50)
        late = asyncio.run(lateness(make_engine(Path(folder) / "once.db"), 10_000, spread=0.0))
    report("timers: 10,000 at once", fired_per_s=10_000 / late[-1], last_ms=late[-1] * 1e3)


async def lateness(engine: Engine, n: int, spread: float, lead: float = 3.0) -> list[float]:
    """Start `n` sleeps that end over `spread` seconds; how late they wake, in seconds, sorted."""
    async with engine:
        loop = asyncio.get_running_loop()
        begin = loop.time()

        async def start(i: int) -> None:
            ends = lead + spread * i / n
            await engine.start(sleep, max(0.0, ends - (loop.time() - begin)), workflow_id=f"sleep-{i}")

        await bounded(n, start, 256)
        late: list[float] = await asyncio.gather(*(engine.handle(f"sleep-{i}").result() for i in range(n)))
        return sorted(late)
