"""Calls outside of batches that carry a key: each changes something once, and a repeated one gets the first answer."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store
from holdfast.store.once import KeyedCall
from holdfast.store.rows import ExecutionRow
from tests.store.builders import (
    NOW,
    ORG,
    commit,
    commit_unrouted,
    id_of,
    make_letter,
    make_request,
    make_row,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
)


def make_call(key: str, kind: str, *, now: int = NOW) -> KeyedCall:
    return KeyedCall(make_request(key, kind=kind), now)


async def test_I2_a_repeated_call_discards_nothing_more_and_counts_the_same(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter(name) for name in "abc"])
    a, b, c = [letter.id for letter in await store.list_dead_letters(ORG)]

    first = await store.discard_dead_letters(ORG, [a, b], make_call("r", "discard"))
    again = await store.discard_dead_letters(ORG, [a, b, c], make_call("r", "discard"))
    other = await store.discard_dead_letters(ORG, [b, c], make_call("s", "discard"))

    assert (first, again, other) == (2, 2, 1)
    assert await store.list_dead_letters(ORG) == []


async def test_I2_of_calls_with_one_key_at_once_one_requeues(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter(name) for name in "ab"])
    ids = [letter.id for letter in await store.list_dead_letters(ORG)]

    counts = await asyncio.gather(*(store.requeue_dead_letters(ORG, ids, NOW, make_call("r", "requeue")) for _ in range(5)))

    assert counts == [2] * 5
    assert sorted(names_of(await read_inbox(store))) == ["a", "b"]


async def test_I2_a_row_is_replaced_once_and_each_caller_is_told_so(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    paused = make_turn(row, Status.PAUSED, events=0).row

    changed = await asyncio.gather(*(store.set_status(ORG, id_of(1), 1, paused, make_call("r", "retry")) for _ in range(3)))
    refused = await store.set_status(ORG, id_of(1), 1, paused, make_call("s", "retry"))

    assert (changed, refused) == ([True] * 3, False)
    assert await store.set_status(ORG, id_of(1), 2, paused, make_call("s", "retry")) is False, "as it was answered first"
    assert await read_row(store) == paused


async def test_I2_a_held_row_is_replaced_once_and_a_try_that_changed_nothing_is_forgotten(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    call = msgspec.structs.replace(make_call("r", "pause"), remembers_refusal=False)

    def pause(row: ExecutionRow) -> ExecutionRow:
        return make_turn(row, Status.PAUSED, events=0).row

    assert await store.change_open(ORG, id_of(1), lambda _: None, call) is False
    changed = await asyncio.gather(*(store.change_open(ORG, id_of(1), pause, call) for _ in range(3)))

    assert changed == [True] * 3
    assert await read_row(store) == pause(row)


async def test_I2_an_answer_is_remembered_until_it_expires(store: Store) -> None:
    assert await store.remember(make_call("r", "retry"), 0) == 0
    assert await store.remember(make_call("r", "retry"), 1) == 0
    assert await store.remember(make_call("r", "retry", now=NOW + 61 * SECOND), 1) == 1
    assert await store.remember(make_call("r", "other"), 1) == 1
