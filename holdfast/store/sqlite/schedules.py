"""Schedules in a SQLite file. There is one writer: whoever is in a transaction holds them all."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from msgspec.structs import asdict, astuple

from holdfast.core.instants import Instant
from holdfast.store.columns import to_schedule_row
from holdfast.store.rows import Route
from holdfast.store.schedules import ScheduleChange, ScheduleKey, ScheduleOutlook, ScheduleRow, refuse_change
from holdfast.store.sqlite.queues import put_inbox
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence


def _as_routes(routes: Collection[Route] | None) -> str | None:
    return None if routes is None else as_json(list(routes))


def claim(
    connection: sqlite3.Connection,
    due_until: Instant,
    routes: Collection[Route] | None,
    skip: Collection[ScheduleKey],
    limit: int,
) -> list[ScheduleRow]:
    values = {"due_until": due_until, "routes": _as_routes(routes), "skip": as_json(list(skip)), "limit": limit}
    return [to_schedule_row(row) for row in connection.execute(SQL["claim_schedules"], values)]


def claim_waiting(
    connection: sqlite3.Connection, routes: Collection[Route] | None, after: ScheduleKey, limit: int
) -> list[ScheduleRow]:
    values = {"routes": _as_routes(routes), "org": after[0], "after": after[1], "limit": limit}
    return [to_schedule_row(row) for row in connection.execute(SQL["claim_waiting_schedules"], values)]


def find_open_ids(connection: sqlite3.Connection, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    return set(connection.execute(SQL["find_open_ids"], (as_json(list(pairs)),)).fetchall())


def write(connection: sqlite3.Connection, changes: Changes, rows: Sequence[ScheduleRow]) -> None:
    connection.executemany(SQL["write_schedules"], map(asdict, rows))
    _leave_evidence(changes, rows[-1])


def _leave_evidence(changes: Changes, row: ScheduleRow) -> None:
    if changes.evidence is None:
        changes.evidence = CommitEvidence("has_schedule", (*row.key, row.version), True)


def change(connection: sqlite3.Connection, changes: Changes, asked: ScheduleChange) -> int:
    row, key = asked.row, (asked.org, asked.schedule_id)
    if row is None:
        is_done = connection.execute(SQL["remove_schedule"], (*key, asked.expected)).rowcount == 1
        if is_done:
            changes.evidence = CommitEvidence("has_schedule", (*key, 0), False)
    elif asked.expected is None:
        is_done = connection.execute(SQL["insert_schedule"], astuple(row)).rowcount == 1
    else:
        is_done = connection.execute(SQL["write_schedules"], asdict(row)).rowcount == 1
    if not is_done:
        raise refuse_change(asked)
    if row is not None:
        _leave_evidence(changes, row)
    put_inbox(connection, changes, list(asked.starts))
    return asked.answer


def find(connection: sqlite3.Connection, org: str, schedule_id: str) -> ScheduleRow | None:
    found = connection.execute(SQL["find_schedule"], (org, schedule_id)).fetchone()
    return None if found is None else to_schedule_row(found)


def list_all(connection: sqlite3.Connection, org: str, limit: int, after: str, owner: str | None) -> list[ScheduleRow]:
    values = {"org": org, "after": after, "owner": owner, "limit": limit}
    return [to_schedule_row(row) for row in connection.execute(SQL["list_schedules"], values)]


def look_at(
    connection: sqlite3.Connection, routes: Collection[Route] | None, skip: Collection[ScheduleKey]
) -> ScheduleOutlook:
    values = {"routes": _as_routes(routes), "skip": as_json(list(skip))}
    due, has_waiting = connection.execute(SQL["look_at_schedules"], values).fetchone()
    return ScheduleOutlook(due, bool(has_waiting))
