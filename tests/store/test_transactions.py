"""Transactions: all or nothing, seen by others when they are durable."""

from __future__ import annotations

import pytest

from holdfast.errors import StoreError
from holdfast.store.contract import Claim, ExecutionFilter, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_history,
    make_letter,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_row,
    want,
)
from tests.store.conftest import Backend


async def test_nothing_of_a_transaction_is_seen_before_its_commit(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction = await store.begin()
    turn = make_turn(
        row, timers=[make_timer(1, due=1)], outgoing=[make_signal("hello", 1)], dead_letters=[make_letter("bad")]
    )
    await transaction.write([turn, make_start(make_row(2))], UnroutedWrite())

    seen_before = await see(store)
    await transaction.commit()
    seen_after = await see(store)

    assert seen_before == ([row], [make_history(id_of(1))], None, False, 0)
    assert seen_after == (
        [make_row(2), turn.row],
        [make_history(id_of(1)), make_history(id_of(1), 2)],
        NOW + 1_000_000,
        True,
        1,
    )


async def see(store: Store) -> tuple[object, ...]:
    return (
        await store.list_executions(ExecutionFilter(ORG)),
        await store.load_history(id_of(1)),
        await store.find_next_due(()),
        (await store.count()).inbox,
        len(await store.list_dead_letters(ORG)),
    )


async def test_a_rollback_gives_everything_up(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    before = await see(store)
    transaction = await store.begin()
    await transaction.write(
        [make_turn(row, timers=[make_timer(1, due=1)], requests=[make_request("key")]), make_start(make_row(2))],
        UnroutedWrite(outgoing=[make_signal("hello", 1)], dead_letters=[make_letter("bad")]),
    )

    await transaction.rollback()

    assert await see(store) == before
    assert await commit(store, make_turn(row), make_start(make_row(2))) == set()


async def test_a_rollback_frees_what_was_claimed(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))
    transaction, _ = await begin_with(store, Claim(wanted=want(1).wanted, workflow_ids=[(ORG, "order")]))

    await transaction.rollback()

    claimed = await look(store, Claim(wanted=want(1).wanted, workflow_ids=[(ORG, "order")]))
    assert claimed.held == {id_of(1)}
    assert claimed.open_ids == {(ORG, "order"): id_of(1)}


async def test_a_rollback_never_raises_whatever_came_before(store: Store) -> None:
    committed, rolled_back = await store.begin(), None
    await committed.commit()
    rolled_back = await store.begin()
    await rolled_back.rollback()

    await committed.rollback()
    await rolled_back.rollback()

    assert await commit(store, make_start(make_row(1))) == set()


async def test_a_transaction_that_has_ended_cannot_be_used(store: Store) -> None:
    transaction = await store.begin()
    await transaction.commit()

    with pytest.raises(StoreError):
        await transaction.write([make_start(make_row(1))], UnroutedWrite())

    assert await store.find_execution(ORG, id_of(1)) is None


async def test_the_store_tells_whether_a_transaction_took_place(store: Store) -> None:
    committed = await store.begin()
    await committed.write([make_start(make_row(1))], UnroutedWrite())
    await committed.commit()
    rolled_back = await store.begin()
    await rolled_back.write([make_start(make_row(2))], UnroutedWrite())
    await rolled_back.rollback()

    told = [await store.was_committed(one) for one in (committed, rolled_back)]

    assert told == [True, False]


async def test_what_was_committed_outlives_the_connection(backend: Backend) -> None:
    store = await backend.connect()
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row, timers=[make_timer(1, due=1)], requests=[make_request("key")]))
    await commit_unrouted(store, make_signal("hello", 1), dead_letters=[make_letter("bad")])

    await store.close()
    again = await backend.connect()

    assert await read_row(again) == row
    assert await again.load_history(id_of(1)) == [make_history(id_of(1))]
    claimed = await look(again, Claim(workflow_ids=[(ORG, "order")], due_until=NOW * 2))
    assert names_of(claimed.inbox) == ["hello"]
    assert claimed.due == [make_timer(1, due=1)]
    assert names_of(await again.list_dead_letters(ORG)) == ["bad"]
    assert await again.check() == []


async def test_what_was_not_committed_does_not_outlive_the_connection(backend: Backend) -> None:
    store = await backend.connect()
    transaction = await store.begin()
    await transaction.write([make_start(make_row(1))], UnroutedWrite())

    await store.close()
    again = await backend.connect()

    assert await again.find_execution(ORG, id_of(1)) is None
    assert await commit(again, make_start(make_row(1))) == set()


async def test_inbox_ids_go_on_growing_after_the_store_was_opened_again(backend: Backend) -> None:
    store = await backend.connect()
    await commit_unrouted(store, make_signal("old", 1))
    [old] = (await look(store, Claim(limit=10))).inbox
    await commit_unrouted(store, consumed=[old.id])
    await store.close()

    again = await backend.connect()
    await commit_unrouted(again, make_signal("new", 1))

    [new] = (await look(again, Claim(limit=10))).inbox
    assert new.id > old.id


async def test_a_store_can_be_closed_twice(store: Store) -> None:
    await store.close()

    await store.close()

    with pytest.raises(StoreError):
        await store.begin()
