"""What grows on PostgreSQL: the claim with the number of rows, the tables with the number of turns."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import asyncpg

from bench.measuring import make_shared_engine, report, scratch_server
from bench.workflows import chain
from holdfast.store.postgres.connections import BATCH_SETTINGS
from holdfast.store.postgres.statements import statements_for

EXECUTIONS = 1_000_000
TIMERS = 100_000
TURNS = 1_000_000
SCHEMA = "bench"


def run() -> None:
    """Print the plans of the claim on large tables, and the size of the tables after a million turns."""
    with scratch_server() as server:
        asyncio.run(_show_plans(server.url(), server.url(schema=SCHEMA)))
    with scratch_server() as server:
        asyncio.run(_show_growth(server.url(), server.url(schema=SCHEMA)))


# --- plans ---


async def _show_plans(url: str, store_url: str) -> None:
    async with make_shared_engine(store_url):
        pass  # makes the schema
    connection = await asyncpg.connect(url, server_settings=dict(BATCH_SETTINGS) | {"statement_timeout": "0"})
    await _fill(connection)
    sql = statements_for(SCHEMA)
    wanted = [f"e{number:09d}" for number in range(0, EXECUTIONS, EXECUTIONS // 200)]
    for name, values in {
        "lock_executions": (wanted,),
        "find_work": (["", "default\nchain"], [], 2048, 0, 1_000),
        "read_waiting": (wanted, wanted, 1_000, [], []),
        "beat": ("bench", 0, b"{}", ["", "default\nchain"], [""], None),
    }.items():
        async with connection.transaction():
            begin = time.perf_counter()
            await connection.fetch(sql[name], *values)
            first = time.perf_counter() - begin
            plan = "\n".join(line for (line,) in await connection.fetch("EXPLAIN " + _inline(sql[name], values)))
        scans = sorted(set(re.findall(r"(?:Seq|Index Only|Index|Bitmap Heap|Function) Scan(?: using \w+)?", plan)))
        report(f"postgres plan: {name}", ms=first * 1e3, scans="; ".join(scans))
        print(re.sub(r"'\{[^}]{40,}\}'", "'{…}'", plan), flush=True)
    await connection.close()


async def _fill(connection: asyncpg.Connection[Any]) -> None:
    """Rows as executions leave them: nine of ten closed; timers that are due and that are not."""
    await connection.execute(f"""
        INSERT INTO {SCHEMA}.executions (org, execution_id, workflow_id, workflow, code_version, queue, status,
            state_version, sequence, created_at, updated_at, closed_at, details, route)
        SELECT 'default', 'e' || lpad(n::text, 9, '0'), 'w' || n, 'chain', '', 'default',
            CASE WHEN n % 10 = 0 THEN 'suspended' ELSE 'completed' END, 3, 7, n, n,
            CASE WHEN n % 10 = 0 THEN NULL ELSE n END, '{{}}', 'default' || chr(10) || 'chain'
        FROM generate_series(0, {EXECUTIONS - 1}) AS n;
        INSERT INTO {SCHEMA}.timers (org, execution_id, number, due, attempt, route)
        SELECT 'default', 'e' || lpad((n * 10)::text, 9, '0'), 1, n, 0, 'default' || chr(10) || 'chain'
        FROM generate_series(0, {TIMERS - 1}) AS n;
        ANALYZE;
    """)


def _inline(statement: str, values: tuple[Any, ...]) -> str:
    """The statement with its values written out: EXPLAIN takes no parameters."""

    def write(value: Any) -> str:
        if isinstance(value, list):
            return "ARRAY[" + ",".join(map(write, value)) + "]" + ("::text[]" if not value else "")
        if isinstance(value, bytes):
            return f"'\\x{value.hex()}'::bytea"
        if value is None:
            return "NULL"
        return str(value) if isinstance(value, int) else "E'" + value.replace("\n", "\\n") + "'"

    return re.sub(r"\$(\d+)", lambda found: write(values[int(found[1]) - 1]), statement)


# --- growth ---


async def _show_growth(url: str, store_url: str) -> None:
    steps, executions = 50, TURNS // 51
    async with make_shared_engine(store_url) as engine:
        begin = time.perf_counter()
        for first in range(0, executions, 500):
            handles = await asyncio.gather(
                *(engine.start(chain, steps, workflow_id=f"c-{i}") for i in range(first, min(first + 500, executions)))
            )
            await asyncio.gather(*(handle.result() for handle in handles))
        elapsed = time.perf_counter() - begin
    turns = executions * (steps + 1)
    report("postgres growth: turns", turns=turns, turns_per_s=turns / elapsed)
    connection = await asyncpg.connect(url)
    for name, live, dead, hot, updates, size in await connection.fetch(
        "SELECT relname, n_live_tup, n_dead_tup, n_tup_hot_upd, n_tup_upd, pg_total_relation_size(relid) "
        "FROM pg_stat_user_tables WHERE schemaname = $1 AND n_tup_ins > 0 ORDER BY pg_total_relation_size(relid) DESC",
        SCHEMA,
    ):
        hot_share = hot / updates if updates else 0.0
        report(f"postgres growth: {name}", live=live, dead=dead, updates=updates, hot_share=hot_share, mb=size / 1e6)
    await connection.close()
