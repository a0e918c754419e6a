"""The share of PostgreSQL's limit: steps of a chain, against bare group commits of the same number of rows."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import psutil

from bench.limit import BODY, ROWS_PER_COMMIT, SECONDS
from bench.measuring import bounded, make_shared_engine, report, scratch_server
from bench.workflows import chain, hello
from holdfast import Engine

LANES = 3


def run() -> None:
    """Print steps/s, bare rows/s, their ratio, and how the work divides between the engine and the server."""
    with scratch_server() as server:
        rows = asyncio.run(bare_rows_per_second(server.url()))
        report("postgres: group commit", bare_rows_per_s=rows, connections=LANES)
        asyncio.run(_run_engine(server.url(schema="bench"), server.pid, rows))


async def bare_rows_per_second(url: str) -> float:
    """Rows that the server takes with full durability when nothing else is done: arrays, some connections at once."""
    first = await asyncpg.connect(url)
    await first.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, execution text, sequence bigint, body bytea)")
    connections = [first, *[await asyncpg.connect(url) for _ in range(LANES - 1)]]
    insert = "INSERT INTO bare (execution, sequence, body) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])"
    values = (
        [f"execution-{number}" for number in range(ROWS_PER_COMMIT)],
        list(range(ROWS_PER_COMMIT)),
        [BODY] * ROWS_PER_COMMIT,
    )
    begin = time.perf_counter()
    commits = 0

    async def insert_all(connection: asyncpg.Connection) -> None:
        nonlocal commits
        while time.perf_counter() - begin < SECONDS:
            await connection.execute(insert, *values)
            commits += 1

    await asyncio.gather(*map(insert_all, connections))
    elapsed = time.perf_counter() - begin
    for connection in connections:
        await connection.close()
    return commits * ROWS_PER_COMMIT / elapsed


async def _run_engine(url: str, server: int, rows: float) -> None:
    async with make_shared_engine(url) as engine:
        before = cpu_of(server)
        steps, elapsed, own = await _chains(engine)
        report("postgres: chain", steps_per_s=steps, rows_per_step=2, share_of_limit=2 * steps / rows)
        used = cpu_of(server) - before
        report("postgres: cores used", engine=own / elapsed, server=used / elapsed)
        report("postgres: one activity", executions_per_s=await _executions(engine))


async def _chains(engine: Engine, executions: int = 200, steps: int = 10, rounds: int = 8) -> tuple[float, float, float]:
    """Steps/s of the best round; seconds and CPU seconds of all of them."""
    best, all_begin, own = 0.0, time.perf_counter(), time.process_time()
    for number in range(rounds):
        begin = time.perf_counter()
        handles = await asyncio.gather(
            *(engine.start(chain, steps, workflow_id=f"chain-{number}-{i}") for i in range(executions))
        )
        await asyncio.gather(*(handle.result() for handle in handles))
        best = max(best, executions * steps / (time.perf_counter() - begin))
    return best, time.perf_counter() - all_begin, time.process_time() - own


async def _executions(engine: Engine, executions: int = 2_000, rounds: int = 3) -> float:
    best = 0.0
    for number in range(rounds):
        begin = time.perf_counter()

        async def finish(i: int, number: int = number) -> None:
            handle = await engine.start(hello, i, workflow_id=f"hello-{number}-{i}")
            await handle.result()

        await bounded(executions, finish, 256)
        best = max(best, executions / (time.perf_counter() - begin))
    return best


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and all that it started."""
    root = psutil.Process(pid)
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
            total += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return total
