"""Offered activities: each is taken by one node that can run it, and ends with its execution."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.rows import ActivityRow, NodeRow
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    begin_with,
    commit,
    id_of,
    look,
    make_closing,
    make_offer,
    make_offer_timer,
    make_retry,
    make_row,
    make_start,
    make_timer,
    make_turn,
    want,
)
from tests.store.conftest import Backend


async def offer(store: Store, *offers: ActivityRow, of: int = 1) -> None:
    await commit(store, make_start(make_row(of), offered=offers))


def numbers_of(offers: list[ActivityRow]) -> list[int]:
    return [one.number for one in offers]


# --- taking ---


async def test_an_offer_is_taken_once_as_it_was_made(store: Store) -> None:
    made = ActivityRow(ORG, id_of(1), 7, 2, "mail", b"\x00 whatever \xff")
    await offer(store, made)

    taken = await store.take_offers("b", ["mail"], 10)
    again = await store.take_offers("c", ["mail"], 10)

    assert taken == [msgspec.structs.replace(made, node="b")]
    assert again == []


async def test_offers_that_nobody_has_are_locked_until_the_transaction_ends(store: Store) -> None:
    await offer(store, make_offer(1), make_offer(2), make_offer(3))
    taken = await store.take_offers("b", (), 1)
    transaction = await store.begin()

    free = await transaction.lock_offers([(id_of(1), 1), (id_of(1), 2), (id_of(1), 9), (id_of(2), 1)])
    meanwhile = [] if store.exclusive else await store.take_offers("b", (), 10)
    await transaction.rollback()
    afterwards = await store.take_offers("c", (), 10)

    assert free == {(id_of(1), 2)}
    assert numbers_of([*taken, *meanwhile, *afterwards]) == ([1, 2, 3] if store.exclusive else [1, 3, 2])


async def test_offer_that_another_transaction_holds_is_not_locked(left: Store, right: Store) -> None:
    await offer(left, make_offer(1))
    first, second = await left.begin(), await right.begin()
    locked = await first.lock_offers([(id_of(1), 1)])

    free = await second.lock_offers([(id_of(1), 1)])

    await second.rollback()
    await first.rollback()
    assert (locked, free) == ({(id_of(1), 1)}, set())


async def test_offers_are_taken_by_their_routes(store: Store) -> None:
    await offer(store, make_offer(1, "mail"), make_offer(2, "pdf"), make_offer(3))

    taken = [numbers_of(await store.take_offers("b", routes, 10)) for routes in ([], ["mail", "unused"], ["mai"], ["pdf"])]

    assert taken == [[3], [1], [], [2]]


async def test_the_oldest_offers_are_taken_first(store: Store) -> None:
    await offer(store, make_offer(5), make_offer(2))
    await offer(store, make_offer(3, of=2), of=2)

    taken = [numbers_of(await store.take_offers("b", (), limit)) for limit in (1, 0, 10)]

    assert taken == [[5], [], [2, 3]]


async def test_offers_of_every_org_are_taken(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1), offered=[make_offer(1)]),
        make_start(make_row(2, org=OTHER), offered=[make_offer(1, of=2, org=OTHER)]),
    )

    taken = await store.take_offers("b", (), 10)

    assert {(one.org, one.execution_id) for one in taken} == {(ORG, id_of(1)), (OTHER, id_of(2))}


async def test_offers_of_one_execution_are_listed_by_number_with_who_took_them(store: Store) -> None:
    await offer(store, make_offer(5), make_offer(2))
    await offer(store, make_offer(3, of=2), of=2)
    await store.take_offers("b", (), 1)

    listed = await store.list_offers(id_of(1))

    assert [(one.number, one.node) for one in listed] == [(2, None), (5, "b")]
    assert listed[0] == make_offer(2)
    assert await store.list_offers(id_of(3)) == []


async def test_what_was_taken_is_durable(backend: Backend) -> None:
    store = await backend.connect()
    await offer(store, make_offer(1), make_offer(2))
    await store.take_offers("b", (), 1)
    await store.close()

    again = await backend.connect()

    assert numbers_of(await again.list_lost_offers([], 10)) == [1]
    assert numbers_of(await again.take_offers("c", (), 10)) == [2]


async def test_an_activity_is_no_longer_timed_while_it_waits_once_it_is_taken(store: Store) -> None:
    waiting = make_offer_timer(1, due=5)
    others = [make_timer(2, due=5), make_retry(3, due=5, attempt=2), make_offer_timer(4, due=5)]
    elsewhere = make_offer_timer(1, due=5, of=2)
    await commit(
        store,
        make_start(make_row(1), offered=[make_offer(1), make_offer(2), make_offer(3)], timers=[waiting, *others]),
        make_start(make_row(2), timers=[elsewhere]),
    )

    await store.take_offers("b", (), 10)

    left = (await look(store, Claim(limit=10, due_until=NOW * 2))).due
    assert sorted(left, key=lambda timer: (timer.execution_id, timer.number)) == [*others, elsewhere]


async def test_the_timers_of_offers_that_were_not_taken_remain(store: Store) -> None:
    timers = [make_offer_timer(number, due=number) for number in (1, 2)]
    await commit(store, make_start(make_row(1), offered=[make_offer(1), make_offer(2)], timers=timers))

    await store.take_offers("b", (), 1)

    assert (await look(store, Claim(limit=10, due_until=NOW * 2))).due == timers[1:]


# --- offering ---


async def test_what_was_rolled_back_or_lost_offers_nothing(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction, _ = await begin_with(store, want(1))
    await transaction.write([make_turn(row, offered=[make_offer(1)])], UnroutedWrite())
    await transaction.rollback()

    stale = make_turn(msgspec.structs.replace(row, state_version=7), offered=[make_offer(2)])
    lost = await commit(store, stale)

    assert lost == {id_of(1)}
    assert await store.take_offers("b", (), 10) == []


async def test_a_new_offer_replaces_what_was_offered_under_its_number(store: Store) -> None:
    row = make_row(1)
    await offer(store, make_offer(1, "mail"), make_offer(2, "mail"))
    await store.take_offers("b", ["mail"], 1)

    await commit(store, make_turn(row, offered=[make_offer(1, "pdf", attempt=2), make_offer(2, attempt=2)]))

    assert await store.list_lost_offers([], 10) == []
    assert await store.take_offers("c", ["mail"], 1) == [msgspec.structs.replace(make_offer(2, attempt=2), node="c")]
    assert await store.take_offers("c", ["pdf"], 1) == [msgspec.structs.replace(make_offer(1, "pdf", attempt=2), node="c")]


async def test_a_replaced_offer_is_the_newest(store: Store) -> None:
    await offer(store, make_offer(1), make_offer(2))

    await commit(store, make_turn(make_row(1), offered=[make_offer(1, attempt=2)]))

    assert numbers_of(await store.take_offers("b", (), 10)) == [2, 1]


@pytest.mark.parametrize("is_taken", [False, True])
async def test_an_offer_can_be_withdrawn(store: Store, is_taken: bool) -> None:
    await offer(store, make_offer(1), make_offer(2))
    await offer(store, make_offer(1, of=2), of=2)
    if is_taken:
        await store.take_offers("b", (), 10)

    await commit(store, make_turn(make_row(1), withdrawn=[1, 99]))

    left = await (store.list_lost_offers([], 10) if is_taken else store.take_offers("b", (), 10))
    assert [(one.execution_id, one.number) for one in left] == [(id_of(1), 2), (id_of(2), 1)]


async def test_what_a_turn_withdraws_and_offers_is_offered(store: Store) -> None:
    await offer(store, make_offer(1))
    await store.take_offers("b", (), 10)

    await commit(store, make_turn(make_row(1), withdrawn=[1, 2], offered=[make_offer(1, attempt=2), make_offer(2)]))

    assert [(one.number, one.attempt) for one in await store.take_offers("c", (), 10)] == [(1, 2), (2, 1)]


@pytest.mark.parametrize("is_taken", [False, True])
async def test_an_execution_that_closes_leaves_no_offers(store: Store, is_taken: bool) -> None:
    await offer(store, make_offer(1), make_offer(2))
    await offer(store, make_offer(3, of=2), of=2)
    if is_taken:
        await store.take_offers("b", (), 10)

    await commit(store, make_closing(make_row(1), offered=[make_offer(4)]))

    left = await (store.list_lost_offers([], 10) if is_taken else store.take_offers("b", (), 10))
    assert numbers_of(left) == [3]
    assert await store.check() == []


async def test_an_execution_that_closes_with_its_first_turn_offers_nothing(store: Store) -> None:
    closed = make_row(1, status=Status.COMPLETED, closed_at=NOW)

    await commit(store, make_start(closed, offered=[make_offer(1)]))

    assert await store.take_offers("b", (), 10) == []


async def test_an_offer_of_a_closed_execution_is_a_contradiction(store: Store) -> None:
    row = make_row(1)
    await offer(store, make_offer(1))

    await store.set_status(ORG, id_of(1), 1, make_closing(row, Status.TERMINATED, events=0).row)

    [problem] = await store.check()
    assert id_of(1) in problem


async def test_an_offer_of_an_execution_that_is_not_there_is_a_contradiction(store: Store) -> None:
    await commit(store, make_start(make_row(1), offered=[make_offer(1, of=9)]))

    [problem] = await store.check()
    assert id_of(9) in problem


# --- what becomes of those that were taken ---


async def test_activities_of_nodes_that_are_not_alive_are_lost(store: Store) -> None:
    await offer(store, *(make_offer(number) for number in range(1, 6)))
    for node, count in (("b", 2), ("c", 1), ("d", 1)):
        await store.take_offers(node, (), count)

    lost = [numbers_of(await store.list_lost_offers(alive, 10)) for alive in (["b", "c", "d"], ["c"], [], ["B"])]
    first = numbers_of(await store.list_lost_offers([], 3))

    assert lost == [[], [1, 2, 4], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert first == [1, 2, 3]


async def test_a_node_finds_out_what_is_no_longer_its_own(store: Store) -> None:
    await offer(store, *(make_offer(number) for number in range(1, 6)))
    await store.take_offers("b", (), 4)
    await commit(store, make_turn(make_row(1), withdrawn=[1, 2, 3], offered=[make_offer(2, attempt=2), make_offer(3)]))
    await store.take_offers("c", (), 10)
    held = [(id_of(1), number, 1) for number in (1, 2, 3, 4, 9)] + [(id_of(2), 4, 1)]

    withdrawn = await store.find_withdrawn("b", held)

    assert withdrawn == set(held) - {(id_of(1), 4, 1)}
    assert await store.find_withdrawn("c", [(id_of(1), 2, 2), (id_of(1), 3, 1), (id_of(1), 2, 1)]) == {(id_of(1), 2, 1)}
    assert await store.find_withdrawn("b", []) == set()


async def test_a_heartbeat_tells_of_offers_that_nobody_has(store: Store) -> None:
    await offer(store, make_offer(1, "mail"))
    beat = NodeRow("b", NOW, NOW)

    heard = [
        (await store.beat(beat, routes, offers)).has_offers
        for routes, offers in (((), ["mail"]), (["mail"], ["pdf"]), ((), ()))
    ]
    await store.take_offers("c", ["mail"], 10)

    assert heard == [True, False, False]
    assert (await store.beat(beat, (), ["mail"])).has_offers is False


async def test_a_heartbeat_tells_of_offers_for_anybody(store: Store) -> None:
    await offer(store, make_offer(1))

    pulse = await store.beat(NodeRow("b", NOW, NOW), (), ())

    assert pulse.has_offers is True


# --- several at once ---


async def test_nodes_that_take_at_once_never_take_the_same(left: Store, right: Store) -> None:
    await offer(left, *(make_offer(number) for number in range(20)))

    shares = await asyncio.gather(
        *(store.take_offers(node, (), 5) for _ in range(3) for store, node in ((left, "left"), (right, "right")))
    )
    rest = await left.take_offers("left", (), 20)

    taken = [one.number for share in (*shares, rest) for one in share]
    assert sorted(taken) == list(range(20))


async def test_an_offer_that_a_turn_is_ending_is_left_out_without_waiting(left: Store, right: Store) -> None:
    row = make_row(1)
    await offer(left, make_offer(1), make_offer(2))
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_turn(row, withdrawn=[1])], UnroutedWrite())

    meanwhile = await right.take_offers("right", (), 10)
    await transaction.rollback()
    afterwards = await right.take_offers("right", (), 10)

    assert (numbers_of(meanwhile), numbers_of(afterwards)) == ([2], [1])


async def test_what_is_offered_is_not_there_before_the_commit(left: Store, right: Store) -> None:
    transaction = await left.begin()
    await transaction.write([make_start(make_row(1), offered=[make_offer(1)])], UnroutedWrite())

    before = await right.take_offers("right", (), 10)
    await transaction.commit()
    after = await right.take_offers("right", (), 10)

    assert (numbers_of(before), numbers_of(after)) == ([], [1])


async def test_a_turn_that_withdraws_what_is_being_taken_has_the_last_word(left: Store, right: Store) -> None:
    row = make_row(1)
    await offer(left, *(make_offer(number) for number in range(10)))

    async def withdraw() -> set[str]:
        return await commit(left, make_turn(row, withdrawn=range(10)))

    lost, taken = await asyncio.gather(withdraw(), right.take_offers("right", (), 10))

    held = [(one.execution_id, one.number, one.attempt) for one in taken]
    assert lost == set()
    assert await right.find_withdrawn("right", held) == set(held)
    assert await right.take_offers("right", (), 10) == []
