"""New executions: one per open workflow id, whole or not at all."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    id_of,
    look,
    make_closing,
    make_history,
    make_letter,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    read_request,
    read_row,
)


async def test_a_start_is_stored_as_it_was_written(store: Store) -> None:
    row = make_row(
        1, nodes=("a",), parent_id=id_of(9), status=Status.SUSPENDED, details=b'{"metadata":{"x":"\xc3\xa9\\u0000"}}'
    )

    lost = await commit(store, make_start(row))

    assert lost == set()
    assert await read_row(store) == row
    assert await store.load_history(id_of(1)) == [make_history(id_of(1))]


async def test_a_start_writes_everything_its_first_turn_asked_for(store: Store) -> None:
    start = make_start(
        make_row(1),
        timers=[make_timer(1, due=5)],
        outgoing=[make_signal("hello", 2)],
        dead_letters=[make_letter("bad")],
        requests=[make_request("key")],
    )

    await commit(store, start, make_start(make_row(2)))

    claimed = await look(store, Claim(limit=10, due_until=NOW * 2))
    assert names_of(claimed.inbox) == ["hello"]
    assert claimed.due == [make_timer(1, due=5)]
    assert names_of(await store.list_dead_letters(ORG)) == ["bad"]
    transaction = await store.begin()
    assert await read_request(transaction, ORG, "start", "key", NOW) == make_request("key")
    await transaction.rollback()


async def test_a_start_is_lost_while_its_workflow_id_is_open(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))

    lost = await commit(
        store,
        make_start(
            make_row(2, workflow_id="order"),
            timers=[make_timer(1, due=5, of=2)],
            outgoing=[make_signal("hello", 1)],
            dead_letters=[make_letter("bad")],
            requests=[make_request("key")],
        ),
        make_start(make_row(3)),
    )

    assert lost == {id_of(2)}
    assert await store.find_execution(ORG, id_of(2)) is None
    assert await store.load_history(id_of(2)) == []
    assert await store.find_next_due(()) is None
    assert await read_inbox(store) == []
    assert await store.list_dead_letters(ORG) == []
    transaction = await store.begin()
    assert await read_request(transaction, ORG, "start", "key", NOW) is None
    await transaction.rollback()
    assert await read_row(store, 3) == make_row(3)


async def test_of_two_starts_of_one_workflow_id_in_a_batch_the_first_wins(store: Store) -> None:
    starts = [make_start(make_row(number, workflow_id="order")) for number in (1, 2)]

    lost = await commit(store, *starts)

    assert lost == {id_of(2)}
    assert (await read_row(store, 1)).workflow_id == "order"


async def test_a_start_that_closes_at_once_is_lost_too_while_its_workflow_id_is_open(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))

    finished = make_row(2, workflow_id="order", status=Status.COMPLETED, closed_at=NOW)
    lost = await commit(store, make_start(finished))

    assert lost == {id_of(2)}


async def test_a_start_with_an_execution_id_that_exists_is_lost(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_closing(row))

    lost = await commit(store, make_start(make_row(1, workflow_id="another")))

    assert lost == {id_of(1)}
    assert (await read_row(store)).status == Status.COMPLETED


@pytest.mark.parametrize("status", [status for status in Status if status.is_closed])
async def test_a_closed_execution_frees_its_workflow_id(store: Store, status: Status) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))
    await commit(store, make_closing(row, status))

    lost = await commit(store, make_start(make_row(2, workflow_id="order")))

    assert lost == set()


@pytest.mark.parametrize("status", [status for status in Status if not status.is_closed])
async def test_an_open_execution_keeps_its_workflow_id_whatever_its_status(store: Store, status: Status) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))
    await commit(store, make_turn(row, status))

    lost = await commit(store, make_start(make_row(2, workflow_id="order")))

    assert lost == {id_of(2)}


async def test_a_workflow_id_can_close_and_open_again_in_one_batch_in_any_order(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))

    lost = await commit(store, make_start(make_row(2, workflow_id="order")), make_closing(row, Status.CONTINUED))

    assert lost == set()
    latest = await store.find_latest(ORG, "order")
    assert latest is not None
    assert latest.execution_id == id_of(2)


@pytest.mark.parametrize("status", [Status.RUNNING, Status.COMPLETED])
async def test_a_lost_closing_takes_the_start_that_needs_its_workflow_id_with_it(store: Store, status: Status) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row, outgoing=[make_signal("late", 1)]))

    successor = make_row(2, workflow_id="order", status=status, closed_at=NOW if status.is_closed else None)
    lost = await commit(store, make_closing(row, Status.CONTINUED), make_start(successor))

    assert lost == {id_of(1), id_of(2)}
    assert await read_row(store) == row
    assert await store.find_execution(ORG, id_of(2)) is None


async def test_one_workflow_id_can_be_open_in_two_orgs(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))

    lost = await commit(store, make_start(make_row(2, workflow_id="order", org=OTHER)))

    assert lost == set()
    assert await store.check() == []
