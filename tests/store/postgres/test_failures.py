"""What can be wrong with a server, really caused: each error says what was to be done, what is wrong, and what helps."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
import pytest

from holdfast.errors import CorruptStore, StoreError, StoreFault, StoreUnavailable
from holdfast.store.postgres.failures import is_cut, translate
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.server import PostgresServer
from tests.postgres.small_disk import SmallDisk, is_possible
from tests.store.builders import commit, make_row, make_signal, make_start, read_inbox, read_row, want
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch, connect


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One with few connections."""
    with PostgresServer(settings={"max_connections": 10, "superuser_reserved_connections": 1}) as server:
        yield server


async def open_in_vain(url: str, error: type[StoreError] = StoreUnavailable) -> str:
    with pytest.raises(error) as caught:
        await PostgresStore.from_url(url).open()
    message = caught.value.message
    assert message.startswith("Expected to "), message
    assert message.endswith("."), message
    return message


async def test_server_that_is_down(own_postgres: PostgresServer) -> None:
    own_postgres.stop()

    message = await open_in_vain(own_postgres.url())

    assert f"connect to postgresql://127.0.0.1:{own_postgres.port}/postgres, but" in message
    assert "Check the host and the port, and whether the server runs." in message


async def test_host_that_does_not_exist() -> None:
    message = await open_in_vain("postgresql://u@nowhere.invalid/d")

    assert "nowhere.invalid" in message


async def test_database_that_is_missing(server: PostgresServer) -> None:
    message = await open_in_vain(server.url(database="nowhere"))

    assert 'database "nowhere" does not exist' in message
    assert "Create the database, or correct the URL" in message


async def test_user_that_is_unknown(server: PostgresServer) -> None:
    message = await open_in_vain(server.url().replace("holdfast@", "nobody_known@"))

    assert "nobody_known" in message
    assert "Check user and password" in message


async def test_password_that_is_wrong(server: PostgresServer) -> None:
    watch = await Watch.open(server.url(schema="x"))
    hba = await watch.value("SHOW hba_file")
    await watch.fetch("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules = await watch.value("SELECT pg_read_file($1)", hba)
    try:
        await write_file(watch, hba, "host all guarded 127.0.0.1/32 scram-sha-256\n" + rules)
        message = await open_in_vain(server.url().replace("holdfast@", "guarded:wr0ng@"))
    finally:
        await write_file(watch, hba, rules)
        await watch.close()

    assert "Check user and password" in message
    assert "wr0ng" not in message


async def write_file(watch: Watch, path: str, text: str) -> None:
    """Write a file of the server's, as the server."""
    lines = " UNION ALL ".join(f"SELECT '{line}'" for line in text.replace("\\", "\\\\").replace("'", "''").splitlines())
    await watch.connection.execute(f"COPY ({lines}) TO '{path}'")
    await watch.fetch("SELECT pg_reload_conf()")


async def test_server_without_a_free_connection(server: PostgresServer, make_store: OpenStore) -> None:
    store = await make_store(server.url(schema="hf_full"))
    await commit(store, make_start(make_row(1)))
    others = []
    try:
        while True:
            others.append(await connect(store._address))
    except asyncpg.TooManyConnectionsError:
        pass

    message = await open_in_vain(server.url(schema="hf_full"))
    row = await read_row(store)
    for other in others:
        await other.close()

    assert "it has no connection left" in message
    assert "Raise max_connections, or use a pooler" in message
    assert row.state_version == 1, "whoever has a connection goes on"


async def test_database_that_may_only_be_read(server: PostgresServer, make_store: OpenStore) -> None:
    store = await make_store(server.url(schema="hf_read"))
    await commit(store, make_start(make_row(1)))
    await store.close()
    admin = await connect(store._address)
    await admin.execute("ALTER ROLE holdfast SET default_transaction_read_only = on")
    try:
        await store.open()
        with pytest.raises(StoreUnavailable, match="ReadOnlySQLTransaction"):
            await commit(store, make_start(make_row(2)))
        assert (await read_row(store)).state_version == 1
    finally:
        await admin.execute("SET default_transaction_read_only = off")
        await admin.execute("ALTER ROLE holdfast RESET default_transaction_read_only")
        await admin.close()
        await store.close()


async def test_table_that_another_hand_dropped(left: PostgresStore, watch: Watch) -> None:
    await watch.fetch("DROP TABLE timers")

    with pytest.raises(CorruptStore, match="Another hand changed the schema; restore it"):
        await left.count()


async def test_session_that_is_ended_by_an_administrator(left: PostgresStore, watch: Watch) -> None:
    transaction = await left.begin()
    await transaction.claim(want(1))
    await watch.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE state = 'idle in transaction' AND position($1 IN query) > 0",
        watch.address.schema,
    )

    async def read_until_it_is_noticed() -> None:
        while True:
            await transaction.read_rows(["x"])

    with pytest.raises(StoreUnavailable, match=r"look at the server if it lasts|Check the host and the port"):
        await read_until_it_is_noticed()

    assert await left.list_nodes() == []


async def deliver_much(store: PostgresStore) -> None:
    for _ in range(1000):
        await store.deliver([make_signal("x" * 2000, 1)] * 20)


async def test_full_disk_is_told_as_one_and_passes(make_store: OpenStore) -> None:
    if not is_possible():
        pytest.skip("no user namespaces on this system")
    with SmallDisk() as disk:
        store = await make_store(disk.url(schema="hf_disk"))
        await commit(store, make_start(make_row(1)))
        disk.fill()

        with pytest.raises(StoreUnavailable, match=r"the server's disk is full .* Make room there"):
            await deliver_much(store)
        inside = len(await read_inbox(store))
        disk.free()
        delivered = await store.deliver([make_signal("hello", 1)])

        assert delivered == [True]
        assert len(await read_inbox(store)) == inside + 1, "what was refused left nothing behind"
        await store.close()


def test_only_what_breaks_the_way_to_the_server_leaves_a_commit_in_doubt() -> None:
    doubtful = [
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.AdminShutdownError(),
        asyncpg.CrashShutdownError(),
        asyncpg.InterfaceError("closed"),
        ConnectionResetError(),
        TimeoutError(),
    ]
    certain = [
        asyncpg.UniqueViolationError(),
        asyncpg.SerializationError(),
        asyncpg.DeadlockDetectedError(),
        asyncpg.DiskFullError(),
        asyncpg.QueryCanceledError(),
    ]

    assert all(map(is_cut, doubtful))
    assert not any(map(is_cut, certain))


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (asyncpg.QueryCanceledError, StoreFault.TIMED_OUT),
        (asyncpg.TransactionTimeoutError, StoreFault.TIMED_OUT),
        (asyncpg.IdleInTransactionSessionTimeoutError, StoreFault.TIMED_OUT),
        (asyncpg.DiskFullError, StoreFault.SHORTAGE),
        (asyncpg.OutOfMemoryError, StoreFault.SHORTAGE),
        (asyncpg.TooManyConnectionsError, StoreFault.SHORTAGE),
        (asyncpg.AdminShutdownError, StoreFault.OUT_OF_REACH),
        (asyncpg.LockNotAvailableError, StoreFault.OUT_OF_REACH),
        (ConnectionResetError, StoreFault.OUT_OF_REACH),
    ],
)
def test_D2_error_says_whether_the_work_is_to_blame(kind: type[Exception], fault: StoreFault) -> None:
    said = kind("what the server said")
    closed = asyncpg.ConnectionDoesNotExistError("the connection was closed")
    closed.__cause__ = said

    for error in (said, closed):
        translated = translate(error, "write to", "a server")
        assert isinstance(translated, StoreUnavailable)
        assert translated.fault is fault
