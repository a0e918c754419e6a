"""Work that may be done once: of all that try, one commits, and only while its execution wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.errors import AlreadyDone
from holdfast.store.contract import Store, UnroutedWrite, UserFunction
from holdfast.store.once import Once
from holdfast.store.rows import HistoryRow
from tests.store.builders import (
    begin_with,
    commit,
    id_of,
    make_closing,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    want,
)
from tests.store.conftest import Backend
from tests.store.notes import Notes, Put, transact


@pytest.fixture
def notes(backend: Backend) -> Notes:
    return Notes(backend.table)


def make_once(key: str = "pay", *, after: int = 1, is_wanted: bool = True) -> Once:
    """For execution 1."""
    return Once(make_request(key, kind="transaction"), after, lambda _history: is_wanted)


def never(_connection: object, _put: Put) -> None:
    pytest.fail("it was begun")


async def test_what_was_done_once_is_not_begun_again(store: Store, notes: Notes) -> None:
    await commit(store, make_start(make_row(1)))

    def work(connection: object, put: Put) -> object:
        put(make_signal("paid", 1))
        return notes.write(connection, "paid", "yes")

    await transact(store, work, make_once())

    with pytest.raises(AlreadyDone, match=r"^Expected .+, but .+\. .+\.$"):
        await transact(store, never, make_once())

    assert await notes.read(store) == {"paid": "yes"}
    assert names_of(await read_inbox(store)) == ["paid"]


async def test_another_key_is_another_work(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    assert await transact(store, lambda _connection, _put: 1, make_once("one")) == 1
    assert await transact(store, lambda _connection, _put: 2, make_once("two")) == 2


async def test_what_failed_may_be_done(store: Store, notes: Notes) -> None:
    await commit(store, make_start(make_row(1)))

    def fail(_connection: object, _put: Put) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await transact(store, fail, make_once())

    await transact(store, lambda connection, _put: notes.write(connection, "paid", "yes"), make_once())

    assert await notes.read(store) == {"paid": "yes"}


async def test_what_is_not_wanted_in_the_end_is_undone(store: Store, notes: Notes) -> None:
    await commit(store, make_start(make_row(1)))
    await transact(store, lambda connection, _put: notes.write(connection, "paid", "no"))

    def work(connection: object, put: Put) -> object:
        put(make_signal("never", 1))
        return notes.write(connection, "paid", "yes")

    with pytest.raises(AlreadyDone, match=r"^Expected .+, but .+\. .+\.$"):
        await transact(store, work, make_once(is_wanted=False))

    assert await notes.read(store) == {"paid": "no"}
    assert await read_inbox(store) == []
    assert await transact(store, lambda _connection, _put: "later", make_once()) == "later", "it left no trace"


@pytest.mark.parametrize("is_there", [True, False], ids=["closed", "unknown"])
async def test_execution_that_is_closed_or_unknown_wants_nothing(store: Store, notes: Notes, is_there: bool) -> None:
    if is_there:
        await commit(store, make_start(make_row(1)))
        await commit(store, make_closing(make_row(1)))
    await transact(store, lambda connection, _put: notes.write(connection, "paid", "no"))

    with pytest.raises(AlreadyDone):
        await transact(store, lambda connection, _put: notes.write(connection, "paid", "yes"), make_once())

    assert await notes.read(store) == {"paid": "no"}


async def test_it_is_asked_about_the_turns_since(store: Store) -> None:
    first = make_row(1)
    await commit(store, make_start(first))
    second = make_turn(first, events=2)
    await commit(store, second)
    await commit(store, make_turn(second.row, events=3))
    seen: list[Sequence[HistoryRow]] = []

    def is_wanted(history: Sequence[HistoryRow]) -> bool:
        seen.append(history)
        return True

    await transact(store, lambda _connection, _put: None, Once(make_request("pay"), 1, is_wanted))
    await transact(store, lambda _connection, _put: None, Once(make_request("pay again"), 6, is_wanted))

    assert [(row.execution_id, row.first, row.count) for row in seen[0]] == [(id_of(1), 2, 2), (id_of(1), 4, 3)]
    assert list(seen[1]) == []


# --- several nodes ---


def begin(store: Store, work: UserFunction[Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(transact(store, work, make_once()))


async def test_of_two_at_once_one_commits(left: Store, right: Store, shared: Backend) -> None:
    await commit(left, make_start(make_row(1)))
    notes = Notes(shared.table)
    await transact(left, lambda connection, _put: notes.write(connection, "begun", ""))
    both_begin = asyncio.Event()

    async def work(connection: object, put: Put) -> None:
        await both_begin.wait()
        put(make_signal("paid", 1))

    tasks = [begin(store, work) for store in (left, right)]
    await asyncio.sleep(0)
    both_begin.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert sorted(type(one).__name__ for one in outcomes) == ["AlreadyDone", "NoneType"]
    assert names_of(await read_inbox(left)) == ["paid"]


async def test_if_the_first_of_two_fails_the_second_commits(left: Store, right: Store) -> None:
    await commit(left, make_start(make_row(1)))
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def fail(_connection: object, put: Put) -> None:
        put(make_signal("never", 1))
        has_begun.set()
        await may_end.wait()
        raise ValueError("no")

    async def work(_connection: object, put: Put) -> None:
        put(make_signal("paid", 1))

    first = begin(left, fail)
    await has_begun.wait()
    second = begin(right, work)
    may_end.set()
    with pytest.raises(ValueError, match="no"):
        await first
    await second

    assert names_of(await read_inbox(left)) == ["paid"]


async def test_batch_does_not_wait_for_work_that_is_under_way(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def work(_connection: object, _put: Put) -> None:
        has_begun.set()
        await may_end.wait()

    task = begin(left, work)
    await has_begun.wait()

    transaction, claimed = await begin_with(right, want(1))
    lost = await transaction.write([make_turn(row)], UnroutedWrite())
    await transaction.commit()
    may_end.set()
    await task

    assert claimed.held == {id_of(1)}
    assert lost == set()


async def test_work_waits_for_a_batch_that_may_end_what_it_was_for(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(right, want(1))

    async def work(_connection: object, put: Put) -> None:
        put(make_signal("never", 1))

    task = begin(left, work)
    await transaction.write([make_closing(row)], UnroutedWrite())
    await transaction.commit()

    with pytest.raises(AlreadyDone):
        await task
    assert await read_inbox(left) == []
