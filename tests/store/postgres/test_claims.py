"""Rule 1: lock in one statement, read in the next; what is consumed is what was read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.core.instants import SECOND
from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.proxy import Proxy, runs
from tests.postgres.server import PostgresServer
from tests.postgres.wire import Message
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    want,
)
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch

LOCKS = runs("FOR NO KEY UPDATE SKIP LOCKED")


def prepares_to_read(message: Message) -> bool:
    """Before the server has heard of the statement: with the values for it, it takes its snapshot."""
    return message.kind == "P" and b"AND due <=" in message.raw


async def test_what_the_last_holder_committed_just_before_the_lock_is_seen(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    await commit_unrouted(left, make_signal("taken", 1))
    holder, seen = await begin_with(left, want(1))
    turn = make_turn(row, consumed=[one.id for one in seen.inbox], outgoing=[make_signal("sent", 1)])
    await holder.write([turn], UnroutedWrite())

    trap = proxy.hold_before(LOCKS)
    claiming = asyncio.create_task(begin_with(slow, want(1, known_version=1)))
    await asyncio.to_thread(trap.wait)
    await holder.commit()
    proxy.release()
    transaction, claimed = await claiming
    history = await transaction.read_history({id_of(1): 0})
    await transaction.rollback()

    assert claimed.rows == {id_of(1): turn.row}
    assert names_of(claimed.inbox) == ["sent"]
    assert [one.first for one in history[id_of(1)]] == [1, 2]


async def test_timer_that_was_found_due_and_ended_before_the_lock_does_not_fire(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy
) -> None:
    row = make_row(1)
    await commit(left, make_start(row, timers=[make_timer(1, due=1), make_timer(2, due=2)]))
    holder, _ = await begin_with(left, want(1))
    await holder.write([make_turn(row, ended_timers=[1], timers=[make_timer(2, due=100)])], UnroutedWrite())

    trap = proxy.hold_before(LOCKS)
    claiming = asyncio.create_task(begin_with(slow, Claim(limit=10, due_until=NOW + 10 * SECOND)))
    await asyncio.to_thread(trap.wait)
    await holder.commit()
    proxy.release()
    transaction, claimed = await claiming
    await transaction.rollback()

    assert claimed.held == {id_of(1)}, "it was found, and is held"
    assert claimed.due == []


async def test_what_comes_in_between_lock_and_read_is_read(left: PostgresStore, slow: PostgresStore, proxy: Proxy) -> None:
    await commit(left, make_start(make_row(1)))
    await commit_unrouted(left, make_signal("early", 1))

    trap = proxy.hold_before(prepares_to_read)
    claiming = asyncio.create_task(begin_with(slow, want(1)))
    await asyncio.to_thread(trap.wait)
    assert await left.deliver([make_signal("meanwhile", 1)]) == [True]
    proxy.release()
    transaction, claimed = await claiming
    await transaction.rollback()

    assert names_of(claimed.inbox) == ["early", "meanwhile"]


async def test_consuming_deletes_the_rows_that_were_read_and_no_others(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    earlier = await left.begin()
    await earlier.write([], UnroutedWrite(outgoing=[make_signal("smaller id, not committed", 1)]))
    await commit_unrouted(left, make_signal("read", 1))
    transaction, claimed = await begin_with(slow, want(1))
    await earlier.commit()

    trap = proxy.hold_before(runs("DELETE FROM"))
    turn = make_turn(row, consumed=[one.id for one in claimed.inbox])
    writing = asyncio.create_task(transaction.write([turn], UnroutedWrite()))
    await asyncio.to_thread(trap.wait)
    await left.deliver([make_signal("at the last moment", 1)])
    proxy.release()
    await writing
    await transaction.commit()

    assert names_of(claimed.inbox) == ["read"]
    assert names_of(await read_inbox(left)) == ["smaller id, not committed", "at the last moment"]


async def test_workflow_id_is_resolved_after_it_is_locked(left: PostgresStore, slow: PostgresStore, proxy: Proxy) -> None:
    starter, _ = await begin_with(left, Claim(workflow_ids=[(ORG, "order")]))
    await starter.write([make_start(make_row(1, workflow_id="order"))], UnroutedWrite())

    trap = proxy.hold_before(runs("pg_try_advisory_xact_lock"))
    claiming = asyncio.create_task(begin_with(slow, Claim(workflow_ids=[(ORG, "order")])))
    await asyncio.to_thread(trap.wait)
    await starter.commit()
    proxy.release()
    transaction, claimed = await claiming
    await transaction.rollback()

    assert claimed.open_ids == {(ORG, "order"): id_of(1)}
    assert claimed.held == {id_of(1)}


async def test_nobody_waits_for_what_another_holds(left: PostgresStore, right: PostgresStore, watch: Watch) -> None:
    await commit(left, *[make_start(make_row(number, workflow_id=f"id-{number}")) for number in (1, 2)])
    await commit_unrouted(left, make_signal("by id", None, workflow_id="id-1"), make_signal("to nobody", 9))
    everything = Claim(want(1).wanted, [(ORG, "id-2"), (ORG, "free")], limit=10)
    holder, _ = await begin_with(left, everything)
    # Were anything waited for, it would be an error at once.
    right._batches._settings = {**right._batches._settings, "lock_timeout": "1ms"}

    other, claimed = await begin_with(right, everything)
    await other.rollback()
    await holder.rollback()

    assert claimed.held == set()
    assert claimed.inbox == []
    assert claimed.open_ids == {}
    assert id_of(1) in claimed.busy
    assert await watch.count_waiting() == 0


@pytest.fixture(scope="module")
def serializable() -> Iterator[PostgresServer]:
    """A server on which transactions see one moment, unless they say otherwise."""
    with PostgresServer(settings={"default_transaction_isolation": "serializable"}) as server:
        yield server


async def test_reads_are_new_whatever_the_isolation_of_the_database(
    serializable: PostgresServer, make_store: OpenStore
) -> None:
    url = serializable.url(schema="hf_isolation")
    left, right = await make_store(url), await make_store(url)
    row = make_row(1)
    await commit(left, make_start(row))
    early = await right.begin()
    await early.read_rows([id_of(1)])  # from here on a transaction of that kind would see what was there now
    turn = make_turn(row, outgoing=[make_signal("sent", 1)])
    await commit(left, turn)

    claimed = await early.claim(want(1))
    lost = await early.write([make_turn(turn.row, consumed=[one.id for one in claimed.inbox])], UnroutedWrite())
    await early.commit()

    assert claimed.rows == {id_of(1): turn.row}
    assert names_of(claimed.inbox) == ["sent"]
    assert lost == set()
