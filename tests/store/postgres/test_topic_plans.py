"""How the server finds those who wait, among many: by an index, and no more of them than asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.store.matching import EVER
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.plans import count_read, explain
from tests.postgres.server import PostgresServer

FILL = """
INSERT INTO hf_topics.executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version,
    sequence, created_at, updated_at, details)
SELECT 'o', 'e' || n, 'w' || n, 'order', '1', 'default', 'suspended', 1, 1, n, n, '{}' FROM generate_series(1, 20000) AS n;
INSERT INTO hf_topics.subscriptions (org, kind, name, execution_id, number, key, conditions, standing, since, created_at,
    fields, lookup)
SELECT 'o', kind, 'paid', 'e' || n, number, '', '{}', false, 0, 0, '', CASE WHEN kind = 'message' THEN 'k' || n ELSE '' END
FROM generate_series(1, 20000) AS n CROSS JOIN (VALUES ('message', 1), ('broadcast', 2)) AS kinds (kind, number);
ANALYZE hf_topics.executions, hf_topics.subscriptions;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off", "autovacuum": "off"}) as server:
        yield server


async def test_who_waits_is_found_by_an_index_with_a_key_and_without(server: PostgresServer) -> None:
    store = PostgresStore.from_url(server.url(schema="hf_topics"))
    await store.open()
    read: dict[str, float] = {}
    async with store._batches.use("plan in") as connection:
        await connection.execute(FILL)
        for kind, lookup in (("message", "k777"), ("broadcast", "")):
            values = ([0], ["o"], [kind], ["paid"], [""], [lookup], [""], [EVER], [EVER], [10])
            steps = await explain(connection, store._batches.sql["find_waiters"], *values)
            assert [step for step in steps if step["Node Type"] == "Seq Scan"] == []
            read[kind] = max(count_read([step]).get("subscriptions", 0) for step in steps)
    await store.close()

    assert read == {"message": 1, "broadcast": 10}


async def test_E1_events_that_were_seen_are_left_out_by_a_hash_table(server: PostgresServer) -> None:
    """However many they are: each kept event is looked up among them once."""
    store = PostgresStore.from_url(server.url(schema="hf_seen"))
    await store.open()
    seen = json.dumps([f"e{number}" for number in range(2000)])
    asked: dict[str, tuple[list[object], ...]] = {
        "read_kept": (["o"], ["event"], ["paid"], [""], [""], [0], [0], [seen], [1]),
        "read_kept_by_field": (["o"], ["paid"], ["order"], ["7"], ['{"order":"7"}'], [""], [0], [0], [seen], [1]),
    }
    async with store._batches.use("plan in") as connection:
        for name, values in asked.items():
            steps = await explain(connection, store._batches.sql[name], *values)
            assert any("hashed SubPlan" in step.get("Filter", "") for step in steps), name
    await store.close()
