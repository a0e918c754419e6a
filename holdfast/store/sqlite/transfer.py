"""Everything in a database, to be taken elsewhere; and whatever comes from elsewhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import astuple, replace

from holdfast.core.request_keys import KeyScope, list_kinds
from holdfast.errors import CorruptStore
from holdfast.store.columns import from_execution_row, list_columns, row_from_columns, to_execution_row, to_timer_row
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.incidents import IncidentRow
from holdfast.store.matching import list_spread_rows
from holdfast.store.publication_columns import (
    list_pending_fields,
    to_pending_row,
    to_publication_row,
    to_subscription_row,
)
from holdfast.store.publications import PendingRow
from holdfast.store.queries import load_queries
from holdfast.store.rows import ActivityRow, ExecutionRow, HistoryRow, InboxRow, NodeRow, RequestRow
from holdfast.store.sqlite import reads
from holdfast.store.sqlite.attributes import list_attributes, put_attributes
from holdfast.store.sqlite.publications import write_subscriptions
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.tasks import put_task_keys
from holdfast.store.sqlite.writer_cache import Changes, WriterCache
from holdfast.store.tasks import to_event_row, to_task_row
from holdfast.store.transfer import (
    PAGE_BYTES,
    ROW_TYPES,
    AnyRow,
    CopyResult,
    Cursor,
    ExecutionCopy,
    MarkChange,
    Page,
    RowKind,
)

T = TypeVar("T")

TRANSFER_STATEMENTS: Final = load_queries("holdfast.store.sqlite", "transfer.sql")

_STARTS: Final[Mapping[RowKind, Cursor]] = {
    RowKind.EXECUTIONS: (0,),
    RowKind.HISTORIES: (0,),
    RowKind.TIMERS: ("", 0),
    RowKind.INBOX: (0,),
    RowKind.DEAD_LETTERS: (0,),
    RowKind.REQUESTS: ("", "", ""),
    RowKind.ACTIVITIES: (0,),
    RowKind.PAUSES: ("", "", ""),
    RowKind.SCHEDULES: ("", ""),
    RowKind.TASKS: ("",),
    RowKind.TASK_EVENTS: ("", 0),
    RowKind.SUBSCRIPTIONS: (0,),
    RowKind.PENDING: (0,),
    RowKind.PUBLICATIONS: (0,),
    RowKind.STARTS: ("",) * 6,
    RowKind.RESOURCES: ("", ""),
    RowKind.DEFINITIONS: ("", "", "", 0),
    RowKind.INCIDENTS: ("", 0),
}
"""Where the first page of each kind begins: before every key, none of which is empty."""


class Write(Protocol):
    """Does work in a transaction of its own."""

    def __call__(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> Awaitable[T]: ...


class Read(Protocol):
    """Does work beside the loop, on what is committed."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


class SqliteTransfer:
    """What `Transferable` promises, by the ways in which the store writes and reads."""

    def __init__(self, write: Write, read: Read, writer_cache: WriterCache) -> None:
        self._write = write
        self._read = read
        self._writer_cache = writer_cache

    async def read_marks(self) -> dict[str, str]:
        return await self._read(lambda db: dict(db.execute(TRANSFER_STATEMENTS["read_marks"]).fetchall()))

    async def change_marks(self, changes: Sequence[MarkChange]) -> bool:
        return await self._write("mark", lambda db, _: _change_marks(db, changes))

    async def list_present(self) -> list[tuple[NodeRow, int]]:
        return []

    async def count_rows(self) -> dict[RowKind, int]:
        return await self._read(
            lambda db: dict(zip(RowKind, db.execute(TRANSFER_STATEMENTS["count_rows"]).fetchone(), strict=True))
        )

    async def read_page(self, kind: RowKind, cursor: Cursor, limit: int) -> Page:
        return await self._read(lambda db: _read_page(db, kind, cursor or _STARTS[kind], limit))

    async def put_page(self, kind: RowKind, rows: Sequence[AnyRow], change: MarkChange) -> bool:
        def work(connection: sqlite3.Connection, changes: Changes) -> bool:
            is_expected = _change_marks(connection, [change])
            if is_expected:
                Putter(connection, self._writer_cache, changes).put(kind, rows)
            return is_expected

        return await self._write("move rows to", work)

    async def settle(self) -> None:
        """Nothing: ids go on behind the greatest by themselves, and no plan depends on statistics."""

    async def empty(self, change: MarkChange) -> bool:
        def work(connection: sqlite3.Connection, _: Changes) -> bool:
            is_expected = _change_marks(connection, [change])
            if is_expected:
                for statement in TRANSFER_STATEMENTS["empty"].split(";"):
                    connection.execute(statement)
            return is_expected

        return await self._write("empty", work)

    async def read_copies(self, execution_ids: Collection[str]) -> list[ExecutionCopy]:
        return await self._read(lambda db: _read_copies(db, execution_ids))

    async def put_copy(self, copy: ExecutionCopy) -> CopyResult:
        return await self._write("import into", lambda db, changes: Putter(db, self._writer_cache, changes).put_copy(copy))


# --- marks ----------------------------------------------------------------------------------------------------------------


def _change_marks(connection: sqlite3.Connection, changes: Sequence[MarkChange]) -> bool:
    for change in changes:
        found = connection.execute(TRANSFER_STATEMENTS["read_mark"], (change.name,)).fetchone()
        if (None if found is None else found[0]) != change.expected:
            return False
    for change in changes:
        if change.value is None:
            connection.execute(TRANSFER_STATEMENTS["remove_mark"], (change.name,))
        else:
            connection.execute(TRANSFER_STATEMENTS["put_mark"], (change.name, change.value))
    return True


# --- reading --------------------------------------------------------------------------------------------------------------


def _read_page(connection: sqlite3.Connection, kind: RowKind, cursor: Cursor, limit: int) -> Page:
    row_type, keys = ROW_TYPES[kind], len(cursor)
    rows: list[AnyRow] = []
    size = 0
    found = connection.execute(TRANSFER_STATEMENTS[f"page_{kind.name.lower()}"], (*cursor, limit))
    for values in found:
        cursor = values[:keys]
        rows.append(row_from_columns(row_type, values[keys:]))
        size += sum(len(value) for value in values if type(value) is bytes)
        if size > PAGE_BYTES:
            found.close()
            break
    return Page(rows, cursor if rows else None)


def _read_copies(connection: sqlite3.Connection, execution_ids: Collection[str]) -> list[ExecutionCopy]:
    """All as of one moment: the connection, which is for this alone, ends the transaction with itself."""
    if not connection.in_transaction:  # every read of a file that others own is in one
        connection.execute(TRANSFER_STATEMENTS["begin_reading"])
    asked = (as_json(list(execution_ids)),)
    rows = [to_execution_row(values) for values in connection.execute(TRANSFER_STATEMENTS["copy_executions"], asked)]
    requests: dict[str, list[RequestRow]] = {row.execution_id: [] for row in rows}
    keys = {
        "execution_ids": asked[0],
        "kinds": as_json(list_kinds(KeyScope.EXECUTION)),
        "starts": as_json(list_kinds(KeyScope.START)),
    }
    for values in connection.execute(TRANSFER_STATEMENTS["copy_requests"], keys):
        request = RequestRow(*values)
        requests[request.execution_id].append(request)
    spreads = map(to_publication_row, connection.execute(TRANSFER_STATEMENTS["copy_spreads"]))
    under_way = list_spread_rows(spreads, rows)
    copies = (_read_copy(connection, row, requests[row.execution_id]) for row in rows)
    return [replace(copy, inbox=[*copy.inbox, *under_way.get(copy.row.execution_id, ())]) for copy in copies]


def _read_copy(connection: sqlite3.Connection, row: ExecutionRow, requests: Sequence[RequestRow]) -> ExecutionCopy:
    key = (row.execution_id,)
    address = {
        "org": row.org,
        "execution_id": row.execution_id,
        "workflow_id": row.workflow_id,
        "is_open": row.closed_at is None,
    }
    return ExecutionCopy(
        row,
        reads.load_history(connection, row.execution_id, 0, None),
        [to_timer_row(values) for values in connection.execute(TRANSFER_STATEMENTS["copy_timers"], key)],
        [InboxRow(*values) for values in connection.execute(TRANSFER_STATEMENTS["copy_inbox"], address)],
        [ActivityRow(*values) for values in connection.execute(TRANSFER_STATEMENTS["copy_activities"], key)],
        requests,
        tuple(to_task_row(values) for values in connection.execute(TRANSFER_STATEMENTS["copy_tasks"], key)),
        tuple(to_event_row(values) for values in connection.execute(TRANSFER_STATEMENTS["copy_task_events"], key)),
        tuple(map(to_subscription_row, connection.execute(TRANSFER_STATEMENTS["copy_subscriptions"], key))),
        tuple(map(to_pending_row, connection.execute(TRANSFER_STATEMENTS["copy_pending"], key))),
        tuple(map(to_publication_row, connection.execute(TRANSFER_STATEMENTS["copy_publications"], key))),
        tuple(IncidentRow(*values) for values in connection.execute(TRANSFER_STATEMENTS["copy_incidents"], key)),
    )


# --- writing --------------------------------------------------------------------------------------------------------------


class Putter:
    """Puts rows that come from elsewhere, and has the only writer know of them."""

    def __init__(self, connection: sqlite3.Connection, writer_cache: WriterCache, changes: Changes) -> None:
        self._connection = connection
        self._writer_cache = writer_cache
        self._changes = changes

    def put(self, kind: RowKind, rows: Sequence[Any]) -> None:
        """Rows of one kind, behind those that are there."""
        if kind is RowKind.EXECUTIONS:
            self._put_executions(rows)
        elif kind is RowKind.HISTORIES:
            self._put_histories(rows)
        elif kind is RowKind.PENDING:
            self._put_pending(rows)
        else:
            self._connection.executemany(TRANSFER_STATEMENTS[f"move_{kind.name.lower()}"], map(list_columns, rows))
        if kind is RowKind.TIMERS:
            self._writer_cache.no_timer_before = min([self._writer_cache.no_timer_before, *(row.due for row in rows)])
        elif kind is RowKind.INBOX:
            self._changes.inbox_rows += len(rows)
        elif kind is RowKind.ACTIVITIES:
            self._changes.offers += len(rows)
        elif kind is RowKind.TASKS:
            for row in rows:
                put_task_keys(self._connection, row)
        elif kind is RowKind.PAUSES and rows:
            self._connection.execute(SQL["raise_settings"], (max(row.ended_at or row.at for row in rows),))
        elif kind is RowKind.DEFINITIONS and rows:
            self._connection.execute(SQL["raise_settings"], (max(row.changed for row in rows),))
        elif kind is RowKind.SUBSCRIPTIONS:
            self._changes.subscriptions += len(rows)
        elif kind is RowKind.PUBLICATIONS:
            self._changes.publications += len(rows)

    def put_copy(self, copy: ExecutionCopy) -> CopyResult:
        """An execution with all that belongs to it, or nothing."""
        row = copy.row
        if self._ask("has_execution", row.execution_id):
            return CopyResult.EXISTS
        if self._ask("has_open", row.org, row.workflow_id):
            return CopyResult.IS_OPEN
        self.put(RowKind.EXECUTIONS, [row])
        self.put(RowKind.HISTORIES, copy.history)
        self.put(RowKind.TIMERS, copy.timers)
        self.put(RowKind.INBOX, [replace(one, id=None) for one in copy.inbox])  # behind what waits here
        self.put(RowKind.ACTIVITIES, copy.activities)
        self.put(RowKind.REQUESTS, copy.requests)
        self.put(RowKind.TASKS, copy.tasks)
        self.put(RowKind.TASK_EVENTS, copy.task_events)
        waits = TurnWrite(row, None, subscriptions=copy.subscriptions)
        write_subscriptions(self._connection, self._writer_cache, self._changes, [waits], [], UnroutedWrite())
        self.put(RowKind.PENDING, [replace(one, id=0) for one in copy.pending])
        self.put(RowKind.PUBLICATIONS, [replace(one, id=0) for one in copy.publications])
        self.put(RowKind.INCIDENTS, copy.incidents)
        return CopyResult.DONE

    def _ask(self, query: str, *values: str) -> bool:
        (answer,) = self._connection.execute(TRANSFER_STATEMENTS[query], values).fetchone()
        return bool(answer)

    def _put_executions(self, rows: Sequence[ExecutionRow]) -> None:
        first = self._writer_cache.next_execution
        self._writer_cache.next_execution += len(rows)
        values = ((*from_execution_row(row), number) for number, row in enumerate(rows, first))
        self._connection.executemany(TRANSFER_STATEMENTS["move_executions"], values)
        put_attributes(self._connection, [value for row in rows for value in list_attributes(row)])

    def _put_pending(self, rows: Sequence[PendingRow]) -> None:
        for row in rows:
            (row_id,) = self._connection.execute(TRANSFER_STATEMENTS["move_pending"], list_columns(row)).fetchone()
            self._connection.executemany(SQL["put_pending_fields"], list_pending_fields(row, row_id))
        self._changes.pending += len(rows)

    def _put_histories(self, rows: Sequence[HistoryRow]) -> None:
        """Each turn is linked to the one before it, and its execution to the last."""
        asked = as_json(list({row.execution_id for row in rows}))
        found = self._connection.execute(TRANSFER_STATEMENTS["find_ends"], (asked,))
        numbers: dict[str, int] = {}
        ends: dict[str, int] = {}
        for execution_id, number, last_turn in found:
            numbers[execution_id], ends[execution_id] = number, last_turn
        values: list[tuple[Any, ...]] = []
        for turn, row in enumerate(rows, self._writer_cache.next_turn):
            if row.execution_id not in numbers:
                raise CorruptStore(
                    f"Expected every history to have its execution, but {row.execution_id} has none. "
                    "Run `holdfast check` on the database from which it comes."
                )
            values.append((turn, numbers[row.execution_id], ends[row.execution_id], *astuple(row)[1:]))
            ends[row.execution_id] = turn
        self._writer_cache.next_turn += len(rows)
        self._connection.executemany(TRANSFER_STATEMENTS["move_histories"], values)
        self._connection.executemany(
            TRANSFER_STATEMENTS["set_ends"], [(ends[key], number) for key, number in numbers.items()]
        )
