"""Histories lie scattered in one table: what is removed is followed from its end, and nothing else goes with it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite import SqliteStore, purging
from tests.store.builders import NOW, commit, id_of, make_closing, make_row, make_start, make_turn

LONG_AFTER = 2 * NOW


async def run_interleaved(store: SqliteStore, executions: int, turns: int) -> list[ExecutionRow]:
    """Executions that took turns in the same batches; returns their rows, all of them still open."""
    rows = [make_row(number) for number in range(executions)]
    await commit(store, *(make_start(row) for row in rows))
    for _ in range(turns - 1):
        batch = [make_turn(row, Status.RUNNING) for row in rows]
        await commit(store, *batch)
        rows = [turn.row for turn in batch]
    return rows


def count_events(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (events,) = database.execute("SELECT count(*) FROM events").fetchone()
    return int(events)


async def test_of_interleaved_histories_only_those_of_closed_executions_go(store: SqliteStore, path: Path) -> None:
    rows = await run_interleaved(store, executions=6, turns=5)
    await commit(store, *(make_closing(row) for row in rows[::2]))

    assert await store.purge(LONG_AFTER, 100) == 3

    assert count_events(path) == 3 * 5
    for row in rows[1::2]:
        assert [turn.first for turn in await store.load_history(row.execution_id)] == [1, 2, 3, 4, 5]
    assert await store.check() == []


async def test_an_execution_that_closed_without_a_history_goes_too(store: SqliteStore) -> None:
    start = make_start(make_row(1, status=Status.FAILED, closed_at=NOW, sequence=0))
    start.history = None
    await commit(store, start)

    assert await store.purge(LONG_AFTER, 100) == 1
    assert await store.check() == []


async def test_many_are_removed_in_small_transactions_between_which_others_write(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "EVENTS_AT_ONCE", 10)
    rows = await run_interleaved(store, executions=12, turns=3)
    await commit(store, *(make_closing(row) for row in rows))
    left: list[int] = []

    async def write() -> None:
        for number in range(100, 106):
            await commit(store, make_start(make_row(number)))
            left.append(count_events(path) - len(left) - 1)
            await asyncio.sleep(0)

    removed, _ = await asyncio.gather(store.purge(LONG_AFTER, 100), write())

    assert removed == 12
    assert len(set(left)) > 2  # somebody wrote while some were removed and others were not
    assert count_events(path) == 6
    assert await store.check() == []


async def test_one_history_longer_than_a_batch_is_removed_whole(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "EVENTS_AT_ONCE", 10)
    rows = await run_interleaved(store, executions=2, turns=30)
    await commit(store, *(make_closing(row) for row in rows))

    assert await store.purge(LONG_AFTER, 100) == 2
    assert await store.check() == []


async def test_after_everything_was_removed_new_executions_are_as_good_as_the_first(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    rows = await run_interleaved(store, executions=3, turns=3)
    await commit(store, *(make_closing(row) for row in rows))
    await store.purge(LONG_AFTER, 100)
    await store.close()

    await store.open()
    await run_interleaved(store, executions=3, turns=3)

    assert await store.check() == []
    assert [turn.first for turn in await store.load_history(id_of(2))] == [1, 2, 3]
    await store.close()


async def test_the_space_of_what_was_removed_is_used_again(store: SqliteStore, path: Path) -> None:
    async def fill() -> int:
        rows = await run_interleaved(store, executions=100, turns=10)
        await commit(store, *(make_closing(row) for row in rows))
        assert await store.purge(LONG_AFTER, 1000) == 100
        with closing(sqlite3.connect(path)) as database:
            (pages,) = database.execute("PRAGMA page_count").fetchone()
        return int(pages)

    first = await fill()

    assert max([await fill() for _ in range(5)]) < 1.1 * first
