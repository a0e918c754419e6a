"""Heartbeats, and the locks of those who do what only one may do at a time. Each call is one statement that commits."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.store.memory.reads import find_next_due
from holdfast.store.memory.schedules import look_at
from holdfast.store.memory.tables import Tables, may_take
from holdfast.store.nodes import HeartbeatReply
from holdfast.store.rows import NodeRow, Route


def beat(tables: Tables, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
    before = tables.nodes.get(node.node)
    tables.nodes[node.node] = node
    own, own_offers = frozenset(routes), frozenset(offers)
    return HeartbeatReply(
        now=node.seen_at,
        nodes=list_nodes(tables),
        next_due=find_next_due(tables, (), own),
        has_inbox=any(may_take(row.route, own) for row in tables.inbox.values()),
        has_offers=any(row.node is None and may_take(row.route, own_offers) for row in tables.offers.values()),
        before=before,
        settings=tables.settings[0],
        has_publications=bool(tables.publications),
        has_questions=bool(tables.questions),
        next_schedule=look_at(tables, own, ()).due,
    )


def list_nodes(tables: Tables) -> list[NodeRow]:
    return [tables.nodes[name] for name in sorted(tables.nodes)]


def leave(tables: Tables, node: str) -> None:
    tables.starts.pop(node, None)
    row = tables.nodes.get(node)
    if row is not None:
        tables.nodes[node] = replace(row, has_left=True)


def remove_nodes(tables: Tables, nodes: Collection[str]) -> None:
    for node in nodes:
        tables.nodes.pop(node, None)
        tables.starts.pop(node, None)


def take_lock(tables: Tables, name: str, node: str, now: Instant, until: Instant) -> bool:
    holder, held_until = tables.host_locks.get(name, (node, now))
    # One that would be held for much longer than anybody takes it for was taken before the clock was set back.
    if holder != node and now < held_until <= until + (until - now):
        return False
    tables.host_locks[name] = (node, until)
    return True


def release_lock(tables: Tables, name: str, node: str) -> None:
    holder, _ = tables.host_locks.get(name, (None, 0))
    if holder == node:
        del tables.host_locks[name]
