"""A row can be replaced outside of batches: at the expected version, or while it is held."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite, Wanted
from holdfast.store.rows import ExecutionRow
from tests.store.builders import (
    ORG,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    read_row,
)
from tests.store.conftest import Backend


async def test_a_row_is_replaced_at_the_expected_version(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    paused = make_turn(row, Status.PAUSED, events=0).row
    changed = await store.set_status(ORG, id_of(1), 1, paused)

    assert changed is True
    assert await read_row(store) == paused


async def test_a_row_at_another_version_is_left_alone(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    turn = make_turn(row)
    await commit(store, turn)

    changed = await store.set_status(ORG, id_of(1), 1, make_turn(row, Status.PAUSED).row)

    assert changed is False
    assert await read_row(store) == turn.row


async def test_a_row_that_is_not_there_is_not_made(store: Store) -> None:
    changed = await store.set_status(ORG, id_of(1), 1, make_row(1))

    assert changed is False
    assert await store.find_execution(ORG, id_of(1)) is None


async def test_a_turn_that_began_before_the_change_is_lost(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await store.set_status(ORG, id_of(1), 1, make_turn(row, Status.PAUSED, events=0).row)

    lost = await commit(store, make_turn(row))

    assert lost == {id_of(1)}


async def test_what_waits_is_untouched_by_the_change(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("hello", 1))

    await store.set_status(ORG, id_of(1), 1, make_turn(row, Status.BLOCKED, events=0).row)

    assert (await store.count()).inbox
    assert await store.check() == []


# --- while it is held ---


def pause(row: ExecutionRow) -> ExecutionRow:
    return make_turn(row, Status.PAUSED, events=0).row


@pytest.mark.parametrize("by_workflow_id", [False, True])
async def test_an_open_row_is_replaced_by_what_is_made_of_it(store: Store, by_workflow_id: bool) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    target = row.workflow_id if by_workflow_id else row.execution_id
    changed = await store.change_open(ORG, target, pause, by_workflow_id=by_workflow_id)

    assert changed is True
    assert await read_row(store) == pause(row)
    assert await commit(store, make_turn(row)) == {id_of(1)}, "a turn that began before is lost"


async def test_a_row_that_is_to_stay_or_is_not_open_is_left_alone(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    assert await store.change_open(ORG, row.execution_id, lambda _: None) is False
    assert await store.change_open("another", row.execution_id, pause) is False
    assert await store.change_open(ORG, row.workflow_id, pause) is False, "that is no execution id"
    assert await read_row(store) == row
    closing = make_closing(row, Status.COMPLETED, events=0)
    await commit(store, closing)
    assert await store.change_open(ORG, row.execution_id, pause) is False
    assert await store.change_open(ORG, row.workflow_id, pause, by_workflow_id=True) is False
    assert await read_row(store) == closing.row


@pytest.mark.parametrize("by_workflow_id", [False, True])
async def test_a_transaction_that_holds_the_row_is_waited_for(store: Store, by_workflow_id: bool) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    turn = make_turn(row)
    transaction = await store.begin()
    assert (await transaction.claim(Claim([Wanted(ORG, id_of(1))]))).held == {id_of(1)}

    target = row.workflow_id if by_workflow_id else row.execution_id
    changing = asyncio.create_task(store.change_open(ORG, target, pause, by_workflow_id=by_workflow_id))
    await asyncio.sleep(0)
    assert await transaction.write([turn], UnroutedWrite()) == set()
    await transaction.commit()

    assert await changing is True
    assert await read_row(store) == pause(turn.row), "made of what the turn left"


async def test_others_read_while_many_wait_for_a_row_that_is_held(shared: Backend) -> None:
    await commit(holder := await shared.connect("holder"), make_start(make_row(1)), make_start(make_row(2)))
    store = await shared.connect("changes")
    transaction = await holder.begin()
    assert (await transaction.claim(Claim([Wanted(ORG, id_of(1))]))).held == {id_of(1)}

    changing = [asyncio.create_task(store.change_open(ORG, id_of(1), pause)) for _ in range(8)]
    await asyncio.sleep(0)
    assert (await store.find_execution(ORG, id_of(2))) is not None
    assert not any(one.done() for one in changing)

    await transaction.rollback()
    assert any(await asyncio.gather(*changing))
