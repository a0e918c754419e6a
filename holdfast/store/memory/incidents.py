"""Open incidents and snapshots of the store in memory."""

from __future__ import annotations

from holdfast.store.contract import TurnWrite
from holdfast.store.incidents import IncidentFilter, IncidentRow, matches
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import is_closed
from holdfast.store.snapshots import SnapshotRow

# --- what turns do --------------------------------------------------------------------------------------------------------


def find_snapshot(session: Session, execution_id: str) -> SnapshotRow | None:
    """The snapshot of an execution, also one that this transaction put."""
    own, stored = session.changes.snapshots, session.connection.database.tables.snapshots
    return own[execution_id] if execution_id in own else stored.get(execution_id)


def write_repairs(session: Session, turn: TurnWrite) -> None:
    """The snapshot and the incidents of a turn that has rare things."""
    changes, execution_id = session.changes, turn.row.execution_id
    if is_closed(turn.row):
        stored = session.connection.database.tables.incidents.get(execution_id, ())
        ended = [*stored, *(number for key, number in changes.incidents if key == execution_id)]
        changes.snapshots[execution_id] = None
    else:
        ended = list(turn.ended_incidents)
        changes.incidents.update((row.key, row) for row in turn.incidents)
        if turn.snapshot is not None:
            changes.snapshots[execution_id] = turn.snapshot
    changes.incidents.update(((execution_id, number), None) for number in ended)


# --- what people ask ------------------------------------------------------------------------------------------------------


class MemoryIncidents:
    """The open incidents of a database, outside of batches."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search(self, query: IncidentFilter) -> list[IncidentRow]:
        """The open incidents that a filter selects, by execution id and number."""
        found = await self._find(query)
        return [row for row in found if query.after is None or row.key > query.after][: query.limit]

    async def count(self, query: IncidentFilter) -> int:
        """How many open incidents a filter selects; no more are counted than its limit."""
        return min(len(await self._find(query)), query.limit)

    async def _find(self, query: IncidentFilter) -> list[IncidentRow]:
        await self._connection.reach(Point.READ)
        tables = self._connection.database.tables
        found = (
            row
            for execution_id, rows in tables.incidents.items()
            if (execution := tables.executions.get(execution_id)) is not None and not is_closed(execution)
            for row in rows.values()
        )
        return sorted((row for row in found if matches(row, query)), key=lambda row: row.key)
