"""A row can be replaced outside of batches, if its version is the expected one."""

from __future__ import annotations

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store
from tests.store.builders import ORG, commit, commit_unrouted, id_of, make_row, make_signal, make_start, make_turn, read_row


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
