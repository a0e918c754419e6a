"""Inbox rows that go from a run to the one that continues it: in their place, and only if both are written."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store
from tests.store.builders import (
    ORG,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_row,
    make_signal,
    make_start,
    names_of,
    read_inbox,
    read_row,
)


async def test_S1_rows_that_the_next_run_adopts_keep_their_place_in_the_order_of_arrival(store: Store) -> None:
    first = make_row(1, workflow_id="w")
    second = msgspec.structs.replace(make_row(2, workflow_id="w"), route="orders")
    await commit(store, make_start(first))
    await commit_unrouted(store, make_signal("a", 1), make_signal("b", 9), make_signal("c", 1), make_signal("d", 1))
    a, b, c, d = await read_inbox(store)

    lost = await commit(
        store,
        make_closing(first, Status.CONTINUED, consumed=[a.id]),
        make_start(second, adopted=[c.id, d.id], outgoing=[make_signal("e", 2)]),
    )

    assert lost == set()
    found = await read_inbox(store)
    assert names_of(found) == ["b", "c", "d", "e"]
    moved = {"execution_id": id_of(2), "workflow_id": "", "route": "orders"}
    assert found[:3] == [b, msgspec.structs.replace(c, **moved), msgspec.structs.replace(d, **moved)]


async def test_S7_rows_stay_with_a_run_whose_end_is_lost(store: Store) -> None:
    first, second = make_row(1, workflow_id="w"), make_row(2, workflow_id="w")
    await commit(store, make_start(first))
    await commit_unrouted(store, make_signal("a", 1), make_signal("b", 1))
    before = await read_inbox(store)

    lost = await commit(store, make_closing(first, Status.CONTINUED), make_start(second, adopted=[before[0].id]))

    assert lost == {id_of(1), id_of(2)}
    assert await read_inbox(store) == before


@pytest.mark.parametrize("is_open", [True, False])
async def test_C5_many_runs_of_one_chain_are_written_in_one_batch(store: Store, is_open: bool) -> None:
    first = make_row(1, workflow_id="w")
    await commit(store, make_start(first))
    runs = [
        msgspec.structs.replace(make_row(number, workflow_id="w"), status=Status.CONTINUED, closed_at=10**15)
        for number in range(2, 6)
    ]
    last = make_row(6, workflow_id="w")
    if not is_open:
        last = msgspec.structs.replace(last, status=Status.COMPLETED, closed_at=10**15)

    lost = await commit(store, make_closing(first, Status.CONTINUED), *map(make_start, [*runs, last]))

    assert lost == set()
    assert all([await read_row(store, number) is not None for number in range(1, 7)])
    newest = await store.find_latest(ORG, "w")
    assert newest is not None
    assert newest.execution_id == id_of(6)


async def test_C5_no_run_of_a_chain_is_written_if_its_beginning_is_lost(store: Store) -> None:
    first = make_row(1, workflow_id="w")
    await commit(store, make_start(first))
    await commit_unrouted(store, make_signal("unseen", 1))
    second = msgspec.structs.replace(make_row(2, workflow_id="w"), status=Status.CONTINUED, closed_at=10**15)

    lost = await commit(
        store, make_closing(first, Status.CONTINUED), make_start(second), make_start(make_row(3, workflow_id="w"))
    )

    assert lost == {id_of(1), id_of(2), id_of(3)}
