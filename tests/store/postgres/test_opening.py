"""N4: many nodes open one database at once. One makes the schema or brings it up to date; the others find it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.errors import DatabaseNotFound, NewerDatabase, OlderDatabase, StoreUnavailable
from holdfast.store.postgres import opening
from holdfast.store.postgres.opening import VERSION
from holdfast.store.postgres.statements import place
from holdfast.store.postgres.store import PostgresStore
from tests.eventually import eventually
from tests.postgres.server import PostgresServer
from tests.store.builders import commit, make_row, make_start, read_row
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Plain, Watch, connect


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One whose log tells how often each statement ran."""
    with PostgresServer(settings={"log_statement": "ddl"}) as server:
        yield server


async def stand_in_line(watch: Watch, count: int) -> None:
    """Return when so many nodes wait for whoever makes the schema."""

    async def are_there() -> bool:
        waiting = await watch.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(waiting == count)

    await eventually(are_there, f"{count} nodes to wait")


@pytest.fixture
async def gate(server: PostgresServer) -> AsyncIterator[Plain]:
    """Holds the lock under which a schema is made, so that all who want it arrive together."""
    watch = await Watch.open(server.url(schema="gate"))
    gate = watch.connection
    await gate.execute(f"SELECT pg_advisory_lock({opening._LOCK})")
    yield gate
    await gate.close()


async def open_together(
    server: PostgresServer, gate: Plain, url: str, make_store: OpenStore, count: int
) -> list[PostgresStore]:
    """Stores that all see what is there, and then all wait for the lock at once."""
    watch = await Watch.open(server.url(schema="gate"))
    opening_all = [asyncio.ensure_future(make_store(url)) for _ in range(count)]
    await stand_in_line(watch, count)
    await gate.execute(f"SELECT pg_advisory_unlock({opening._LOCK})")
    await watch.close()
    return await asyncio.gather(*opening_all)


@pytest.mark.parametrize("count", [2, 5])
async def test_N4_empty_database_gets_its_schema_once(
    server: PostgresServer, gate: Plain, make_store: OpenStore, count: int
) -> None:
    schema = f"hf_empty_{count}"

    stores = await open_together(server, gate, server.url(schema=schema), make_store, count)

    made = server.log.count(f'CREATE SCHEMA "{schema}"')
    await commit(stores[0], make_start(make_row(1)))
    assert made == 1
    assert [(await read_row(store)).state_version for store in stores] == [1] * count


async def test_N4_older_schema_is_brought_up_to_date_by_one_of_two(
    server: PostgresServer, gate: Plain, make_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.url(schema="hf_older")
    await gate.execute(f"SELECT pg_advisory_unlock({opening._LOCK})")
    await (await make_store(url)).close()
    await gate.execute(f"SELECT pg_advisory_lock({opening._LOCK})")
    steps = ["ALTER TABLE holdfast.nodes ADD COLUMN colour text", "ALTER TABLE holdfast.nodes DROP COLUMN colour"]
    monkeypatch.setattr(opening, "VERSION", VERSION + 2)
    monkeypatch.setattr(
        opening,
        "read_migrations",
        lambda schema: [(VERSION + 1 + place_, place(sql, schema)) for place_, sql in enumerate(steps)],
    )

    stores = await open_together(server, gate, url, make_store, 2)

    async with stores[0]._connections.use("look at") as connection:
        assert await opening.read_version(connection, stores[0]._address) == VERSION + 2
    assert server.log.count('ALTER TABLE "hf_older".nodes ADD COLUMN') == 1
    assert server.log.count('ALTER TABLE "hf_older".nodes DROP COLUMN') == 1


async def test_migration_that_fails_leaves_the_schema_as_it_was(
    postgres_url: str, watch: Watch, left: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "VERSION", VERSION + 2)
    steps = [
        (VERSION + 1, "ALTER TABLE holdfast.nodes ADD COLUMN colour text"),
        (VERSION + 2, "ALTER TABLE holdfast.missing ADD COLUMN x int"),
    ]
    monkeypatch.setattr(opening, "read_migrations", lambda schema: [(number, place(sql, schema)) for number, sql in steps])

    with pytest.raises(Exception, match="missing"):
        await PostgresStore.from_url(postgres_url).open()

    assert await watch.value("SELECT version FROM schema_version") == VERSION
    assert await watch.value("SELECT count(*) FROM nodes") == 0
    columns = await watch.fetch(
        "SELECT 1 FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'colour'", watch.address.schema
    )
    assert columns == []
    await left.list_nodes()


async def test_newer_schema_is_refused_and_left_alone(postgres_url: str, left: PostgresStore, watch: Watch) -> None:
    await left.close()
    await watch.fetch("UPDATE schema_version SET version = 99")

    with pytest.raises(NewerDatabase, match=r"version \d+ or less, but it has 99. Use a newer Holdfast, or another schema"):
        await PostgresStore.from_url(postgres_url).open()

    assert await watch.value("SELECT version FROM schema_version") == 99


async def test_older_schema_is_not_touched_by_who_may_not(postgres_url: str, left: PostgresStore, watch: Watch) -> None:
    await left.close()
    await watch.fetch("UPDATE schema_version SET version = 1")

    with pytest.raises(OlderDatabase, match="but it has 1"):
        await PostgresStore.from_url(postgres_url).open_existing()

    assert await watch.value("SELECT version FROM schema_version") == 1


async def test_missing_schema_is_not_made_by_who_only_looks(postgres_url: str, watch: Watch) -> None:
    with pytest.raises(DatabaseNotFound, match="Check the URL"):
        await PostgresStore.from_url(postgres_url).open_existing()

    assert await watch.value("SELECT count(*) FROM pg_namespace WHERE nspname = $1", watch.address.schema) == 0


# --- rights ---


def as_user(url: str, name: str) -> str:
    return url.replace("//holdfast@", f"//{name}@")


@pytest.fixture
async def worker(server: PostgresServer) -> AsyncIterator[str]:
    """A role that may create nothing."""
    watch = await Watch.open(server.url(schema="gate"))
    await watch.fetch("CREATE ROLE worker LOGIN")
    yield "worker"
    await watch.fetch("DROP OWNED BY worker")
    await watch.fetch("DROP ROLE worker")
    await watch.close()


async def test_role_that_may_create_nothing_works_on_a_schema_that_is_there(
    server: PostgresServer, worker: str, make_store: OpenStore
) -> None:
    url = server.url(schema="hf_rights")
    owner = await make_store(url)
    admin = await connect(owner._address)
    await admin.execute("GRANT USAGE ON SCHEMA hf_rights TO worker")
    await admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hf_rights TO worker")
    await admin.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA hf_rights TO worker")
    await admin.close()

    store = await make_store(as_user(url, worker))
    await commit(store, make_start(make_row(1)))

    assert await read_row(owner) == await read_row(store)
    assert await store.check() == []


async def test_role_that_may_create_nothing_is_told_so(server: PostgresServer, worker: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"permission denied for database .* Grant the role what it needs"):
        await PostgresStore.from_url(as_user(server.url(schema="hf_new"), worker)).open()


async def test_schema_of_any_name_is_taken_as_it_is(server: PostgresServer, make_store: OpenStore) -> None:
    store = await make_store(server.url(schema='My "odd" schéma.holdfast.'))
    await commit(store, make_start(make_row(1)))

    assert (await read_row(store)).state_version == 1
    assert await store.check() == []
