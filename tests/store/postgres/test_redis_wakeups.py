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
from holdfast.store.contract import Wake
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.redis_server import RedisServer
from tests.store.builders import commit, make_row, make_start, read_row, wait_until
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.watching import Watch, until


def by_redis(url: str, redis_url: str) -> str:
    return f"{url}&wakeups={quote(redis_url, safe='')}"


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def listen(store: PostgresStore) -> list[Wake]:
    heard: list[Wake] = []
    store.on_wake(heard.append)
    return heard


async def test_others_hear_each_kind_and_the_sender_does_not(
    open_store: OpenStore, postgres_url: str, redis_url: str
) -> None:
    left, right, third = [await open_store(by_redis(postgres_url, redis_url)) for _ in range(3)]
    heard = [listen(store) for store in (left, right, third)]

    for why in Wake:
        await left.wake(why)
        await wait_until(lambda why=why: why in heard[1] and why in heard[2])  # type: ignore[misc]

    assert heard == [[], list(Wake), list(Wake)]


async def test_another_schema_hears_nothing(
    open_store: OpenStore, postgres_server: str, postgres_url: str, redis_url: str
) -> None:
    left, right = [await open_store(by_redis(postgres_url, redis_url)) for _ in range(2)]
    stranger_url = by_redis(postgres_url.replace("schema=hf_", "schema=hg_"), redis_url)
    stranger = await open_store(stranger_url)
    heard, strange = listen(right), listen(stranger)

    await left.wake(Wake.WORK)
    await wait_until(lambda: len(heard) > 0)
    watch = await Watch.open(stranger_url)
    await stranger.close()
    await watch.fetch(f"DROP SCHEMA {watch.address.schema} CASCADE")
    await watch.close()

    assert strange == []


async def test_no_session_listens_at_the_database(
    open_store: OpenStore, postgres_url: str, redis_url: str, watch: Watch
) -> None:
    await open_store(by_redis(postgres_url, redis_url))

    listening = await watch.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast listener'")

    assert listening == 0


async def test_many_wakes_in_a_short_time_are_few_messages(open_store: OpenStore, postgres_url: str, redis_url: str) -> None:
    left, right = [await open_store(by_redis(postgres_url, redis_url)) for _ in range(2)]
    heard = listen(right)

    for _ in range(1_000):
        await left.wake(Wake.WORK)
    await left.close()
    await wait_until(lambda: len(heard) > 0)

    assert len(heard) <= 2


async def test_redis_that_is_away_keeps_nobody_from_opening_and_is_found_later(
    open_store: OpenStore, postgres_url: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    own_redis.stop()
    with caplog.at_level(logging.INFO, "holdfast.store"):
        left, right = [await open_store(by_redis(postgres_url, own_redis.url)) for _ in range(2)]
        heard = listen(right)
        await left.wake(Wake.WORK)
        await commit(left, make_start(make_row(1)))
        assert (await read_row(right)).state_version == 1
        assert heard == []

        own_redis.start()
        await wait_until(lambda: len(heard) == len(Wake))  # it looks at everything: something may have been missed

    assert sum("Redis is away" in message for message in caplog.messages) == 2, "once for each store"


async def test_redis_that_crashes_is_listened_to_again(
    open_store: OpenStore, postgres_url: str, own_redis: RedisServer
) -> None:
    left, right = [await open_store(by_redis(postgres_url, own_redis.url)) for _ in range(2)]
    heard = listen(right)
    own_redis.restart("immediate")
    await wait_until(lambda: len(heard) == len(Wake))
    heard.clear()

    async def is_heard() -> bool:
        await left.wake(Wake.OFFERS)
        await asyncio.sleep(0.01)
        return Wake.OFFERS in heard

    await until(is_heard, "a wake-up to arrive")


async def test_closing_leaves_no_client_behind(open_store: OpenStore, postgres_url: str, redis_url: str) -> None:
    async with redis.asyncio.from_url(redis_url) as client:
        before = len(await client.client_list())
        store = await open_store(by_redis(postgres_url, redis_url))
        await store.wake(Wake.WORK)
        assert len(await client.client_list()) > before

        await store.close()

        async def are_gone() -> bool:
            return len(await client.client_list()) == before

        await until(are_gone, "the clients to leave")


async def test_missing_package_is_named(open_store: OpenStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)

    with pytest.raises(InvalidConfiguration, match=r"pip install 'holdfast\[redis\]'"):
        await open_store(by_redis(postgres_url, "redis://127.0.0.1/0"))


async def test_url_that_redis_does_not_take_is_refused(open_store: OpenStore, postgres_url: str) -> None:
    with pytest.raises(InvalidConfiguration, match="Correct the URL"):
        await open_store(by_redis(postgres_url, "redis://127.0.0.1:port/0"))


async def test_behind_a_pooler_without_redis_nobody_listens_and_that_is_said(
    open_store: OpenStore, postgres_url: str, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store(postgres_url + "&pooler=transaction")

    await store.wake(Wake.WORK)
    await commit(store, make_start(make_row(1)))

    assert (await read_row(store)).state_version == 1
    assert await watch.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast listener'") == 0
    assert sum("only by their heartbeats" in message for message in caplog.messages) == 1
