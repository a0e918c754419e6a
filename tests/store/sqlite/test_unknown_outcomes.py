"""A commit that reports an I/O error may have taken place. Here the connection of SQLite itself lies, in either way."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store.contract import UnroutedWrite
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import (
    ORG,
    commit,
    commit_unrouted,
    make_closing,
    make_letter,
    make_offer,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
)


class TroubledConnection:
    """A connection whose next COMMIT fails: after it has taken place, or before."""

    def __init__(self, real: sqlite3.Connection, *, takes_place: bool, code: int = sqlite3.SQLITE_IOERR_FSYNC) -> None:
        self._real = real
        self._takes_place = takes_place
        self._code = code
        self._is_honest = False

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement != "COMMIT" or self._is_honest:
            return self._real.execute(statement, *values)
        self._is_honest = True
        if self._takes_place:
            self._real.execute(statement)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self._code
        raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def trouble(store: SqliteStore, *, takes_place: bool, code: int = sqlite3.SQLITE_IOERR_FSYNC) -> None:
    connections: Any = store._connections
    connections._writer = TroubledConnection(connections._writer, takes_place=takes_place, code=code)


WRITES: dict[str, Callable[[], tuple[list[Any], UnroutedWrite]]] = {
    "a turn": lambda: ([make_turn(make_row(1))], UnroutedWrite()),
    "a closing": lambda: ([make_closing(make_row(1), consumed=[1])], UnroutedWrite()),
    "a start": lambda: ([make_start(make_row(2))], UnroutedWrite()),
    "a start that closes": lambda: ([make_start(make_row(2, status="completed", closed_at=1))], UnroutedWrite()),
    "an envelope": lambda: ([], UnroutedWrite(outgoing=[make_signal("more")])),
    "a taken envelope": lambda: ([], UnroutedWrite(consumed=[1])),
    "a dead letter": lambda: ([], UnroutedWrite(dead_letters=[make_letter("poison")])),
}


@pytest.fixture
async def store(store: SqliteStore) -> SqliteStore:
    await commit(store, make_start(make_row(1), outgoing=[make_signal("first")]))
    return store


@pytest.mark.parametrize("takes_place", [True, False])
@pytest.mark.parametrize("write", WRITES)
async def test_the_database_tells_whether_it_was_committed(store: SqliteStore, write: str, takes_place: bool) -> None:
    turns, loose = WRITES[write]()
    transaction = await store.begin()
    assert await transaction.write(turns, loose) == set()
    trouble(store, takes_place=takes_place)
    with pytest.raises(OutcomeUnknown):
        await transaction.commit()

    answer = await store.was_committed(transaction)

    assert answer is takes_place
    assert await store.check() == []


@pytest.mark.parametrize("takes_place", [True, False])
async def test_the_next_transaction_finds_what_is_committed(store: SqliteStore, takes_place: bool) -> None:
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1), consumed=[1], outgoing=[make_signal("second")])], UnroutedWrite())
    trouble(store, takes_place=takes_place)
    with pytest.raises(OutcomeUnknown):
        await transaction.commit()

    lost = await commit(store, make_turn(make_row(1)))

    assert (lost != set()) is takes_place
    assert names_of(await read_inbox(store)) == (["second"] if takes_place else ["first"])
    assert await store.was_committed(transaction) is takes_place


async def test_an_answer_is_the_same_later_on(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.write([], UnroutedWrite(outgoing=[make_signal("second")]))
    trouble(store, takes_place=True)
    with pytest.raises(OutcomeUnknown):
        await transaction.commit()

    rows = await read_inbox(store)
    await commit_unrouted(store, consumed=[row.id for row in rows])

    assert await store.was_committed(transaction)


async def test_a_commit_that_fails_on_a_full_disk_certainly_did_not_take_place(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1))], UnroutedWrite())
    trouble(store, takes_place=False, code=sqlite3.SQLITE_FULL)

    with pytest.raises(StoreUnavailable) as caught:
        await transaction.commit()

    assert not isinstance(caught.value, OutcomeUnknown)
    assert not await store.was_committed(transaction)
    assert await commit(store, make_turn(make_row(1))) == set()


async def test_what_is_written_outside_of_batches_may_be_unknown_too(store: SqliteStore) -> None:
    trouble(store, takes_place=True)

    with pytest.raises(OutcomeUnknown):
        await store.deliver([make_signal("second")])

    assert names_of(await read_inbox(store)) == ["first", "second"]
    assert await store.list_dead_letters(ORG) == []


async def test_whoever_asks_waits_until_the_database_can_tell(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1))], UnroutedWrite())
    trouble(store, takes_place=True)
    with pytest.raises(OutcomeUnknown):
        await transaction.commit()
    away = store.path.with_name("away.db")
    store.path.rename(away)

    asking = asyncio.create_task(store.was_committed(transaction))
    with pytest.raises(StoreUnavailable):
        await store.begin()
    assert not asking.done()
    away.rename(store.path)

    assert await asking
    assert (await read_row(store)).state_version == 2


async def test_a_store_that_was_closed_since_cannot_tell(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1))], UnroutedWrite())
    trouble(store, takes_place=True)
    with pytest.raises(OutcomeUnknown):
        await transaction.commit()
    await store.close()
    await store.open()

    with pytest.raises(StoreUnavailable, match="the store was closed since"):
        await store.was_committed(transaction)

    assert (await read_row(store)).state_version == 2


async def test_a_reader_in_the_way_is_waited_for_before_anything_is_told(store: SqliteStore) -> None:
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1))], UnroutedWrite())
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM executions").fetchall()
        trouble(store, takes_place=True)
        with pytest.raises(OutcomeUnknown):
            await transaction.commit()
        with pytest.raises(StoreUnavailable, match="others read from it"):
            await store.begin()

    assert await store.was_committed(transaction)
    assert await store.check() == []


async def test_a_transaction_of_another_store_is_not_told_about(store: SqliteStore) -> None:
    with pytest.raises(Exception, match="Ask the store it is of"):
        await store.was_committed(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("takes_place", [True, False])
async def test_activities_are_never_taken_without_the_takers_knowledge(store: SqliteStore, *, takes_place: bool) -> None:
    await commit(store, make_start(make_row(9), offered=[make_offer(3, "gpu", of=9)]))
    trouble(store, takes_place=takes_place)

    taken = await store.take_offers("a", ["gpu"], 10)

    assert [offer.number for offer in taken] == ([3] if takes_place else [])
    assert [offer.number for offer in await store.take_offers("b", ["gpu"], 10)] == ([] if takes_place else [3])
