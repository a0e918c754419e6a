"""The Redis that other tests rely on is real, and ends when told."""

from __future__ import annotations

import redis
import redis.asyncio

from tests.postgres.redis_server import RedisServer


def test_server_answers_and_crashes_empty() -> None:
    with RedisServer() as server, redis.from_url(server.url) as client:
        client.set("key", "value")
        assert client.get("key") == b"value"

        server.restart("immediate")

        assert client.get("key") is None


def test_durable_server_keeps_what_it_answered() -> None:
    with RedisServer(durable=True) as server, redis.from_url(server.url) as client:
        client.set("key", "value")

        server.restart("immediate")

        assert client.get("key") == b"value"


async def test_messages_reach_subscribers(redis_url: str) -> None:
    async with redis.asyncio.from_url(redis_url) as client, client.pubsub() as subscriber:
        await subscriber.subscribe("wake")
        first = await subscriber.get_message(timeout=5)
        await client.publish("wake", "now")
        second = await subscriber.get_message(timeout=5)

    assert [message and message["data"] for message in (first, second)] == [1, b"now"]
