"""Behind a pooler in transaction mode nothing may rest on a session: every statement is in a transaction that was begun."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from holdfast.store.contract import UserFunction
from holdfast.store.postgres.connections import BATCH_SETTINGS
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.rows import NodeRow
from holdfast.store.transfer import RowKind
from tests.postgres.server import PostgresServer
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    make_closing,
    make_letter,
    make_offer,
    make_row,
    make_signal,
    make_start,
    want,
)
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.logs import read_statements


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"log_statement": "all"}) as server:
        yield server


@pytest.fixture
async def store(server: PostgresServer, make_store: OpenStore) -> AsyncIterator[PostgresStore]:
    store = await make_store(server.url(schema="hf_pooled") + "&pooler=transaction")
    yield store
    await store.close()


async def use_everything(store: PostgresStore) -> None:
    """Each verb once, at least."""
    row = make_row(1)
    await commit(store, make_start(row, offered=[make_offer(1)], dead_letters=[make_letter("a"), make_letter("b")]))
    transaction, _ = await begin_with(store, want(1))
    await transaction.mark_in_flight("a-1", 0, {row.execution_id: 1})
    await transaction.rollback()
    await store.forget_processes(["a-1"])
    await store.deliver([make_signal("hello", 1)])
    await store.list_inbox(ORG, row.execution_id, row.workflow_id)
    letters = [letter.id for letter in await store.list_dead_letters(ORG)]
    await store.discard_dead_letters(ORG, letters[:1])
    await store.requeue_dead_letters(ORG, letters[1:])
    await store.take_offers("a", [], 10)
    await store.set_status(ORG, row.execution_id, 1, row)
    inbox = [one.id for one in (await begin_and_claim(store)).inbox]
    await commit(store, make_closing(row, consumed=inbox))
    await store.beat(NodeRow("a", NOW, NOW), (), ())
    await store.take_lock("x", "a", NOW, NOW)
    await store.count()
    await store.purge(NOW, 10)
    await store.purge_dead_letters(NOW, 10)
    await commit_unrouted(store, make_signal("loose", 9))
    assert await store.check() == []
    moving = store.make_transferable()
    await moving.count_rows()
    await moving.read_page(RowKind.EXECUTIONS, (), 10)

    async def work(connection: Any, put: Any) -> int:
        put(make_signal("of a user", 9))
        return int(await connection.fetchval("SELECT 7"))

    assert await store.transact(cast("UserFunction[int]", work)) == 7
    line: Any = store.make_heartbeat_connection()
    await line.beat(NodeRow("b", NOW, NOW), (), ())
    await line.close()


async def begin_and_claim(store: PostgresStore) -> Any:
    transaction, claimed = await begin_with(store, want(1))
    await transaction.rollback()
    return claimed


async def test_every_statement_is_in_a_transaction(server: PostgresServer, store: PostgresStore) -> None:
    await use_everything(store)

    outside: list[str] = []
    for statements in read_statements(server).values():
        is_inside = False
        for one in statements:
            if one.startswith("BEGIN"):
                is_inside = True
            elif one.startswith(("COMMIT", "ROLLBACK")):
                is_inside = False
            elif not is_inside:
                outside.append(one)
    # What takes back a user's settings is one message, which any session may get.
    assert [one for one in outside if not one.startswith("SELECT pg_advisory_unlock_all()")] == []


async def test_limits_hold_for_the_transaction_and_no_longer(store: PostgresStore) -> None:
    transaction = await store.begin()
    assert isinstance(transaction, PostgresTransaction)
    connection = transaction._connection

    names = [name for name in BATCH_SETTINGS if not name.startswith("tcp_")]
    inside = [await connection.fetchval("SELECT current_setting($1)", name) for name in names]
    await transaction.rollback()
    async with store._connections.use("look at") as other:
        outside = [await other.fetchval("SELECT current_setting($1)", name) for name in ("lock_timeout", "enable_seqscan")]

    assert inside == [BATCH_SETTINGS[name] for name in names]
    assert outside == ["0", "on"]


async def test_no_statement_is_kept_for_a_session(server: PostgresServer, store: PostgresStore) -> None:
    await use_everything(store)

    assert "execute __asyncpg_stmt" not in server.log
