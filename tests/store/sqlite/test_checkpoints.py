from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest

from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.checkpoints import BEGIN_AT, MEGABYTE, MOST
from holdfast.store.sqlite.statements import SQL
from tests.eventually import eventually
from tests.store.builders import commit, commit_unrouted, make_row, make_signal, make_start, make_turn


def size_of_log(store: SqliteStore) -> int:
    return store.path.with_name("app.db-wal").stat().st_size


async def fill(store: SqliteStore, megabytes: int) -> list[int]:
    """Write so much, a megabyte at a time, and take it away again; the sizes of the log after each commit."""
    sizes = []
    for number in range(megabytes):
        await commit_unrouted(store, make_signal(f"{number}" + "x" * MEGABYTE), consumed=[number])
        sizes.append(size_of_log(store))
    return sizes


async def test_the_log_does_not_grow_for_ever(store: SqliteStore) -> None:
    sizes = await fill(store, 150)

    assert max(sizes) < MOST + 3 * MEGABYTE, "one transaction more than the most"
    assert min(sizes[40:]) >= BEGIN_AT - MEGABYTE, "its file is used again"
    assert await store.check() == []


async def test_the_log_begins_anew_once_its_reader_has_ended(store: SqliteStore) -> None:
    await fill(store, 1)
    with closing(store._connections.connect_for_thread()) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM inbox").fetchone()
        assert max(await fill(store, 50)) > MOST

    await fill(store, 10)

    assert max((await fill(store, 60))[10:]) < MOST + 3 * MEGABYTE


def test_sqlite_cuts_a_log_that_begins_anew_to_the_size_that_begins_a_checkpoint() -> None:
    assert f"journal_size_limit = {BEGIN_AT};" in SQL["writer_settings"]


async def test_a_checkpoint_that_fails_is_logged_and_loses_nothing(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store._connections, "make_checkpoint", fail)
    await commit(store, make_start(make_row(1)))

    with caplog.at_level(logging.WARNING, logger="holdfast.store"):
        await fill(store, 34)
        await eventually(lambda: caplog.text)

    assert "database or disk is full" in caplog.text
    assert await commit(store, make_turn(make_row(1))) == set()


async def test_closing_waits_for_a_checkpoint(store: SqliteStore) -> None:
    assert max(await fill(store, 34)) > BEGIN_AT

    await store.close()

    assert [file.name for file in store.path.parent.iterdir()] == ["app.db"]
