"""In whatever order two or three nodes reach the database, no envelope is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.user_transactions import MemoryConnection
from tests.store.builders import (
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_offer,
    make_offer_timer,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
    want,
)
from tests.store.memory.interleaving import Interleaver

orders = st.lists(st.integers(0, 2), max_size=40)


def follow(order: list[int]) -> Callable[[int], int]:
    """Picks by the list while it lasts, then the first."""
    picks = iter(order)
    return lambda count: next(picks, 0) % count


async def open_nodes(interleaver: Interleaver, *names: str) -> list[MemoryStore]:
    stores = [MemoryStore(interleaver.database, node=name) for name in names]
    for store in stores:
        await store.open()
    return stores


async def try_to_close(store: Store) -> tuple[bool, list[str]]:
    """Claim, and close with what the claim found; whether it closed, and over what."""
    transaction, claimed = await begin_with(store, want(1))
    if id_of(1) not in claimed.held:
        await transaction.rollback()
        return False, []
    taken = [row.id for row in claimed.inbox]
    lost = await transaction.write([make_closing(claimed.rows[id_of(1)], consumed=taken)], UnroutedWrite())
    await transaction.commit()
    return not lost, names_of(claimed.inbox) if not lost else []


@given(orders)
@settings(deadline=None)
def test_every_delivery_is_refused_or_taken_or_still_there(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        closer, first, second = await open_nodes(interleaver, "closer", "first", "second")
        await commit(closer, make_start(make_row(1)))

        (is_closed, taken), [one], [other] = await interleaver.run(
            try_to_close(closer), first.deliver([make_signal("one", 1)]), second.deliver([make_signal("other", 1)])
        )

        delivered = {name for name, was in (("one", one), ("other", other)) if was}
        waiting = names_of(await read_inbox(closer))
        assert sorted([*taken, *waiting]) == sorted(delivered)
        assert not (is_closed and waiting)
        assert ((await read_row(closer)).status == Status.COMPLETED) is is_closed
        assert interleaver.database.locks.count() == 0

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_every_envelope_that_a_batch_sends_is_taken_or_still_there(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        closer, sender = await open_nodes(interleaver, "closer", "sender")
        await commit(closer, make_start(make_row(1)))

        (_, taken), _ = await interleaver.run(try_to_close(closer), commit_unrouted(sender, make_signal("sent", 1)))

        assert [*taken, *names_of(await read_inbox(closer))] == ["sent"]

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_an_envelope_is_handled_once_by_one_of_three_nodes(order: list[int]) -> None:
    async def handle(store: Store) -> list[str]:
        transaction, claimed = await begin_with(store, Claim(limit=2))
        turns = [
            make_turn(row, consumed=[one.id for one in claimed.inbox if one.execution_id == row.execution_id])
            for row in claimed.rows.values()
        ]
        lost = await transaction.write(turns, UnroutedWrite())
        await transaction.commit()
        assert lost == set()
        return names_of(claimed.inbox)

    async def run() -> None:
        interleaver = Interleaver(follow(order))
        nodes = await open_nodes(interleaver, "a", "b", "c")
        await commit(nodes[0], *[make_start(make_row(number)) for number in (1, 2, 3)])
        await commit_unrouted(nodes[0], *[make_signal(f"{number}", number) for number in (1, 2, 3, 1)])

        handled = await interleaver.run(*[handle(node) for node in nodes])

        waiting = names_of(await read_inbox(nodes[0]))
        assert sorted(sum(handled, waiting)) == ["1", "1", "2", "3"]
        assert await nodes[0].check() == []

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_a_workflow_id_is_started_once(order: list[int]) -> None:
    async def start(store: Store, number: int) -> str | None:
        """The execution that the id stands for; None if somebody else was at it."""
        transaction, claimed = await begin_with(store, Claim(workflow_ids=[(ORG, "order")]))
        found = claimed.open_ids.get((ORG, "order"))
        if found is not None or (ORG, "order") not in claimed.open_ids:
            await transaction.rollback()
            return found
        lost = await transaction.write([make_start(make_row(number, workflow_id="order"))], UnroutedWrite())
        await transaction.commit()
        assert lost == set()
        return id_of(number)

    async def run() -> None:
        interleaver = Interleaver(follow(order))
        nodes = await open_nodes(interleaver, "a", "b", "c")

        found = await interleaver.run(*[start(node, number) for number, node in enumerate(nodes, 1)])

        latest = await nodes[0].find_latest(ORG, "order")
        assert latest is not None
        assert set(found) - {None} == {latest.execution_id}
        assert await nodes[0].check() == []

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_a_change_of_status_and_a_turn_follow_each_other(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        worker, operator = await open_nodes(interleaver, "worker", "operator")
        row = make_row(1)
        await commit(worker, make_start(row))

        (is_closed, _), is_paused = await interleaver.run(
            try_to_close(worker), operator.set_status(ORG, id_of(1), 1, make_turn(row, Status.PAUSED, events=0).row)
        )

        after = await read_row(worker)
        assert is_closed or is_paused
        if not is_closed:
            assert after.status == Status.PAUSED
        if not is_paused:
            assert after.status == Status.COMPLETED

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_every_offer_is_taken_by_one_of_two_nodes_or_withdrawn_for_good(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        owner, first, second = await open_nodes(interleaver, "owner", "first", "second")
        timers = [make_offer_timer(number, due=9) for number in range(4)]
        offers = [make_offer(number) for number in range(4)]
        await commit(owner, make_start(make_row(1), offered=offers, timers=timers))
        again = [make_offer(number, attempt=2) for number in (0, 1)]
        turn = make_turn(make_row(1), withdrawn=[0, 1, 2], offered=again, timers=timers[:1], ended_timers=[1, 2])

        lost, *shares = await interleaver.run(
            commit(owner, turn), first.take_offers("first", (), 3), second.take_offers("second", (), 3)
        )
        shares.append(await first.take_offers("first", (), 10))

        tokens = [(one.number, one.attempt) for share in shares for one in share]
        assert lost == set()
        assert len(tokens) == len(set(tokens))
        assert {(0, 2), (1, 2), (3, 1)} <= set(tokens)
        held = [(one.execution_id, one.number, one.attempt) for share in shares for one in share]
        own = [await store.find_withdrawn(store_node, held) for store, store_node in ((first, "first"), (second, "second"))]
        assert own[0] & own[1] == {one for one in held if one[1:] in {(0, 1), (1, 1), (2, 1)}}
        assert await owner.find_next_due(()) is None
        assert await owner.check() == []

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_an_execution_that_closes_while_its_offers_are_taken_leaves_none(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        closer, taker = await open_nodes(interleaver, "closer", "taker")
        await commit(closer, make_start(make_row(1), offered=[make_offer(number) for number in range(3)]))

        (is_closed, _), taken = await interleaver.run(try_to_close(closer), taker.take_offers("taker", (), 2))

        held = [(one.execution_id, one.number, one.attempt) for one in taken]
        assert is_closed
        assert await taker.find_withdrawn("taker", held) == set(held)
        assert await taker.take_offers("taker", (), 9) == []
        assert await closer.check() == []

    asyncio.run(run())


@given(orders)
@settings(deadline=None)
def test_works_at_once_never_overwrite_what_they_have_not_seen(order: list[int]) -> None:
    async def run() -> None:
        interleaver = Interleaver(follow(order))
        nodes = await open_nodes(interleaver, "one", "two", "three")

        def count(connection: MemoryConnection, _put: object) -> None:
            connection.values["count"] = connection.values.get("count", 0) + 1

        await interleaver.run(*(node.transact(count) for node in nodes))

        assert await nodes[0].transact(lambda connection, _put: connection.values) == {"count": 3}

    asyncio.run(run())
