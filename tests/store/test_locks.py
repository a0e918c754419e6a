"""Locks by name: one node at a time does what only one may do, until a time that it says itself."""

from __future__ import annotations

import asyncio

from holdfast.core.instants import SECOND
from holdfast.store.contract import Store
from tests.store.builders import NOW
from tests.store.conftest import Backend

LATER = NOW + 10 * SECOND


async def test_a_lock_is_had_by_one_node_at_a_time(store: Store) -> None:
    first = await store.take_lock("purging", "a", NOW, LATER)

    second = await store.take_lock("purging", "b", NOW, LATER)

    assert (first, second) == (True, False)


async def test_locks_of_different_names_have_nothing_to_do_with_each_other(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    other = await store.take_lock("letters", "b", NOW, LATER)

    assert other is True


async def test_a_lock_ends_at_its_time(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    answers = [await store.take_lock("purging", "b", now, LATER + SECOND) for now in (LATER - 1, LATER)]

    assert answers == [False, True]
    assert await store.take_lock("purging", "a", LATER, LATER + SECOND) is False


async def test_T6_lock_of_before_the_clock_was_set_back_is_free(store: Store) -> None:
    hour = 3600 * SECOND
    await store.take_lock("purging", "a", NOW + hour, LATER + hour)

    assert await store.take_lock("purging", "b", NOW, LATER) is True


async def test_who_has_a_lock_can_go_on_having_it(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    again = await store.take_lock("purging", "a", NOW + SECOND, LATER + SECOND)

    assert again is True
    assert await store.take_lock("purging", "b", LATER, LATER + SECOND) is False


async def test_who_had_a_lock_can_take_it_again_after_its_time(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    again = await store.take_lock("purging", "a", LATER + SECOND, LATER + 2 * SECOND)

    assert again is True


async def test_a_lock_can_be_given_back(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    await store.release_lock("purging", "a")

    assert await store.take_lock("purging", "b", NOW, LATER) is True


async def test_nobody_gives_back_what_another_has(store: Store) -> None:
    await store.take_lock("purging", "a", NOW, LATER)

    await store.release_lock("purging", "b")
    await store.release_lock("letters", "a")

    assert await store.take_lock("purging", "b", NOW, LATER) is False


async def test_a_lock_outlives_the_connection_of_its_holder(backend: Backend) -> None:
    store = await backend.connect()
    await store.take_lock("purging", "a", NOW, LATER)
    await store.close()

    again = await backend.connect("b")

    assert await again.take_lock("purging", "b", NOW, LATER) is False
    assert await again.take_lock("purging", "b", LATER, LATER + SECOND) is True


async def test_of_nodes_that_ask_at_once_one_gets_the_lock(left: Store, right: Store) -> None:
    for round_number in range(10):
        now = NOW + round_number * SECOND

        answers = await asyncio.gather(
            left.take_lock("purging", "left", now, now + SECOND),
            right.take_lock("purging", "right", now, now + SECOND),
        )

        assert sorted(answers) == [False, True]
