"""The faults of the simulation: each does what it says, and the store tells the truth about it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import MAY_HAPPEN, FaultAction, Faults, Point, SimulatedCrash
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.user_transactions import MemoryConnection
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import InboxRow, NodeRow
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_letter,
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
from tests.store.topics import make_wait, message


def once(point: Point, action: FaultAction) -> Faults:
    """One fault, at the first time that the point is reached."""
    todo = [action]
    return Faults(lambda at, _node: todo.pop() if at == point and todo else FaultAction.NONE)


@pytest.fixture
async def healthy() -> MemoryStore:
    """A node without faults, and an execution with an envelope."""
    store = MemoryStore(MemoryDatabase(), node="healthy")
    await store.open()
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, make_signal("hello", 1))
    return store


async def join(healthy: MemoryStore, faults: Faults, node: str = "faulty") -> MemoryStore:
    store = MemoryStore(healthy.database, node=node, faults=faults)
    await store.open()
    return store


async def take_turn(store: MemoryStore) -> bool:
    """Take the envelope in a turn, as an engine does; whether it took place."""
    transaction, claimed = await begin_with(store, want(1))
    row = claimed.rows[id_of(1)]
    taken = [one.id for one in claimed.inbox]
    await transaction.write([make_turn(row, consumed=taken, outgoing=[make_signal("sent", 1)])], UnroutedWrite())
    try:
        await transaction.commit()
    except OutcomeUnknown:
        return await store.was_committed(transaction)
    return True


# --- commits ---


async def test_a_commit_that_fails_leaves_the_envelope_and_the_state(healthy: MemoryStore) -> None:
    faulty = await join(healthy, once(Point.COMMIT, FaultAction.FAIL))

    with pytest.raises(StoreUnavailable) as caught:
        await take_turn(faulty)

    assert not isinstance(caught.value, OutcomeUnknown)
    assert await read_row(healthy) == make_row(1)
    assert names_of(await read_inbox(healthy)) == ["hello"]
    assert await take_turn(faulty)


@pytest.mark.parametrize(
    ("action", "is_committed"),
    [(FaultAction.APPLIED_UNKNOWN, True), (FaultAction.LOST_UNKNOWN, False), (FaultAction.LATE_UNKNOWN, True)],
)
async def test_the_store_tells_the_truth_about_an_unknown_outcome(
    healthy: MemoryStore, action: FaultAction, is_committed: bool
) -> None:
    faulty = await join(healthy, once(Point.COMMIT, action))

    told = await take_turn(faulty)

    assert told is is_committed
    assert names_of(await read_inbox(healthy)) == (["sent"] if is_committed else ["hello"])
    assert (await read_row(healthy)).state_version == (2 if is_committed else 1)


async def test_a_late_commit_holds_its_locks_until_it_happens(healthy: MemoryStore) -> None:
    later: list[Callable[[], None]] = []
    faults = once(Point.COMMIT, FaultAction.LATE_UNKNOWN)
    faults.schedule = later.append
    faulty = await join(healthy, faults)

    turn = asyncio.create_task(take_turn(faulty))
    while not later:
        await asyncio.sleep(0)
    meanwhile = await look(healthy, want(1))
    seen_meanwhile = await read_row(healthy)
    healthy.database.crash("faulty")
    later.pop()()

    assert meanwhile.busy == {id_of(1)}
    assert seen_meanwhile == make_row(1)
    assert (await read_row(healthy)).state_version == 2
    assert (await look(healthy, want(1))).held == {id_of(1)}
    turn.cancel()


async def test_a_question_after_an_unknown_outcome_waits_for_the_connection(healthy: MemoryStore) -> None:
    actions = {Point.COMMIT: [FaultAction.APPLIED_UNKNOWN], Point.WAS_COMMITTED: [FaultAction.FAIL] * 3}
    faults = Faults(lambda at, _node: actions[Point(at)].pop() if actions.get(Point(at)) else FaultAction.NONE)
    faulty = await join(healthy, faults)

    told = await take_turn(faulty)

    assert told is True
    assert len(faults.trace) == 4


# --- crashes ---


async def test_a_crash_before_the_commit_leaves_everything_to_others(healthy: MemoryStore) -> None:
    faulty = await join(healthy, once(Point.COMMIT, FaultAction.CRASH))

    with pytest.raises(SimulatedCrash):
        await take_turn(faulty)

    claimed = await look(healthy, want(1))
    assert claimed.rows == {id_of(1): make_row(1)}
    assert names_of(claimed.inbox) == ["hello"]
    with pytest.raises(StoreUnavailable):
        await faulty.begin()


async def test_a_crash_after_the_commit_changes_nothing_about_it(healthy: MemoryStore) -> None:
    faulty = await join(healthy, once(Point.COMMITTED, FaultAction.CRASH))

    with pytest.raises(SimulatedCrash):
        await take_turn(faulty)

    claimed = await look(healthy, want(1))
    assert claimed.rows[id_of(1)].state_version == 2
    assert names_of(claimed.inbox) == ["sent"]


@pytest.mark.parametrize("point", [point for point in Point if FaultAction.CRASH in MAY_HAPPEN[point]])
async def test_a_node_can_die_at_every_point_and_leaves_no_lock(healthy: MemoryStore, point: Point) -> None:
    faulty = await join(healthy, once(point, FaultAction.CRASH))

    with pytest.raises(SimulatedCrash) as caught:
        await do_everything(faulty)

    assert (caught.value.node, caught.value.point) == ("faulty", point)
    assert healthy.database.locks.count() == 0
    assert await healthy.check() == []
    assert await commit(healthy, make_turn(await read_row(healthy))) == set()


async def do_everything(store: MemoryStore) -> None:
    """Reach every point that there is."""
    await store.beat(NodeRow("faulty", NOW, NOW), (), ())
    await store.take_lock("purging", "faulty", NOW, NOW)
    await store.take_offers("faulty", (), 10)
    await store.purge(NOW, 10)
    await store.purge_dead_letters(NOW, 10)
    await store.deliver([make_signal("more", 1)])
    await commit_unrouted(store, dead_letters=[make_letter("bad")])
    await store.requeue_dead_letters(ORG, [row.id for row in await store.list_dead_letters(ORG)])
    transaction, _ = await begin_with(store, Claim(limit=10, workflow_ids=[(ORG, "order-2")]))
    await transaction.mark_in_flight("faulty-1", 0, {id_of(1): 1})
    await transaction.write([make_start(make_row(2), subscriptions=[make_wait(1, "event", "paid", of=2)])], UnroutedWrite())
    await transaction.publish([message("m1")], NOW)
    await transaction.spread(10, NOW)
    await transaction.rollback()
    await take_turn(store)
    transaction, claimed = await begin_with(store, want(1))
    await transaction.write([make_closing(claimed.rows[id_of(1)])], UnroutedWrite())
    await transaction.rollback()
    assert not await store.was_committed(transaction)


# --- everything else ---


@pytest.mark.parametrize("point", [point for point in Point if FaultAction.FAIL in MAY_HAPPEN[point]])
async def test_the_connection_can_break_at_every_point_and_nothing_is_left_of_it(healthy: MemoryStore, point: Point) -> None:
    faulty = await join(healthy, once(point, FaultAction.FAIL))

    if point is not Point.WAS_COMMITTED:
        with pytest.raises(StoreUnavailable):
            await do_everything(faulty)

    assert healthy.database.locks.count() == 0
    assert await healthy.check() == []
    await do_everything(faulty)


async def test_a_delivery_may_not_know_its_own_outcome(healthy: MemoryStore) -> None:
    applied = await join(healthy, once(Point.DELIVER_COMMIT, FaultAction.APPLIED_UNKNOWN))
    lost = await join(healthy, once(Point.DELIVER_COMMIT, FaultAction.LOST_UNKNOWN))

    for store, name in ((applied, "applied"), (lost, "lost")):
        with pytest.raises(OutcomeUnknown):
            await store.deliver([make_signal(name, 1)])

    assert names_of(await read_inbox(healthy)) == ["hello", "applied"]


@pytest.mark.parametrize(("action", "is_taken"), [(FaultAction.APPLIED_UNKNOWN, True), (FaultAction.LOST_UNKNOWN, False)])
async def test_taking_offers_may_not_know_its_own_outcome(healthy: MemoryStore, action: FaultAction, is_taken: bool) -> None:
    timer = make_offer_timer(1, due=1)
    await commit(healthy, make_turn(await read_row(healthy), offered=[make_offer(1)], timers=[timer]))
    faulty = await join(healthy, once(Point.OFFERS_COMMIT, action))

    with pytest.raises(OutcomeUnknown):
        await faulty.take_offers("faulty", (), 10)

    lost = [offer.node for offer in await healthy.list_lost_offers([], 10)]
    assert lost == (["faulty"] if is_taken else [])
    assert await healthy.find_next_due(()) == (None if is_taken else timer.due)


@pytest.mark.parametrize(("action", "is_gone"), [(FaultAction.APPLIED_UNKNOWN, True), (FaultAction.LOST_UNKNOWN, False)])
async def test_purging_may_not_know_its_own_outcome(healthy: MemoryStore, action: FaultAction, is_gone: bool) -> None:
    [hello] = await read_inbox(healthy)
    await commit(healthy, make_closing(await read_row(healthy), consumed=[hello.id]))
    faulty = await join(healthy, once(Point.PURGE_COMMIT, action))

    with pytest.raises(OutcomeUnknown):
        await faulty.purge(NOW * 2, 10)

    assert (await healthy.find_execution(ORG, id_of(1)) is None) is is_gone
    assert await healthy.purge(NOW * 2, 10) == (0 if is_gone else 1)
    assert await healthy.check() == []


@pytest.mark.parametrize(("action", "is_gone"), [(FaultAction.APPLIED_UNKNOWN, True), (FaultAction.LOST_UNKNOWN, False)])
async def test_purging_letters_may_not_know_its_own_outcome(
    healthy: MemoryStore, action: FaultAction, is_gone: bool
) -> None:
    await commit_unrouted(healthy, dead_letters=[make_letter("bad")])
    faulty = await join(healthy, once(Point.PURGE_COMMIT, action))

    with pytest.raises(OutcomeUnknown):
        await faulty.purge_dead_letters(NOW * 2, 10)

    assert (await healthy.list_dead_letters(ORG) == []) is is_gone
    assert await healthy.purge_dead_letters(NOW * 2, 10) == (0 if is_gone else 1)
    assert healthy.database.locks.count() == 0


@pytest.mark.parametrize(("action", "is_done"), [(FaultAction.APPLIED_UNKNOWN, True), (FaultAction.LOST_UNKNOWN, False)])
async def test_users_work_may_not_know_its_own_outcome(healthy: MemoryStore, action: FaultAction, is_done: bool) -> None:
    faulty = await join(healthy, once(Point.UPDATE, action))

    def work(connection: MemoryConnection, put: Callable[[InboxRow], None]) -> None:
        connection.values["paid"] = True
        put(make_signal("paid", 1))

    with pytest.raises(OutcomeUnknown):
        await faulty.transact(work)

    values = await healthy.transact(lambda connection, _put: dict(connection.values))
    assert values == ({"paid": True} if is_done else {})
    assert names_of(await read_inbox(healthy)) == (["hello", "paid"] if is_done else ["hello"])


async def test_a_claim_may_find_free_rows_locked(healthy: MemoryStore) -> None:
    faulty = await join(healthy, Faults(lambda at, _node: _skip_if(at == Point.CLAIM_ROW)))

    wanted = await look(faulty, want(1))
    found = await look(faulty, Claim(limit=10))
    resolved = await look(faulty, Claim(workflow_ids=[(ORG, "order-1")]))

    assert (wanted.held, wanted.busy) == (set(), {id_of(1)})
    assert (found.held, found.inbox) == (set(), [])
    assert resolved.open_ids == {}


async def test_a_closing_turn_may_find_its_row_shared(healthy: MemoryStore) -> None:
    faulty = await join(healthy, once(Point.WRITE_ESCALATE, FaultAction.SKIP))
    [hello] = await read_inbox(healthy)
    closing = make_closing(make_row(1), consumed=[hello.id])

    first = await commit(faulty, closing)
    second = await commit(faulty, closing)

    assert (first, second) == ({id_of(1)}, set())


def _skip_if(condition: bool) -> FaultAction:
    return FaultAction.SKIP if condition else FaultAction.NONE


async def test_wake_ups_can_be_lost_or_late(healthy: MemoryStore) -> None:
    later: list[Callable[[], None]] = []
    actions = [FaultAction.NONE, FaultAction.DELAY, FaultAction.LOSE]
    faults = Faults(lambda at, _node: actions.pop() if at == Point.WAKE else FaultAction.NONE, later.append)
    faulty = await join(healthy, faults)
    woken: list[str] = []
    faulty.on_wake(lambda _why: woken.append("faulty"))

    counts = []
    for _ in range(3):
        await healthy.wake(WakeReason.WORK)
        counts.append(len(woken))
    for callback in later:
        callback()

    assert counts == [0, 0, 1]
    assert len(woken) == 2


async def test_a_late_wake_up_does_not_reach_the_dead(healthy: MemoryStore) -> None:
    later: list[Callable[[], None]] = []
    faults = once(Point.WAKE, FaultAction.DELAY)
    faults.schedule = later.append
    doomed = await join(healthy, faults)
    woken: list[str] = []
    doomed.on_wake(lambda _why: woken.append("doomed"))

    await healthy.wake(WakeReason.WORK)
    healthy.database.crash("faulty")
    for callback in later:
        callback()

    assert len(later) == 1
    assert woken == []


async def test_the_same_seed_makes_the_same_faults() -> None:
    async def run(seed: int) -> list[tuple[Point, str, FaultAction]]:
        database, source = MemoryDatabase(), random.Random(seed)
        faults = Faults.seeded(source)
        row = make_row(1)
        store = MemoryStore(database, node="a", faults=faults)
        await store.open()
        for _ in range(300):
            try:
                if await store.find_execution(ORG, id_of(1)) is None:
                    await commit(store, make_start(row))
                await commit(store, make_turn(await read_row(store)))
            except StoreUnavailable:
                continue
            except SimulatedCrash:
                store = MemoryStore(database, node="a", faults=faults)
                await store.open()
        assert await store.check() == []
        return faults.trace

    one, again, other = [await run(seed) for seed in (1, 1, 2)]

    assert one == again
    assert one != other
    assert {action for _, _, action in one} >= {FaultAction.FAIL, FaultAction.APPLIED_UNKNOWN, FaultAction.CRASH}


async def test_a_fault_that_a_point_does_not_know_is_a_mistake_of_the_simulation(healthy: MemoryStore) -> None:
    faulty = await join(healthy, once(Point.READ, FaultAction.APPLIED_UNKNOWN))

    with pytest.raises(ValueError, match="Correct its schedule"):
        await faulty.find_latest(ORG, "order-1")

    with pytest.raises(ValueError, match="Correct its schedule"):
        Faults.seeded(random.Random(1), {Point.ROLLBACK: {FaultAction.FAIL: 0.5}})
