"""Timers: due in due order, gone when they ended, and the next one known without looking at all."""

from __future__ import annotations

from holdfast.core.instants import SECOND
from holdfast.store.contract import Claim, Store
from tests.store.builders import (
    NOW,
    commit,
    id_of,
    look,
    make_closing,
    make_retry,
    make_row,
    make_start,
    make_timer,
    make_turn,
    want,
)


def due_within(seconds: int, limit: int = 10) -> Claim:
    return Claim(limit=limit, due_until=NOW + seconds * SECOND)


async def test_due_timers_come_in_due_order(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1), timers=[make_timer(1, due=3), make_timer(2, due=1)]),
        make_start(make_row(2), timers=[make_timer(1, due=2, of=2)]),
    )

    claimed = await look(store, due_within(10))

    assert claimed.due == [make_timer(2, due=1), make_timer(1, due=2, of=2), make_timer(1, due=3)]
    assert claimed.held == {id_of(1), id_of(2)}


async def test_a_timer_is_due_at_its_very_instant_and_not_before(store: Store) -> None:
    await commit(store, make_start(make_row(1), timers=[make_timer(1, due=5)]))

    early = await look(store, Claim(limit=10, due_until=NOW + 5 * SECOND - 1))
    on_time = await look(store, due_within(5))

    assert (early.held, early.due) == (set(), [])
    assert on_time.due == [make_timer(1, due=5)]


async def test_the_earliest_due_are_taken_first(store: Store) -> None:
    starts = [make_start(make_row(n), timers=[make_timer(1, due=100 - n, of=n)]) for n in range(1, 21)]
    await commit(store, *starts)

    claimed = await look(store, due_within(1000, limit=3))

    assert claimed.due == [make_timer(1, due=100 - n, of=n) for n in (20, 19, 18)]


async def test_a_wanted_execution_brings_its_due_timers_along(store: Store) -> None:
    await commit(store, make_start(make_row(1), timers=[make_timer(1, due=1), make_timer(2, due=9)]))

    claim = want(1)
    claimed = await look(store, Claim(wanted=claim.wanted, due_until=NOW + 5 * SECOND))

    assert claimed.due == [make_timer(1, due=1)]


async def test_an_ended_timer_is_gone(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=1), make_timer(2, due=2)]))

    await commit(store, make_turn(row, ended_timers=[1]))

    assert (await look(store, due_within(10))).due == [make_timer(2, due=2)]


async def test_a_timer_that_is_set_again_moves(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_retry(1, due=1, attempt=2)]))

    await commit(store, make_turn(row, timers=[make_retry(1, due=7, attempt=3)]))

    assert (await look(store, due_within(10))).due == [make_retry(1, due=7, attempt=3)]
    assert (await store.count()).timers == 1


async def test_a_timer_that_is_set_and_ended_in_one_turn_is_not_left(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    await commit(store, make_closing(row, timers=[make_timer(1, due=1)], ended_timers=[1]))

    assert await store.find_next_due(()) is None
    assert await store.check() == []


async def test_a_closing_ends_all_timers_of_its_execution(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=1), make_timer(2, due=2)]))

    await commit(store, make_closing(row, timers=[make_timer(3, due=3)]))

    assert await store.find_next_due(()) is None
    assert await store.check() == []


async def test_ending_a_timer_that_is_not_there_does_no_harm(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row), make_start(make_row(2), timers=[make_timer(1, due=1, of=2)]))

    lost = await commit(store, make_turn(row, ended_timers=[1, 99]))

    assert lost == set()
    assert (await look(store, due_within(10))).due == [make_timer(1, due=1, of=2)]


async def test_skipped_executions_keep_their_due_timers(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1), timers=[make_timer(1, due=1)]),
        make_start(make_row(2), timers=[make_timer(1, due=2, of=2)]),
    )

    claimed = await look(store, Claim(limit=10, due_until=NOW * 2, skip={id_of(1)}))

    assert claimed.held == {id_of(2)}
    assert claimed.due == [make_timer(1, due=2, of=2)]


async def test_the_next_due_time_is_the_earliest_of_all_but_the_skipped(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1), timers=[make_timer(1, due=1), make_timer(2, due=8)]),
        make_start(make_row(2), timers=[make_timer(1, due=5, of=2)]),
    )

    due = [await store.find_next_due(skip) for skip in ((), [id_of(1)], {id_of(1), id_of(2)})]

    assert due == [NOW + SECOND, NOW + 5 * SECOND, None]


async def test_the_next_due_time_follows_what_is_committed(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=5)]))
    turn = make_turn(row, ended_timers=[1], timers=[make_timer(2, due=9)])

    before = await store.find_next_due(())
    await commit(store, turn)

    assert before == NOW + 5 * SECOND
    assert await store.find_next_due(()) == NOW + 9 * SECOND
