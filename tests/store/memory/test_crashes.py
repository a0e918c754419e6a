"""Nodes die and come back, servers lose patience: locks are freed, and nothing half-done is left."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import StoreError, StoreUnavailable
from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import FaultAction, Faults, SimulatedCrash
from holdfast.store.memory.store import MemoryStore
from holdfast.store.nodes import WakeReason
from tests.store.builders import (
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
    want,
)


async def open_node(database: MemoryDatabase, node: str, faults: Faults | None = None) -> MemoryStore:
    store = MemoryStore(database, node=node, faults=faults)
    await store.open()
    return store


@pytest.fixture
async def nodes() -> tuple[MemoryStore, MemoryStore]:
    """Two nodes and an open execution."""
    database = MemoryDatabase()
    left, right = await open_node(database, "left"), await open_node(database, "right")
    await commit(left, make_start(make_row(1, workflow_id="order")))
    return left, right


async def test_a_crash_rolls_back_and_frees_at_once(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, Claim(workflow_ids=[(ORG, "order"), (ORG, "new")]))
    await transaction.write([make_turn(make_row(1, workflow_id="order")), make_start(make_row(2))], UnroutedWrite())

    left.database.crash("left")

    claimed = await look(right, Claim(workflow_ids=[(ORG, "order"), (ORG, "new")]))
    assert claimed.open_ids == {(ORG, "order"): id_of(1), (ORG, "new"): None}
    assert claimed.rows == {id_of(1): make_row(1, workflow_id="order")}
    assert await right.find_execution(ORG, id_of(2)) is None


async def test_nothing_works_on_the_handle_of_a_dead_node(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, want(1))
    left.database.crash("left")

    for call in (transaction.commit, left.begin, left.list_nodes, left.count):
        with pytest.raises(StoreUnavailable):
            await call()
    await transaction.rollback()
    await left.wake(WakeReason.WORK)

    assert await read_row(right) == make_row(1, workflow_id="order")


async def test_calls_that_are_under_way_when_their_node_dies_are_refused(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_closing(make_row(1, workflow_id="order"))], UnroutedWrite())
    waiting = asyncio.create_task(right.deliver([make_signal("never", 1)]))
    reading = asyncio.create_task(right.find_latest(ORG, "order"))
    await asyncio.sleep(0)

    right.database.crash("right")

    for task in (waiting, reading):
        with pytest.raises(StoreUnavailable):
            await task
    await transaction.rollback()
    assert await read_inbox(left) == []


async def test_a_node_that_comes_back_has_a_new_handle(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, _ = nodes
    left.database.crash("left")

    again = await open_node(left.database, "left")

    assert await commit(again, make_turn(make_row(1, workflow_id="order"))) == set()


async def test_a_silent_node_loses_its_transaction_and_finds_out_when_it_goes_on(
    nodes: tuple[MemoryStore, MemoryStore],
) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, want(1))

    left.database.drop_transactions("left")
    claimed = await look(right, want(1))

    assert claimed.held == {id_of(1)}
    with pytest.raises(StoreUnavailable):
        await transaction.write([make_turn(make_row(1, workflow_id="order"))], UnroutedWrite())
    with pytest.raises(StoreError):
        await transaction.commit()
    assert await commit(left, make_turn(make_row(1, workflow_id="order"))) == set()


async def test_a_delivery_that_waits_goes_on_when_the_node_that_closes_dies(
    nodes: tuple[MemoryStore, MemoryStore],
) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_closing(make_row(1, workflow_id="order"))], UnroutedWrite())
    delivery = asyncio.create_task(right.deliver([make_signal("hello", 1)]))
    for _ in range(10):
        await asyncio.sleep(0)
    was_waiting = not delivery.done()

    left.database.crash("left")

    assert was_waiting
    assert await delivery == [True]
    assert names_of(await read_inbox(right)) == ["hello"]


async def test_a_batch_that_writes_what_another_holds_is_refused_as_a_whole(
    nodes: tuple[MemoryStore, MemoryStore],
) -> None:
    left, right = nodes
    holder, _ = await begin_with(left, want(1))
    transaction = await right.begin()

    with pytest.raises(StoreUnavailable):
        await transaction.write([make_turn(make_row(1, workflow_id="order")), make_start(make_row(2))], UnroutedWrite())

    await holder.rollback()
    assert await read_row(left) == make_row(1, workflow_id="order")
    assert await left.find_execution(ORG, id_of(2)) is None


async def test_a_transaction_takes_one_call_at_a_time(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, _ = nodes
    transaction = await left.begin()

    first, second = await asyncio.gather(
        transaction.read_rows([id_of(1)]), transaction.read_rows([id_of(1)]), return_exceptions=True
    )

    assert first == {id_of(1): make_row(1, workflow_id="order")}
    assert isinstance(second, StoreError)
    await transaction.rollback()


async def test_a_cancelled_call_rolls_its_transaction_back(nodes: tuple[MemoryStore, MemoryStore]) -> None:
    left, right = nodes
    transaction, _ = await begin_with(left, want(1))
    task = asyncio.create_task(transaction.read_latest(ORG, "order"))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await look(right, want(1))).held == {id_of(1)}


# --- a crash at every point ---


async def work(store: MemoryStore) -> None:
    """Start, be signalled, take the signal, close; whatever is done already is not done again."""
    if await store.find_execution(ORG, id_of(1)) is None:
        await commit(store, make_start(make_row(1), outgoing=[make_signal("hello", 1)]))
    while (row := await read_row(store)).state_version < 3:
        transaction, claimed = await begin_with(store, Claim(limit=10))
        row = claimed.rows.get(id_of(1), row)
        taken = [one.id for one in claimed.inbox]
        if row.state_version == 1:
            turn = make_turn(row, consumed=taken, outgoing=[make_signal("again", 1)])
        else:
            turn = make_closing(row, consumed=taken)
        lost = await transaction.write([turn], UnroutedWrite())
        await transaction.commit()
        assert lost == set()


async def test_a_crash_at_any_point_leads_to_the_same_end() -> None:
    def crash_at(number: int) -> Faults:
        points = iter(range(1, 10**6))

        def decide(point: str, _node: str) -> FaultAction:
            if point == "claim.row":
                return FaultAction.NONE
            return FaultAction.CRASH if next(points) == number else FaultAction.NONE

        return Faults(decide)

    ends = []
    for number in range(1, 1000):
        database = MemoryDatabase()
        try:
            await work(await open_node(database, "a", crash_at(number)))
            break
        except SimulatedCrash:
            pass
        survivor = await open_node(database, "b")
        await work(survivor)
        ends.append((await read_row(survivor), await survivor.load_history(id_of(1)), await read_inbox(survivor)))
        assert await survivor.check() == []

    assert len(ends) > 20
    assert ends == [ends[0]] * len(ends)
    assert ends[0][2] == []


async def test_a_store_that_is_not_open_says_so() -> None:
    store = MemoryStore()

    with pytest.raises(StoreUnavailable, match="Open the store first"):
        await store.begin()

    await store.close()


async def test_an_exclusive_store_says_so_and_lets_others_run_at_its_commits() -> None:
    store = MemoryStore(exclusive=True)
    await store.open()
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "other")

    transaction = await store.begin()
    await transaction.write([make_start(make_row(1))], UnroutedWrite())
    before = list(ran)
    await transaction.commit()

    assert store.exclusive
    assert (before, ran) == ([], ["other"])
    await commit_unrouted(store, make_signal("hello", 1))
    assert names_of(await read_inbox(store)) == ["hello"]
