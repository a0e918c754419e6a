"""Activities that wait for a node which can run them. Here that is this process, or the one that comes after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final

from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ActivityRow, Route
from holdfast.store.sqlite.statements import SQL, WideStatement, as_json
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence, WriterCache

_PUT: Final = WideStatement("put_offers")


def write_offers(
    connection: sqlite3.Connection,
    writer_cache: WriterCache,
    changes: Changes,
    turns: Sequence[TurnWrite],
    closed: Sequence[str],
) -> None:
    """Offers that end, then those that begin. A closed execution leaves none behind."""
    offered = [offer for turn in turns for offer in turn.offered]
    if not offered and writer_cache.offers + changes.offers == 0:
        return
    ended = [(turn.row.execution_id, number) for turn in turns for number in turn.withdrawn]
    ended += [(offer.execution_id, offer.number) for offer in offered]
    if ended:
        changes.offers -= connection.executemany(SQL["end_offer"], ended).rowcount
    if offered:
        values: list[Any] = []
        for offer in offered:
            values += (offer.org, offer.execution_id, offer.number, offer.attempt, offer.route, offer.body, offer.node)
        changes.offers += _PUT.run(connection, values)
    if closed:
        changes.offers -= connection.execute(SQL["end_all_offers"], (as_json(closed),)).rowcount


def take_offers(
    connection: sqlite3.Connection, changes: Changes, node: str, routes: Collection[Route], limit: int
) -> list[ActivityRow]:
    """Each route has its own order, so ask for each; of what is found, the oldest are taken."""
    found: list[tuple[Any, ...]] = []
    for route in {"", *routes}:
        found += connection.execute(SQL["find_offers"], (route, limit))
    taken = sorted(found)[:limit]  # by id
    if taken:
        connection.executemany(SQL["take_offer"], [(node, row_id) for row_id, *_ in taken])
        connection.executemany(SQL["end_waiting"], [(row[2], row[3]) for row in taken])
        changes.evidence = CommitEvidence("is_taken", (taken[0][0],), True)
    return [
        ActivityRow(org, execution_id, number, attempt, route, body, node)
        for _, org, execution_id, number, attempt, route, body in taken
    ]


def find_free_offers(connection: sqlite3.Connection, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    return {row for key in keys for row in connection.execute(SQL["lock_offers"], key)}


def list_lost_offers(connection: sqlite3.Connection, alive: Collection[str], limit: int) -> list[ActivityRow]:
    values = {"alive": as_json(list(alive)), "limit": limit}
    return [ActivityRow(*row) for row in connection.execute(SQL["list_lost_offers"], values)]


def list_offers(connection: sqlite3.Connection, execution_id: str) -> list[ActivityRow]:
    return [ActivityRow(*row) for row in connection.execute(SQL["list_offers"], (execution_id,))]


def find_withdrawn(
    connection: sqlite3.Connection, node: str, taken: Collection[tuple[str, int, int]]
) -> set[tuple[str, int, int]]:
    return set(taken).difference(connection.execute(SQL["list_taken"], (node,)))
