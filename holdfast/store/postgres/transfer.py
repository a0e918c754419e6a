"""Everything in a database, to be taken elsewhere; and whatever comes from elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from asyncpg import UniqueViolationError
from msgspec.structs import astuple, fields, replace

from holdfast.core.request_keys import KeyScope, list_kinds
from holdfast.errors import Conflict, CorruptStore
from holdfast.store.columns import from_execution_row, list_columns, row_from_columns, to_execution_row, to_timer_row
from holdfast.store.contract import TurnWrite
from holdfast.store.incidents import IncidentRow
from holdfast.store.matching import list_spread_rows
from holdfast.store.postgres.incidents import put_definition_attributes
from holdfast.store.postgres.statements import place
from holdfast.store.postgres.subscribing import Subscriber, name_topic, put_publications
from holdfast.store.publication_columns import list_topic, to_pending_row, to_publication_row, to_subscription_row
from holdfast.store.queries import load_queries
from holdfast.store.rows import ActivityRow, HistoryRow, InboxRow, NodeRow, RequestRow
from holdfast.store.tasks import EVENT_COLUMNS, TASK_COLUMNS, TaskRow, list_keys, to_event_row, to_task_row
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
from holdfast.store.wait_matching import list_turn_locks

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

_AN_HOUR: Final = 3600.0
"""Seconds for what goes through whole tables."""

_STARTS: Final[Mapping[RowKind, Cursor]] = {
    RowKind.EXECUTIONS: (0,),
    RowKind.HISTORIES: (0, 0),
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
_COPIED: Final = (
    *("executions", "histories", "timers", "inbox", "activities", "tasks", "task_events"),
    *("subscriptions", "pending", "publications", "incidents"),
)
_TABLES: Final[Mapping[RowKind, str]] = {
    **{kind: kind.name.lower() for kind in RowKind},
    RowKind.HISTORIES: "events",
}
_SMALL: Final = frozenset(
    {
        RowKind.TIMERS,
        RowKind.REQUESTS,
        RowKind.PAUSES,
        RowKind.SUBSCRIPTIONS,
        RowKind.STARTS,
        RowKind.DEFINITIONS,
        RowKind.INCIDENTS,
    }
)
"""Kinds whose rows hold no bytes that would have to be measured."""
_COLUMNS: Final[Mapping[RowKind, Sequence[str]]] = {
    **{kind: [field.name for field in fields(row)] for kind, row in ROW_TYPES.items()},
    RowKind.TASKS: TASK_COLUMNS,
    RowKind.TASK_EVENTS: EVENT_COLUMNS,
    RowKind.SUBSCRIPTIONS: [
        *("org", "kind", "name", "execution_id", "number", "key", "conditions", "standing", "since", "created_at"),
        *("fields", "lookup"),
    ],
    RowKind.PENDING: [
        *("org", "kind", "name", "key", "body", "item", "sent_at", "expires_at", "target", "fields", "start", "place"),
        *("lookup", "start_id", "mode", "id"),
    ],
    RowKind.PUBLICATIONS: [
        *("org", "body", "fields", "origin", "number", "is_returned", "subscribers", "id", "kind", "name", "lookup")
    ],
}
_COUNTED: Final = (
    RowKind.EXECUTIONS,
    RowKind.INBOX,
    RowKind.DEAD_LETTERS,
    RowKind.ACTIVITIES,
    RowKind.SUBSCRIPTIONS,
    RowKind.PENDING,
    RowKind.PUBLICATIONS,
)
"""Kinds whose ids the database gives, in the order of `find_greatest_ids`."""


@lru_cache
def _statements_for(schema: str) -> Mapping[str, str]:
    queries = load_queries("holdfast.store.postgres", "transfer.sql")
    return MappingProxyType({name: place(sql, schema) for name, sql in queries.items()})


class _NotAsExpected(Exception):
    """A mark is not what it should be: the transaction is given up."""


class PostgresTransfer:
    """What `Transferable` promises, over the store's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._schema = connections.address.schema
        self._sql = _statements_for(self._schema)
        self._statements = connections.sql

    @asynccontextmanager
    async def _transaction(self, doing: str, *, is_reading: bool = False) -> AsyncIterator[Connection]:
        """One transaction, whose statements may take their time; what it reads is all of one moment if it only reads."""
        isolation: Any = "repeatable_read" if is_reading else "read_committed"
        async with (
            self._connections.use(doing) as connection,
            connection.transaction(isolation=isolation, readonly=is_reading),
        ):
            await self._connections.set_up(connection)
            await connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    # --- marks ---

    async def read_marks(self) -> dict[str, str]:
        async with self._transaction("read", is_reading=True) as connection:
            return dict(await connection.fetch(self._sql["read_marks"]))

    async def change_marks(self, changes: Sequence[MarkChange]) -> bool:
        try:
            async with self._transaction("mark") as connection:
                await self._change(connection, changes)
        except _NotAsExpected:
            return False
        return True

    async def _change(self, connection: Connection, changes: Sequence[MarkChange]) -> None:
        for name, expected, value in map(astuple, changes):
            if expected is None and value is None:
                done = await connection.fetch(self._sql["lacks_mark"], name)
            elif expected is None:
                done = await connection.fetch(self._sql["add_mark"], name, value)
            elif value is None:
                done = await connection.fetch(self._sql["remove_mark"], name, expected)
            else:
                done = await connection.fetch(self._sql["change_mark"], name, expected, value)
            if not done:
                raise _NotAsExpected

    async def list_present(self) -> list[tuple[NodeRow, int]]:
        async with self._transaction("read", is_reading=True) as connection:
            found = await connection.fetch(self._sql["list_present"])
        return [(NodeRow(*values), seconds) for *values, seconds in found]

    # --- everything ---

    async def count_rows(self) -> dict[RowKind, int]:
        async with self._transaction("count what is in", is_reading=True) as connection:
            counts = await connection.fetchrow(self._sql["count_rows"], timeout=_AN_HOUR)
        return dict(zip(RowKind, counts or (), strict=True))

    async def read_page(self, kind: RowKind, cursor: Cursor, limit: int) -> Page:
        start = cursor or _STARTS[kind]
        bounds = (limit,) if kind in _SMALL else (limit, PAGE_BYTES)
        async with self._transaction("read", is_reading=True) as connection:
            found = await connection.fetch(self._sql[f"page_{kind.name.lower()}"], *start, *bounds, timeout=_AN_HOUR)
        row, keys = ROW_TYPES[kind], len(start)
        return Page([row_from_columns(row, values[keys:]) for values in found], tuple(found[-1][:keys]) if found else None)

    async def put_page(self, kind: RowKind, rows: Sequence[AnyRow], change: MarkChange) -> bool:
        try:
            async with self._transaction("move rows to") as connection:
                await self._change(connection, [change])
                await self._put(connection, kind, rows)
        except _NotAsExpected:
            return False
        return True

    async def settle(self) -> None:
        tables = [_TABLES[kind] for kind in _COUNTED]
        async with self._transaction("bring up to date the ids of") as connection:
            greatest = await connection.fetchrow(self._sql["find_greatest_ids"], timeout=_AN_HOUR)
            for table, number in zip(tables, greatest or (), strict=True):
                await connection.fetch(self._sql["set_sequence"], place(f"holdfast.{table}", self._schema), number or 0)
        async with self._transaction("analyze") as connection:
            await connection.execute(self._sql["analyze"], timeout=_AN_HOUR)

    async def empty(self, change: MarkChange) -> bool:
        try:
            async with self._transaction("empty") as connection:
                await self._change(connection, [change])
                await connection.execute(self._sql["empty"], timeout=_AN_HOUR)
        except _NotAsExpected:
            return False
        return True

    # --- putting rows ---

    async def _put(self, connection: Connection, kind: RowKind, rows: Sequence[Any]) -> None:
        if not rows:
            return
        if kind is RowKind.PAUSES:
            await connection.fetch(self._sql["move_settings"], max(row.ended_at or row.at for row in rows))
        elif kind is RowKind.DEFINITIONS:
            await connection.fetch(self._sql["move_settings"], max(row.changed for row in rows))
        if kind is RowKind.EXECUTIONS:
            last = await connection.fetchval(self._sql["find_last_id"])
            values = [(*from_execution_row(row), row.status == "blocked", last + place) for place, row in enumerate(rows, 1)]
            await self._copy(connection, kind, [*_COLUMNS[kind], "is_blocked", "id"], values)
            await put_definition_attributes(connection, self._statements, rows)
        elif kind is RowKind.HISTORIES:
            numbers = await self._find_numbers(connection, {row.execution_id for row in rows})
            values = [(numbers[row.execution_id], *astuple(row)[1:]) for row in rows]
            await self._copy(connection, kind, ["execution", *_COLUMNS[kind][1:]], values)
        elif kind is RowKind.PUBLICATIONS:
            values = [(*list_columns(row), *list_topic(row)) for row in rows]
            await self._copy(connection, kind, _COLUMNS[kind], values)
        else:
            await self._copy(connection, kind, _COLUMNS[kind], [tuple(list_columns(row)) for row in rows])
        if kind is RowKind.TASKS:
            await self._put_task_keys(connection, rows)
        elif kind is RowKind.PENDING:
            await connection.fetch(self._sql["add_pending_fields"], [row.id for row in rows], timeout=_AN_HOUR)

    async def _copy(
        self, connection: Connection, kind: RowKind, columns: Sequence[str], values: Iterable[tuple[Any, ...]]
    ) -> None:
        await connection.copy_records_to_table(
            _TABLES[kind], records=values, columns=list(columns), schema_name=self._schema, timeout=_AN_HOUR
        )

    async def _put_task_keys(self, connection: Connection, rows: Sequence[TaskRow]) -> None:
        keys = [(row.task_id, *key, row.org, row.is_open, row.due) for row in rows for key in list_keys(row)]
        await connection.copy_records_to_table(
            "task_keys",
            records=keys,
            columns=["task_id", "kind", "value", "org", "is_open", "due"],
            schema_name=self._schema,
            timeout=_AN_HOUR,
        )

    async def _find_numbers(self, connection: Connection, execution_ids: Collection[str]) -> dict[str, int]:
        numbers: dict[str, int] = dict(await connection.fetch(self._sql["find_numbers"], list(execution_ids)))
        for execution_id in execution_ids:
            if execution_id not in numbers:
                raise CorruptStore(
                    f"Expected every history to have its execution, but {execution_id} has none. "
                    "Run `holdfast check` on the database from which it comes."
                )
        return numbers

    # --- one execution at a time ---

    async def read_copies(self, execution_ids: Collection[str]) -> list[ExecutionCopy]:
        asked = list(execution_ids)
        async with self._transaction("export from", is_reading=True) as connection:
            found = {name: await connection.fetch(self._sql[f"copy_{name}"], asked, timeout=_AN_HOUR) for name in _COPIED}
            kinds = list_kinds(KeyScope.EXECUTION), list_kinds(KeyScope.START)
            answered = await connection.fetch(self._sql["copy_requests"], asked, *kinds, timeout=_AN_HOUR)
            spreads = await connection.fetch(self._sql["copy_spreads"], timeout=_AN_HOUR)
        rows = [to_execution_row(values) for values in found["executions"]]
        under_way = list_spread_rows(map(to_publication_row, spreads), rows)
        histories = _group(found["histories"], 0, HistoryRow)
        timers = _group(found["timers"], 1, lambda *values: to_timer_row(values))
        inbox = _group([(first, *rest) for first, *rest in found["inbox"]], 0, lambda _key, *values: InboxRow(*values))
        activities = _group(found["activities"], 1, ActivityRow)
        requests = _group(answered, 3, RequestRow)
        tasks = _group(found["tasks"], 2, lambda *values: to_task_row(values))
        told = _group(found["task_events"], 0, lambda _key, *values: to_event_row(values))
        waits = _group(found["subscriptions"], 3, lambda *values: to_subscription_row(values))
        pending = _group(found["pending"], 8, lambda *values: to_pending_row(values))
        publications = _group(found["publications"], 3, lambda *values: to_publication_row(values))
        incidents = _group(found["incidents"], 1, IncidentRow)
        return [
            ExecutionCopy(
                row,
                histories[key],
                timers[key],
                [*inbox[key], *under_way.get(key, ())],
                activities[key],
                requests[key],
                tuple(tasks[key]),
                tuple(told[key]),
                tuple(waits[key]),
                tuple(pending[key]),
                tuple(publications[key]),
                tuple(incidents[key]),
            )
            for row in rows
            for key in [row.execution_id]
        ]

    async def put_copy(self, copy: ExecutionCopy) -> CopyResult:
        row = copy.row
        try:
            async with self._transaction("import into") as connection:
                await connection.fetch(self._sql["lock_workflow_id"], row.org, row.workflow_id)
                taken = await connection.fetchrow(self._sql["find_taken"], row.org, row.workflow_id, row.execution_id)
                exists, is_open = taken or (False, False)
                if exists or is_open:
                    return CopyResult.EXISTS if exists else CopyResult.IS_OPEN
                try:
                    await self._add(connection, copy)
                except UniqueViolationError as error:
                    raise _NotAsExpected from error
        except _NotAsExpected:
            return CopyResult.EXISTS  # another import was quicker
        return CopyResult.DONE

    async def _add(self, connection: Connection, copy: ExecutionCopy) -> None:
        number = await connection.fetchval(self._sql["add_execution"], *from_execution_row(copy.row))
        await put_definition_attributes(connection, self._statements, [copy.row])
        histories = [(number, *astuple(one)[1:]) for one in copy.history]
        await self._copy(connection, RowKind.HISTORIES, ["execution", *_COLUMNS[RowKind.HISTORIES][1:]], histories)
        await self._put(connection, RowKind.TIMERS, copy.timers)
        columns = [name for name in _COLUMNS[RowKind.INBOX] if name != "id"]  # behind what waits here
        waiting = [tuple(getattr(one, name) for name in columns) for one in copy.inbox]
        await self._copy(connection, RowKind.INBOX, columns, waiting)
        await self._put(connection, RowKind.ACTIVITIES, copy.activities)
        await self._put(connection, RowKind.TASKS, copy.tasks)
        await self._put(connection, RowKind.TASK_EVENTS, copy.task_events)
        await self._put_waits(connection, copy)
        if copy.pending:
            table = place("holdfast.pending", self._schema)
            ids = await connection.fetch(self._sql["next_ids"], table, len(copy.pending))
            await self._put(
                connection, RowKind.PENDING, [replace(one, id=row[0]) for one, row in zip(copy.pending, ids, strict=True)]
            )
        await self._put(connection, RowKind.INCIDENTS, copy.incidents)
        if copy.publications:
            await put_publications(connection, self._statements, copy.publications)
        if copy.requests:
            await connection.fetch(self._sql["add_requests"], *zip(*map(astuple, copy.requests), strict=True))

    async def _put_waits(self, connection: Connection, copy: ExecutionCopy) -> None:
        """Begin its subscriptions as a turn does, under the locks that its topics have, for which this waits."""
        turn = TurnWrite(copy.row, None, subscriptions=copy.subscriptions)
        for key in sorted(list_turn_locks(turn)):
            await connection.fetch(self._statements["wait_for_topic"], name_topic(key))
        if copy.subscriptions:
            subscriber = Subscriber(connection, self._statements)
            if await subscriber.prepare([turn]):
                raise Conflict(
                    f"Expected to import execution {copy.row.execution_id}, but another execution ends at this moment that "
                    "concerns what it waits for. Import it again."
                )
            await subscriber.write([turn], {})


def _group(rows: Iterable[Sequence[Any]], key: int, make: Any) -> Mapping[str, list[Any]]:
    """Rows by the execution that one of their columns names."""
    groups: defaultdict[str, list[Any]] = defaultdict(list)
    for values in rows:
        groups[values[key]].append(make(*values))
    return groups
