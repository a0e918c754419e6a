"""What a node knows of pauses when the database goes back to an earlier state."""

from __future__ import annotations

import pytest

from holdfast import workflow
from holdfast.code.context import Context
from holdfast.engine.regress import Regress
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine


@workflow
async def hello(_ctx: Context) -> str:
    return "hello"


@pytest.mark.parametrize("was_paused", [True, False])
async def test_N5_pauses_of_another_state_are_forgotten_though_the_number_is_the_same(*, was_paused: bool) -> None:
    store = MemoryStore()
    async with TestEngine(store, workflows=[hello], auto_advance=False) as engine:
        await engine.pause_queue("default")
        pauses = dict(store.database.tables.pauses)
        if was_paused:
            await engine.resume_queue("default")
        [number] = store.database.tables.settings
        store.database.tables.pauses.clear()
        store.database.tables.pauses.update(pauses if was_paused else {})

        engine._runtime.restores.on_went_back(Regress.EXECUTION)
        handle = await engine.start(hello)
        await engine.clock.advance(minutes=1)

        assert store.database.tables.settings == [number]
        assert ((await handle.status()).closed_at is None) is was_paused
