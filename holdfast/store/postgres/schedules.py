"""Schedules in PostgreSQL: those who fire skip what others hold; who changes one waits for whoever is at it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple

from holdfast.core.instants import Instant
from holdfast.store.postgres.queues import put_inbox
from holdfast.store.rows import Route
from holdfast.store.schedules import ScheduleChange, ScheduleKey, ScheduleRow, refuse_change

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]


def _as_routes(routes: Collection[Route] | None) -> list[Route] | None:
    return None if routes is None else list(routes)


def list_parts(keys: Collection[ScheduleKey]) -> tuple[list[str], list[str]]:
    """Keys of schedules as two columns."""
    return [org for org, _ in keys], [one for _, one in keys]


async def claim(
    connection: Connection,
    sql: Sql,
    due_until: Instant,
    routes: Collection[Route] | None,
    skip: Collection[ScheduleKey],
    limit: int,
) -> list[ScheduleRow]:
    values = (due_until, _as_routes(routes), *list_parts(skip), limit)
    return [ScheduleRow(*row) for row in await connection.fetch(sql["claim_schedules"], *values)]


async def claim_waiting(
    connection: Connection, sql: Sql, routes: Collection[Route] | None, after: ScheduleKey, limit: int
) -> list[ScheduleRow]:
    rows = await connection.fetch(sql["claim_waiting_schedules"], _as_routes(routes), *after, limit)
    return [ScheduleRow(*row) for row in rows]


async def find_open_ids(connection: Connection, sql: Sql, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(row[0], row[1]) for row in await connection.fetch(sql["find_open_ids"], *list_parts(pairs))}


async def write(connection: Connection, sql: Sql, rows: Sequence[ScheduleRow]) -> int:
    """Replace those whose stored version is the one before; how many were."""
    columns: Any = zip(
        *(
            (
                row.org,
                row.schedule_id,
                row.state,
                row.due,
                row.is_waiting,
                row.route,
                row.version,
                row.updated_at,
                row.details,
            )
            for row in rows
        ),
        strict=True,
    )
    return len(await connection.fetch(sql["write_schedules"], *map(list, columns)))


async def change(connection: Connection, sql: Sql, asked: ScheduleChange) -> int:
    row = asked.row
    if row is None:
        done = await connection.fetch(sql["remove_schedule"], asked.org, asked.schedule_id, asked.expected)
    elif asked.expected is None:
        done = await connection.fetch(sql["insert_schedule"], *astuple(row))
    else:
        done = [1] * await write(connection, sql, [row])
    if not done:
        raise refuse_change(asked)
    if asked.starts:
        await put_inbox(connection, sql, list(asked.starts))
    return asked.answer
