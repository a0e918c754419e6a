"""What a database must not hold: rows that contradict each other, bytes that nobody can read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.core.codec import decode_details, decode_envelope, decode_events
from holdfast.core.lifecycle import Status
from holdfast.core.safe_texts import count_noun
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.definition_findings import (
    DefinitionFound,
    SnapshotFound,
    check_definition,
    check_incident,
    check_resource,
    check_snapshot,
)
from holdfast.store.definitions import ResourceRow
from holdfast.store.findings import (
    Finding,
    Findings,
    FoundBy,
    KeptRow,
    WaitRow,
    check_attributes,
    check_kept,
    check_pauses,
    check_publication,
    check_request,
    check_schedule,
    check_subscription,
    check_task,
    check_task_event,
    describe_unreadable,
    split_findings,
)
from holdfast.store.pauses import PauseRow, Settings
from holdfast.store.tasks import read_event_row, read_task_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.store.postgres.drivers import Connection

_PAGE: Final = 1_000
_AN_HOUR: Final = 3600.0
"""Seconds for what goes through whole tables."""


async def check_database(connection: Connection, sql: Mapping[str, str]) -> Findings:
    """Everything that is wrong, and everything that is newer, as one moment saw it. Reads the whole database."""
    problems: list[Finding] = []
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute("SET LOCAL statement_timeout = 0")
        async for row in _walk(connection, sql, "check_executions"):
            problems.extend(_check_execution(_CheckedExecution(*row)))
        async for (execution_id,) in _walk(connection, sql, "check_attributes"):
            problems.append(f"execution {execution_id}: it has attributes and no row")
        async for (execution,) in _walk(connection, sql, "check_histories_without_row"):
            problems.append(f"the execution with number {execution} has a history and no row")
        problems.extend([problem async for problem in _check_histories(connection, sql)])
        async for execution_id, number, status in _walk(connection, sql, "check_timers"):
            problems.append(_misplaced(f"timer {number} of execution {execution_id}", status))
        async for execution_id, number, status in _walk(connection, sql, "check_offers"):
            problems.append(_misplaced(f"offered activity {number} of execution {execution_id}", status))
        async for *columns, status, closed_at, keys in _walk(connection, sql, "check_tasks"):
            problems.extend(check_task(read_task_row(columns), status, closed_at, keys))
        async for event in _walk(connection, sql, "check_task_events"):
            problems.extend(check_task_event(read_event_row(event)))
        async for values in _walk(connection, sql, "check_requests"):
            problems.extend(check_request(*values))
        async for row_id, body in _walk(connection, sql, "check_envelopes"):
            try:
                decode_envelope(body)
            except (CorruptStore, NewerFormat) as error:
                problems.append(describe_unreadable(f"inbox row {row_id}", error))
        async for values in _walk(connection, sql, "check_schedules"):
            problems.extend(check_schedule(*values))
        [(settings,)] = await connection.fetch(sql["read_settings"])
        pauses = [PauseRow(*row) for row in await connection.fetch(sql["read_pauses"])]
        problems.extend(check_pauses(Settings(int(settings), pauses)))
        async for values in _walk(connection, sql, "check_subscriptions"):
            problems.extend(check_subscription(WaitRow(*values)))
        async for values in _walk(connection, sql, "check_pending"):
            problems.extend(check_kept(KeptRow(*values)))
        async for values in _walk(connection, sql, "check_publications"):
            problems.extend(check_publication(*values))
        async for what, of in _walk(connection, sql, "check_leftovers"):
            problems.append(f"{what} {of}: there is no such row")
        problems.extend([problem async for problem in _check_definitions(connection, sql, int(settings))])
    return split_findings(problems)


async def _check_definitions(connection: Connection, sql: Mapping[str, str], settings: int) -> AsyncIterator[Finding]:
    """Of deployed definitions, incidents and snapshots."""
    async for values in _walk(connection, sql, "check_definitions"):
        for finding in check_definition(DefinitionFound(*values), settings):
            yield finding
    async for *columns, is_named in _walk(connection, sql, "check_resources"):
        for finding in check_resource(ResourceRow(*columns), is_named=is_named):
            yield finding
    async for values in _walk(connection, sql, "check_incidents"):
        for finding in check_incident(*values):
            yield finding
    async for values in _walk(connection, sql, "check_snapshots"):
        for finding in check_snapshot(SnapshotFound(*values)):
            yield finding


async def _walk(connection: Connection, sql: Mapping[str, str], name: str) -> AsyncIterator[Any]:
    # In SQL: the driver's cursors leave statements behind, which a pooler hands to others.
    await connection.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql[name]}", timeout=_AN_HOUR)
    while rows := await connection.fetch(f"FETCH {_PAGE} FROM {name}", timeout=_AN_HOUR):
        for row in rows:
            yield row
    await connection.execute(f"CLOSE {name}")


class _CheckedExecution(NamedTuple):
    """The columns of `check_executions`, in their order."""

    execution_id: str
    status: str
    closed_at: int | None
    details: bytes
    is_blocked: bool
    sequence: int
    open_count: int
    events: int
    org: str
    workflow: str
    code_version: str
    attributes: str | None


def _check_execution(row: _CheckedExecution) -> Iterator[Finding]:
    name = f"execution {row.execution_id}"
    try:
        is_closed = Status(row.status).is_closed
    except ValueError:
        yield f"{name}: its status is '{row.status}', which does not exist"
        return
    if is_closed != (row.closed_at is not None):
        yield f"{name}: it is {row.status}, and its time of closing is {row.closed_at}"
    if row.is_blocked != (row.status == Status.BLOCKED):
        yield f"{name}: it is {row.status}, and is_blocked says {row.is_blocked}"
    if row.open_count > 1:
        yield f"{name}: its workflow id is open {row.open_count} times"
    if row.events != row.sequence:
        yield f"{name}: its history ends at {row.events}, its row says {row.sequence}"
    try:
        decode_details(row.details)
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)
        return
    yield from check_attributes(name, FoundBy(row.org, row.workflow, row.code_version, row.details, row.attributes))


async def _check_histories(connection: Connection, sql: Mapping[str, str]) -> AsyncIterator[Finding]:
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
        except (CorruptStore, NewerFormat) as error:
            yield describe_unreadable(f"{name}: turn {first}", error)
            continue
        if found != count:
            yield f"{name}: turn {first} holds {count_noun(found, 'event')}, its count says {count}"


def _misplaced(name: str, status: str | None) -> str:
    return f"{name}: there is no such execution" if status is None else f"{name}: the execution is {status}"
