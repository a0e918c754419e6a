"""The time of an event is never before what it tells of happened, however long its batch has waited to begin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, activity_info, workflow
from holdfast.core import events
from tests.engine.support.user_tables import Place


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A store whose transactions wait for each other."""
    place = Place(request.param, f"sqlite:///{tmp_path / 'app.db'}")
    yield place
    await place.close()


async def test_results_are_not_recorded_before_their_functions_ended(place: Place) -> None:
    ended: dict[tuple[str, int], float] = {}

    def pay(_connection: Any, _name: str) -> None:
        time.sleep(0.03)
        ended[activity_info().execution_id, activity_info().number] = time.time()

    note = place.transaction(pay)

    @workflow
    async def order(ctx: Context) -> None:
        await asyncio.gather(*(ctx.transaction(note, "") for _ in range(5)))

    engine = await place.open(order, note)
    handles = [await engine.start(order) for _ in range(3)]
    for handle in handles:
        await handle.result()

    for handle in handles:
        for one in (await handle.history()).events:
            if isinstance(one.event, events.ActivityCompleted):
                assert one.at.timestamp() >= ended[str(handle.execution_id), one.event.number] - 0.000_001


async def test_turns_of_one_batch_have_times_of_their_own(tmp_path: Path) -> None:
    @workflow
    async def slow(ctx: Context) -> None:
        await ctx.wait_for_signal("go")
        ctx.side_effect(lambda: time.sleep(0.05))

    async with Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[slow]) as engine:
        handles = [await engine.start(slow) for _ in range(3)]
        await asyncio.gather(*(handle.signal("go") for handle in handles))
        histories = [await handle.history() for handle in handles]

    ends = sorted(history.events[-1].taken_at for history in histories)
    assert [later - earlier >= timedelta(seconds=0.05) for earlier, later in pairwise(ends)] == [True, True]
