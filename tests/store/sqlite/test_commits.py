from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import Any

import pytest

from holdfast.errors import OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.store.contract import UnroutedWrite
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite import writer as writer_module
from tests.store.builders import NOW, commit, make_row, make_start, make_turn, read_row


class WatchedConnection:
    """A connection whose COMMIT waits to be let go, and tells in which thread it ran."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real
        self.begun = threading.Event()
        self.go = threading.Event()
        self.thread = 0
        self.error: sqlite3.Error | None = None

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.thread = threading.get_ident()
            self.begun.set()
            assert self.go.wait(timeout=30)
            if self.error is not None:
                raise self.error
        return self._real.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def watch(store: SqliteStore) -> WatchedConnection:
    connections: Any = store._connections
    watched = WatchedConnection(connections._writer)
    connections._writer = watched
    return watched


def remember_commits_of(store: SqliteStore, seconds: float) -> None:
    assert store._writer is not None
    store._writer._average = seconds


async def begin_turn(store: SqliteStore) -> Any:
    await commit(store, make_start(make_row(1)))
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1))], UnroutedWrite())
    return transaction


async def test_quick_commits_are_made_in_the_loops_thread(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.0002)
    watched = watch(store)
    watched.go.set()

    await transaction.commit()

    assert watched.thread == threading.get_ident()


async def test_slow_commits_do_not_hold_up_the_loop(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.01)
    watched = watch(store)

    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(watched.begun.wait)
    assert (await read_row(store)).state_version == 1
    watched.go.set()
    await committing

    assert watched.thread != threading.get_ident()
    assert (await read_row(store)).state_version == 2


async def test_where_commits_are_made_follows_how_long_they_take(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = store._writer
    assert lane is not None
    assert lane.is_quick

    async def commit_in(milliseconds: float) -> bool:
        monkeypatch.setattr(writer_module, "perf_counter", iter([1.0, 1.0 + milliseconds / 1000]).__next__)
        await commit(store)
        return lane.is_quick

    assert [await commit_in(10) for _ in range(2)] == [False, False]
    assert [await commit_in(0.1) for _ in range(12)][-1]
    assert await commit_in(0.9)


async def test_only_one_transaction_is_open_at_a_time(store: SqliteStore) -> None:
    first = await store.begin()
    second = asyncio.create_task(store.begin())
    await asyncio.sleep(0)
    assert not second.done()

    await first.rollback()

    await (await second).rollback()


async def test_a_commit_goes_on_though_nobody_waits_for_it_any_more(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.01)
    watched = watch(store)
    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(watched.begun.wait)
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing

    following = asyncio.create_task(store.begin())
    await asyncio.sleep(0)
    assert not following.done()
    watched.go.set()

    await (await following).rollback()
    assert await store.was_committed(transaction)
    assert (await read_row(store)).state_version == 2


async def test_a_rollback_waits_for_the_commit_that_it_comes_too_late_for(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.01)
    watched = watch(store)
    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(watched.begun.wait)
    committing.cancel()

    rolling_back = asyncio.create_task(transaction.rollback())
    watched.go.set()
    await rolling_back

    assert await store.was_committed(transaction)


async def test_a_slow_commit_that_fails_is_reported(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.01)
    watched = watch(store)
    watched.go.set()
    watched.error = sqlite3.OperationalError("disk I/O error")
    watched.error.sqlite_errorcode = sqlite3.SQLITE_IOERR

    with pytest.raises(OutcomeUnknown):
        await transaction.commit()

    assert not await store.was_committed(transaction)


async def test_closing_waits_for_a_commit_under_way(store: SqliteStore) -> None:
    transaction = await begin_turn(store)
    remember_commits_of(store, 0.01)
    watched = watch(store)
    committing = asyncio.create_task(transaction.commit())
    await asyncio.to_thread(watched.begun.wait)

    closing = asyncio.create_task(store.close())
    watched.go.set()
    await asyncio.gather(committing, closing)

    await store.open()
    assert (await read_row(store)).state_version == 2


async def test_whoever_waits_for_the_lane_when_it_closes_is_told(store: SqliteStore) -> None:
    await store.begin()
    waiting = asyncio.create_task(store.begin())
    await asyncio.sleep(0)

    await store.close()

    with pytest.raises(StoreUnavailable, match="is being closed"):
        await waiting


async def test_an_ended_transaction_can_do_nothing_more(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.commit()

    for call in (transaction.commit(), transaction.read_requests([("org", "start", "key")], NOW)):
        with pytest.raises(StoreError, match="it has ended"):
            await call
    await transaction.rollback()


async def test_an_open_transaction_has_no_outcome_yet(store: SqliteStore) -> None:
    transaction = await store.begin()

    with pytest.raises(StoreError, match="it is open"):
        await store.was_committed(transaction)
    await transaction.rollback()


# --- other programs -------------------------------------------------------------------------------------------------------


async def test_another_program_that_writes_for_a_moment_is_waited_for(store: SqliteStore) -> None:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    beginning = asyncio.create_task(store.begin())
    await asyncio.sleep(0)
    assert not beginning.done()
    other.execute("ROLLBACK")
    other.close()

    await (await beginning).rollback()


async def test_another_program_that_keeps_writing_is_told_of(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_ATTEMPTS", 1)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="Another program has the file open and is writing to it"):
        await store.begin()
    other.close()

    assert await commit(store, make_start(make_row(1))) == set()


async def test_a_row_that_another_program_changed_is_not_overwritten(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2)))
    other = sqlite3.connect(store.path)
    other.execute("UPDATE executions SET state_version = 7 WHERE workflow_id = 'order-1'")
    other.commit()
    other.close()

    with pytest.raises(StoreError, match="let no other program write to it"):
        await commit(store, make_turn(make_row(1)), make_turn(make_row(2)))

    assert (await read_row(store, 1)).state_version == 7
    assert (await read_row(store, 2)).state_version == 1
