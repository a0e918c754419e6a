from __future__ import annotations

import asyncio
import logging
import sqlite3

import pytest

from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.checkpoints import EVERY
from tests.store.builders import commit, make_row, make_start, make_turn


def size_of_log(store: SqliteStore) -> int:
    return store.path.with_name("app.db-wal").stat().st_size


async def test_the_log_does_not_grow_for_ever(store: SqliteStore) -> None:
    rows = [make_row(number) for number in range(100)]
    await commit(store, *[make_start(row) for row in rows])
    sizes = []

    for _ in range(4):
        for _ in range(EVERY // 200 + 1):
            turns = [make_turn(row) for row in rows]
            assert await commit(store, *turns) == set()
            rows = [turn.row for turn in turns]
            await asyncio.sleep(0)
        assert store._writer is not None
        await store._writer._checkpoints.finish()
        sizes.append(size_of_log(store))

    assert sizes[-1] < 2 * sizes[0]
    assert await store.check() == []


async def test_a_checkpoint_that_fails_is_logged_and_loses_nothing(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store._connections, "make_checkpoint", fail)
    await commit(store, make_start(make_row(1)))
    assert store._writer is not None
    checkpoints = store._writer._checkpoints

    with caplog.at_level(logging.WARNING, logger="holdfast.store"):
        checkpoints.note(10 * EVERY)
        await checkpoints.finish()

    assert "database or disk is full" in caplog.text
    assert await commit(store, make_turn(make_row(1))) == set()


async def test_closing_waits_for_a_checkpoint(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)))
    assert store._writer is not None
    store._writer._checkpoints.note(10 * EVERY)

    await store.close()

    assert [file.name for file in store.path.parent.iterdir()] == ["app.db"]
