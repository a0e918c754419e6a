"""Work of a user's own in a transaction of the store: all of it is there with the envelopes that it put, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial

import pytest

from holdfast.errors import HoldfastError, InvalidArguments
from holdfast.store.contract import Store, UserFunction
from tests.store.builders import commit, make_row, make_signal, make_start, names_of, read_inbox
from tests.store.conftest import Backend
from tests.store.notes import Notes, Put, transact


@pytest.fixture
def notes(backend: Backend) -> Notes:
    """A user's own table in each database."""
    return Notes(backend.table)


async def test_work_is_committed_with_the_envelopes_that_it_put(store: Store, notes: Notes) -> None:
    def work(connection: object, put: Put) -> object:
        put(make_signal("first", 1))
        put(make_signal("second", None, workflow_id="order", route="orders"))
        return notes.write(connection, "paid", "yes")

    await transact(store, work)

    inbox = await read_inbox(store)
    assert await notes.read(store) == {"paid": "yes"}
    assert names_of(inbox) == ["first", "second"]
    assert [row.route for row in inbox] == ["", "orders"]


async def test_what_work_returns_is_returned(store: Store) -> None:
    answer = await transact(store, lambda _connection, _put: 42)

    assert answer == 42


async def test_work_sees_what_work_before_it_did(store: Store, notes: Notes) -> None:
    await transact(store, lambda connection, _put: notes.write(connection, "one", "1"))
    await transact(store, lambda connection, _put: notes.write(connection, "two", "2"))

    assert await notes.read(store) == {"one": "1", "two": "2"}


async def test_whatever_work_raises_undoes_it(store: Store, notes: Notes) -> None:
    await transact(store, lambda connection, _put: notes.write(connection, "paid", "no"))

    class Refused(Exception): ...

    def work(connection: object, put: Put) -> object:
        put(make_signal("never", 1))
        done = notes.write(connection, "paid", "yes")
        if done is None:
            raise Refused

        async def refuse() -> None:
            await done
            raise Refused

        return refuse()

    with pytest.raises(Refused):
        await transact(store, work)

    assert await notes.read(store) == {"paid": "no"}
    assert await read_inbox(store) == []


async def test_a_store_goes_on_after_work_that_failed(store: Store) -> None:
    def fail(_connection: object, _put: Put) -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await transact(store, fail)

    assert await transact(store, lambda _connection, _put: "done") == "done"
    assert await commit(store, make_start(make_row(1))) == set()


async def test_an_envelope_cannot_be_put_when_the_work_is_over(store: Store) -> None:
    kept: list[Put] = []
    await transact(store, lambda _connection, put: kept.append(put))

    with pytest.raises(HoldfastError, match=r"^Expected .+, but .+\. .+\.$"):
        kept[0](make_signal("late", 1))

    assert await read_inbox(store) == []


async def test_work_is_durable(backend: Backend, notes: Notes) -> None:
    store = await backend.connect()
    await transact(store, lambda connection, _put: notes.write(connection, "paid", "yes"))
    await store.close()

    again = await backend.connect()

    assert await notes.read(again) == {"paid": "yes"}


async def test_works_at_once_all_take_place(store: Store, notes: Notes) -> None:
    def write(name: str, connection: object, _put: Put) -> Awaitable[None] | None:
        return notes.write(connection, name, "")

    names = [f"note {number}" for number in range(5)]
    await transact(store, lambda connection, _put: notes.write(connection, "first", ""))

    await asyncio.gather(*(transact(store, partial(write, name)) for name in names))

    assert set(await notes.read(store)) == {"first", *names}


async def test_work_is_not_seen_before_it_is_committed(left: Store, right: Store) -> None:
    has_put, may_end = asyncio.Event(), asyncio.Event()

    async def work(_connection: object, put: Put) -> None:
        put(make_signal("one", None, workflow_id="order"))
        has_put.set()
        await may_end.wait()

    doing: UserFunction[None] = work
    task = asyncio.ensure_future(transact(left, doing))
    await has_put.wait()
    before = await read_inbox(right)
    may_end.set()
    await task

    assert before == []
    assert names_of(await read_inbox(right)) == ["one"]


async def test_work_that_is_cancelled_is_undone(left: Store, right: Store) -> None:
    has_put = asyncio.Event()

    async def work(_connection: object, put: Put) -> None:
        put(make_signal("never", None, workflow_id="order"))
        has_put.set()
        await asyncio.Event().wait()

    doing: UserFunction[None] = work
    task = asyncio.ensure_future(transact(left, doing))
    await has_put.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await read_inbox(right) == []
    assert await transact(left, lambda _connection, _put: "next") == "next"


@pytest.mark.parametrize("connection", [None, "postgresql://here", object()])
async def test_a_connection_that_does_not_reach_the_database_is_refused(store: Store, connection: object) -> None:
    with pytest.raises(InvalidArguments, match=r"^Expected .+, but .+\. .+\.$"):
        await store.enlist(connection, [make_signal("never", 1)])

    assert await read_inbox(store) == []
