"""Removing executions that closed long ago, and old dead letters."""

from __future__ import annotations

import heapq
from itertools import islice, takewhile

from holdfast.core.instants import Instant
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.definitions import purge_definitions
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session


async def purge(connection: Connection, closed_before: Instant, limit: int) -> int:
    """DELETE of what a SELECT ... FOR UPDATE SKIP LOCKED found: what another transaction holds is left for the next time."""
    session = Session(connection)
    with session.statement():
        await session.reach(Point.PURGE_LOCK)
        tables = connection.database.tables
        old = takewhile(lambda entry: entry[0] < closed_before, tables.closed)
        rows = (tables.executions[execution_id] for _, execution_id in old)
        free = (row for row in rows if session.locks.try_escalate(session, (row.org, row.execution_id)))
        session.changes.purged.update(row.execution_id for row in islice(free, max(limit, 0)))
        if session.changes.purged:
            requests = tables.requests.items()
            session.changes.forgotten += [key for key, request in requests if request.expires_at <= closed_before]
        purge_definitions(session, tables, closed_before)
    await session.finish(Point.PURGE_COMMIT, Point.PURGED)
    return len(session.changes.purged)


async def purge_dead_letters(connection: Connection, before: Instant, limit: int) -> int:
    """Remove old dead letters; one that is being requeued or discarded is left to the transaction that does so."""
    session = Session(connection)
    with session.statement():
        await session.reach(Point.PURGE_LOCK)
        stored = connection.database.tables.dead_letters
        old = [row_id for row_id in heapq.nsmallest(limit, stored) if stored[row_id].at < before]
        session.changes.discarded.update(row_id for row_id in old if session.locks.try_key(session, ("dead letter", row_id)))
    await session.finish(Point.PURGE_COMMIT, Point.PURGED)
    return len(session.changes.discarded)
