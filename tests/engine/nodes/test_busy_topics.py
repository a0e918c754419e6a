"""D2: what is published under a name whose lock somebody has holds up nothing of other names, however much it is."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from holdfast import Context, workflow
from holdfast.engine.publishing.publish_batch import OUTBOX_LIMIT
from holdfast.store.matching import LockKey
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.subscribing import name_topic
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually

MANY: Final = OUTBOX_LIMIT * 2 + 10


@workflow
async def flood(ctx: Context) -> int:
    sent = [ctx.send_message("busy", "k", number, ttl=60) for number in range(MANY)]
    await ctx.wait_for_signal("end")
    return len(sent)


@workflow
async def pinger(ctx: Context) -> bool:
    return (await ctx.send_message("ping", "k", 1, ttl=60)).kept


@pytest.fixture
async def cluster(postgres_url: str) -> Any:
    cluster = Cluster(postgres_url)
    yield cluster
    await cluster.close()


async def test_D2_an_outbox_full_of_what_is_busy_lets_others_pass(cluster: Cluster) -> None:
    engine = await cluster.open("a", flood, pinger)
    assert cluster.url is not None
    other = PostgresStore.from_url(cluster.url)
    await other.open()
    async with other._batches.use("hold a topic in") as connection:
        await connection.execute("BEGIN")
        topic = name_topic(LockKey("default", "message", "busy", "k"))
        await connection.fetch(other._batches.sql["wait_for_topic"], topic)
        await engine.start(flood, workflow_id="flood")
        await eventually(lambda: has_publications(other, MANY))

        ping = await engine.start(pinger)
        assert await asyncio.wait_for(ping.result(), 20) is True
        assert (await asyncio.wait_for(engine.send_message("paid", "k", 1, ttl=60), 20)).kept
        await connection.execute("ROLLBACK")
    await eventually(lambda: has_publications(other, 0))

    bodies = [row.body for row in await other.list_pending("default", "message", "busy", 0, limit=MANY)]
    assert len(bodies) == MANY
    assert [b'"data":%d' % number in body for number, body in enumerate(bodies)] == [True] * MANY
    await engine.signal_workflow("flood", "end")
    await other.close()


async def has_publications(store: PostgresStore, count: int) -> bool:
    async with store._batches.use("look into") as connection:
        [(found,)] = await connection.fetch(f"SELECT count(*) FROM {store._batches.address.schema}.publications")
    return bool(found == count)
