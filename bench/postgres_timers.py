"""How late timers are on PostgreSQL: 3,000 due within one second, and 10,000 due at once."""

from __future__ import annotations

import asyncio

from bench.measuring import make_shared_engine, report, scratch_server
from bench.timers import lateness


def run() -> None:
    """Print lateness."""
    with scratch_server() as server:
        late = asyncio.run(lateness(make_shared_engine(server.url(schema="spread")), 3_000, spread=1.0, lead=5.0))
        report("postgres timers: 3,000 in 1 s", p50_ms=late[1_500] * 1e3, p99_ms=late[2_970] * 1e3, limit_p99_ms=50)
        late = asyncio.run(lateness(make_shared_engine(server.url(schema="once")), 10_000, spread=0.0, lead=8.0))
        report("postgres timers: 10,000 at once", fired_per_s=10_000 / late[-1], last_ms=late[-1] * 1e3)
