"""Pauses of workflows and queues, and the number by which turns are lost that were taken before."""

from __future__ import annotations

import asyncio

from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.pauses import PauseRow
from tests.store.builders import NOW, ORG, commit, make_offer, make_row, make_start, make_turn

PAUSE = PauseRow(ORG, "workflow", "order", 7, "ann", "why")


async def test_a_pause_is_put_once_and_ended_once(store: Store) -> None:
    before = await store.read_settings()

    assert await store.put_pause(PAUSE)
    assert not await store.put_pause(PauseRow(ORG, "workflow", "order", 9, "bob"))
    paused = await store.read_settings()
    assert await store.end_pause(ORG, "workflow", "order", 8)
    assert not await store.end_pause(ORG, "workflow", "order", 8)
    after = await store.read_settings()

    assert (before.number, list(before.pauses)) == (0, [])
    assert list(paused.pauses) == [PAUSE]
    assert list(after.pauses) == []
    assert before.number < paused.number < after.number


async def test_turns_by_another_settings_number_are_lost(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await store.put_pause(PAUSE)
    number = (await store.read_settings()).number
    transaction = await store.begin()

    turn, start = make_turn(row), make_start(make_row(2))
    lost = await transaction.write([turn, start], UnroutedWrite(settings=0))
    kept = await transaction.write([turn, start], UnroutedWrite(settings=number))
    await transaction.commit()

    assert lost == {turn.row.execution_id, start.row.execution_id}
    assert kept == set()


async def test_X1_a_pause_between_two_writes_of_a_transaction_waits_for_both(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction = await store.begin()

    first = await transaction.write([make_turn(row)], UnroutedWrite(settings=0))
    pausing = asyncio.create_task(store.put_pause(PAUSE))
    while not store.exclusive and not (await store.read_settings()).number:
        await asyncio.sleep(0)
    second = await transaction.write([make_start(make_row(2))], UnroutedWrite(settings=0))
    has_waited = not pausing.done()
    await transaction.commit()

    assert await pausing
    assert (first, second, has_waited) == (set(), set(), True)


async def test_offers_of_a_paused_queue_are_not_given_out(store: Store) -> None:
    await commit(store, make_start(make_row(1), offered=[make_offer(1, "slow\tcharge"), make_offer(2, "quick\tcharge")]))
    await store.put_pause(PauseRow(ORG, "queue", "slow", 7))

    taken = await store.take_offers("node", ["slow\tcharge", "quick\tcharge"], 10)
    await store.end_pause(ORG, "queue", "slow", 8)
    more = await store.take_offers("node", ["slow\tcharge", "quick\tcharge"], 10)

    assert [row.number for row in taken] == [2]
    assert [row.number for row in more] == [1]


async def test_concurrent_pauses_raise_the_number_each(store: Store) -> None:
    rows = [PauseRow(ORG, "queue", f"q{number}", 1) for number in range(5)]

    assert all(await asyncio.gather(*map(store.put_pause, rows)))

    settings = await store.read_settings()
    assert settings.number >= 5
    assert list(settings.pauses) == rows


async def test_number_is_the_time_of_the_change_where_that_is_greater(store: Store) -> None:
    await store.put_pause(PauseRow(ORG, "queue", "a", NOW))
    first = (await store.read_settings()).number
    await store.put_pause(PauseRow(ORG, "queue", "b", NOW - 1))

    assert (first, (await store.read_settings()).number) == (NOW, NOW + 1)


async def test_check_says_what_is_paused_that_only_a_newer_version_knows(store: Store) -> None:
    await store.put_pause(PAUSE)
    assert (await store.check(), await store.list_newer()) == ([], [])

    await store.put_pause(PauseRow(ORG, "tenant", "acme", 7))

    assert await store.check() == []
    [sentence] = await store.list_newer()
    assert "pause of tenant 'acme'" in sentence
