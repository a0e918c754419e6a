"""Broadcast signals that are under way when a database is moved, or its executions are: each subscriber gets them once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec
import pytest

from holdfast import Context, Engine, workflow
from holdfast.core.codec import encode
from holdfast.core.payloads import Payload
from holdfast.core.publications import Publication, SubscriptionKind
from holdfast.engine.transfer.copying import export_executions, import_executions, require_sound
from holdfast.engine.transfer.transfers import transfer
from holdfast.store.contract import UnroutedWrite
from holdfast.store.publications import PublicationRow, Publishable
from tests.engine.transfer.databases import opened
from tests.eventually import eventually

LISTENERS: Final = 7
BATCH: Final = 2
"""So many subscribers one batch reaches."""


@workflow
async def listen(ctx: Context, name: str) -> list[str]:
    """What it heard until it was told to stop."""
    heard: list[str] = []
    while True:
        winner = await ctx.wait_any(ctx.broadcast(name, str), ctx.signal("stop"))
        if winner.index == 1:
            return heard
        heard.append(str(winner.value))


@workflow
async def tell(ctx: Context) -> None:
    await ctx.wait_for_signal("stop")


Move: TypeAlias = Callable[[str, str], Awaitable[None]]


async def move_all(source: str, target: str) -> None:
    await transfer(source, target, page=3)


async def move_copies(source: str, target: str) -> None:
    async with opened(source) as from_, opened(target) as to:
        lines = [require_sound(line) async for line in export_executions(from_, org="default")]
        await import_executions(to, lines)


def make_engine(url: str) -> Engine:
    return Engine(url, workflows=[listen, tell])


def make_news(name: str, text: str, origin: str = "") -> PublicationRow:
    value = Payload(msgspec.Raw(encode(text)))
    publication = Publication(kind=SubscriptionKind.BROADCAST, name=name, value=value, id=text, sent_at=1)
    return PublicationRow("default", encode(publication), origin=origin)


async def broadcast_half(url: str, teller: str) -> None:
    """One is fixed and has reached some of its subscribers; another waits in the outbox, where a turn left it."""
    async with opened(url) as store:
        transaction = await store.begin()
        (answer,) = await transaction.publish([Publishable(make_news("spread", "first"))], 1)
        await transaction.write([], UnroutedWrite(publications=[make_news("outbox", "first", teller)]))
        await transaction.commit()
        assert (answer.delivered, answer.is_spread) == (LISTENERS, True)
        for count in (BATCH, BATCH - 1):  # one row whole, and a part of the next
            transaction = await store.begin()
            assert await transaction.spread(count, 1) == count
            await transaction.commit()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(("holdfast.store", "holdfast.engine")) and hasattr(module, "SPREAD_FROM"):
            monkeypatch.setattr(module, "SPREAD_FROM", BATCH)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("move", [move_all, move_copies])
async def test_B2_each_subscriber_gets_what_is_under_way_once_where_it_was_moved_to(
    urls: tuple[str, str], move: Move
) -> None:
    source, target = urls
    async with make_engine(source) as engine:
        teller = await engine.start(tell)
        listeners = [
            str((await engine.start(listen, name)).execution_id) for name in ("spread", "outbox") for _ in range(LISTENERS)
        ]
        for one in listeners:
            await eventually(functools.partial(is_waiting, engine, one), "each to listen")
    await broadcast_half(source, str(teller.execution_id))

    await move(source, target)

    async with make_engine(target) as engine:
        for one in listeners:
            await eventually(functools.partial(has_heard, engine, one, 1), "each to hear of what was under way")
        for name in ("spread", "outbox"):
            assert (await engine.broadcast_signal(name, "second")).delivered == LISTENERS
        for one in listeners:
            await eventually(functools.partial(has_heard, engine, one, 2), "each to hear of the next one")
            await engine.signal_workflow(one, "stop")
        heard = [await engine.handle(one).result() for one in listeners]
        findings = await engine.store.check()

    assert heard == [["first", "second"]] * len(listeners)
    assert findings == []


async def is_waiting(engine: Engine, execution_id: str) -> bool:
    return len(await engine.store.list_subscriptions("default", execution_id)) == 1


async def has_heard(engine: Engine, execution_id: str, count: int) -> bool:
    kinds = [one.kind for one in (await engine.history(execution_id)).events]
    return kinds.count("SubscriptionTriggered") >= count
