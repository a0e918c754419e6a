"""What a database must not hold: rows that contradict each other, bytes that nobody can read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.codec import decode_details, decode_envelope, decode_events
from holdfast.core.lifecycle import Status
from holdfast.errors import CorruptStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.store.postgres.drivers import Connection

_PAGE: Final = 1_000
_AN_HOUR: Final = 3600.0
"""Seconds for what goes through whole tables."""


async def check_database(connection: Connection, sql: Mapping[str, str]) -> list[str]:
    """Everything that is wrong, a sentence each, as one moment saw it. Reads the whole database."""
    problems: list[str] = []
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute("SET LOCAL statement_timeout = 0")
        async for row in _walk(connection, sql, "check_executions"):
            problems.extend(_check_execution(*row))
        async for (execution,) in _walk(connection, sql, "check_histories_without_row"):
            problems.append(f"the execution with number {execution} has a history and no row")
        problems.extend([problem async for problem in _check_histories(connection, sql)])
        async for execution_id, number, status in _walk(connection, sql, "check_timers"):
            problems.append(_misplaced(f"timer {number} of execution {execution_id}", status))
        async for execution_id, number, status in _walk(connection, sql, "check_offers"):
            problems.append(_misplaced(f"offered activity {number} of execution {execution_id}", status))
        async for row_id, body in _walk(connection, sql, "check_envelopes"):
            try:
                decode_envelope(body)
            except CorruptStore as error:
                problems.append(f"inbox row {row_id}: {error.message}")
    return problems


async def _walk(connection: Connection, sql: Mapping[str, str], name: str) -> AsyncIterator[Any]:
    # In SQL: the driver's cursors leave statements behind, which a pooler hands to others.
    await connection.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql[name]}", timeout=_AN_HOUR)
    while rows := await connection.fetch(f"FETCH {_PAGE} FROM {name}", timeout=_AN_HOUR):
        for row in rows:
            yield row
    await connection.execute(f"CLOSE {name}")


def _check_execution(
    execution_id: str,
    status: str,
    closed_at: int | None,
    details: bytes,
    is_blocked: bool,
    sequence: int,
    open_count: int,
    events: int,
) -> Iterator[str]:
    name = f"execution {execution_id}"
    try:
        is_closed = Status(status).is_closed
    except ValueError:
        yield f"{name}: its status is '{status}', which does not exist"
        return
    if is_closed != (closed_at is not None):
        yield f"{name}: it is {status}, and its time of closing is {closed_at}"
    if is_blocked != (status == Status.BLOCKED):
        yield f"{name}: it is {status}, and is_blocked says {is_blocked}"
    if open_count > 1:
        yield f"{name}: its workflow id is open {open_count} times"
    if events != sequence:
        yield f"{name}: its history ends at {events}, its row says {sequence}"
    try:
        decode_details(details)
    except CorruptStore as error:
        yield f"{name}: {error.message}"


async def _check_histories(connection: Connection, sql: Mapping[str, str]) -> AsyncIterator[str]:
    """Contiguous from 1 on, and readable."""
    present, expected = "", 1
    async for execution_id, first, count, schema, body in _walk(connection, sql, "check_histories"):
        if execution_id != present:
            present, expected = execution_id, 1
        name = f"execution {execution_id}"
        if first != expected:
            yield f"{name}: expected event {expected} next in its history, found {first}"
        expected = first + count
        try:
            found = len(decode_events(body, schema))
        except CorruptStore as error:
            yield f"{name}: turn {first}: {error.message}"
            continue
        if found != count:
            yield f"{name}: turn {first} holds {found} events, its count says {count}"


def _misplaced(name: str, status: str | None) -> str:
    return f"{name}: there is no such execution" if status is None else f"{name}: the execution is {status}"
