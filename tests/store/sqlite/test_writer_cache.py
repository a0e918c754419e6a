"""What is kept in memory must never tell another story than the database."""

from __future__ import annotations

import random

import pytest

from holdfast.store.contract import Claim, UnroutedWrite, Wanted
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.writer_cache import RowPositions
from tests.store.builders import (
    NOW,
    ORG,
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
    read_inbox,
    want,
)


def test_places_are_bounded_and_those_used_last_are_kept() -> None:
    positions = RowPositions(limit=10)
    for number in range(1000):
        positions.put(str(number), (number, 0, 1, ORG))
        positions.get("0")

    assert len(positions._young) + len(positions._old) <= 12
    assert positions.get("0") == (0, 0, 1, ORG)
    assert positions.get("999") == (999, 0, 1, ORG)
    assert positions.get("500") is None


def test_a_place_that_was_dropped_does_not_come_back() -> None:
    positions = RowPositions(limit=4)
    for number in range(4):
        positions.put(str(number), (number, 0, 1, ORG))
    positions.put("0", (0, 0, 2, ORG))

    positions.drop("0")

    assert positions.get("0") is None


async def test_turns_of_executions_that_were_forgotten_are_written_all_the_same(store: SqliteStore) -> None:
    store._writer_cache.positions = RowPositions(limit=4)
    rows: dict[int, ExecutionRow] = {number: make_row(number) for number in range(40)}
    await commit(store, *[make_start(row) for row in rows.values()])
    source = random.Random(7)

    for _ in range(30):
        turns = {number: make_turn(rows[number]) for number in source.sample(range(40), 9)}
        assert await commit(store, *turns.values()) == set()
        rows |= {number: turn.row for number, turn in turns.items()}

    assert await store.check() == []
    for number, row in rows.items():
        assert await store.find_execution(ORG, id_of(number)) == row


async def test_a_row_at_a_known_version_is_not_read_again(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)))

    claimed = await look(store, want(1, known_version=1))

    assert (claimed.held, claimed.rows) == ({id_of(1)}, {})


async def test_a_row_at_another_version_than_known_is_read(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)))
    following = make_turn(make_row(1)).row
    assert await store.set_status(ORG, id_of(1), 1, following)

    claimed = await look(store, want(1, known_version=1))

    assert claimed.rows == {id_of(1): following}


async def test_an_execution_that_closed_is_not_held_at_any_version(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)))
    closing = make_closing(make_row(1))
    await commit(store, closing)
    assert await commit(store, make_turn(closing.row)) == {id_of(1)}

    claimed = await look(store, Claim(wanted=[Wanted(ORG, id_of(1), version) for version in (1, 2, -1)]))

    assert (claimed.held, claimed.rows) == (set(), {})


async def test_what_was_rolled_back_is_forgotten(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1)))
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1)), make_start(make_row(2))], UnroutedWrite())
    await transaction.rollback()

    assert (await look(store, want(1, 2, known_version=2))).held == {id_of(1)}
    assert await commit(store, make_turn(make_row(1)), make_start(make_row(2))) == set()
    assert await store.check() == []


async def test_a_lost_turn_leaves_no_trace_in_memory(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))
    late = make_start(make_row(2, workflow_id="order"), timers=[make_timer(1, due=5, of=2)])
    assert await commit(store, late) == {id_of(2)}

    assert (await look(store, want(2, known_version=1))).held == set()
    assert await commit(store, make_turn(late.row)) == {id_of(2)}
    assert await store.find_next_due(()) is None


# --- timers ---------------------------------------------------------------------------------------------------------------


async def find_due(store: SqliteStore, before: int) -> list[int]:
    claimed = await look(store, Claim(limit=10, due_until=NOW + before))
    return [timer.number for timer in claimed.due]


async def test_timers_are_found_again_after_a_rollback(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1), timers=[make_timer(1, due=0)]))
    assert await find_due(store, -1) == []
    transaction = await store.begin()
    await transaction.write([make_turn(make_row(1), ended_timers=[1])], UnroutedWrite())
    assert (await transaction.claim(Claim(limit=10, due_until=NOW))).due == []
    await transaction.rollback()

    assert await find_due(store, 0) == [1]


async def test_timers_are_found_in_whatever_order_they_come_and_go(store: SqliteStore) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=30), make_timer(2, due=20)]))
    assert await find_due(store, 10_000_000) == []

    turn = make_turn(row, timers=[make_timer(3, due=10)])
    await commit(store, turn)
    assert await find_due(store, 10_000_000) == [3]

    await commit(store, make_turn(turn.row, ended_timers=[3]))
    assert await find_due(store, 10_000_000) == []
    assert await find_due(store, 30_000_000) == [2, 1]


async def test_a_timer_that_no_claim_may_take_does_not_hide_others(store: SqliteStore) -> None:
    await commit(store, make_start(make_row(1), timers=[make_timer(1, due=1)]))
    await commit(store, make_start(make_row(2), timers=[make_timer(2, due=2, of=2)]))

    for _ in range(2):
        claimed = await look(store, Claim(limit=10, due_until=NOW + 10_000_000, skip=[id_of(1)]))
        assert [timer.number for timer in claimed.due] == [2]


# --- inbox ----------------------------------------------------------------------------------------------------------------


async def test_the_inbox_is_counted_right_over_commits_rollbacks_and_reopening(store: SqliteStore) -> None:
    async def count() -> int:
        stored = (await store.count()).inbox
        assert store._writer_cache.inbox_rows == stored == len(await read_inbox(store))
        return stored

    await commit(store, make_start(make_row(1), outgoing=[make_signal("one"), make_signal("two")]))
    assert await count() == 2
    assert await store.deliver([make_signal("three"), make_signal("lost", 9)]) == [True, False]
    assert await count() == 3

    transaction = await store.begin()
    await transaction.write([], UnroutedWrite(consumed=[1, 2, 99], outgoing=[make_signal("four")]))
    assert len((await transaction.claim(Claim(limit=10))).inbox) == 2
    await transaction.rollback()
    assert await count() == 3

    await commit_unrouted(store, consumed=[1, 2, 99])
    assert await count() == 1
    await store.close()
    await store.open()
    assert await count() == 1
    await commit_unrouted(store, consumed=[3])
    assert await count() == 0


async def test_ids_of_the_inbox_are_never_used_again(store: SqliteStore) -> None:
    await commit_unrouted(store, make_signal("one"), make_signal("two"))
    await commit_unrouted(store, consumed=[1, 2])
    await store.close()
    await store.open()

    await commit_unrouted(store, make_signal("three"))

    assert [row.id for row in await read_inbox(store)] == [3]


# --- batches of any size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 127, 128, 129, 300])
async def test_a_batch_of_any_size_is_written_whole(store: SqliteStore, size: int) -> None:
    rows = [make_row(number) for number in range(size)]
    starts = [make_start(row, timers=[make_timer(1, due=9, of=number)]) for number, row in enumerate(rows)]
    turns = [make_turn(row, outgoing=[make_signal("on")], ended_timers=[1]) for row in rows]

    assert await commit(store, *starts) == set()
    assert await commit(store, *turns) == set()

    assert await store.check() == []
    counts = await store.count()
    assert (counts.executions, counts.timers, counts.inbox) == ({"suspended": size}, 0, size)


async def test_in_a_large_batch_only_the_losers_are_left_out(store: SqliteStore) -> None:
    rows = [make_row(number) for number in range(200)]
    await commit(store, *[make_start(row) for row in rows[:150]])
    await commit(store, *[make_turn(row) for row in rows[:150:10]])
    taken = [make_start(make_row(number, workflow_id="order-1")) for number in (500, 501)]

    turns = [make_turn(row, outgoing=[make_signal("on")]) for row in rows[:150]]
    lost = await commit(store, *taken, *turns, *[make_start(row) for row in rows[140:]])

    assert lost == {id_of(number) for number in [500, 501, *range(0, 150, 10), *range(140, 150)]}
    assert (await store.count()).inbox == 150 - 15 - 10 + 1
    assert await store.check() == []
