"""Deliveries: into the inbox of an open execution, durable on return, else refused one by one."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store
from holdfast.store.rows import InboxRow
from tests.store.builders import (
    ORG,
    OTHER,
    commit,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    want_whole,
)
from tests.store.conftest import Backend


@pytest.mark.parametrize("status", [status for status in Status if not status.is_closed])
async def test_an_open_execution_is_delivered_to(store: Store, status: Status) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_turn(row, status))

    delivered = await store.deliver([make_signal("hello", 1)])

    assert delivered == [True]
    assert names_of((await look(store, want_whole(1))).inbox) == ["hello"]


@pytest.mark.parametrize("status", [status for status in Status if status.is_closed])
async def test_a_closed_execution_is_not_delivered_to(store: Store, status: Status) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_closing(row, status))

    delivered = await store.deliver([make_signal("hello", 1)])

    assert delivered == [False]
    assert not (await store.count()).inbox


async def test_an_unknown_execution_is_not_delivered_to(store: Store) -> None:
    delivered = await store.deliver([make_signal("hello", 1)])

    assert delivered == [False]
    assert not (await store.count()).inbox


async def test_an_execution_of_another_org_is_not_delivered_to(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    delivered = await store.deliver([make_signal("hello", 1, org=OTHER)])

    assert delivered == [False]
    assert not (await store.count()).inbox


async def test_each_envelope_is_judged_by_itself(store: Store) -> None:
    closed = make_row(2)
    await commit(store, make_start(make_row(1)), make_start(closed), make_start(make_row(4)))
    await commit(store, make_closing(closed))

    delivered = await store.deliver([make_signal(f"{number}", number) for number in (4, 2, 1, 3, 4)])

    assert delivered == [True, False, True, False, True]
    assert names_of(await read_inbox(store)) == ["4", "1", "4"]


async def test_deliveries_wait_in_the_order_in_which_they_were_made(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    for name in ("first", "second", "third"):
        await store.deliver([make_signal(name, 1)])

    assert names_of(await read_inbox(store)) == ["first", "second", "third"]


async def test_a_delivery_keeps_the_bytes(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    body = bytes(range(256))

    await store.deliver([InboxRow(ORG, id_of(1), "", body)])

    [row] = await read_inbox(store)
    assert row.body == body


async def test_a_delivery_of_nothing_is_answered_with_nothing(store: Store) -> None:
    delivered = await store.deliver([])

    assert delivered == []


async def test_a_delivery_is_durable_on_return(backend: Backend) -> None:
    store = await backend.connect()
    await commit(store, make_start(make_row(1)))
    await store.deliver([make_signal("hello", 1)])

    await store.close()
    again = await backend.connect()

    assert names_of(await read_inbox(again)) == ["hello"]
