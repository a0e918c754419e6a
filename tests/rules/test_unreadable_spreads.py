"""B2, D2: what has yet to reach many subscribers and cannot, holds up neither others of its kind nor callers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from holdfast import Context, StoreError, StoreUnavailable, workflow
from holdfast.core.instants import Instant
from holdfast.store.publications import SpreadHead
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.spreads import shrink_spreads
from tests.rules.world import World


@workflow
async def listener(ctx: Context, name: str) -> Any:
    return await ctx.wait_for_broadcast(name)


def damage(engine: TestEngine, monkeypatch: pytest.MonkeyPatch, kind: type, error: Exception) -> None:
    """Let what is spread under the name "poison" fail, as a row does whose list cannot be read."""
    spread_all = kind.spread  # type: ignore[attr-defined]

    async def spread(self: Any, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        head: SpreadHead | None = await self.find_spread(skip)
        if head is not None and b'"poison"' in head.body:
            raise error
        count: int = await spread_all(self, limit, now, skip)
        return count

    monkeypatch.setattr(kind, "spread", spread)


@pytest.mark.parametrize("error", [StoreError("no room"), StoreUnavailable("gone"), ValueError("a defect")])
async def test_D2_what_cannot_reach_its_subscribers_holds_up_nobody_and_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    shrink_spreads(monkeypatch, 5)
    engine = await world.open([listener], auto_advance=False)
    for _ in range(7):
        await engine.start(listener, "poison")
    waiting = [await engine.start(listener, "news") for _ in range(12)]
    await engine.settle()
    transaction = await engine.store.begin()
    await transaction.rollback()
    damage(engine, monkeypatch, type(transaction), error)

    assert (await engine.broadcast_signal("poison", 1)).delivered == 7
    assert (await asyncio.wait_for(engine.broadcast_signal("news", 2), 10)).delivered == 12
    await engine.clock.advance(seconds=0.2)  # what looks like an outage is waited for, once

    assert [await asyncio.wait_for(one.result(), 10) for one in waiting] == [2] * 12
    assert (await engine.send_message("paid", "kept", 1, ttl=60)).kept
    await engine.clock.advance(seconds=60)
    letters = await eventually(engine.dead_letters)
    assert {str(error) in letter.reason for letter in letters} == {True}
    transaction = await engine.store.begin()
    assert await transaction.find_spread() is None
    await transaction.rollback()
