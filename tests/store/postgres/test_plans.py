"""The cost of a turn must not grow with what is stored: no statement of a batch goes through a whole table."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.statements import statements_for
from holdfast.store.postgres.store import PostgresStore
from tests.postgres import plans
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
INSERT INTO holdfast.subscriptions (org, kind, name, execution_id, number, key, conditions, standing, since, created_at,
    fields, lookup)
SELECT 'default', kind, 'paid', 'e' || lpad((n * 10)::text, 8, '0'), number, 'k' || n, '{{}}', false, 0, 0, fields, 'k' || n
FROM generate_series(1, 20000) AS n
CROSS JOIN (VALUES ('message', 1, ''), ('event', 2, '["order"]')) AS kinds (kind, number, fields);
INSERT INTO holdfast.pending (org, kind, name, key, body, item, sent_at, expires_at, target, fields, place, lookup,
    start_id, mode)
SELECT 'default', kind, 'kept', 'k' || n, '', 'i' || n, 0, {NOW} + n, CASE WHEN n % 10 = 0 THEN 'e' || n ELSE '' END,
    '{{}}', n, 'k' || n, CASE WHEN n % 10 = 1 THEN 's' || n ELSE '' END, 'all'
FROM generate_series(1, 20000) AS n CROSS JOIN (VALUES ('message'), ('event')) AS kinds (kind);
INSERT INTO holdfast.pending_fields (org, name, field, value, pending)
SELECT org, name, 'order', substr(item, 2), id FROM holdfast.pending WHERE kind = 'event';
INSERT INTO holdfast.publications (org, body, fields, origin, number, is_returned, subscribers, kind, name, lookup)
SELECT 'default', '', '{{}}', '', 0, false, CASE WHEN n % 100 = 0 THEN '[]' END, 'message', 'paid', 'k' || n
FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.starts (kind, name, workflow, queue, route, version, org, node)
SELECT 'message', 'm' || n, 'order', 'default', 'r0', '1', '', 'n' || n % 5000 FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.schedules (org, schedule_id, state, due, is_waiting, route, version, created_at, updated_at, details)
SELECT 'default', 's' || n, 'active', {NOW} + n, n % 100 = 0, 'r' || n % 3, 1, 0, 0, '' FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.tasks (org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee,
    claimer, users, groups, roles, priority, due, business_key, created_at, updated_at, ended_at, body)
SELECT 'default', 't' || lpad(n::text, 8, '0'), 'e' || lpad((n * 10)::text, 8, '0'), 3, 'order', 'w', 'approve', 'default',
    'open', 1, 'u' || n % 1000, '', '[]', '[]', '[]', 0, n, '', n, n, CASE WHEN n % 4 > 0 THEN n END, ''
FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.task_keys (task_id, kind, value, org, is_open, due)
SELECT task_id, 'assignee', assignee, org, ended_at IS NULL, due FROM holdfast.tasks;
INSERT INTO holdfast.resources (org, digest, name, kind, data)
SELECT 'default', 'c' || n, 'n', 'bpmn', '' FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.definitions (org, kind, definition_id, version, digest, deployment, deployed_at, state, name,
    version_tag, updated_at, changed, details)
SELECT 'default', 'bpmn', 'p' || n / 4, 1 + n % 4, 'c' || n, 'd' || n, 0,
    CASE WHEN n % 100 = 0 THEN 'undeployed' ELSE 'active' END, '', '', n, n, '{{}}'
FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.starts (kind, name, workflow, queue, route, version, org, node)
SELECT 'message', 'm' || n, 'p' || n, 'default', 'r0', '1', 'default', '' FROM generate_series(1, 20000) AS n;
INSERT INTO holdfast.incidents (org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at)
SELECT org, execution_id, 1, 'p' || id % 1000, workflow_id, 'e', '', 'job', '', 0 FROM holdfast.executions WHERE id % 10 = 0;
INSERT INTO holdfast.snapshots (org, execution_id, sequence, schema, body)
SELECT org, execution_id, 1, 1, '' FROM holdfast.executions WHERE id % 10 = 0;
INSERT INTO holdfast.attributes (org, kind, name, value, execution_id)
SELECT org, 'definition', 'p' || id % 1000, '1', execution_id FROM holdfast.executions WHERE id % 10 = 0;
INSERT INTO holdfast.task_events (task_id, sequence, kind, at, actor, groups, body)
SELECT task_id, 1, 'created', 0, '', '[]', '' FROM holdfast.tasks;
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
SELECTED: Final = (
    ["metadata"] * 2, ["customer"] * 2, ["c7", "c9"], ["c71", "c9\x01"], ["w7777"], ["w7778"], ["e00000001"], ["e00000002"],
)  # fmt: skip
"""A selection: ranges of an attribute and of workflow ids, a parent and an execution id."""
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
        ["1"] * SIZE, BODIES, ["r0"] * SIZE, [2] * SIZE, [1] * SIZE, NUMBERS, [1] * SIZE, BODIES, NUMBERS, 0,
    ),
    "insert_executions": (
        ORGS, [f"n{number}" for number in NUMBERS], [f"n{number}" for number in NUMBERS], ["order"] * SIZE, ["1"] * SIZE,
        ["default"] * SIZE, ["running"] * SIZE, [1] * SIZE, [1] * SIZE, [None] * SIZE, [None] * SIZE, NUMBERS, NUMBERS,
        [None, 5] * (SIZE // 2), BODIES, ["r0"] * SIZE, NUMBERS, 0,
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
    "put_incidents": (ORGS, IDS, [2] * SIZE, *[NAMES] * 6, NUMBERS),
    "end_incidents": (IDS, [1] * SIZE),
    "put_snapshots": (ORGS, IDS, NUMBERS, [1] * SIZE, BODIES),
    "end_repairs": (IDS,),
    "put_definition_attributes": (ORGS, ["p1"] * SIZE, ["2"] * SIZE, IDS),
    "read_snapshots": (IDS,),
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
    "list_executions_by_attribute": (*LIST[:13], ["customer", "channel"], ["c7", "web"], 100, "metadata", "customer", "c7"),
    "list_few_executions": (*LIST, *SELECTED),
    "list_few_by_value": (*LIST, *SELECTED, "metadata", "customer", "", "", "d", ""),
    "list_few_by_closing": (*LIST, *SELECTED, 0, "", NOW, ""),
    "list_executions_by_value": (*LIST, 100_000, "metadata", "customer", "c5", "", "c7", "f"),
    "list_executions_by_closing": (*LIST, 100_000, 1000, "", 2000, "f"),
    "find_value_walk_end": ("default", "metadata", "customer", "c5", "", "c7", "f", 1000),
    "find_closing_walk_end": (0, "", NOW, "f", 1000),
    "probe_selection": ("default", 1000, *SELECTED),
    "end_state_attributes": (IDS, ["default"] * SIZE, ["customer"] * SIZE),
    "put_state_attributes": (IDS, ["default"] * SIZE, ["step"] * SIZE, ["spaid"] * SIZE),
    "find_walk_end": ("f", "", 1000),
    "find_open_walk_end": ("f", "", 1000),
    "read_backlog": (NOW + 10**6, 500, SOME),
    "put_input_schemas": (["d"], [b"{}"]),
    "read_input_schemas": (["d"],),
    "probe_prefix": ("default", "w7", "w8", 1000),
    "probe_closed": (0, NOW, 1000),
    "list_orphans": (["a"], 100, ""),
    "list_held": ("a", 100, ""),
    "find_stale_executions": ("", "f", 200, NOW, None),
    "find_stale_tasks": ("", "", "z", 200, NOW, NOW),
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
    "hold_open": ("default", IDS[0]),
    "hold_open_by_workflow_id": ("default", "w1"),
    "set_pending_starts": (NUMBERS, [b"{}"] * len(NUMBERS), ["w"] * len(NUMBERS)),
    "mark_in_flight": ("process", 0, IDS, NUMBERS),
    "put_request_once": ("default", "start", "new", "e", None, 1, None),
    "forget_request": ("default", "start", "old", 1),
    "lock_offers": (IDS, NUMBERS),
}
EMPTY: Final = [""] * SIZE
KEYS: Final = [f"k{number}" for number in NUMBERS]
TASK_LIST: Final[tuple[Any, ...]] = ("default", *[None] * 11, "", 100, None, None, None)
"""What every statement takes that lists human tasks: here, without a condition."""
TASKS_OF: Final[tuple[Any, ...]] = (*TASK_LIST[:14], 0, "assignee", "u4")
TOPICS: Final[dict[str, tuple[Any, ...]]] = {
    "lock_topics": (KEYS, [True] * SIZE),
    "lock_topics_to_wait": (
        KEYS, [False] * SIZE, NUMBERS, ORGS, ["kept"] * SIZE, ["", "order"] * (SIZE // 2),
        [str(number) for number in NUMBERS], ["{}"] * SIZE, EMPTY, [0] * SIZE, NUMBERS, ["[]"] * SIZE, [1] * SIZE,
    ),
    "wait_for_topic": ("t",),
    "read_kept": (
        ORGS, ["message"] * SIZE, ["kept"] * SIZE, KEYS, EMPTY, [0] * SIZE, NUMBERS, ["[]"] * SIZE, [1] * SIZE,
    ),
    "read_kept_by_field": (
        ORGS, ["kept"] * SIZE, ["order"] * SIZE, [str(number) for number in NUMBERS], ["{}"] * SIZE, EMPTY, [0] * SIZE,
        NUMBERS, ["[]"] * SIZE, [1] * SIZE,
    ),
    "find_holders": (ORGS, ["paid"] * SIZE, KEYS),
    "put_subscriptions": (
        ORGS, ["event"] * SIZE, ["new"] * SIZE, NAMES, NUMBERS, EMPTY, ["{}"] * SIZE, [False] * SIZE, NUMBERS, NUMBERS,
        EMPTY, EMPTY,
    ),
    "end_subscriptions": (IDS, [1] * SIZE),
    "take_pending": (NUMBERS,),
    "take_over_pending": (["new"] * SIZE, [f"e{number}" for number in NUMBERS]),
    "read_ended_kept": ([f"e{number}" for number in NUMBERS],),
    "read_ended_starts": (ORGS, [f"s{number}" for number in NUMBERS], 0, 1),
    "put_publications": (
        ORGS, BODIES, ["{}"] * SIZE, EMPTY, NUMBERS, [False] * SIZE, [None] * SIZE, ["event"] * SIZE, ["new"] * SIZE, EMPTY,
    ),
    "read_starts": (["message"] * SIZE, [f"m{number}" for number in NUMBERS], "default"),
    "read_outbox": (100, [1, 2]),
    "find_shapes": (["default"], ["paid"]),
    "find_waiters": (
        NUMBERS, ORGS, ["message"] * SIZE, ["paid"] * SIZE, EMPTY, KEYS, EMPTY, [NOW] * SIZE, [NOW] * SIZE, [10] * SIZE,
    ),
    "find_waits_of": (IDS,),
    "share_targets": (IDS,),
    "find_targets": (IDS,),
    "find_open_receivers": (ORGS, NAMES),
    "find_kept_messages": (ORGS, ["kept"] * SIZE, KEYS, [f"i{number}" for number in NUMBERS], KEYS, 0, 50),
    "read_kept_messages": (NUMBERS,),
    "read_unstarted": (["kept"], 0, 0, 100),
    "put_pending": (
        ORGS, ["event"] * SIZE, ["new"] * SIZE, EMPTY, BODIES, KEYS, NUMBERS, NUMBERS, EMPTY, ["{}"] * SIZE, [None] * SIZE,
        NUMBERS, EMPTY, EMPTY, ["all"] * SIZE,
    ),
    "drop_publications": (NUMBERS,),
    "read_spread": ([1],),
    "shorten_spread": (100, "[]"),
    "put_triggered": (IDS, [1] * SIZE, b"{", b"}", NOW),
    "list_pending": ("default", "event", "kept", 0, 0, 100),
    "find_pending": ("default", "event", "kept", "i7"),
    "remove_pending": ("default", "event", "kept", "i7"),
    "purge_pending": (NOW + 50, 50),
    "list_subscriptions": ("default", IDS[0]),
    "put_starts": (
        ["message"] * SIZE, KEYS, ["order"] * SIZE, ["default"] * SIZE, ["r0"] * SIZE, ["1"] * SIZE, EMPTY, ["a"] * SIZE,
    ),
    "remove_starts": (["n1"],),
    "list_questions": (NOW, 2, ["order"], NOW, "", 100),
}  # fmt: skip
SCHEDULES: Final[dict[str, tuple[Any, ...]]] = {
    "claim_schedules": (NOW + 100, SOME, [], [], 100),
    "claim_waiting_schedules": (SOME, "", "", 100),
    "find_open_ids": (ORGS, NAMES),
    "write_schedules": (
        ORGS, [f"s{number}" for number in NUMBERS], ["active"] * SIZE, NUMBERS, [False] * SIZE, ["r0"] * SIZE, [2] * SIZE,
        NUMBERS, BODIES,
    ),
    "insert_schedule": ("default", "new", "", "active", 1, False, "r0", 1, 1, 1, b""),
    "remove_schedule": ("default", "s1", 1),
    "find_schedule": ("default", "s1"),
    "list_schedules": ("default", "", None, 100),
    "look_at_schedules": (SOME, [], []),
}  # fmt: skip
TASKS: Final[dict[str, tuple[Any, ...]]] = {
    "put_tasks": (
        ORGS, KEYS, [f"n{number}" for number in NUMBERS], NUMBERS, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, NUMBERS, EMPTY,
        EMPTY, EMPTY, EMPTY, EMPTY, NUMBERS, [None] * SIZE, [None] * SIZE, EMPTY, NUMBERS, NUMBERS, [None] * SIZE, BODIES,
    ),
    "put_task_keys": (KEYS, ["group"] * SIZE, EMPTY, ORGS, [True] * SIZE, [None] * SIZE),
    "put_task_events": (KEYS, NUMBERS, EMPTY, NUMBERS, EMPTY, EMPTY, BODIES),
    "lock_open_tasks": (IDS, [3] * SIZE),
    "change_task": (
        "default", "t00000004", "open", 2, "", "", "[]", "[]", 0, None, None, 1, None, b"", "claimed", 1, "", "[]", b"",
        ["assignee"], ["u1"],
    ),
    "find_open_tasks": (IDS, [3] * SIZE),
    "find_task": ("default", "t00000004"),
    "list_task_events": ("default", "t00000004"),
    "list_tasks": TASK_LIST,
    "list_tasks_open": TASK_LIST,
    "list_tasks_by_due": (*TASK_LIST[:14], 0, None, None),
    "list_tasks_of": TASKS_OF,
    "list_tasks_open_of": TASKS_OF,
    "list_tasks_by_due_of": TASKS_OF,
}  # fmt: skip
DEFINITION_LIST: Final[tuple[Any, ...]] = ("default", None, None, None, None, None, False, "", "", 0, 100)
"""What every statement takes that lists definitions: here, without a condition."""
INCIDENT_LIST: Final[tuple[Any, ...]] = ("default", *[None] * 5, "", 0, 100)
"""What every statement takes that lists incidents: here, without a condition."""
DEFINITIONS: Final[dict[str, tuple[Any, ...]]] = {
    "take_settings": (0, 1),
    "put_resources": (ORGS, [f"new{number}" for number in NUMBERS], EMPTY, EMPTY, BODIES),
    "put_definitions": (
        ORGS, ["form"] * SIZE, NAMES, NUMBERS, KEYS, KEYS, NUMBERS, ["active"] * SIZE, EMPTY, EMPTY, NUMBERS, NUMBERS,
        BODIES,
    ),
    "change_definitions": (
        "default", ["bpmn"] * SIZE, [f"p{number}" for number in NUMBERS], [2] * SIZE, ["disabled"] * SIZE, 1, 1,
    ),
    "end_deployed_starts": ("default", ["p1", "p2"]),
    "end_schedules": ("default", ["s1", "s2"]),
    "put_schedules": (
        ORGS, [f"s{number}" for number in NUMBERS], EMPTY, ["active"] * SIZE, NUMBERS, [False] * SIZE, ["r0"] * SIZE,
        NUMBERS, NUMBERS, NUMBERS, BODIES,
    ),
    "read_changed_definitions": (19_000, 101),
    "find_definition_version": ("default", "bpmn", "p7", 1),
    "find_definition": ("default", "bpmn", "p7", None, None),
    "list_definitions": DEFINITION_LIST,
    "list_definition_versions": ("default", "bpmn", "p7", *DEFINITION_LIST[3:]),
    "list_definitions_of_deployment": (*DEFINITION_LIST[:3], "d7", *DEFINITION_LIST[4:]),
    "list_definitions_of_resource": (*DEFINITION_LIST[:4], "c7", *DEFINITION_LIST[5:]),
    "read_resource": ("default", "c7"),
    "has_undeployed": (NOW,),
    "purge_definitions": (NOW, 100),
    "purge_resources": (["default"], ["c7"]),
    "list_incidents": INCIDENT_LIST,
    "list_incidents_of_workflow": ("default", "p10", *INCIDENT_LIST[2:]),
    "list_incidents_of_workflow_id": (*INCIDENT_LIST[:3], "w50", *INCIDENT_LIST[4:]),
    "list_incidents_of_execution": (*INCIDENT_LIST[:2], IDS[3], *INCIDENT_LIST[3:]),
}  # fmt: skip
LISTED: Final = BATCH | OTHERS | TOPICS | SCHEDULES | TASKS | DEFINITIONS
OFTEN: Final = [
    *BATCH, "beat", "share_executions", "hold_execution", "take_offers", "find_next_due", "find_settled",
    "find_execution", "purge", "purge_dead_letters", "find_oldest_dead_letter", "mark_in_flight",
]  # fmt: skip
SMALL: Final = {"input_schemas", "nodes", "locks", "schema_version", "marks", "in_flight", "settings"}
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


async def explain(connection: Connection, store_sql: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    """The plan as it is run, with numbers of rows; given up again."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        return await plans.explain(connection, store_sql, *values)
    finally:
        await transaction.rollback()


def count_read(steps: list[dict[str, Any]]) -> dict[str, float]:
    """How many rows of each large table were looked at."""
    return {table: rows for table, rows in plans.count_read(steps).items() if table not in SMALL}


def statement(schema: str, name: str) -> str:
    return statements_for(schema)[name]


@pytest.mark.parametrize("name", LISTED)
async def test_statement_reads_only_what_it_needs(large: Connection, name: str) -> None:
    values = LISTED[name]

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
        "find_timeline", "read_time", "read_pauses", "read_settings", "put_pause", "end_pause", "raise_settings",
        "find_writers", "put_question", "take_questions", "answer_question", "read_answers",
        "remove_questions", "remove_expired_questions", "hold_settings",
    }  # fmt: skip

    assert names - told_apart - trivial == set(LISTED)
