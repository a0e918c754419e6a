"""Nodes: who beats is alive, until it says goodbye; with each heartbeat it hears what there is for it."""

from __future__ import annotations

import msgspec

from holdfast.core.instants import SECOND
from holdfast.store.contract import Store
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import NodeRow
from tests.store.builders import NOW, commit, commit_unrouted, make_row, make_signal, make_start, make_timer


def beat_of(node: str, **columns: object) -> NodeRow:
    return msgspec.structs.replace(NodeRow(node, NOW, NOW), **columns)


def timeless(rows: list[NodeRow]) -> list[NodeRow]:
    """Without the time of the heartbeat: a store that has a time of its own writes down that."""
    return [msgspec.structs.replace(row, seen_at=0) for row in rows]


async def test_a_node_is_listed_with_its_last_heartbeat(store: Store) -> None:
    await store.beat(beat_of("a", details=b'{"pid": 1}'), (), ())
    [first] = await store.list_nodes()
    await store.beat(beat_of("b", started_at=NOW - SECOND), (), ())

    await store.beat(beat_of("a", seen_at=NOW + SECOND, details=b'{"pid": 2}'), (), ())

    nodes = await store.list_nodes()
    assert timeless(nodes) == timeless([beat_of("a", details=b'{"pid": 2}'), beat_of("b", started_at=NOW - SECOND)])
    assert nodes[0].seen_at > first.seen_at


async def test_a_heartbeat_is_answered_with_the_time_and_all_nodes(store: Store) -> None:
    await store.beat(beat_of("b"), (), ())

    pulse = await store.beat(beat_of("a"), (), ())

    assert pulse.nodes == await store.list_nodes()
    assert [row.node for row in pulse.nodes] == ["a", "b"]
    assert abs(pulse.now - pulse.nodes[0].seen_at) < SECOND


async def test_a_heartbeat_is_answered_with_what_was_there_before_it(store: Store) -> None:
    assert (await store.beat(beat_of("a", details=b'{"pid": 1}'), (), ())).before is None
    [first] = await store.list_nodes()

    assert (await store.beat(beat_of("a", seen_at=NOW + SECOND, details=b'{"pid": 2}'), (), ())).before == first


async def test_a_node_that_says_goodbye_is_listed_as_gone(store: Store) -> None:
    await store.beat(beat_of("a", details=b'{"pid": 1}'), (), ())
    await store.beat(beat_of("b"), (), ())

    await store.leave("a")
    await store.leave("never seen")

    nodes = await store.list_nodes()
    assert timeless(nodes) == timeless([beat_of("a", has_left=True, details=b'{"pid": 1}'), beat_of("b")])


async def test_a_node_that_beats_after_its_goodbye_is_back(store: Store) -> None:
    await store.beat(beat_of("a"), (), ())
    await store.leave("a")

    pulse = await store.beat(beat_of("a"), (), ())

    assert [row.has_left for row in pulse.nodes] == [False]


async def test_nodes_can_be_removed_and_come_back(store: Store) -> None:
    for node in "abc":
        await store.beat(beat_of(node), (), ())

    await store.remove_nodes(["a", "c", "never seen"])
    await store.remove_nodes([])
    removed = [row.node for row in await store.list_nodes()]
    pulse = await store.beat(beat_of("c"), (), ())

    assert removed == ["b"]
    assert [row.node for row in pulse.nodes] == ["b", "c"]


async def test_a_heartbeat_in_an_empty_store_hears_of_nothing(store: Store) -> None:
    pulse = await store.beat(beat_of("a"), ["orders"], ["mail"])

    assert (pulse.next_due, pulse.has_inbox, pulse.has_offers) == (None, False, False)


async def test_a_heartbeat_tells_whether_envelopes_wait_on_the_nodes_routes(store: Store) -> None:
    await commit(store, make_start(make_row(1, route="orders")))
    await commit_unrouted(store, make_signal("order", 1, route="orders"))

    before = [(await store.beat(beat_of("a"), routes, ())).has_inbox for routes in (["orders", "bills"], ["bills"], ())]
    await commit_unrouted(store, make_signal("any", None, workflow_id="w"))
    after = (await store.beat(beat_of("a"), (), ())).has_inbox

    assert before == [True, False, False]
    assert after is True


async def test_a_heartbeat_tells_when_the_next_timer_on_the_nodes_routes_is_due(store: Store) -> None:
    timers = [make_timer(1, due=1, route="orders"), make_timer(2, due=2, route="bills"), make_timer(3, due=3)]
    await commit(store, make_start(make_row(1), timers=timers))

    due = [(await store.beat(beat_of("a"), routes, ["mail"])).next_due for routes in (["orders"], ["bills"], ())]

    assert due == [NOW + seconds * SECOND for seconds in (1, 2, 3)]


async def test_a_wake_up_can_be_sent_when_nobody_listens(store: Store) -> None:
    store.on_wake(lambda _why: None)

    for why in WakeReason:
        await store.wake(why)

    assert await store.list_nodes() == []


async def test_a_line_of_its_own_beats_like_the_store(store: Store) -> None:
    await commit_unrouted(store, make_signal("any", None, workflow_id="w"))
    line = store.make_heartbeat_connection()
    if line is None:
        assert store.exclusive or store.max_transactions > 1
        return

    pulse = await line.beat(beat_of("a"), (), ())
    await line.leave("a")
    taken = await line.take_lock("purging", "a", NOW, NOW + SECOND)
    await line.close()
    await line.close()

    assert pulse.has_inbox is True
    assert taken is True
    assert [row.has_left for row in await store.list_nodes()] == [True]


async def test_a_node_expires_without_a_goodbye_and_comes_back_when_it_beats(store: Store) -> None:
    line = store.make_heartbeat_connection()
    if line is None:
        return

    await line.beat(beat_of("a"), (), ())
    await line.expire("a")
    expired = await store.list_nodes()
    back = await line.beat(beat_of("a"), (), ())
    await line.close()

    assert [(row.seen_at, row.has_left) for row in expired] == [(0, False)]
    assert back.nodes[0].seen_at > 0


async def test_a_store_has_at_least_one_lane_and_an_exclusive_one_no_more(store: Store) -> None:
    lanes = store.max_transactions

    assert lanes == 1 if store.exclusive else lanes > 1
