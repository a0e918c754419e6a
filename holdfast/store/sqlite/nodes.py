"""Heartbeats, and what only one node may do at a time. Nobody judges this process by them; others read them afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from msgspec.structs import astuple

from holdfast.core.instants import Instant
from holdfast.store.nodes import HeartbeatReply
from holdfast.store.rows import NodeRow, Route
from holdfast.store.sqlite.pauses import read_number
from holdfast.store.sqlite.reads import find_next_due
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import NEVER, Changes, WriterCache


def beat(
    connection: sqlite3.Connection,
    writer_cache: WriterCache,
    changes: Changes,
    node: NodeRow,
    routes: Collection[Route],
    offers: Collection[Route],
) -> HeartbeatReply:
    """Record a heartbeat, and read what there is to do in the same transaction."""
    before = next((row for row in list_nodes(connection) if row.node == node.node), None)
    connection.execute(SQL["put_node"], astuple(node))
    has_inbox = has_offers = False
    if writer_cache.inbox_rows + changes.inbox_rows > 0:
        (has_inbox,) = connection.execute(SQL["has_waiting_on_routes"], (as_json(list(routes)),)).fetchone()
    if writer_cache.offers + changes.offers > 0:
        (has_offers,) = connection.execute(SQL["has_offers"], (as_json(["", *offers]),)).fetchone()
    return HeartbeatReply(
        now=node.seen_at,
        nodes=list_nodes(connection),
        next_due=None if writer_cache.no_timer_before == NEVER else find_next_due(connection, (), routes),
        has_inbox=bool(has_inbox),
        has_offers=bool(has_offers),
        before=before,
        settings=read_number(connection, writer_cache),
        has_publications=writer_cache.publications + changes.publications > 0,
    )


def list_nodes(connection: sqlite3.Connection) -> list[NodeRow]:
    return [
        NodeRow(node, seen_at, started_at, bool(has_left), details)
        for node, seen_at, started_at, has_left, details in connection.execute(SQL["list_nodes"])
    ]


def leave(connection: sqlite3.Connection, node: str) -> None:
    connection.execute(SQL["mark_node_left"], (node,))
    connection.execute(SQL["remove_starts"], (as_json([node]),))


def remove_nodes(connection: sqlite3.Connection, nodes: Collection[str]) -> None:
    asked = (as_json(list(nodes)),)
    connection.execute(SQL["remove_nodes"], asked)
    connection.execute(SQL["remove_starts"], asked)


def take_lock(connection: sqlite3.Connection, name: str, node: str, now: Instant, until: Instant) -> bool:
    values = {"name": name, "node": node, "now": now, "until": until}
    return connection.execute(SQL["take_lock"], values).rowcount == 1
