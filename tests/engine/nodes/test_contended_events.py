"""E2 under contention: many executions and many senders on one event name, over two nodes. Nobody waits for ever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import pytest

from holdfast import Context, event, workflow
from holdfast.store.publications import Published
from tests.engine.support.cluster import Cluster

MANY: Final = 50
MOST_TRIES: Final = 40
"""How often a publication may be put off on the average; it was below 5 on a busy machine."""


@event(name="ContendedTicket")
@dataclass
class Ticket:
    number: int


@workflow
async def taker(ctx: Context) -> int:
    return (await ctx.wait_for_event(Ticket)).number


@workflow
async def patient_taker(ctx: Context) -> int:
    await ctx.wait_for_signal("go")
    return (await ctx.wait_for_event(Ticket)).number


@pytest.fixture
async def cluster(postgres_url: str) -> Any:
    cluster = Cluster(postgres_url)
    yield cluster
    await cluster.close()


async def test_E2_fifty_waits_and_fifty_senders_on_two_nodes_all_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = [await cluster.open(node, taker) for node in ("a", "b")]
    busy = count_busy(engines, monkeypatch)

    starts = [engines[number % 2].start(taker, workflow_id=f"w{number}") for number in range(MANY)]
    sends = [engines[number // 2 % 2].send_event(Ticket(number)) for number in range(MANY)]
    handles, _ = await asyncio.gather(asyncio.gather(*starts), asyncio.gather(*sends))
    results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles))

    assert sorted(results) == list(range(MANY))
    assert len(await engines[0].pending_events(Ticket)) == 0
    assert len(busy) < MANY * MOST_TRIES


async def test_E2_fifty_waits_that_all_find_something_kept_get_one_each(cluster: Cluster) -> None:
    """All of them share the name's lock first, and then want it alone: those that both lose try again."""
    engines = [await cluster.open(node, patient_taker) for node in ("a", "b")]
    handles = [await engines[0].start(patient_taker, workflow_id=f"w{number}") for number in range(MANY)]
    for number in range(MANY):
        await engines[1].send_event(Ticket(number))

    await asyncio.gather(*(engines[number % 2].signal_workflow(f"w{number}", "go") for number in range(MANY)))
    results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles))

    assert sorted(results) == list(range(MANY))
    assert await engines[0].pending_events(Ticket) == []


def count_busy(engines: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Published]:
    """Collects the publications that did not get their lock, each time."""
    busy: list[Published] = []
    for engine in engines:
        monkeypatch.setattr(engine.store, "begin", watch(engine.store.begin, busy))
    return busy


def watch(begin: Any, busy: list[Published]) -> Any:
    async def begin_watched() -> Any:
        transaction = await begin()
        publish = transaction.publish

        async def publish_watched(items: Any, now: int) -> list[Published]:
            found: list[Published] = await publish(items, now)
            busy.extend(one for one in found if one.is_busy)
            return found

        transaction.publish = publish_watched
        return transaction

    return begin_watched
