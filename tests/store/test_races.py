"""Two nodes in a hurry: whoever comes second loses its turn, never an envelope."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_letter,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
    want,
)

# --- a delivery and a closing turn ---


async def test_a_delivery_passes_while_another_node_holds_the_execution(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, claimed = await begin_with(left, want(1))

    delivered = await right.deliver([make_signal("hello", 1)])
    lost = await transaction.write([make_turn(row)], UnroutedWrite())
    await transaction.commit()

    assert delivered == [True]
    assert claimed.inbox == []
    assert lost == set()
    assert names_of(await read_inbox(right)) == ["hello"]


async def test_a_delivery_before_the_closing_makes_the_closing_lose(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))

    delivered = await right.deliver([make_signal("hello", 1)])
    lost = await transaction.write([make_closing(row)], UnroutedWrite())
    await transaction.commit()

    assert delivered == [True]
    assert lost == {id_of(1)}
    assert (await read_row(right)).status == Status.RUNNING
    assert names_of(await read_inbox(right)) == ["hello"]


async def test_a_delivery_after_the_closing_is_refused(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    lost = await transaction.write([make_closing(row)], UnroutedWrite())

    delivery = asyncio.create_task(right.deliver([make_signal("hello", 1)]))
    await transaction.commit()
    delivered = await delivery

    assert lost == set()
    assert delivered == [False]
    assert await read_inbox(right) == []


async def test_a_delivery_after_a_closing_that_is_given_up_is_accepted(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_closing(row)], UnroutedWrite())

    delivery = asyncio.create_task(right.deliver([make_signal("hello", 1)]))
    await transaction.rollback()
    delivered = await delivery

    assert delivered == [True]
    assert names_of(await read_inbox(right)) == ["hello"]


@pytest.mark.parametrize("delay", range(8))
async def test_a_delivery_beside_a_closing_is_never_lost(left: Store, right: Store, delay: int) -> None:
    row = make_row(1)
    await commit(left, make_start(row))

    async def close() -> set[str]:
        for _ in range(delay):
            await left.find_execution(ORG, id_of(9))
        transaction, claimed = await begin_with(left, want(1))
        consumed = [one.id for one in claimed.inbox]
        lost = await transaction.write([make_closing(row, consumed=consumed)], UnroutedWrite())
        await transaction.commit()
        return lost

    lost, delivered = await asyncio.gather(close(), right.deliver([make_signal("hello", 1)]))

    row_after, inbox = await read_row(left), await read_inbox(left)
    if row_after.status == Status.COMPLETED:
        assert inbox == []  # it was refused, or the closing turn took it
    else:
        assert lost == {id_of(1)}
        assert delivered == [True]
        assert names_of(inbox) == ["hello"]


async def test_what_another_batch_sends_before_the_closing_makes_the_closing_lose(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, claimed = await begin_with(left, want(1))
    await commit_unrouted(right, make_signal("child closed", 1))

    lost = await transaction.write([make_closing(row, consumed=[one.id for one in claimed.inbox])], UnroutedWrite())
    await transaction.commit()

    assert lost == {id_of(1)}
    assert names_of(await read_inbox(right)) == ["child closed"]


async def test_what_another_batch_sends_after_the_closing_waits_to_be_answered(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    sender = await right.begin()
    await sender.write([], UnroutedWrite(outgoing=[make_signal("child closed", 1)]))
    transaction, _ = await begin_with(left, want(1))

    lost = await transaction.write([make_closing(row)], UnroutedWrite())
    await transaction.commit()
    await sender.commit()

    assert lost == set()
    claimed = await look(right, Claim(limit=10))
    assert names_of(claimed.inbox) == ["child closed"]
    assert claimed.held == set()


async def test_a_lost_closing_is_taken_again_with_what_it_had_not_seen(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    await right.deliver([make_signal("hello", 1)])
    first = await transaction.write([make_closing(row)], UnroutedWrite())
    await transaction.commit()

    transaction, claimed = await begin_with(right, want(1))
    consumed = [one.id for one in claimed.inbox]
    second = await transaction.write([make_closing(row, consumed=consumed)], UnroutedWrite())
    await transaction.commit()

    assert (first, second) == ({id_of(1)}, set())
    assert (await read_row(left)).status == Status.COMPLETED
    assert await read_inbox(left) == []


# --- two starts ---


async def test_a_workflow_id_that_is_being_started_is_missing_for_others(left: Store, right: Store) -> None:
    transaction, first = await begin_with(left, Claim(workflow_ids=[(ORG, "order")]))

    while_starting = await look(right, Claim(workflow_ids=[(ORG, "order"), (OTHER, "order"), (ORG, "another")]))
    await transaction.write([make_start(make_row(1, workflow_id="order"))], UnroutedWrite())
    await transaction.commit()
    afterwards = await look(right, Claim(workflow_ids=[(ORG, "order")]))

    assert first.open_ids == {(ORG, "order"): None}
    assert while_starting.open_ids == {(OTHER, "order"): None, (ORG, "another"): None}
    assert afterwards.open_ids == {(ORG, "order"): id_of(1)}


async def test_a_start_that_is_given_up_leaves_the_id_to_others(left: Store, right: Store) -> None:
    transaction, _ = await begin_with(left, Claim(workflow_ids=[(ORG, "order")]))
    await transaction.write([make_start(make_row(1, workflow_id="order"))], UnroutedWrite())
    await transaction.rollback()

    claimed = await look(right, Claim(workflow_ids=[(ORG, "order")]))

    assert claimed.open_ids == {(ORG, "order"): None}


async def test_a_start_is_lost_if_another_node_started_the_id_since_it_was_read(left: Store, right: Store) -> None:
    transaction = await left.begin()
    latest = await transaction.read_latest(ORG, "order")
    await commit(right, make_start(make_row(2, workflow_id="order")))

    lost = await transaction.write([make_start(make_row(1, workflow_id="order")), make_start(make_row(3))], UnroutedWrite())
    await transaction.commit()

    assert latest is None
    assert lost == {id_of(1)}
    assert await read_row(right, 3) == make_row(3)


async def test_of_fifty_concurrent_starts_of_one_id_one_wins(left: Store, right: Store) -> None:
    async def start(store: Store, number: int) -> bool:
        while True:
            transaction, claimed = await begin_with(store, Claim(workflow_ids=[(ORG, "order")]))
            if (ORG, "order") not in claimed.open_ids:
                await transaction.rollback()
                continue
            if claimed.open_ids[ORG, "order"] is not None:
                await transaction.rollback()
                return False
            lost = await transaction.write([make_start(make_row(number, workflow_id="order"))], UnroutedWrite())
            await transaction.commit()
            return not lost

    results = await asyncio.gather(*[start(left if number % 2 else right, number) for number in range(1, 51)])

    assert results.count(True) == 1
    assert await left.check() == []


async def test_the_open_execution_of_an_id_may_be_held_by_another_node(left: Store, right: Store) -> None:
    await commit(left, make_start(make_row(1, workflow_id="order")))
    transaction, _ = await begin_with(left, want(1))

    claimed = await look(right, Claim(workflow_ids=[(ORG, "order")]))
    await transaction.rollback()

    assert claimed.open_ids == {(ORG, "order"): id_of(1)}
    assert claimed.held == set()


# --- two of anything else ---


async def test_a_change_of_status_beside_a_turn_leaves_one_of_them(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    turn = make_turn(row)
    await transaction.write([turn], UnroutedWrite())

    change = asyncio.create_task(right.set_status(ORG, id_of(1), 1, make_turn(row, Status.PAUSED).row))
    await transaction.commit()
    changed = await change

    assert changed is False
    assert await read_row(right) == turn.row


async def test_a_dead_letter_that_two_nodes_requeue_is_requeued_once(left: Store, right: Store) -> None:
    await commit_unrouted(left, dead_letters=[make_letter(name) for name in ("a", "b")])
    ids = [row.id for row in await left.list_dead_letters(ORG)]

    counts = await asyncio.gather(
        left.requeue_dead_letters(ORG, ids), right.requeue_dead_letters(ORG, ids), left.discard_dead_letters(ORG, ids)
    )

    assert sum(counts) == 2
    assert await left.list_dead_letters(ORG) == []


async def test_a_dead_letter_that_is_requeued_while_others_purge_goes_one_way(left: Store, right: Store) -> None:
    await commit_unrouted(left, dead_letters=[make_letter(name) for name in "abcdef"])
    ids = [row.id for row in await left.list_dead_letters(ORG)]

    purged, requeued, discarded = await asyncio.gather(
        right.purge_dead_letters(NOW * 2, 10),
        left.requeue_dead_letters(ORG, ids[:2]),
        right.discard_dead_letters(ORG, ids[2:4]),
    )
    rest = await left.purge_dead_letters(NOW * 2, 10)

    assert purged + requeued + discarded + rest == 6
    assert (await right.count()).dead_letters == 0
    assert (await right.count()).inbox == requeued
