"""In-flight marks on PostgreSQL: committed beside the transaction, at once, and without waiting for the disk."""

from __future__ import annotations

import json

import pytest

from holdfast.core.instants import SECOND
from holdfast.errors import StoreUnavailable
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.proxy import Proxy
from tests.store.builders import id_of
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch
from tests.store.test_in_flight import mark

DAY = 86_400 * SECOND


async def test_marks_outlive_the_connections_of_their_process(left: PostgresStore, right: PostgresStore) -> None:
    transaction = await left.begin()
    await transaction.mark_in_flight("left", 0, {id_of(1): 1})

    left.abandon()

    assert await mark(right, "right", {id_of(1): 1}) == {id_of(1): "left"}


async def test_marks_do_not_wait_for_the_disk_and_turns_do(left: PostgresStore, watch: Watch) -> None:
    async def read_setting(store: PostgresStore, connections: str) -> str:
        async with getattr(store, connections).use("look at") as connection:
            return str(await connection.fetchval("SELECT current_setting('synchronous_commit')"))

    usual = await watch.value("SELECT current_setting('synchronous_commit')")

    assert await read_setting(left, "_in_flight_connections") == "off"
    assert await read_setting(left, "_batches") == usual
    assert usual != "off"


async def test_marks_behind_a_pooler_are_the_same(postgres_url: str, make_store: OpenStore, right: PostgresStore) -> None:
    pooled = await make_store(f"{postgres_url}&pooler=transaction")
    await mark(pooled, "pooled", {id_of(1): 1})

    assert await mark(right, "right", {id_of(1): 1}) == {id_of(1): "pooled"}
    assert await mark(pooled, "pooled", {id_of(1): 1}) == {id_of(1): "right"}


async def test_mark_that_cannot_be_recorded_gives_the_transaction_up(slow: PostgresStore, proxy: Proxy) -> None:
    transaction = await slow.begin()
    proxy.refuse()
    proxy.cut()

    with pytest.raises(StoreUnavailable):
        await transaction.mark_in_flight("slow", 0, {id_of(1): 1})

    await transaction.rollback()


async def test_old_marks_go_when_nodes_are_removed(left: PostgresStore, watch: Watch) -> None:
    for process in ("old", "new"):
        await mark(left, process, {id_of(1): 1})
    await watch.fetch("UPDATE in_flight SET marked_at = marked_at - $1 WHERE process = 'old'", 600 * SECOND + SECOND)

    await left.remove_nodes([])

    assert await watch.fetch("SELECT process FROM in_flight") == [("new",)]


async def test_two_large_batches_are_compared_by_a_hash(left: PostgresStore) -> None:
    values = ("process", 0, [id_of(number) for number in range(200)], list(range(200)))
    async with left._in_flight_connections.use("plan in") as connection:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        statement = await connection.prepare(f"EXPLAIN (FORMAT JSON) {left._in_flight_connections.sql['mark_in_flight']}")
        plan = json.dumps(json.loads(await statement.fetchval(*values)))

    assert '"Hash Join"' in plan
