"""Filters that select little read little, among many executions: on a page, on the next one, and far behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.filters.parser import parse_filter, parse_order
from holdfast.filters.syntax import NEWEST_FIRST
from holdfast.store.contract import ExecutionFilter, Store
from holdfast.store.postgres.reads import Reads
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite import reads as sqlite_reads
from holdfast.store.sqlite.store import SqliteStore
from tests.postgres.plans import RecordedConnections, count_read
from tests.postgres.server import PostgresServer
from tests.store.builders import ORG

STORED = 20_000
COLUMNS = (
    "org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, created_at, updated_at"
)
ROWS = f"""'{ORG}', 'e' || substr('0000000' || n, -8), 'w' || n, 'order', '1', 'default',
    CASE WHEN n % 2 = 0 THEN 'completed' ELSE 'running' END, 1, 1, n, n, CASE WHEN n % 2 = 0 THEN n END"""
FILL = f"""
INSERT INTO {{}}executions ({COLUMNS}, closed_at, details{{more}})
{{numbers}} SELECT {ROWS}, {{details}}{{value}} FROM numbers;
INSERT INTO {{}}attributes (org, kind, name, value, execution_id)
{{numbers}} SELECT '{ORG}', 'state', 'customer', 's' || n % 1000, 'e' || substr('0000000' || n, -8) FROM numbers;
INSERT INTO {{}}attributes (org, kind, name, value, execution_id)
{{numbers}} SELECT '{ORG}', 'state', 'step', 's' || substr('0000' || n, -5), 'e' || substr('0000000' || n, -8) FROM numbers;
INSERT INTO {{}}attributes (org, kind, name, value, execution_id)
{{numbers}} SELECT '{ORG}', 'state', 'kind', 'sall', 'e' || substr('0000000' || n, -8) FROM numbers
"""
NUMBERS = f"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {STORED})"
ASKED = [
    ("state.customer = '7'", None),
    ("state.customer = '7'", "state.step desc"),
    ("state.customer = '7'", "closed"),
    ("state.customer = '7' AND state.kind = 'all'", None),
    ("state.kind = 'all' AND state.step >= '00010' AND state.step < '00030'", None),
    ("state.step > '00010' AND state.step < '00030'", None),
    ("state.step > '00010' AND state.step < '00030'", "state.customer"),
    ("state.step > '19990' AND status = 'running' AND workflow = 'order'", "state.step"),
    ("state.step STARTS WITH '0003'", "created asc"),
    ("state.customer IN ('0', '999')", None),
    ("state.customer = '0' OR state.customer = '999' OR workflow_id = 'w9'", None),
    ("state.customer = '0' OR (state.step < '00009' AND state.kind = 'all')", "state.step"),
    ("NOT (NOT state.customer = '5' OR status = 'failed')", None),
    ("workflow_id IN ('w1', 'w9')", None),
    ("workflow_id = 'w8'", "closed desc"),
    ("workflow_id STARTS WITH 'w777'", None),
    ("workflow_id STARTS WITH 'w777'", "state.step"),
    ("execution_id IN ('e00000001', 'e00000009', 'e00019999')", "closed"),
    ("created >= '1970-01-01T00:00:00.000100Z' AND closed < '1970-01-01T00:00:00.000150Z'", "closed"),
    ("closed >= '1970-01-01T00:00:00.000100Z' AND closed < '1970-01-01T00:00:00.000150Z'", None),
    ("status = 'running'", None),
    ("NOT state.customer = '7'", None),
    ("HAS state.step", "state.step"),
    ("HAS state.nothing", None),
]
"""All of them select little, or so much that a page is full at once."""


def make_query(where: str, order_by: str | None) -> ExecutionFilter:
    order = NEWEST_FIRST if order_by is None else parse_order(order_by)
    return ExecutionFilter(ORG, where=parse_filter(where), order=order, limit=5, scan=100_000)


async def measure_pages(store: Store, query: ExecutionFilter, measure: Any) -> list[float]:
    """What the first pages of a list cost."""
    costs = []
    for _ in range(3):
        page, cost = await measure(store, query)
        costs.append(cost)
        if page.end is None:
            break
        query = replace(query, before=page.end, before_value=page.end_value)
    return costs


# --- SQLite ---------------------------------------------------------------------------------------------------------------


async def count_steps(store: SqliteStore, query: ExecutionFilter) -> tuple[Any, float]:
    """A page, and the steps of the virtual machine that it took."""
    steps, connection = 0, store._connections.writer

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    connection.set_progress_handler(count, 100)
    page = sqlite_reads.search_executions(connection, query)
    connection.set_progress_handler(None, 0)
    return page, steps


async def test_L3_a_page_of_sqlite_reads_little(tmp_path: Any) -> None:
    store = SqliteStore(tmp_path / "app.db")
    await store.open()
    script = FILL.format("", "", "", "", more=", last_turn", numbers=NUMBERS, details="x'7b7d'", value=", 0")
    store._connections.writer.executescript(script)

    costs = {one: await measure_pages(store, make_query(*one), count_steps) for one in ASKED}
    await store.close()

    assert {
        one: cost for one, cost in costs.items() if max(cost) > 60_000
    } == {}  # to count up to 5,000 takes 40,000, to read all a million


# --- PostgreSQL -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off", "autovacuum": "off"}) as server:
        yield server


@pytest.fixture
async def filled(server: PostgresServer) -> AsyncIterator[PostgresStore]:
    store = PostgresStore.from_url(server.url(schema="hf_filters"))
    await store.open()
    script = FILL.format(*["hf_filters."] * 4, more="", numbers=NUMBERS, details="'{}'", value="")
    async with store._batches.use("fill") as connection:
        await connection.execute(script.replace("substr(", "right(").replace(", -8)", ", 8)").replace(", -5)", ", 5)"))
        await connection.execute("ANALYZE")
    yield store
    await store.close()


async def count_rows(store: PostgresStore, query: ExecutionFilter) -> tuple[Any, float]:
    """A page, and how many rows its statements looked at."""
    recorded = RecordedConnections(store._batches)
    page = await Reads(recorded).search_executions(query)  # type: ignore[arg-type]
    steps = await recorded.explain()
    assert [step for step in steps if step["Node Type"] == "Seq Scan"] == []
    return page, sum(count_read(steps).values())


async def test_L3_a_page_of_postgres_reads_little(filled: PostgresStore) -> None:
    costs = {one: await measure_pages(filled, make_query(*one), count_rows) for one in ASKED}

    assert {
        one: cost for one, cost in costs.items() if max(cost) > 6_000
    } == {}  # counting ends at 5,000; there are 20,000 of each
