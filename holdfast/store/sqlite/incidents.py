"""Open incidents and snapshots on SQLite: what turns write of them, and what is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from msgspec.structs import astuple

from holdfast.store.contract import TurnWrite
from holdfast.store.incidents import IncidentFilter, IncidentRow, count_found
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.sqlite.statements import SQL, as_json

T = TypeVar("T")


class Read(Protocol):
    """Runs a query that is no part of a batch."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


# --- what turns do --------------------------------------------------------------------------------------------------------


def write_incidents(connection: sqlite3.Connection, turns: Sequence[TurnWrite]) -> None:
    """Incidents that begin, then those that end; all of an execution that closes."""
    going_on = [turn for turn in turns if turn.row.closed_at is None]
    begun = [astuple(row) for turn in going_on if turn.incidents for row in turn.incidents]
    if begun:
        connection.executemany(SQL["put_incidents"], begun)
    ended = [(turn.row.execution_id, one) for turn in going_on if turn.ended_incidents for one in turn.ended_incidents]
    if ended:
        connection.executemany(SQL["end_incidents"], ended)
    closed = [turn.row.execution_id for turn in turns if turn.row.closed_at is not None]
    if closed:
        connection.execute(SQL["end_all_incidents"], (as_json(closed),))


def write_snapshots(connection: sqlite3.Connection, turns: Sequence[TurnWrite]) -> None:
    """Snapshots that take the place of those before; that of an execution that closes goes."""
    put = [turn.snapshot for turn in turns if turn.snapshot is not None and turn.row.closed_at is None]
    if put:
        connection.executemany(SQL["put_snapshots"], map(astuple, put))
    closed = [turn.row.execution_id for turn in turns if turn.row.closed_at is not None]
    if closed:
        connection.execute(SQL["end_snapshots"], (as_json(closed),))


def read_snapshots(connection: sqlite3.Connection, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
    """The snapshots of those of these executions that have one."""
    found = connection.execute(SQL["read_snapshots"], (as_json(list(execution_ids)),))
    return {row.execution_id: row for row in (SnapshotRow(*values) for values in found)}


def purge_incidents(connection: sqlite3.Connection, numbers: str) -> None:
    """Remove the incidents and snapshots of executions that go, whose row numbers are a JSON list."""
    connection.execute(SQL["purge_incidents"], (numbers,))
    connection.execute(SQL["purge_snapshots"], (numbers,))


# --- what people ask ------------------------------------------------------------------------------------------------------


class SqliteIncidents:
    """The open incidents of a SQLite file, outside of batches."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def search(self, query: IncidentFilter) -> list[IncidentRow]:
        """The open incidents that a filter selects, by execution id and number."""
        statement, values = prepare_list(query)
        values["after_id"], values["after_number"] = query.after or ("", 0)
        rows = await self._read(lambda db: db.execute(statement, values).fetchall())
        return [IncidentRow(*row) for row in rows]

    async def count(self, query: IncidentFilter) -> int:
        """How many open incidents a filter selects; no more are counted than its limit."""
        statement, values = prepare_list(query)
        (found,) = await self._read(lambda db: db.execute(count_found(statement), values).fetchone())
        return int(found)


def prepare_list(query: IncidentFilter) -> tuple[str, dict[str, Any]]:
    """The statement of a list, from its beginning, and what it takes: the narrowest condition leads."""
    if query.execution_id is not None:
        statement = SQL["list_incidents_of_execution"]
    elif query.workflow_id is not None:
        statement = SQL["list_incidents_of_workflow_id"]
    elif query.workflow is not None:
        statement = SQL["list_incidents_of_workflow"]
    else:
        statement = SQL["list_incidents"]
    return statement, {
        "org": query.org,
        "workflow": query.workflow,
        "execution_id": query.execution_id,
        "workflow_id": query.workflow_id,
        "element": query.element,
        "kind": query.kind,
        "after_id": "",
        "after_number": 0,
        "limit": query.limit,
    }
