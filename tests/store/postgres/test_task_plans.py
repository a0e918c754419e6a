"""Lists of human tasks walk along an index, and locks of tasks go by it: none reads more than its page needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from holdfast.store.postgres.statements import statements_for
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.tasks import prepare_list
from holdfast.store.tasks import TaskFilter, TaskOrder, TaskState
from tests.postgres import plans
from tests.postgres.server import PostgresServer

SCHEMA = "hf_tasks"
MOST_READ = 400
"""Rows of any table that a page of 50 may look at, of 20,000."""
FILL = """
INSERT INTO hf_tasks.tasks
SELECT 'default', 't' || lpad(n::text, 8, '0'), 'e' || n, 1, 'w', 'w' || n, 'approve', 'default',
    CASE WHEN n % 2 = 0 THEN 'open' ELSE 'completed' END, 1, 'user' || n % 200, '', '[]', '[]', '[]', 0, n, NULL,
    'order-' || n % 500, 1, 1, CASE WHEN n % 2 = 0 THEN NULL ELSE 2 END, '{}'
FROM generate_series(1, 20000) AS n;
INSERT INTO hf_tasks.task_keys
SELECT 't' || lpad(n::text, 8, '0'), kind, value, 'default', n % 2 = 0, n
FROM generate_series(1, 20000) AS n
CROSS JOIN LATERAL (
    VALUES ('assignee', 'user' || n % 200), ('group', 'managers'), ('business', 'order-' || n % 500), ('execution', 'e' || n)
) AS key (kind, value);
ANALYZE
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off", "autovacuum": "off"}) as server:
        yield server


@pytest.fixture
async def connection(server: PostgresServer) -> AsyncIterator[Any]:
    """A connection on tables with many tasks, half of them open."""
    store = PostgresStore.from_url(server.url(schema=SCHEMA))
    await store.open()
    async with store._batches.use("plan in") as connection:
        if not await connection.fetchval(f"SELECT 1 FROM {SCHEMA}.tasks LIMIT 1"):
            for line in FILL.split(";"):
                await connection.execute(line)
        yield connection
    await store.close()


async def count_read(connection: Any, statement: str, values: tuple[Any, ...]) -> dict[str, float]:
    """How many rows of each table a statement looks at."""
    return plans.count_read(await plans.explain(connection, statement, *values))


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"states": tuple(TaskState)},
        {"order": TaskOrder.DUE, "due_before": 9_000},
        {"assignee": "user4"},
        {"group": "managers"},
        {"business_key": "order-8"},
        {"execution_id": "e8"},
        {"group": "managers", "order": TaskOrder.DUE},
        {"assignee": "user4", "states": tuple(TaskState)},
        {"group": "managers", "after_id": "t00010000"},
    ],
)
async def test_a_page_of_tasks_reads_little_more_than_itself(connection: Any, conditions: dict[str, Any]) -> None:
    name, values = prepare_list(TaskFilter("default", limit=50, **conditions))

    read = await count_read(connection, statements_for(SCHEMA)[name], values)

    assert read
    assert all(rows <= MOST_READ for rows in read.values()), read


@pytest.mark.parametrize("name", ["lock_open_tasks", "find_open_tasks"])
async def test_tasks_are_locked_by_their_index(connection: Any, name: str) -> None:
    read = await count_read(connection, statements_for(SCHEMA)[name], ([f"e{n}" for n in range(50)], [1] * 50))

    assert all(rows <= MOST_READ for rows in read.values()), read
