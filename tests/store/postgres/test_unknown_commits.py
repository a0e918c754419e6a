"""Rule 6: a commit of which the answer never came. The database decides, before anything is tried again or answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.errors import OutcomeUnknown
from holdfast.store.contract import Transaction, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.eventually import eventually
from tests.postgres.proxy import Proxy, is_commit
from tests.postgres.server import PostgresServer
from tests.store.builders import (
    commit,
    commit_unrouted,
    id_of,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
)
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch


async def write_turn(store: PostgresStore) -> Transaction:
    """A turn of execution 1, which was committed before, up to its commit."""
    row = make_row(1)
    await commit(store, make_start(row))
    transaction = await store.begin()
    assert await transaction.write([make_turn(row, outgoing=[make_signal("sent", 2)])], UnroutedWrite()) == set()
    return transaction


async def commit_in_vain(transaction: Transaction) -> None:
    with pytest.raises(OutcomeUnknown, match="the connection broke"):
        await transaction.commit()


async def test_commit_that_never_reached_the_server_did_not_happen(slow: PostgresStore, proxy: Proxy) -> None:
    transaction = await write_turn(slow)
    proxy.cut_before(is_commit)

    await commit_in_vain(transaction)

    assert not await slow.was_committed(transaction)
    assert (await read_row(slow)).state_version == 1
    assert await read_inbox(slow) == []


async def test_commit_whose_answer_was_lost_happened(slow: PostgresStore, proxy: Proxy) -> None:
    transaction = await write_turn(slow)
    proxy.cut_after(is_commit)

    await commit_in_vain(transaction)

    assert await slow.was_committed(transaction)
    assert (await read_row(slow)).state_version == 2
    assert names_of(await read_inbox(slow)) == ["sent"]


@pytest.mark.parametrize("happens", [True, False])
async def test_start_in_doubt_is_told_too(slow: PostgresStore, proxy: Proxy, happens: bool) -> None:
    transaction = await slow.begin()
    await transaction.write([make_start(make_row(1))], UnroutedWrite())
    _ = proxy.cut_after(is_commit) if happens else proxy.cut_before(is_commit)

    await commit_in_vain(transaction)

    assert await slow.was_committed(transaction) is happens
    assert (await slow.find_execution("default", id_of(1)) is not None) is happens


@pytest.mark.parametrize("happens", [True, False])
async def test_loose_rows_in_doubt_are_told_too(slow: PostgresStore, proxy: Proxy, happens: bool) -> None:
    transaction = await slow.begin()
    await transaction.write([], UnroutedWrite(outgoing=[make_signal("sent", 2)]))
    _ = proxy.cut_after(is_commit) if happens else proxy.cut_before(is_commit)

    await commit_in_vain(transaction)

    assert await slow.was_committed(transaction) is happens
    assert names_of(await read_inbox(slow)) == (["sent"] if happens else [])


async def test_nothing_is_told_while_the_session_may_still_commit(slow: PostgresStore, proxy: Proxy, watch: Watch) -> None:
    transaction = await write_turn(slow)
    trap = proxy.hold_before(is_commit)
    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(trap.wait)
    proxy.cut(server_too=False)
    proxy.release()
    with pytest.raises(OutcomeUnknown):
        await committing

    answer = asyncio.create_task(slow.was_committed(transaction))

    async def has_asked() -> bool:
        asked = await watch.value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_xact_status($1%'")
        return bool(asked)

    await eventually(has_asked, "the store to ask")
    assert not answer.done()
    await watch.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE state = 'idle in transaction' AND position($1 IN query) > 0",
        watch.address.schema,
    )
    assert await answer is False


async def test_who_asks_waits_for_a_server_that_is_away(slow: PostgresStore, proxy: Proxy) -> None:
    transaction = await write_turn(slow)
    proxy.cut_after(is_commit)
    await commit_in_vain(transaction)
    proxy.refuse()
    proxy.cut()

    answer = asyncio.create_task(slow.was_committed(transaction))
    done, _ = await asyncio.wait([answer], timeout=0.1)
    proxy.accept()

    assert done == set()
    assert await answer is True


# --- a server that crashes ---


@pytest.fixture
def lazy() -> Iterator[PostgresServer]:
    """A server that brings to the disk what it must and no more, so that a crash forgets what was not committed."""
    with PostgresServer(settings={"wal_writer_delay": "10s", "autovacuum": "off"}) as server:
        yield server


async def write_loose(store: PostgresStore) -> Transaction:
    """Something that leaves no turn behind, up to its commit."""
    transaction = await store.begin()
    await transaction.write([], UnroutedWrite(outgoing=[make_signal("loose", 2)]))
    return transaction


async def crash_in_commit(server: PostgresServer, proxy: Proxy, transaction: Transaction) -> None:
    trap = proxy.hold_before(is_commit)
    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(trap.wait)
    server.stop("immediate")
    proxy.cut()
    proxy.release()
    with pytest.raises(OutcomeUnknown):
        await committing
    server.start()


async def test_commit_that_a_crash_forgot_did_not_happen_even_if_others_got_its_number(
    lazy: PostgresServer, make_store: OpenStore
) -> None:
    """What was not on disk is forgotten with its number, and whoever comes next is given the number again."""
    url = lazy.url(schema="hf_crash")
    with Proxy(url) as proxy:
        store = await make_store(proxy.url)
        transaction = await write_turn(store)
        await crash_in_commit(lazy, proxy, transaction)
        other = await make_store(url)
        for _ in range(5):
            await commit_unrouted(other, make_signal("of another", 9))

        assert await store.was_committed(transaction) is False

        assert set(names_of(await read_inbox(other))) == {"of another"}
        await store.close()


async def test_turn_without_events_that_a_crash_forgot_is_not_taken_for_the_same_of_another(
    lazy: PostgresServer, make_store: OpenStore
) -> None:
    """As where an activity is tried again: nothing in its row tells who took the turn."""
    url = lazy.url(schema="hf_crash")
    with Proxy(url) as proxy:
        store = await make_store(proxy.url)
        row = make_row(1)
        await commit(store, make_start(row))
        turn = make_turn(row, events=0)
        transaction = await store.begin()
        assert await transaction.write([turn], UnroutedWrite()) == set()
        await crash_in_commit(lazy, proxy, transaction)
        other = await make_store(url)
        await commit(other, turn)
        for _ in range(5):
            await commit_unrouted(other, make_signal("of another", 9))

        assert await store.was_committed(transaction) is False
        await store.close()


async def test_turn_without_events_whose_answer_was_lost_in_a_crash_happened(
    lazy: PostgresServer, make_store: OpenStore
) -> None:
    with Proxy(lazy.url(schema="hf_crash")) as proxy:
        store = await make_store(proxy.url)
        row = make_row(1)
        await commit(store, make_start(row))
        transaction = await store.begin()
        assert await transaction.write([make_turn(row, events=0)], UnroutedWrite()) == set()
        proxy.cut_after(is_commit)
        await commit_in_vain(transaction)
        lazy.restart("immediate")

        assert await store.was_committed(transaction)
        await store.close()


async def test_commit_without_a_turn_stays_unknown_after_a_crash(lazy: PostgresServer, make_store: OpenStore) -> None:
    with Proxy(lazy.url(schema="hf_crash")) as proxy:
        store = await make_store(proxy.url)
        transaction = await write_loose(store)
        await crash_in_commit(lazy, proxy, transaction)

        with pytest.raises(OutcomeUnknown, match="left no evidence"):
            await store.was_committed(transaction)

        await store.close()


async def test_commit_that_a_crash_forgot_did_not_happen_if_nobody_came_after_it(
    lazy: PostgresServer, make_store: OpenStore
) -> None:
    with Proxy(lazy.url(schema="hf_crash")) as proxy:
        store = await make_store(proxy.url)
        transaction = await write_turn(store)
        await crash_in_commit(lazy, proxy, transaction)

        assert await store.was_committed(transaction) is False
        await store.close()


async def test_commit_that_was_on_disk_before_the_crash_happened(lazy: PostgresServer, make_store: OpenStore) -> None:
    url = lazy.url(schema="hf_crash")
    with Proxy(url) as proxy:
        store = await make_store(proxy.url)
        transaction = await write_turn(store)
        proxy.cut_after(is_commit)
        await commit_in_vain(transaction)

        lazy.restart("immediate")

        assert await store.was_committed(transaction)
        assert (await read_row(store)).state_version == 2
        await store.close()
