"""The proxy does to a connection what it says, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeAlias

import asyncpg
import pytest

from tests.postgres.access import connect
from tests.postgres.proxy import Proxy, is_commit, runs
from tests.postgres.server import PostgresServer
from tests.postgres.wire import ClientStream, Message

LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, ConnectionError)
"""What asyncpg says of a connection that is gone."""

Client: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        with connect(server.url()) as connection:
            connection.execute("CREATE TABLE notes (text text)")
        yield server


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[Proxy]:
    with connect(server.url()) as connection:
        connection.execute("TRUNCATE notes")
    with Proxy(server.url()) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Client]:
    client = await asyncpg.connect(proxy.url)
    yield client
    client.terminate()


def read_notes(server: PostgresServer) -> list[str]:
    with connect(server.url()) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY text")]


async def write_note(client: Client, text: str) -> None:
    async with client.transaction():
        await client.execute("INSERT INTO notes VALUES ($1)", text)


async def wait_for_end_of_sessions(server: PostgresServer) -> None:
    with connect(server.url()) as connection:
        count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        while connection.execute(count).fetchone() != (0,):
            await asyncio.sleep(0.005)


async def test_traffic_goes_through(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    await write_note(client, "x" * 3_000_000)

    assert [len(note) for note in read_notes(server)] == [3_000_000]
    assert await client.fetchval("SELECT length(text) FROM notes") == 3_000_000
    assert proxy.connection_count == 1


async def test_cut_ends_both_sides(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    proxy.cut()

    with pytest.raises(LOST):
        await client.fetchval("SELECT 1")
    assert proxy.connection_count == 0
    await wait_for_end_of_sessions(server)


async def test_cut_of_the_client_alone_leaves_the_session_and_its_locks(
    server: PostgresServer, proxy: Proxy, client: Client
) -> None:
    await client.execute("SELECT pg_advisory_lock(7)")

    proxy.cut(server_too=False)

    with pytest.raises(LOST):
        await client.fetchval("SELECT 1")
    with connect(server.url()) as connection:
        assert connection.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (False,)
    proxy.close()
    await wait_for_end_of_sessions(server)


async def test_commit_cut_before_the_server_did_not_happen(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_before(is_commit)

    with pytest.raises(LOST):
        await write_note(client, "lost")

    assert trap.has_sprung
    await wait_for_end_of_sessions(server)
    assert read_notes(server) == []


async def test_commit_cut_before_its_answer_did_happen(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_after(is_commit)

    with pytest.raises(LOST):
        await write_note(client, "kept")

    assert trap.has_sprung
    assert read_notes(server) == ["kept"]


async def test_commit_by_a_prepared_statement_is_known_too(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_after(is_commit)
    commit = await client.prepare("COMMIT")
    await client.execute("BEGIN; INSERT INTO notes VALUES ('kept')")

    with pytest.raises(LOST):
        await commit.fetch()

    assert trap.has_sprung
    assert read_notes(server) == ["kept"]


async def test_single_statement_is_done_when_its_answer_is_cut(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_after(runs("insert into notes"))

    with pytest.raises(LOST):
        await client.execute("INSERT INTO notes VALUES ($1)", "kept")

    assert trap.has_sprung
    assert read_notes(server) == ["kept"]


async def test_trap_is_for_one_message(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    proxy.cut_after(is_commit)
    with pytest.raises(LOST):
        await write_note(client, "one")

    again = await asyncpg.connect(proxy.url)
    await write_note(again, "two")
    await again.close()

    assert read_notes(server) == ["one", "two"]


async def test_held_traffic_waits_for_its_release(proxy: Proxy, client: Client) -> None:
    proxy.hold()
    answer = asyncio.ensure_future(client.fetchval("SELECT 42"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(answer), 0.05)

    proxy.release()

    assert await answer == 42


async def test_commit_can_be_held_on_its_way(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.hold_before(is_commit)
    writing = asyncio.ensure_future(write_note(client, "late"))
    await asyncio.to_thread(trap.wait)
    assert read_notes(server) == []

    proxy.release()

    await writing
    assert read_notes(server) == ["late"]


async def test_held_connection_can_be_cut(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.hold_before(is_commit)
    writing = asyncio.ensure_future(write_note(client, "lost"))
    await asyncio.to_thread(trap.wait)

    proxy.cut()

    with pytest.raises(LOST):
        await writing
    await wait_for_end_of_sessions(server)
    assert read_notes(server) == []


async def test_refusal_is_for_new_connections(proxy: Proxy, client: Client) -> None:
    proxy.refuse()

    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(proxy.url)
    assert await client.fetchval("SELECT 1") == 1

    proxy.accept()
    again = await asyncpg.connect(proxy.url)
    assert await again.fetchval("SELECT 2") == 2
    await again.close()


async def test_cut_in_the_middle_of_a_question(server: PostgresServer, proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_after_bytes(1000)

    with pytest.raises(LOST):
        await client.execute(f"INSERT INTO notes VALUES ('{'x' * 2000}')")

    assert trap.has_sprung
    await wait_for_end_of_sessions(server)
    assert read_notes(server) == []


async def test_cut_in_the_middle_of_an_answer(proxy: Proxy, client: Client) -> None:
    trap = proxy.cut_after_bytes(1000, sent_by="server")

    with pytest.raises(LOST):
        await client.fetchval("SELECT repeat('x', 2000)")

    assert trap.has_sprung


async def test_server_that_is_down_looks_down_through_the_proxy(own_postgres: PostgresServer) -> None:
    with Proxy(own_postgres.url()) as proxy:
        client = await asyncpg.connect(proxy.url)
        own_postgres.stop("immediate")

        with pytest.raises(LOST):
            await client.fetchval("SELECT 1")
        with pytest.raises(LOST):
            await asyncpg.connect(proxy.url)

        own_postgres.start()
        client = await asyncpg.connect(proxy.url)
        assert await client.fetchval("SELECT 1") == 1
        await client.close()


def test_commits_are_told_from_others() -> None:
    commits = ["COMMIT;", "commit", " END", "COMMIT AND CHAIN"]
    others = ["COMMIT PREPARED 'x'", "SELECT 'COMMIT'", "committed", "ENDED", "ROLLBACK", None]

    assert all(is_commit(Message("Q", b"", text)) for text in commits)
    assert not any(is_commit(Message("Q", b"", text)) for text in others)


def test_messages_are_found_however_they_are_cut() -> None:
    start = b"\0\0\0\x08\0\x03\0\0"
    query = b"Q\0\0\0\x0cCOMMIT;\0"
    stream = ClientStream()

    found = [message for byte in start + query + query for message in stream.feed(bytes([byte]))]

    assert [message.kind for message in found] == ["start", "Q", "Q"]
    assert [message.sql for message in found] == [None, "COMMIT;", "COMMIT;"]
