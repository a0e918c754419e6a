"""Pages of lists by a key of the state, out of many executions, on both stores, with the plan of each query."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.measuring import report, scratch_server
from holdfast.core import codec
from holdfast.core.execution import Details
from holdfast.core.ids import make_execution_id
from holdfast.core.lifecycle import Status
from holdfast.core.searchable_values import find_searchable
from holdfast.filters.parser import parse_filter, parse_order
from holdfast.filters.syntax import NEWEST_FIRST
from holdfast.store.contract import ExecutionFilter, Store, TurnWrite, UnroutedWrite
from holdfast.store.postgres.reads import Reads
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.statements import SQL
from tests.postgres.plans import RecordedConnections

STORED = 100_000
LIMIT_MS = 20.0
"""What a page may take."""
ASKED = (
    ("state.customer = 'c77'", None, "list_executions_by_attribute"),
    ("state.amount > 99000", None, "list_few_executions"),
    ("state.amount > 50000", "state.amount desc", "list_executions_by_value"),
    ("state.amount > 100 AND NOT status = 'failed'", None, "list_executions"),
)


def run() -> None:
    """Print how long a page of 100 takes for each filter on each store, and how the database looks for it."""
    asyncio.run(_measure_sqlite())
    with scratch_server() as server:
        asyncio.run(_measure_postgres(server.url(schema="bench")))


def _make_row(number: int) -> ExecutionRow:
    at = 1_700_000_000_000_000 + number * 1000
    state = {"customer": f"c{number % 1000}", "amount": number * 7919 % STORED}
    execution_id = make_execution_id(at, number)
    details = codec.encode(Details(searchable=find_searchable(state, None)))
    return ExecutionRow(
        "default", execution_id, f"w{number}", "order", "", "default", Status.RUNNING, 1, 1, (), None, at, at, None, details
    )


async def _fill(store: Store) -> None:
    for first in range(0, STORED, 1000):
        transaction = await store.begin()
        turns = [TurnWrite(_make_row(number), None) for number in range(first, first + 1000)]
        await transaction.write(turns, UnroutedWrite())
        await transaction.commit()


def _make_query(where: str, order_by: str | None) -> ExecutionFilter:
    order = NEWEST_FIRST if order_by is None else parse_order(order_by)
    return ExecutionFilter("default", where=parse_filter(where), order=order, scan=STORED)


async def _time_page(name: str, store: Store, where: str, order_by: str | None) -> None:
    query = _make_query(where, order_by)
    page, times = await store.search_executions(query), []
    for _ in range(15):
        begin = time.perf_counter()
        await store.search_executions(query)
        times.append(time.perf_counter() - begin)
    milliseconds = statistics.median(times) * 1e3
    report(f"lists: {name}, {where} by {order_by or 'time'}", milliseconds=milliseconds, limit=LIMIT_MS, rows=len(page.rows))


async def _measure_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "lists.db")
        await store.open()
        await _fill(store)
        for where, order_by, statement in ASKED:
            await _time_page("sqlite", store, where, order_by)
            names = dict.fromkeys(part.split(")")[0].split(",")[0].split()[0] for part in SQL[statement].split(":")[1:])
            plan = store._connections.writer.execute(f"EXPLAIN QUERY PLAN {SQL[statement]}", names).fetchall()
            print(f"    {next(step for *_, step in plan if step.startswith('SEARCH'))}")
        await store.close()


async def _measure_postgres(url: str) -> None:
    store = PostgresStore.from_url(url)
    await store.open()
    await _fill(store)
    async with store._batches.use("analyze") as connection:
        await connection.execute("ANALYZE")
    for where, order_by, _ in ASKED:
        await _time_page("postgres", store, where, order_by)
        recorded = RecordedConnections(store._batches)
        await Reads(recorded).search_executions(_make_query(where, order_by))  # type: ignore[arg-type]
        scans = [step for step in await recorded.explain() if "Relation Name" in step]
        used = (f"{step['Node Type']} using {step.get('Index Name', step['Relation Name'])}" for step in scans)
        print(f"    {'; '.join(dict.fromkeys(used))}")
    await store.close()
