"""Rule 7: nobody waits for long, and whoever stands still frees what it holds."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from holdfast.errors import StoreError, StoreUnavailable
from holdfast.store.contract import Claimed, UnroutedWrite, UserFunction
from holdfast.store.postgres.connections import BATCH_SETTINGS, HOLDING
from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.transaction import PostgresTransaction
from tests.eventually import eventually
from tests.postgres.proxy import Proxy, runs
from tests.store.builders import (
    begin_with,
    commit,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    read_inbox,
    want,
)
from tests.store.postgres.watching import Watch

NAMES = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
KEEPALIVES = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")


async def read_settings(connection: Connection, names: tuple[str, ...]) -> dict[str, str]:
    return {name: str(await connection.fetchval("SELECT current_setting($1)", name)) for name in names}


def shorten(store: PostgresStore, **settings: str) -> None:
    """The same with less patience, for what is connected from now on."""
    for connections in (store._batches, store._connections):
        connections._settings = {**BATCH_SETTINGS, **settings}
        for connection in connections._free:
            connection.terminate()


# --- what is in force ---


async def test_batch_has_all_limits(left: PostgresStore) -> None:
    transaction = await left.begin()
    assert isinstance(transaction, PostgresTransaction)

    found = await read_settings(transaction._connection, NAMES + KEEPALIVES)
    await transaction.rollback()

    assert found == {name: BATCH_SETTINGS[name] for name in NAMES + KEEPALIVES}


async def test_whatever_is_not_a_batch_has_them_too(left: PostgresStore) -> None:
    async with left._connections.use("look at") as connection:
        found = await read_settings(connection, NAMES + KEEPALIVES)

    assert found == {name: BATCH_SETTINGS[name] for name in NAMES + KEEPALIVES}


async def test_user_work_frees_its_locks_too(left: PostgresStore) -> None:
    names = ("idle_in_transaction_session_timeout", *KEEPALIVES)

    async def work(connection: Any, _put: object) -> dict[str, str]:
        return await read_settings(connection, names)

    found: dict[str, str] = await left.transact(cast("UserFunction[dict[str, str]]", work))

    assert all(value not in ("0", "") for value in found.values())


async def test_heartbeat_has_them_too(left: PostgresStore) -> None:
    line: Any = left.make_heartbeat_connection()
    async with line._connections.use("look at") as connection:
        found = await read_settings(connection, NAMES + KEEPALIVES)
    await line.close()

    assert found == {name: BATCH_SETTINGS[name] for name in NAMES + KEEPALIVES}


async def test_limits_fit_into_each_other() -> None:
    seconds = {name: int(BATCH_SETTINGS[name].rstrip("s")) for name in NAMES}
    keepalive = sum(int(BATCH_SETTINGS[name]) for name in KEEPALIVES[:1]) + int(BATCH_SETTINGS[KEEPALIVES[1]]) * int(
        BATCH_SETTINGS[KEEPALIVES[2]]
    )

    assert seconds["lock_timeout"] < seconds["idle_in_transaction_session_timeout"] < seconds["statement_timeout"]
    assert keepalive <= 10
    assert HOLDING == {"transaction_timeout": "10s"}


# --- what they do ---


async def test_node_that_stands_still_in_a_transaction_loses_what_it_holds(
    left: PostgresStore, right: PostgresStore
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    frozen, claimed = await begin_with(left, want(1))
    await frozen.write([make_turn(row)], UnroutedWrite())
    # Not before: whoever writes on a busy machine may pause for as long.
    assert isinstance(frozen, PostgresTransaction)
    await frozen._connection.execute("SET LOCAL idle_in_transaction_session_timeout = '100ms'")

    async def take() -> Claimed | None:
        found = await look(right, want(1))
        return found if found.held else None

    found = await eventually(take, "the lock to become free")

    assert claimed.held == {id_of(1)}
    assert found.rows[id_of(1)].state_version == 1, "nothing of it was committed"
    with pytest.raises(StoreError):
        await frozen.commit()
    assert (await look(left, want(1))).held == {id_of(1)}, "and it goes on with another connection"


async def test_node_that_stands_still_in_the_middle_of_a_statement_loses_what_it_holds(
    slow: PostgresStore, right: PostgresStore, proxy: Proxy
) -> None:
    await commit(slow, make_start(make_row(1)))
    frozen, claimed = await begin_with(slow, want(1))
    assert isinstance(frozen, PostgresTransaction)
    assert await read_settings(frozen._connection, tuple(HOLDING)) == HOLDING
    await frozen._connection.execute("SET LOCAL transaction_timeout = '3s'")
    # The driver asks what a new statement is like, and waits for the answer before it runs it: meanwhile the session is
    # "active" and waits for its client.
    trap = proxy.hold_before(runs("statement that is new"))
    asking = asyncio.create_task(frozen._connection.fetch("SELECT 'a statement that is new'"))
    await asyncio.to_thread(trap.wait)

    async def take() -> Claimed | None:
        found = await look(right, want(1))
        return found if found.held else None

    await eventually(take, "the lock to become free")
    proxy.release()

    assert claimed.held == {id_of(1)}
    with pytest.raises(StoreError):
        await frozen.commit()
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], Exception)


async def test_delivery_does_not_wait_for_a_closing_turn_for_ever(left: PostgresStore, right: PostgresStore) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    closing, _ = await begin_with(left, want(1))
    await closing.write([make_closing(row)], UnroutedWrite())
    shorten(right, lock_timeout="50ms")

    with pytest.raises(StoreUnavailable, match="LockNotAvailable"):
        await right.deliver([make_signal("hello", 1)])

    await closing.rollback()
    assert await read_inbox(left) == []
    assert await right.deliver([make_signal("hello", 1)]) == [True]


async def test_statement_that_takes_too_long_is_given_up(left: PostgresStore) -> None:
    shorten(left, statement_timeout="50ms")

    with pytest.raises(StoreUnavailable, match="QueryCanceled"):
        async with left._connections.use("sleep in") as connection:
            await connection.execute("SELECT pg_sleep(30)")


# --- connections that failed ---


async def count_open_transactions(watch: Watch) -> int:
    return int(
        await watch.value(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND position($1 IN query) > 0",
            watch.address.schema,
        )
    )


async def expect_clean(store: PostgresStore, watch: Watch) -> None:
    """No session of the store's has a transaction open, and all lanes work."""
    assert not any(connection.is_in_transaction() for connection in store._batches._free)

    async def do_work() -> bool:
        together = [await store.begin() for _ in range(store.max_transactions)]
        busy = set()
        for transaction in together:
            busy |= (await transaction.claim(want(1))).busy
            await transaction.rollback()
        return not busy

    await eventually(do_work, "the server to notice that the session has gone")

    async def are_none() -> bool:
        return await count_open_transactions(watch) == 0

    await eventually(are_none, "all transactions to end")


async def test_connection_whose_statement_failed_does_not_come_back(left: PostgresStore, watch: Watch) -> None:
    await commit(left, make_start(make_row(1)))
    transaction, _ = await begin_with(left, want(1))
    beyond = make_row(2, sequence=2**70)

    with pytest.raises(Exception, match="value out of int64 range"):
        await transaction.write([make_start(beyond)], UnroutedWrite())

    await transaction.rollback()
    assert left._batches._free == []
    await expect_clean(left, watch)


async def test_connection_of_a_cancelled_batch_does_not_come_back(slow: PostgresStore, proxy: Proxy, watch: Watch) -> None:
    await commit(slow, make_start(make_row(1)))
    transaction = await slow.begin()
    trap = proxy.hold_before(runs("FOR NO KEY UPDATE"))
    claiming = asyncio.create_task(transaction.claim(want(1)))
    await asyncio.to_thread(trap.wait)

    claiming.cancel()
    await asyncio.wait([claiming])
    proxy.release()

    assert claiming.cancelled()
    assert slow._batches._free == []
    await expect_clean(slow, watch)


async def test_connection_that_was_cut_in_a_transaction_does_not_come_back(
    slow: PostgresStore, proxy: Proxy, watch: Watch
) -> None:
    await commit(slow, make_start(make_row(1)))
    transaction, _ = await begin_with(slow, want(1))

    proxy.cut()
    with pytest.raises(StoreUnavailable):
        await transaction.claim(want(1))
    await transaction.rollback()

    await expect_clean(slow, watch)


async def test_store_that_is_closed_leaves_no_session(left: PostgresStore, watch: Watch) -> None:
    await commit(left, make_start(make_row(1)))
    transaction, _ = await begin_with(left, want(1))
    name = f"of {watch.address.schema}"
    assert isinstance(transaction, PostgresTransaction)
    await transaction._connection.execute(f"SET application_name = '{name}'")

    await left.close()

    async def is_gone() -> bool:
        return not await watch.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name)

    await eventually(is_gone, "the session to end")
    await transaction.rollback()
