"""A schema that an older Holdfast made goes on where it left it."""

from __future__ import annotations

from holdfast.core.instants import SECOND
from holdfast.engine.rows import from_row
from holdfast.store.contract import Claim, ExecutionFilter
from holdfast.store.postgres.opening import VERSION
from holdfast.store.postgres.statements import quote_name, read_migrations
from tests.store.builders import NOW, ORG, id_of, look, make_offer_timer, make_retry, make_timer, read_row
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch
from tests.store.sqlite.test_migrations import NEW_ATTEMPTS, OLD_DETAILS

DESCRIBE = (
    # Columns that were added later stand elsewhere in the table.
    """SELECT table_name, column_name, data_type, column_default, is_nullable, collation_name, is_identity
    FROM information_schema.columns WHERE table_schema = $1 ORDER BY table_name, column_name""",
    "SELECT tablename, indexname, replace(indexdef, $1, '') FROM pg_indexes WHERE schemaname = $1 ORDER BY indexname",
    """SELECT relname, reloptions::text
    FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' ORDER BY relname""",
    """SELECT tgname, replace(pg_get_triggerdef(pg_trigger.oid), $1, '')
    FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
    WHERE relnamespace = $1::text::regnamespace AND NOT tgisinternal ORDER BY tgname""",
    """SELECT proname, replace(prosrc, $1, '')
    FROM pg_proc WHERE pronamespace = $1::text::regnamespace ORDER BY proname""",
)


async def make_version_2(watch: Watch) -> None:
    """The schema with which PostgreSQL began, empty."""
    schema = watch.address.schema
    await watch.connection.execute(f"CREATE SCHEMA {quote_name(schema)}")
    await watch.connection.execute(read_migrations(schema)[0][1])
    await watch.fetch("INSERT INTO schema_version VALUES (2)")


async def describe(watch: Watch) -> list[object]:
    return [row for query in DESCRIBE for row in await watch.fetch(query, watch.address.schema)]


async def test_the_migrations_make_the_schema(watch: Watch, make_store: OpenStore) -> None:
    await make_version_2(watch)
    await (await make_store()).close()
    grown = await describe(watch)
    await watch.connection.execute("SET client_min_messages TO warning")
    await watch.connection.execute(f"DROP SCHEMA {quote_name(watch.address.schema)} CASCADE")

    await make_store()

    assert await describe(watch) == grown
    assert len(grown) > 100


def test_migrations_are_numbered_without_gaps_up_to_the_present_version() -> None:
    assert [number for number, _ in read_migrations("holdfast")] == list(range(2, VERSION + 1))


async def test_kinds_of_timers_and_lists_of_nodes_come_out_of_their_disguise(watch: Watch, make_store: OpenStore) -> None:
    await make_version_2(watch)
    for number, node, details in ((1, "one,two", OLD_DETAILS), (2, 'th"ree', b"{}"), (3, None, b"{}")):
        await watch.fetch(
            "INSERT INTO executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, "
            "sequence, node, created_at, updated_at, details) "
            "VALUES ($1, $2, $3, 'order', '1', 'default', 'running', 1, 0, $4, 1, 1, $5)",
            *(ORG, id_of(number), f"order-{number}", node, details),
        )
    for number, attempt in ((1, 0), (2, 3), (3, -2)):
        timer = (id_of(1), number, ORG, NOW + number * SECOND, attempt)
        await watch.fetch("INSERT INTO timers VALUES ($1, $2, $3, $4, $5)", *timer)

    store = await make_store()

    claimed = await look(store, Claim(limit=10, due_until=NOW + 5 * SECOND))
    assert claimed.due == [make_timer(1, due=1), make_retry(2, due=2, attempt=3), make_offer_timer(3, due=3, attempt=2)]
    assert [(await read_row(store, number)).nodes for number in (1, 2, 3)] == [("one", "two"), ('th"ree',), ()]
    assert await store.list_orphans(["one", "two"], 10) == [await read_row(store, 2)]
    assert from_row(await read_row(store, 1)).details.attempts == NEW_ATTEMPTS
    assert await store.check() == []
    assert await watch.value("SELECT version FROM schema_version") == VERSION


INSERT = (
    "INSERT INTO executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, "
    "sequence, created_at, updated_at, details) VALUES ($1, $2, $3, 'order', '1', 'default', 'running', 1, 0, 1, 1, $4)"
)
"""As nodes of the version before insert an execution."""


async def test_executions_of_the_version_before_are_found_by_their_metadata(watch: Watch, make_store: OpenStore) -> None:
    await make_version_2(watch)
    for number, details in ((1, b'{"metadata":{"by":"ann"}}'), (2, b'{"metadata":{"by":'), (3, OLD_DETAILS), (4, b"{}")):
        await watch.fetch(INSERT, ORG, id_of(number), f"order-{number}", details)

    store = await make_store()
    await watch.fetch(INSERT, ORG, id_of(5), "order-5", b'{"metadata":{"by":"ann"}}')
    found = await store.list_executions(ExecutionFilter(ORG, metadata={"by": "ann"}))
    await watch.fetch("DELETE FROM executions")

    assert [row.execution_id for row in found] == [id_of(5), id_of(1)]
    assert await watch.value("SELECT count(*) FROM attributes") == 0


async def test_metadata_with_nul_is_no_longer_found_by_another_character(watch: Watch, make_store: OpenStore) -> None:
    await make_version_2(watch)
    for number, text in ((1, "a\\u0000b"), (2, "a\ufffdb"), (3, "\\\\u0000")):
        await watch.fetch(INSERT, ORG, id_of(number), f"order-{number}", f'{{"metadata":{{"by":"{text}"}}}}'.encode())

    store = await make_store()

    values = await watch.fetch("SELECT execution_id, value FROM attributes ORDER BY execution_id")
    assert [tuple(one) for one in values] == [(id_of(2), "a\ufffdb"), (id_of(3), "\\u0000")]
    assert await store.check() == []
