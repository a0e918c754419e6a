"""The cost of a turn must not grow with what is stored: no statement of a batch goes through a whole table."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.statements import statements_for
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.server import PostgresServer

EXECUTIONS: Final = 200_000
TIMERS: Final = 50_000
NOW: Final = 1_000_000

FILL: Final = f"""
INSERT INTO holdfast.executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version,
    sequence, nodes, created_at, updated_at, closed_at, details, route)
SELECT 'default', 'e' || lpad(n::text, 8, '0'), 'w' || CASE WHEN n IN (10, 20, 30) THEN n / 10 ELSE n END,
    'order', '1', 'default',
    CASE WHEN n % 10 = 0 THEN 'suspended' ELSE 'completed' END, 1, 1, NULL, n, n,
    CASE WHEN n % 10 = 0 THEN NULL ELSE n END,
    CASE WHEN n % 10 = 7
        THEN convert_to('{{"metadata":{{"channel":"web","customer":"c' || n % 1000 || '"}}}}', 'UTF8')
        ELSE '{{}}'
    END,
    'r' || n % 3
FROM generate_series(1, {EXECUTIONS}) AS n;
INSERT INTO holdfast.events (execution, first, count, at, schema, body)
SELECT id, 1, 1, id, 1, '' FROM holdfast.executions;
INSERT INTO holdfast.timers (org, execution_id, number, due, attempt, route)
SELECT 'default', 'e' || lpad((n * 4)::text, 8, '0'), 1, {NOW} + n, 0, 'r' || n % 3 FROM generate_series(1, {TIMERS}) AS n;
INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route)
SELECT 'default', 'e' || lpad((n * 10)::text, 8, '0'), '', '', 0, 'r' || n % 3 FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route)
SELECT 'default', '', 'w' || n, '', 0, 'r' || n % 3 FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.activities (org, execution_id, number, attempt, route, body, node)
SELECT 'default', 'e' || lpad((n * 10)::text, 8, '0'), 1, 1, 'r' || n % 3, '', CASE WHEN n % 2 = 0 THEN 'b' END
FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at)
SELECT 'default', 'start', 'k' || n, 'e' || lpad(n::text, 8, '0'), 1, n FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts)
SELECT 'default', 'e', '', '', '', 'a', n, 0 FROM generate_series(1, 20000) AS n;
"""

IDS: Final = [f"e{number:08}" for number in range(10, 1010, 10)]
SIZE: Final = len(IDS)
SOME: Final = ["r0", "r1"]
ORGS: Final = ["default"] * SIZE
NUMBERS: Final = list(range(1, SIZE + 1))
NAMES: Final = [f"w{number}" for number in NUMBERS]
BODIES: Final = [b""] * SIZE
LIST: Final[tuple[Any, ...]] = ("default", "f", "", None, None, None, None, "", "\U0010ffff", 0, 2**62, None, 0, [], [], 100)
"""What every statement takes that lists executions: here, without a condition."""
BATCH: Final[dict[str, tuple[Any, ...]]] = {
    "lock_executions": (IDS,),
    "lock_missing": (IDS,),
    "resolve_workflow_ids": (ORGS, NAMES),
    "list_routes": (),
    "find_work": (SOME, IDS[:3], 400, 400, NOW + 10_000),
    "read_waiting": (IDS, IDS, NOW + 10**6, ORGS, [""] * SIZE, NAMES),
    "read_withheld": (IDS, ["r0", None] * (SIZE // 2), b"{", 1000),
    "count_waiting": (IDS, 10),
    "read_executions": (IDS,),
    "read_events": (IDS, [0] * SIZE),
    "read_latest": ("default", "w77"),
    "read_request": ("default", "start", "k5", 0),
    "read_requests": (ORGS, ["start"] * SIZE, [f"k{number}" for number in NUMBERS], 0),
    "escalate": (IDS,),
    "update_executions": (
        IDS, ORGS, [1] * SIZE, ["suspended"] * SIZE, [2] * SIZE, [2] * SIZE, [None] * SIZE, NUMBERS, [None, 5] * (SIZE // 2),
        ["1"] * SIZE, BODIES, ["r0"] * SIZE, [2] * SIZE, [1] * SIZE, NUMBERS, [1] * SIZE, BODIES, NUMBERS,
    ),
    "insert_executions": (
        ORGS, [f"n{number}" for number in NUMBERS], [f"n{number}" for number in NUMBERS], ["order"] * SIZE, ["1"] * SIZE,
        ["default"] * SIZE, ["running"] * SIZE, [1] * SIZE, [1] * SIZE, [None] * SIZE, [None] * SIZE, NUMBERS, NUMBERS,
        [None, 5] * (SIZE // 2), BODIES, ["r0"] * SIZE, NUMBERS,
    ),
    "append_events": ([10**6 + number for number in NUMBERS], NUMBERS, [1] * SIZE, NUMBERS, [1] * SIZE, BODIES),
    "put_timers": (ORGS, IDS, NUMBERS, NUMBERS, ["timer"] * SIZE, [0] * SIZE, ["r0"] * SIZE),
    "end_timers": (IDS, NUMBERS),
    "consume_inbox": (NUMBERS,),
    "fail_inbox": (NUMBERS,),
    "reroute_inbox": (NUMBERS, ["r1"] * SIZE),
    "readdress_inbox": (NUMBERS, ["e"] * SIZE, [""] * SIZE, [b"{}"] * SIZE, ["r1"] * SIZE),
    "adopt_inbox": ("e", "r1", NUMBERS),
    "put_requests": (ORGS, ["start"] * SIZE, NAMES, IDS, [None] * SIZE, NUMBERS, BODIES),
    "forget_requests": (100, 50),
    "put_offers": (ORGS, IDS, NUMBERS, [1] * SIZE, ["r0"] * SIZE, BODIES, [None] * SIZE),
    "end_offers": (IDS, NUMBERS),
    "find_turn": (IDS[0], 1, 1, b""),
}  # fmt: skip
OTHERS: Final[dict[str, tuple[Any, ...]]] = {
    "share_executions": (IDS,),
    "find_execution": ("default", IDS[0]),
    "find_next_due": (SOME, IDS[:3]),
    "find_settled": (IDS,),
    "find_oldest_closed": (),
    "find_oldest_dead_letter": (),
    "read_events_page": (IDS[0], 0, 100),
    "read_last_events": (IDS[0],),
    "list_executions": (*LIST, 100_000),
    "list_open_executions": (*LIST, 100_000),
    "list_executions_of_workflow_id": (*LIST[:5], "w7", *LIST[6:]),
    "list_children": (*LIST[:6], "e00000001", *LIST[7:]),
    "list_executions_by_prefix": (*LIST[:7], "w7777", "w7778", *LIST[9:]),
    "list_executions_by_end": (*LIST[:11], 1000, 2000, *LIST[13:]),
    "list_executions_by_attribute": (*LIST[:13], ["customer", "channel"], ["c7", "web"], 100, "customer", "c7"),
    "find_walk_end": ("f", "", 1000),
    "find_open_walk_end": ("f", "", 1000),
    "read_backlog": (NOW + 10**6, 500, SOME),
    "put_input_schemas": (["d"], [b"{}"]),
    "read_input_schemas": (["d"],),
    "probe_prefix": ("default", "w7", "w8", 1000),
    "probe_closed": (0, NOW, 1000),
    "probe_attribute": ("default", "channel", "web", 1000),
    "list_orphans": (["a"], 100, ""),
    "list_held": ("a", 100, ""),
    "list_blocked": (100, ""),
    "list_inbox": ("default", IDS[0], "w7", 100),
    "list_dead_letters": ("default", 100, 0),
    "take_dead_letters": ("default", NUMBERS),
    "take_offers": ("a", SOME, 20),
    "list_lost_offers": (["a"], 100),
    "list_offers": (IDS[0],),
    "find_kept_offers": ("a", IDS, [1] * SIZE, [1] * SIZE),
    "purge": (100, 50),
    "purge_dead_letters": (100, 50),
    "beat": ("a", 1, b"{}", SOME, SOME, None),
    "hold_execution": ("default", IDS[0]),
    "mark_in_flight": ("process", 0, IDS, NUMBERS),
    "put_request_once": ("default", "start", "new", "e", None, 1, None),
    "forget_request": ("default", "start", "old", 1),
    "lock_offers": (IDS, NUMBERS),
}
OFTEN: Final = [
    *BATCH, "beat", "share_executions", "hold_execution", "take_offers", "find_next_due", "find_settled",
    "find_execution", "purge", "purge_dead_letters", "find_oldest_dead_letter", "mark_in_flight",
]  # fmt: skip
SMALL: Final = {"input_schemas", "nodes", "locks", "schema_version", "marks", "in_flight"}
"""As many rows as there are nodes."""
MAY_READ: Final = {"list_orphans": 20_000, "list_lost_offers": 10_000}
"""What is asked when a node is gone: all that is open, and all that was taken."""
USUAL: Final = 3_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off", "autovacuum": "off"}) as server:
        yield server


async def fill_tables(connection: Connection, schema: str) -> None:
    """Make the rows, which takes longer on a busy machine than a batch may."""
    await connection.execute("SET statement_timeout = 0")
    await connection.execute(FILL.replace("holdfast.", f"{schema}."), timeout=300)
    await connection.execute("RESET statement_timeout")


@asynccontextmanager
async def fill(server: PostgresServer, schema: str, *, analyze: bool) -> AsyncIterator[Connection]:
    """A connection as a batch has it, on tables with many rows."""
    store = PostgresStore.from_url(server.url(schema=schema))
    await store.open()
    async with store._batches.use("plan in") as connection:
        if not await connection.fetchval(f"SELECT 1 FROM {schema}.timers LIMIT 1"):
            await fill_tables(connection, schema)
            if analyze:
                await connection.execute("ANALYZE")
        yield connection
    await store.close()


@pytest.fixture
async def large(server: PostgresServer) -> AsyncIterator[Connection]:
    async with fill(server, "hf_large", analyze=True) as connection:
        yield connection


def to_literal(value: Any) -> str:
    """A value as it is written in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join("NULL" if one is None else f'"{to_plain(one)}"' for one in value) + "}'"
    return str(value) if isinstance(value, int) else f"'{to_plain(value)}'"


def to_plain(value: str | int | bytes) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


@pytest.fixture
async def guessing(server: PostgresServer) -> AsyncIterator[Connection]:
    async with fill(server, "hf_guess", analyze=False) as connection:
        yield connection


def list_steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from list_steps(inner)


async def explain(connection: Connection, store_sql: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    """The plan as it is run, with numbers of rows; given up again."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        found = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {store_sql}", *values)
    finally:
        await transaction.rollback()
    return list(list_steps(json.loads(found)[0]["Plan"]))


def count_read(steps: list[dict[str, Any]]) -> dict[str, float]:
    """How many rows of each table were looked at."""
    read: dict[str, float] = {}
    for step in steps:
        table = step.get("Relation Name")
        if table is not None and table not in SMALL and "Scan" in step["Node Type"]:
            rows = (step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]
            read[table] = read.get(table, 0) + rows
    return read


def statement(schema: str, name: str) -> str:
    return statements_for(schema)[name]


@pytest.mark.parametrize("name", [*BATCH, *OTHERS])
async def test_statement_reads_only_what_it_needs(large: Connection, name: str) -> None:
    values = BATCH[name] if name in BATCH else OTHERS[name]

    steps = await explain(large, statement("hf_large", name), values)

    scanned = {step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"} - SMALL
    assert scanned == set()
    assert all(rows <= MAY_READ.get(name, USUAL) for rows in count_read(steps).values()), count_read(steps)


@pytest.mark.parametrize("name", OFTEN)
async def test_statement_reads_no_more_if_the_planner_can_only_guess(guessing: Connection, name: str) -> None:
    """As for a table that was empty when it was looked at last."""
    values = BATCH[name] if name in BATCH else OTHERS[name]

    steps = await explain(guessing, statement("hf_guess", name), values)

    assert {step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"} - SMALL == set()
    assert all(rows <= USUAL for rows in count_read(steps).values()), count_read(steps)


async def test_statements_planned_for_empty_tables_read_no_more_when_they_have_grown(server: PostgresServer) -> None:
    """A connection keeps a plan for as long as it lives, unless the tables are analyzed."""
    store = PostgresStore.from_url(server.url(schema="hf_grown"))
    await store.open()
    calls = {name: f"EXECUTE {name} ({', '.join(map(to_literal, (BATCH | OTHERS)[name]))})" for name in OFTEN}
    wrong: dict[str, dict[str, float]] = {}
    async with store._batches.use("plan in") as connection, store._batches.use("fill") as other:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        for name, call in calls.items():
            await connection.execute(f"PREPARE {name} AS {statement('hf_grown', name)}")
            await connection.execute(f"EXPLAIN {call.removesuffix(' ()')}")
        await fill_tables(other, "hf_grown")
        for name, call in calls.items():
            read = count_read(await explain(connection, call.removesuffix(" ()")))
            if any(rows > USUAL for rows in read.values()):
                wrong[name] = read
    await store.close()

    assert wrong == {}


async def test_what_waits_on_other_routes_costs_nothing(large: Connection) -> None:
    steps = await explain(large, statement("hf_large", "find_work"), (["", "none"], [], 400, 0, NOW + 10**6))

    assert sum(count_read(steps).values()) == 0


def test_every_statement_of_a_batch_is_looked_at() -> None:
    names = set(statements_for("holdfast"))
    told_apart = {name for name in names if re.match(r"check_|count_(?!waiting)", name)}  # go through everything, and say so
    trivial = {
        "set_for_transaction", "read_transaction_id", "read_transaction_status", "lock_workflow_ids",
        "lock_request_keys", "put_inbox", "put_dead_letters", "list_nodes", "leave", "expire", "remove_nodes",
        "forget_processes", "take_lock", "release_lock", "notify", "enlist", "replace_execution",
        "find_timeline", "read_time",
    }  # fmt: skip

    assert names - told_apart - trivial == set(BATCH) | set(OTHERS)
