"""Histories: in order, from any turn on, as they were written."""

from __future__ import annotations

from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.rows import HistoryRow
from tests.store.builders import NOW, commit, id_of, make_closing, make_history, make_row, make_start, make_turn


async def make_long(store: Store) -> list[HistoryRow]:
    """Three turns of one, two and three events."""
    row = make_row(1)
    await commit(store, make_start(row), make_start(make_row(2)))
    second = make_turn(row, events=2)
    await commit(store, second)
    await commit(store, make_turn(second.row, events=3))
    return [make_history(id_of(1)), make_history(id_of(1), 2, 2), make_history(id_of(1), 4, 3)]


async def test_a_history_is_read_in_order(store: Store) -> None:
    turns = await make_long(store)

    history = await store.load_history(id_of(1))

    assert history == turns


async def test_a_history_is_read_behind_a_sequence_and_up_to_a_limit(store: Store) -> None:
    turns = await make_long(store)

    behind = [await store.load_history(id_of(1), after=after) for after in (0, 1, 3, 6)]
    limited = await store.load_history(id_of(1), after=1, limit=1)

    assert behind == [turns, turns[1:], turns[2:], []]
    assert limited == turns[1:2]


async def test_a_transaction_reads_many_histories_each_behind_its_own_sequence(store: Store) -> None:
    turns = await make_long(store)
    transaction = await store.begin()

    histories = await transaction.read_history({id_of(1): 3, id_of(2): 0, id_of(3): 0})
    await transaction.rollback()

    assert histories[id_of(1)] == turns[2:]
    assert histories[id_of(2)] == [make_history(id_of(2))]
    assert histories.get(id_of(3), []) == []


async def test_a_transaction_reads_the_history_that_it_has_written(store: Store) -> None:
    turns = await make_long(store)
    row = make_turn(make_turn(make_row(1), events=2).row, events=3).row
    transaction = await store.begin()
    await transaction.write([make_turn(row)], UnroutedWrite())

    histories = await transaction.read_history({id_of(1): 1})
    await transaction.rollback()

    assert histories == {id_of(1): [*turns[1:], make_history(id_of(1), 7)]}


async def test_bodies_are_bytes_that_the_store_does_not_look_into(store: Store) -> None:
    start = make_start(make_row(1))
    start.history = HistoryRow(id_of(1), 1, 1, NOW, 7, bytes(range(256)))

    await commit(store, start)

    assert await store.load_history(id_of(1)) == [start.history]


async def test_the_last_turn_of_a_closed_execution_is_the_one_that_closed_it(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    closing = make_closing(row, events=2)

    await commit(store, closing)

    assert await store.load_last_turn(id_of(1)) == closing.history


async def test_an_unknown_execution_has_no_history(store: Store) -> None:
    history = await store.load_history(id_of(1))

    assert history == []
    assert await store.load_last_turn(id_of(1)) is None
