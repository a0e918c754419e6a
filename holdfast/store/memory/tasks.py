"""Human tasks in memory: what turns do to them, and what people do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from holdfast.store.contract import TurnWrite
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Tables
from holdfast.store.once import KeyedCall
from holdfast.store.tasks import (
    ChangeOutcome,
    TaskChange,
    TaskEventRow,
    TaskFilter,
    TaskKey,
    TaskOrder,
    TaskRow,
    apply_turn_change,
    matches,
)

ChangeOnce = Callable[[KeyedCall | None, Callable[[Session], Awaitable[int]]], Awaitable[int]]

# --- what turns do --------------------------------------------------------------------------------------------------------


def lock_tasks(session: Session, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
    """Those of these tasks that are open, locked; None for one that somebody is changing."""
    locked: dict[TaskKey, TaskRow | None] = {}
    for key in keys:
        task_id = session.view.task_id(*key)
        found = None if task_id is None else session.view.task(task_id)
        if found is not None and found.is_open:
            locked[key] = found if session.locks.try_key(session, ("task", found.task_id)) else None
    return locked


def find_busy(session: Session, turns: Sequence[TurnWrite]) -> set[str]:
    """The executions whose turns are lost: somebody is changing a task of theirs."""
    keys = [(turn.row.execution_id, change.number) for turn in turns for change in turn.task_changes]
    return {execution_id for (execution_id, _), row in lock_tasks(session, keys).items() if row is None} if keys else set()


def write_tasks(session: Session, turn: TurnWrite) -> None:
    """Tasks that begin, then what becomes of those that are open, which are locked."""
    for row, event in zip(turn.tasks, turn.task_events, strict=True):
        _put(session, row, event)
    for change in turn.task_changes:
        task_id = session.view.task_id(turn.row.execution_id, change.number)
        found = None if task_id is None else session.view.task(task_id)
        if found is not None and found.is_open:
            _put(session, *apply_turn_change(found, change, turn.completed_tasks))


def _put(session: Session, row: TaskRow, event: TaskEventRow) -> None:
    session.changes.tasks[row.task_id] = row
    session.changes.task_events.append(event)


# --- what people do -------------------------------------------------------------------------------------------------------


class MemoryTasks:
    """What people ask and do about human tasks, outside of batches."""

    def __init__(self, connection: Connection, change_once: ChangeOnce) -> None:
        self._connection = connection
        self._change_once = change_once

    async def _tables(self) -> Tables:
        await self._connection.reach(Point.READ)
        return self._connection.database.tables

    async def find(self, org: str, task_id: str) -> TaskRow | None:
        """A task by its id, open or ended."""
        row = (await self._tables()).tasks.get(task_id)
        return row if row is not None and row.org == org else None

    async def search(self, query: TaskFilter) -> list[TaskRow]:
        """The tasks that a filter selects, in its order."""
        found = [row for row in (await self._tables()).tasks.values() if matches(row, query)]
        if query.order is TaskOrder.DUE:
            by_due = sorted((row.due or 0, row.task_id, row) for row in found if row.is_open)
            return [row for *place, row in by_due if tuple(place) > (query.after_due, query.after_id)][: query.limit]
        found.sort(key=lambda row: row.task_id)
        return [row for row in found if row.task_id > query.after_id][: query.limit]

    async def list_events(self, org: str, task_id: str) -> list[TaskEventRow]:
        """What happened to a task, in order."""
        tables = await self._tables()
        row = tables.tasks.get(task_id)
        return list(tables.task_events[task_id]) if row is not None and row.org == org else []

    async def change(self, change: TaskChange, call: KeyedCall | None = None) -> ChangeOutcome:
        """Replace a task's row, and append its event; see `Tasks.change`."""
        row = change.row

        async def work(session: Session) -> int:
            tables = self._connection.database.tables
            await session.wait_until(partial(session.locks.try_key, session, ("task", row.task_id)))
            stored = tables.tasks.get(row.task_id)
            if stored is None or stored.org != row.org or stored.version != row.version - 1:
                raise _Stale
            _put(session, row, change.event)
            return 1

        try:
            await self._change_once(call, work)
        except _Stale:
            return ChangeOutcome.STALE
        return ChangeOutcome.DONE


class _Stale(Exception):
    """Rolls a change back: the task is at another version."""
