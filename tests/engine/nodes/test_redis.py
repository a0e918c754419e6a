"""N2: nodes that wake each other by Redis pass work on at once; without it, with a heartbeat."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from holdfast import Context, Engine, activity, workflow
from tests.postgres.redis_server import RedisServer


@activity
async def pack(order: int) -> int:
    return order + 1


@workflow
async def order(ctx: Context, number: int) -> int:
    packed: int = await ctx.run(pack, number)
    return packed + await ctx.wait_for_signal("price", int)


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def open_pair(url: str, heartbeat: float) -> tuple[Engine, Engine]:
    """One that takes turns and cannot pack, one that can only pack."""
    options: dict[str, Any] = {"heartbeat": heartbeat, "lease": 5 * heartbeat, "shutdown_grace": 0.1}
    office = Engine(url, workflows=[order], node="office", **options)
    store = Engine(url, activities=[pack], node="store", **options)
    return office, store


async def run_orders(office: Engine, store: Engine, first: int) -> float:
    """Seconds that some orders took, which go from one node to the other and back."""
    began = time.monotonic()
    handles = [await office.start(order, number, workflow_id=f"order-{number}") for number in range(first, first + 10)]
    for number in range(first, first + 10):
        await store.signal_workflow(f"order-{number}", "price", 100)
    results = await asyncio.wait_for(asyncio.gather(*(handle.result() for handle in handles)), 25)
    assert results == [number + 101 for number in range(first, first + 10)]
    return time.monotonic() - began


async def test_N2_work_passes_between_nodes_without_waiting_for_a_heartbeat(postgres_url: str, redis_url: str) -> None:
    office, store = open_pair(f"{postgres_url}&wakeups={quote(redis_url, safe='')}", heartbeat=20)
    async with office, store:
        took = await run_orders(office, store, 1)

    assert took < 10, "no heartbeat came"


async def test_N2_without_redis_everything_goes_on_with_the_heartbeats(postgres_url: str, own_redis: RedisServer) -> None:
    office, store = open_pair(f"{postgres_url}&wakeups={quote(own_redis.url, safe='')}", heartbeat=0.5)
    async with office, store:
        await run_orders(office, store, 1)
        own_redis.stop("immediate")

        await run_orders(office, store, 100)

        own_redis.start()
        await run_orders(office, store, 200)
        assert await office.store.check() == []
