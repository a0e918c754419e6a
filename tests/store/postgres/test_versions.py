"""Rule 3: versions first, and only the winners' rows; nothing in a batch raises for one of its turns."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.store.builders import (
    ORG,
    begin_with,
    commit,
    id_of,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    read_row,
    want,
)
from tests.store.postgres.watching import Watch


async def test_turn_whose_version_moves_on_while_it_waits_is_lost_alone(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    rows = [make_row(1), make_row(2)]
    await commit(left, *map(make_start, rows))
    quicker, slower = await left.begin(), await right.begin()
    newer = make_turn(rows[0])
    await quicker.write([newer], UnroutedWrite())

    stale = make_turn(rows[0], outgoing=[make_signal("stale", 2)], timers=[make_timer(1, due=5)])
    writing = asyncio.create_task(slower.write([stale, make_turn(rows[1])], UnroutedWrite()))
    await watch.until_waiting()
    await quicker.commit()
    lost = await writing
    await slower.commit()

    assert lost == {id_of(1)}
    assert await read_row(left, 1) == newer.row
    assert (await read_row(left, 2)).state_version == 2
    assert await read_inbox(left) == []
    assert await watch.fetch("SELECT * FROM timers") == []
    assert await watch.value("SELECT count(*) FROM events") == 4


@pytest.mark.parametrize("wins", [True, False], ids=["the first commits", "the first gives up"])
@pytest.mark.parametrize("same", ["workflow id", "execution id"])
async def test_of_two_starts_at_once_the_second_waits_and_raises_nothing(
    left: PostgresStore, right: PostgresStore, watch: Watch, same: str, wins: bool
) -> None:
    first = make_row(1, workflow_id="order")
    second = make_row(1, workflow_id="another") if same == "execution id" else make_row(2, workflow_id="order")
    one, other = await left.begin(), await right.begin()
    assert await one.write([make_start(first)], UnroutedWrite()) == set()

    writing = asyncio.create_task(other.write([make_start(second), make_start(make_row(3))], UnroutedWrite()))
    await watch.until_waiting()
    await (one.commit() if wins else one.rollback())
    lost = await writing
    await other.commit()

    assert lost == ({second.execution_id} if wins else set())
    assert (await read_row(left, 3)).state_version == 1
    found = await left.find_latest(ORG, "order")
    assert (found is not None and found.execution_id == first.execution_id) or not wins
    assert await left.check() == []


@pytest.mark.parametrize("wins", [True, False], ids=["it commits", "it gives up"])
async def test_closing_and_restart_in_one_batch_keep_the_workflow_id_from_others(
    left: PostgresStore, right: PostgresStore, watch: Watch, wins: bool
) -> None:
    row = make_row(1, workflow_id="order")
    await commit(left, make_start(row))
    one, other = await left.begin(), await right.begin()
    following = make_row(2, workflow_id="order")
    assert await one.write([make_start(following), make_closing(row)], UnroutedWrite()) == set()

    writing = asyncio.create_task(other.write([make_start(make_row(3, workflow_id="order"))], UnroutedWrite()))
    await watch.until_waiting()
    await (one.commit() if wins else one.rollback())
    lost = await writing
    await other.commit()

    latest = await left.find_latest(ORG, "order")
    assert lost == {id_of(3)}
    assert latest is not None
    assert latest.execution_id == id_of(2 if wins else 1)
    assert await left.check() == []


async def test_starters_keep_clear_of_each_other_by_the_lock_on_the_workflow_id(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    claim = Claim(workflow_ids=[(ORG, "order")])
    one, first = await begin_with(left, claim)
    other, second = await begin_with(right, claim)
    await one.write([make_start(make_row(1, workflow_id="order"))], UnroutedWrite())
    await one.commit()

    again = await other.claim(claim)
    await other.rollback()

    assert (first.open_ids, second.open_ids) == ({(ORG, "order"): None}, {})
    assert again.open_ids == {(ORG, "order"): id_of(1)}
    assert await watch.count_waiting() == 0


async def test_the_same_workflow_id_twice_in_one_batch_is_decided_by_the_order(left: PostgresStore) -> None:
    one, other = make_row(1, workflow_id="order"), make_row(2, workflow_id="order")

    lost = await commit(left, make_start(one), make_start(other, outgoing=[make_signal("of the loser", 9)]))

    assert lost == {id_of(2)}
    assert await read_row(left, 1) == one
    assert names_of(await read_inbox(left)) == []


async def test_a_batch_of_losers_commits_what_is_loose(left: PostgresStore, right: PostgresStore) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    await commit(right, make_turn(row))
    transaction, _ = await begin_with(left, want(9))

    lost = await transaction.write([make_turn(row)], UnroutedWrite(outgoing=[make_signal("loose", 1)]))
    await transaction.commit()

    assert lost == {id_of(1)}
    assert names_of(await read_inbox(right)) == ["loose"]
