"""M2, D2: rows of the outbox that cannot be read or published do not keep others from being published."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import Context, PublicationFailed, StoreError, StoreUnavailable, workflow
from holdfast.core.instants import Instant
from holdfast.store.contract import UnroutedWrite
from holdfast.store.memory.store import MemoryStore
from holdfast.store.publications import Publishable, Published
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.damage import damage
from tests.rules.world import Nodes, World
from tests.store.builders import commit
from tests.store.topics import message


@workflow
async def payee(ctx: Context, key: str) -> Any:
    return await ctx.wait_for_message("paid", key)


@workflow
async def sender(ctx: Context, key: str) -> bool:
    return (await ctx.send_message("paid", key, 5)).delivered


@workflow
async def poisoner(ctx: Context) -> str:
    try:
        await ctx.send_message("poison", "k", 1, ttl=60)
    except PublicationFailed as error:
        return error.message
    return "published"


async def count_kept(engine: TestEngine, name: str) -> int:
    return len(await engine.store.list_pending("default", "message", name, 0))


@pytest.mark.parametrize("error", [StoreError("no room"), StoreUnavailable("gone"), ValueError("a defect")])
async def test_D2_a_row_that_cannot_be_published_holds_up_nobody_and_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    engine = await world.open([payee, sender, poisoner], auto_advance=False)
    transaction = await engine.store.begin()
    await transaction.rollback()
    publish_all = type(transaction).publish

    async def publish(self: Any, items: Sequence[Publishable], now: Instant) -> list[Published]:
        if any(b'"poison"' in item.row.body for item in items):
            raise error
        return await publish_all(self, items, now)

    monkeypatch.setattr(type(transaction), "publish", publish)
    poisoned = await engine.start(poisoner)
    await engine.clock.advance(seconds=0.2)  # what looks like an outage is waited for, once

    for number in range(3):
        waiting = await engine.start(payee, f"{number}")
        assert await asyncio.wait_for((await engine.start(sender, f"{number}")).result(), 10)
        assert await asyncio.wait_for(waiting.result(), 10) == 5
        assert (await engine.send_message("paid", "kept", number, ttl=60)).kept
    assert (await poisoned.status()).status == "suspended"

    await engine.clock.advance(seconds=30)
    assert str(error) in await asyncio.wait_for(poisoned.result(), 10)
    (letter,) = await engine.dead_letters()
    assert str(error) in letter.reason
    monkeypatch.undo()
    assert await engine.requeue_dead_letters([letter.id]) == 1
    await engine.settle()
    assert (await engine.dead_letters(), await count_kept(engine, "poison")) == ([], 1)
    transaction = await engine.store.begin()
    assert await transaction.read_outbox(10) == []
    await transaction.rollback()


async def test_D2_rows_of_the_outbox_with_damaged_fields_stop_no_others(world: World) -> None:
    engine = await world.open([payee, sender])
    row = message("m1", "other", org="default").row
    await commit(engine.store, loose=UnroutedWrite(publications=[row]))
    if not isinstance(engine.store, MemoryStore):
        damage(world, engine, "publications", "fields")

    waiting = await engine.start(payee, "k")
    assert await (await engine.start(sender, "k")).result()

    assert await waiting.result() == 5


async def test_M2_unreadable_rows_of_the_outbox_stop_no_others(nodes: Nodes) -> None:
    onlooker = await nodes.open_onlooker()
    row = message("m1", "other", org="default").row
    newer = replace(row, body=row.body.replace(b'"id":', b'"newer":1,"id":'))
    await commit(onlooker, loose=UnroutedWrite(publications=[newer, replace(row, body=b"damaged")]))
    engine = await nodes.open("one", [payee, sender])

    waiting = await engine.start(payee, "k")
    assert await (await engine.start(sender, "k")).result()

    assert await waiting.result() == 5
    await eventually(engine.dead_letters)
    transaction = await onlooker.begin()
    assert [one.body for one in await transaction.read_outbox(10)] == [newer.body]
    await transaction.rollback()
    await onlooker.close()
