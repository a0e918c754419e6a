"""Removing executions that closed long ago, and old dead letters, a little at a time.

SQLite uses their space again; the file does not shrink.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from holdfast.core.instants import Instant
from holdfast.store.sqlite.definitions import purge_definitions
from holdfast.store.sqlite.incidents import purge_incidents
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.tasks import purge_tasks
from holdfast.store.sqlite.writer_cache import Changes

EVENTS_AT_ONCE: Final = 2_000
"""So many events, at most, are removed within one transaction, unless one execution alone has more."""


class Write(Protocol):
    """Runs work in a transaction of its own."""

    async def __call__(self, doing: str, work: Callable[[sqlite3.Connection, Changes], int]) -> int: ...


async def purge(write: Write, closed_before: Instant, limit: int) -> int:
    """Remove executions, in small transactions between which others write; how many."""
    removed = 0
    while removed < limit:
        more = await write("purge", partial(_remove_executions, closed_before=closed_before, limit=limit - removed))
        if more == 0:
            break
        removed += more
        await asyncio.sleep(0)
    await write("purge", partial(purge_definitions, before=closed_before))
    return removed


def _remove_executions(connection: sqlite3.Connection, changes: Changes, closed_before: Instant, limit: int) -> int:
    """Remove up to `limit` executions, with all that is theirs; how many. Fewer if their histories are long."""
    numbers: list[int] = []
    events = 0
    values = (closed_before, min(limit, EVENTS_AT_ONCE))
    for number, sequence in connection.execute(SQL["find_closed_before"], values).fetchall():
        events += sequence
        if numbers and events > EVENTS_AT_ONCE:
            break
        numbers.append(number)
    if numbers:
        asked = (as_json(numbers),)
        connection.execute(SQL["hand_on_start_keys"], asked)
        connection.execute(SQL["remove_requests"], asked)
        connection.execute(SQL["remove_attributes"], asked)
        changes.subscriptions -= connection.execute(SQL["remove_subscriptions"], asked).rowcount
        connection.execute(SQL["remove_events"], asked)
        purge_tasks(connection, *asked)
        purge_incidents(connection, *asked)
        connection.execute(SQL["remove_executions"], asked)
        connection.execute(SQL["forget_requests"], (closed_before, EVENTS_AT_ONCE))
    return len(numbers)


async def purge_dead_letters(write: Write, before: Instant, limit: int) -> int:
    """Remove those of the first `limit` dead letters that were written before then; how many."""
    values = {"before": before, "limit": limit}
    return await write(
        "purge dead letters in", lambda connection, _changes: connection.execute(SQL["purge_dead_letters"], values).rowcount
    )
