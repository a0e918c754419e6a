"""Schedules of the store in memory: the same locks as in PostgreSQL, on the keys of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from holdfast.core.instants import Instant
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Tables, may_take
from holdfast.store.rows import Route
from holdfast.store.schedules import ScheduleChange, ScheduleKey, ScheduleOutlook, ScheduleRow, refuse_change


def list_due(
    tables: Tables, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey]
) -> list[ScheduleRow]:
    found = [
        row
        for row in tables.schedules.values()
        if row.due is not None and row.due <= due_until and may_take(row.route, routes) and row.key not in skip
    ]
    return sorted(found, key=lambda row: (row.due or 0, row.key))


def list_waiting(tables: Tables, routes: Collection[Route] | None, after: ScheduleKey) -> list[ScheduleRow]:
    found = (row for row in tables.schedules.values() if row.is_waiting and row.key > after and may_take(row.route, routes))
    return sorted(found, key=lambda row: row.key)


def lock(session: Session, rows: Iterable[ScheduleRow], limit: int) -> list[ScheduleRow]:
    """FOR UPDATE SKIP LOCKED LIMIT: up to so many that nobody else holds."""
    held: list[ScheduleRow] = []
    for row in rows:
        if len(held) == limit:
            break
        if session.locks.try_key(session, ("schedule", *row.key)):
            held.append(row)
    return held


def find_open_ids(session: Session, tables: Tables, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    return {
        (org, workflow_id)
        for org, workflow_id in pairs
        if tables.addressed.get((org, "", workflow_id)) or session.view.open_id((org, workflow_id)) is not None
    }


async def change(session: Session, tables: Tables, asked: ScheduleChange) -> int:
    key = (asked.org, asked.schedule_id)
    await session.wait_until(partial(session.locks.try_key, session, ("schedule", *key)))
    stored = tables.schedules.get(key)
    if (None if stored is None else stored.version) != asked.expected:
        raise refuse_change(asked)
    session.changes.schedules[key] = asked.row
    session.put_inbox(asked.starts)
    return asked.answer


def list_all(tables: Tables, org: str, limit: int, after: str, owner: str | None) -> list[ScheduleRow]:
    found = [row for row in tables.schedules.values() if row.org == org and row.schedule_id > after]
    return sorted((row for row in found if owner in (None, row.owner)), key=lambda row: row.schedule_id)[:limit]


def look_at(tables: Tables, routes: Collection[Route] | None, skip: Collection[ScheduleKey]) -> ScheduleOutlook:
    due = (
        row.due
        for row in tables.schedules.values()
        if row.due is not None and may_take(row.route, routes) and row.key not in skip
    )
    return ScheduleOutlook(min(due, default=None), any(row.is_waiting for row in tables.schedules.values()))
