"""Open incidents and snapshots on PostgreSQL: what turns write of them, and what is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple, replace

from holdfast.store.attributes import is_process
from holdfast.store.contract import TurnWrite
from holdfast.store.incidents import IncidentFilter, IncidentRow, count_found
from holdfast.store.rows import ExecutionRow
from holdfast.store.snapshots import SnapshotRow

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]


# --- what turns do --------------------------------------------------------------------------------------------------------


async def write_repairs(connection: Connection, sql: Sql, turns: Sequence[TurnWrite]) -> None:
    """The incidents and snapshots of turns that have rare things; those of executions that close go."""
    going_on = [turn for turn in turns if turn.row.closed_at is None]
    begun = [astuple(_make_storable(row)) for turn in going_on for row in turn.incidents]
    if begun:
        await connection.fetch(sql["put_incidents"], *zip(*begun, strict=True))
    ended = [(turn.row.execution_id, number) for turn in going_on for number in turn.ended_incidents]
    if ended:
        await connection.fetch(sql["end_incidents"], *zip(*ended, strict=True))
    taken = [astuple(turn.snapshot) for turn in going_on if turn.snapshot is not None]
    if taken:
        await connection.fetch(sql["put_snapshots"], *zip(*taken, strict=True))
    closed = [turn.row.execution_id for turn in turns if turn.row.closed_at is not None]
    if closed:
        await connection.fetch(sql["end_repairs"], closed)


def _make_storable(row: IncidentRow) -> IncidentRow:
    """Whatever somebody's exception says: PostgreSQL's text has no NUL."""
    return replace(row, message=row.message.replace("\0", "\ufffd")) if "\0" in row.message else row


async def put_definition_attributes(connection: Connection, sql: Sql, rows: Iterable[ExecutionRow]) -> None:
    """By these is known which executions a version of a deployed process has."""
    values = [(row.org, row.workflow, row.code_version, row.execution_id) for row in rows if is_process(row.details)]
    if values:
        await connection.fetch(sql["put_definition_attributes"], *zip(*values, strict=True))


async def read_snapshots(connection: Connection, sql: Sql, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
    """The snapshots of those of these executions that have one."""
    rows = [SnapshotRow(*row) for row in await connection.fetch(sql["read_snapshots"], list(execution_ids))]
    return {row.execution_id: row for row in rows}


# --- what people ask ------------------------------------------------------------------------------------------------------


class SnapshotReads:
    """Reads the snapshots of executions outside of batches."""

    _connections: Connections

    async def load_snapshot(self, execution_id: str) -> SnapshotRow | None:
        rows = await self._connections.fetch("read", "read_snapshots", [execution_id])
        return SnapshotRow(*rows[0]) if rows else None


class PostgresIncidents:
    """The open incidents of a database, outside of batches."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def search(self, query: IncidentFilter) -> list[IncidentRow]:
        """The open incidents that a filter selects, by execution id and number."""
        name, values = prepare_list(query)
        rows = await self._connections.fetch("read", name, *values, *(query.after or ("", 0)), query.limit)
        return [IncidentRow(*row) for row in rows]

    async def count(self, query: IncidentFilter) -> int:
        """How many open incidents a filter selects; no more are counted than its limit."""
        name, values = prepare_list(query)
        statement = count_found(self._connections.sql[name])
        [(found,)] = await self._connections.fetch_statement("count in", statement, *values, "", 0, query.limit)
        return int(found)


def prepare_list(query: IncidentFilter) -> tuple[str, tuple[Any, ...]]:
    """The name of a list's statement, and its conditions: the narrowest of them leads."""
    if query.execution_id is not None:
        name = "list_incidents_of_execution"
    elif query.workflow_id is not None:
        name = "list_incidents_of_workflow_id"
    elif query.workflow is not None:
        name = "list_incidents_of_workflow"
    else:
        name = "list_incidents"
    return name, (query.org, query.workflow, query.execution_id, query.workflow_id, query.element, query.kind)
