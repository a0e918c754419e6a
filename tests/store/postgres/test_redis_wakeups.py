"""Wake-ups by Redis: they arrive while it is there, and nothing rests on it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import redis.asyncio

from holdfast.errors import InvalidConfiguration
from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.store import PostgresStore
from tests.eventually import eventually
from tests.postgres.redis_server import RedisServer
from tests.store.builders import commit, make_row, make_start, read_row
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch


def by_redis(url: str, redis_url: str) -> str:
    return f"{url}&wakeups={quote(redis_url, safe='')}"


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


async def list_listeners(watch: Watch) -> set[tuple[int, ...]]:
    """The sessions that listen. Some may be of tests before this one, and about to end."""
    return set(await watch.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast listener'"))


def listen(store: PostgresStore) -> list[WakeReason]:
    heard: list[WakeReason] = []
    store.on_wake(heard.append)
    return heard


async def test_others_hear_each_kind_and_the_sender_does_not(
    make_store: OpenStore, postgres_url: str, redis_url: str
) -> None:
    left, right, third = [await make_store(by_redis(postgres_url, redis_url)) for _ in range(3)]
    heard = [listen(store) for store in (left, right, third)]

    for why in WakeReason:
        await left.wake(why)
        await eventually(lambda why=why: why in heard[1] and why in heard[2])  # type: ignore[misc]

    assert heard == [[], list(WakeReason), list(WakeReason)]


async def test_another_schema_hears_nothing(
    make_store: OpenStore, postgres_server: str, postgres_url: str, redis_url: str
) -> None:
    left, right = [await make_store(by_redis(postgres_url, redis_url)) for _ in range(2)]
    stranger_url = by_redis(postgres_url.replace("schema=hf_", "schema=hg_"), redis_url)
    stranger = await make_store(stranger_url)
    heard, strange = listen(right), listen(stranger)

    await left.wake(WakeReason.WORK)
    await eventually(lambda: len(heard) > 0)
    watch = await Watch.open(stranger_url)
    await stranger.close()
    await watch.fetch(f"DROP SCHEMA {watch.address.schema} CASCADE")
    await watch.close()

    assert strange == []


async def test_no_session_listens_at_the_database(
    make_store: OpenStore, postgres_url: str, redis_url: str, watch: Watch
) -> None:
    before = await list_listeners(watch)

    await make_store(by_redis(postgres_url, redis_url))

    assert await list_listeners(watch) <= before


async def test_many_wakes_in_a_short_time_are_few_messages(make_store: OpenStore, postgres_url: str, redis_url: str) -> None:
    left, right = [await make_store(by_redis(postgres_url, redis_url)) for _ in range(2)]
    heard = listen(right)

    for _ in range(1_000):
        await left.wake(WakeReason.WORK)
    await eventually(lambda: len(heard) > 0)
    await left.close()

    assert len(heard) <= 2


async def test_redis_that_is_away_keeps_nobody_from_opening_and_is_found_later(
    make_store: OpenStore, postgres_url: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    own_redis.stop()
    with caplog.at_level(logging.INFO, "holdfast.store"):
        left, right = [await make_store(by_redis(postgres_url, own_redis.url)) for _ in range(2)]
        heard = listen(right)
        await left.wake(WakeReason.WORK)
        await commit(left, make_start(make_row(1)))
        assert (await read_row(right)).state_version == 1
        assert heard == []

        own_redis.start()
        await eventually(lambda: len(heard) == len(WakeReason))  # it looks at everything: something may have been missed

    assert sum("Redis is out of reach" in message for message in caplog.messages) == 2, "once for each store"


async def test_redis_that_crashes_is_listened_to_again(
    make_store: OpenStore, postgres_url: str, own_redis: RedisServer
) -> None:
    left, right = [await make_store(by_redis(postgres_url, own_redis.url)) for _ in range(2)]
    heard = listen(right)
    own_redis.restart("immediate")
    await eventually(lambda: len(heard) == len(WakeReason))
    heard.clear()

    async def is_heard() -> bool:
        await left.wake(WakeReason.OFFERS)
        await asyncio.sleep(0.01)
        return WakeReason.OFFERS in heard

    await eventually(is_heard, "a wake-up to arrive")


async def test_closing_leaves_no_client_behind(make_store: OpenStore, postgres_url: str, redis_url: str) -> None:
    async with redis.asyncio.from_url(redis_url) as client:
        # Those of the test before this one may still be about to leave.
        before = await list_clients(client)
        store = await make_store(by_redis(postgres_url, redis_url))
        await store.wake(WakeReason.WORK)
        assert await list_clients(client) - before

        await store.close()

        async def are_gone() -> bool:
            return await list_clients(client) <= before

        await eventually(are_gone, "the clients to leave")


async def list_clients(client: redis.asyncio.Redis) -> set[str]:
    """The ids of those that are connected. None is given twice."""
    return {one["id"] for one in await client.client_list()}


async def test_missing_package_is_named(make_store: OpenStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)

    with pytest.raises(InvalidConfiguration, match=r"pip install 'holdfast\[redis\]'"):
        await make_store(by_redis(postgres_url, "redis://127.0.0.1/0"))


async def test_url_that_redis_does_not_take_is_refused(make_store: OpenStore, postgres_url: str) -> None:
    with pytest.raises(InvalidConfiguration, match="Correct the URL"):
        await make_store(by_redis(postgres_url, "redis://127.0.0.1:port/0"))


async def test_behind_a_pooler_without_redis_nobody_listens_and_that_is_said(
    make_store: OpenStore, postgres_url: str, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    before = await list_listeners(watch)
    store = await make_store(postgres_url + "&pooler=transaction")

    await store.wake(WakeReason.WORK)
    await commit(store, make_start(make_row(1)))

    assert (await read_row(store)).state_version == 1
    assert await list_listeners(watch) <= before
    assert sum("only by their heartbeats" in message for message in caplog.messages) == 1
