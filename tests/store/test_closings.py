"""An execution cannot close over an envelope that it was not given."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    read_row,
)

CLOSED = [status for status in Status if status.is_closed]


@pytest.mark.parametrize("status", CLOSED)
async def test_a_closing_turn_is_lost_if_it_leaves_an_envelope_in_the_inbox(store: Store, status: Status) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=5)]))
    await commit_unrouted(store, make_signal("first", 1), make_signal("second", 1))
    first, _ = await read_inbox(store)

    lost = await commit(
        store, make_closing(row, status, ended_timers=[1], consumed=[first.id], outgoing=[make_signal("never", 2)])
    )

    assert lost == {id_of(1)}
    assert await read_row(store) == row
    assert names_of(await read_inbox(store)) == ["first", "second"]
    assert await store.find_next_due(()) == NOW + 5_000_000
    assert len(await store.load_history(id_of(1))) == 1


@pytest.mark.parametrize("status", CLOSED)
async def test_a_closing_turn_that_took_everything_is_written(store: Store, status: Status) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("first", 1), make_signal("second", 1))
    inbox = await read_inbox(store)

    closing = make_closing(row, status, consumed=[one.id for one in inbox])
    lost = await commit(store, closing)

    assert lost == set()
    assert await read_row(store) == closing.row
    assert await read_inbox(store) == []


@pytest.mark.parametrize("status", CLOSED)
async def test_a_closing_turn_is_lost_if_something_waits_under_its_workflow_id_unless_it_is_terminated(
    store: Store, status: Status
) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    waiting = make_signal("by its workflow id", None, workflow_id=row.workflow_id)
    await commit_unrouted(store, waiting)

    lost = await commit(store, make_closing(row, status))

    assert lost == (set() if status is Status.TERMINATED else {id_of(1)})


async def test_a_closing_turn_may_leave_what_waits_under_its_workflow_id_for_others(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    on_a_route = make_signal("for others", None, workflow_id=row.workflow_id, route="elsewhere")
    another = make_signal("another's", None, workflow_id="another")
    other_org = make_signal("of another org", None, workflow_id=row.workflow_id, org=OTHER)
    await commit_unrouted(store, on_a_route, another, other_org)

    assert await commit(store, make_closing(row, Status.COMPLETED)) == set()


async def test_a_turn_that_does_not_close_may_leave_envelopes(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("first", 1), make_signal("second", 1))
    first, second = await read_inbox(store)

    lost = await commit(store, make_turn(row, consumed=[first.id]))

    assert lost == set()
    assert await read_inbox(store) == [second]


async def test_a_start_that_closes_at_once_is_lost_if_an_envelope_waits_for_it(store: Store) -> None:
    await commit_unrouted(store, make_signal("cancel", 1))

    finished = make_row(1, status=Status.COMPLETED, closed_at=NOW)
    lost = await commit(store, make_start(finished))

    assert lost == {id_of(1)}
    assert await store.find_execution(ORG, id_of(1)) is None


async def test_what_the_batch_takes_beside_its_turns_does_not_hinder_a_closing(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("poison", 1))
    [poison] = await read_inbox(store)

    lost = await commit(store, make_closing(row), loose=UnroutedWrite(consumed=[poison.id]))

    assert lost == set()
    assert await read_inbox(store) == []


async def test_envelopes_of_others_do_not_hinder_a_closing(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row), make_start(make_row(2)))
    await commit_unrouted(store, make_signal("hello", 2), make_signal("later", None, workflow_id="another order"))

    lost = await commit(store, make_closing(row))

    assert lost == set()


async def test_what_a_closing_turn_sends_to_itself_waits_for_nobody(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    lost = await commit(store, make_closing(row, outgoing=[make_signal("echo", 1)]))

    assert lost == set()
    assert names_of(await read_inbox(store)) == ["echo"]


async def test_what_waits_for_a_closed_execution_can_be_claimed_and_answered(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_closing(row))
    await commit_unrouted(store, make_signal("late", 1))

    claimed = await look(store, Claim(limit=10))

    assert names_of(claimed.inbox) == ["late"]
    assert claimed.held == set()


async def test_a_lost_closing_leaves_the_rest_of_the_batch_alone(store: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(store, make_start(row), make_start(other))
    await commit_unrouted(store, make_signal("late", 1))

    lost = await commit(store, make_closing(row), make_closing(other))

    assert lost == {id_of(1)}
    assert (await read_row(store, 2)).status == Status.COMPLETED
