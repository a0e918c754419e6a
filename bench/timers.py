"""How late timers are: 3,000 due within one second, and 10,000 due at once."""

from __future__ import annotations

import asyncio

from bench.measuring import bounded, report, scratch_engine
from bench.workflows import sleep


def run() -> None:
    """Print lateness."""
    asyncio.run(lateness("timers: 3,000 in one second", 3_000, spread=1.0))
    asyncio.run(lateness("timers: 10,000 at once", 10_000, spread=0.0))


async def lateness(name: str, n: int, spread: float, lead: float = 3.0) -> None:
    """Start `n` sleeps that end over `spread` seconds, and report how late they wake."""
    async with scratch_engine() as engine:
        loop = asyncio.get_running_loop()
        begin = loop.time()

        async def start(i: int) -> None:
            ends = lead + spread * i / n
            await engine.start(sleep, max(0.0, ends - (loop.time() - begin)), workflow_id=f"sleep-{i}")

        await bounded(n, start, 256)
        late = sorted(await asyncio.gather(*(engine.handle(f"sleep-{i}").result() for i in range(n))))
        report(name, p50_ms=1e3 * late[n // 2], p99_ms=1e3 * late[n * 99 // 100], limit_p99_ms=50)
