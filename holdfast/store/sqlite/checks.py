"""What a database must not hold: damaged pages, rows that contradict each other, bytes that nobody can read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

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
from holdfast.store.sqlite.failures import primary_code
from holdfast.store.sqlite.pauses import read_settings
from holdfast.store.sqlite.statements import SQL
from holdfast.store.tasks import read_event_row, read_task_row


def check_database(connection: sqlite3.Connection) -> Findings:
    """Everything that is wrong, and everything that is newer. Takes as long as reading the whole database does."""
    damage = _check_pages(connection)
    if damage:
        return Findings(damage, [])  # what the rows say cannot be trusted
    return split_findings(
        chain(
            _check_executions(connection),
            _check_histories(connection),
            _check_open_twice(connection),
            _check_timers(connection),
            _check_offers(connection),
            _check_tasks(connection),
            _check_requests(connection),
            _check_envelopes(connection),
            _check_schedules(connection),
            check_pauses(read_settings(connection)),
            _check_subscriptions(connection),
            _check_publications(connection),
            _check_definitions(connection),
            _check_repairable(connection),
        )
    )


def _check_pages(connection: sqlite3.Connection) -> list[str]:
    try:
        lines = [line for (line,) in connection.execute(SQL["check_pages"]) if line != "ok"]
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        lines = [str(error)]  # so damaged that it cannot even be looked through
    return [f"the file is damaged: {line}" for line in lines]


def _check_executions(connection: sqlite3.Connection) -> Iterator[Finding]:
    for (execution_id,) in connection.execute(SQL["check_attributes"]):
        yield f"execution {execution_id}: it has attributes and no row"
    for execution_id, status, closed_at, *columns in connection.execute(SQL["check_executions"]):
        name, found_by = f"execution {execution_id}", FoundBy(*columns)
        try:
            is_closed = Status(status).is_closed
        except ValueError:
            yield f"{name}: its status is '{status}', which does not exist"
            continue
        if is_closed != (closed_at is not None):
            yield f"{name}: it is {status}, and its time of closing is {closed_at}"
        try:
            decode_details(found_by.details)
        except (CorruptStore, NewerFormat) as error:
            yield describe_unreadable(name, error)
            continue
        yield from check_attributes(name, found_by)


def _check_histories(connection: sqlite3.Connection) -> Iterator[Finding]:
    for (execution,) in connection.execute(SQL["check_histories_without_row"]):
        yield f"the execution with number {execution} has a history and no row"
    rows = connection.execute(SQL["check_histories"])
    for (execution_id, sequence, last_turn), turns in groupby(rows, key=itemgetter(0, 1, 2)):
        yield from _check_history(f"execution {execution_id}", sequence, last_turn, turns)


def _check_history(name: str, sequence: int, last_turn: int, turns: Iterator[tuple[Any, ...]]) -> Iterator[Finding]:
    """Contiguous from 1 to the row's sequence, each turn linked to the one before it, and the row to the last."""
    expected, before = 1, 0
    for _, _, _, turn_id, previous, first, count, schema, body in turns:
        if turn_id is None:
            break  # it has no history
        if first != expected:
            yield f"{name}: expected event {expected} next in its history, found {first}"
        if previous != before:
            yield f"{name}: turn {first} follows row {previous} of its history, expected row {before}"
        expected, before = first + count, turn_id
        yield from _check_events(f"{name}: turn {first}", count, schema, body)
    if expected - 1 != sequence:
        yield f"{name}: its history ends at {expected - 1}, its row says {sequence}"
    if before != last_turn:
        yield f"{name}: its history ends with row {before}, its row says {last_turn}"


def _check_events(name: str, count: int, schema: int, body: bytes) -> Iterator[Finding]:
    try:
        events = decode_events(body, schema)
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)
        return
    if len(events) != count:
        yield f"{name} holds {count_noun(len(events), 'event')}, its count says {count}"


def _check_open_twice(connection: sqlite3.Connection) -> Iterator[Finding]:
    for org, workflow_id, ids in connection.execute(SQL["check_open_twice"]):
        yield f"workflow id '{workflow_id}' of org '{org}' is open more than once: {ids}"


def _check_timers(connection: sqlite3.Connection) -> Iterator[Finding]:
    for execution_id, number, status in connection.execute(SQL["check_timers"]):
        name = f"timer {number} of execution {execution_id}"
        if status is None:
            yield f"{name}: there is no such execution"
        else:
            yield f"{name}: the execution is {status}"


def _check_offers(connection: sqlite3.Connection) -> Iterator[Finding]:
    for execution_id, number, status in connection.execute(SQL["check_offers"]):
        name = f"offered activity {number} of execution {execution_id}"
        if status is None:
            yield f"{name}: there is no such execution"
        else:
            yield f"{name}: the execution is {status}"


def _check_tasks(connection: sqlite3.Connection) -> Iterator[Finding]:
    for *columns, status, closed_at, keys in connection.execute(SQL["check_tasks"]):
        yield from check_task(read_task_row(columns), status, closed_at, keys)
    for event in connection.execute(SQL["check_task_events"]):
        yield from check_task_event(read_event_row(event))


def _check_requests(connection: sqlite3.Connection) -> Iterator[Finding]:
    for values in connection.execute(SQL["check_requests"]):
        yield from check_request(*values)


def _check_envelopes(connection: sqlite3.Connection) -> Iterator[Finding]:
    for row_id, body in connection.execute(SQL["check_inbox"]):
        try:
            decode_envelope(body)
        except (CorruptStore, NewerFormat) as error:
            yield describe_unreadable(f"envelope {row_id}", error)


def _check_schedules(connection: sqlite3.Connection) -> Iterator[Finding]:
    for values in connection.execute(SQL["check_schedules"]):
        yield from check_schedule(*values)


def _check_definitions(connection: sqlite3.Connection) -> Iterator[Finding]:
    (number,) = connection.execute(SQL["read_settings"]).fetchone()
    for values in connection.execute(SQL["check_definitions"]):
        yield from check_definition(DefinitionFound(*values), number)
    for *columns, is_named in connection.execute(SQL["check_resources"]):
        yield from check_resource(ResourceRow(*columns), is_named=bool(is_named))


def _check_repairable(connection: sqlite3.Connection) -> Iterator[Finding]:
    for values in connection.execute(SQL["check_incidents"]):
        yield from check_incident(*values)
    for values in connection.execute(SQL["check_snapshots"]):
        yield from check_snapshot(SnapshotFound(*values))


def _check_subscriptions(connection: sqlite3.Connection) -> Iterator[Finding]:
    for values in connection.execute(SQL["check_subscriptions"]):
        yield from check_subscription(WaitRow(*values))


def _check_publications(connection: sqlite3.Connection) -> Iterator[Finding]:
    for row in connection.execute(SQL["check_pending"]):
        yield from check_kept(KeptRow(*row))
    for values in connection.execute(SQL["check_publications"]):
        yield from check_publication(*values)
    for what, of in connection.execute(SQL["check_leftovers"]):
        yield f"{what} {of}: there is no such row"
