"""Nodes: who beats is alive, until it says goodbye."""

from __future__ import annotations

from holdfast.core.instants import SECOND
from holdfast.store.contract import NodeRow, Store
from tests.store.builders import NOW


async def test_a_node_is_listed_with_its_last_heartbeat(store: Store) -> None:
    started = NodeRow("a", seen_at=NOW, started_at=NOW)
    await store.beat(started)
    await store.beat(NodeRow("b", seen_at=NOW, started_at=NOW - SECOND))

    later = NodeRow("a", seen_at=NOW + SECOND, started_at=NOW)
    await store.beat(later)

    nodes = {row.node: row for row in await store.list_nodes()}
    assert nodes == {"a": later, "b": NodeRow("b", NOW, NOW - SECOND)}


async def test_a_node_that_says_goodbye_is_no_longer_listed(store: Store) -> None:
    await store.beat(NodeRow("a", NOW, NOW))
    await store.beat(NodeRow("b", NOW, NOW))

    await store.leave("a")
    await store.leave("never seen")

    assert [row.node for row in await store.list_nodes()] == ["b"]


async def test_a_wake_up_can_be_sent_when_nobody_listens(store: Store) -> None:
    store.on_wake(lambda: None)

    await store.wake()

    assert await store.list_nodes() == []
