"""Human tasks on PostgreSQL: what turns do to them, and what people do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.store.contract import TurnWrite
from holdfast.store.once import KeyedCall
from holdfast.store.postgres.keyed_calls import do_once
from holdfast.store.tasks import (
    ChangeOutcome,
    TaskChange,
    TaskEventRow,
    TaskFilter,
    TaskKey,
    TaskOrder,
    TaskRow,
    TurnTaskChange,
    apply_turn_change,
    choose_key,
    from_event_row,
    from_task_row,
    list_keys,
    read_event_row,
    read_task_row,
)

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]
Write = Callable[[str, Callable[["Connection"], Awaitable[Any]]], Awaitable[Any]]


# --- what turns do --------------------------------------------------------------------------------------------------------


async def lock_tasks(connection: Connection, sql: Sql, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
    """Those of these tasks that are open, locked; None for one that somebody is changing."""
    rows = map(read_task_row, await connection.fetch(sql["lock_open_tasks"], *zip(*keys, strict=True)))
    locked: dict[TaskKey, TaskRow | None] = {(row.execution_id, row.number): row for row in rows}
    missing = [key for key in keys if key not in locked]
    if missing:
        found = await connection.fetch(sql["find_open_tasks"], *zip(*missing, strict=True))
        locked |= dict.fromkeys(((execution_id, number) for execution_id, number in found), None)
    return locked


async def find_busy(connection: Connection, sql: Sql, turns: Sequence[TurnWrite]) -> set[str]:
    """The executions whose turns are lost: somebody is changing a task of theirs."""
    keys = {(turn.row.execution_id, change.number): None for turn in turns for change in turn.task_changes}
    if not keys:
        return set()
    locked = await lock_tasks(connection, sql, keys)
    return {execution_id for (execution_id, _), row in locked.items() if row is None}


async def write_tasks(connection: Connection, sql: Sql, turns: Sequence[TurnWrite]) -> bool:
    """Tasks that begin, then what becomes of those that are open; whether there was anything."""
    created = [task for turn in turns for task in turn.tasks]
    if created:
        events = [event for turn in turns for event in turn.task_events]
        await connection.fetch(sql["put_tasks"], *zip(*map(from_task_row, created), strict=True))
        keys = [(row.task_id, *key, row.org, row.is_open, row.due) for row in created for key in list_keys(row)]
        await connection.fetch(sql["put_task_keys"], *zip(*keys, strict=True))
        await connection.fetch(sql["put_task_events"], *zip(*map(from_event_row, events), strict=True))
    changes: dict[tuple[str, int], list[TurnTaskChange]] = {}
    for turn in turns:
        for change in turn.task_changes:
            changes.setdefault((turn.row.execution_id, change.number), []).append(change)
    if changes:
        completed = {turn.row.execution_id: turn.completed_tasks for turn in turns}
        for columns in await connection.fetch(sql["lock_open_tasks"], *zip(*changes, strict=True)):
            row = read_task_row(columns)
            for change in changes[row.execution_id, row.number]:
                row, event = apply_turn_change(row, change, completed[row.execution_id])
                await _replace_task(connection, sql, row, event)
    return bool(created or changes)


async def _replace_task(connection: Connection, sql: Sql, row: TaskRow, event: TaskEventRow) -> bool:
    """Replace a row that is at the version before; whether it was."""
    kinds, values = zip(*list_keys(row), strict=True)
    columns = from_task_row(row)
    changed = (*columns[8:14], *columns[15:18], *columns[20:23])
    told = from_event_row(event)[2:]
    found = await connection.fetch(sql["change_task"], row.org, row.task_id, *changed, *told, list(kinds), list(values))
    return bool(found[0][0])


# --- what people do -------------------------------------------------------------------------------------------------------


class PostgresTasks:
    """What people ask and do about human tasks, outside of batches. `write` runs work in a transaction of its own."""

    def __init__(self, connections: Connections, write: Write) -> None:
        self._connections = connections
        self._write = write

    async def find(self, org: str, task_id: str) -> TaskRow | None:
        """A task by its id, open or ended."""
        rows = await self._connections.fetch("read", "find_task", org, task_id)
        return read_task_row(rows[0]) if rows else None

    async def search(self, query: TaskFilter) -> list[TaskRow]:
        """The tasks that a filter selects, in its order."""
        name, values = prepare_list(query)
        return [read_task_row(row) for row in await self._connections.fetch("read", name, *values)]

    async def list_events(self, org: str, task_id: str) -> list[TaskEventRow]:
        """What happened to a task, in order."""
        return [read_event_row(row) for row in await self._connections.fetch("read", "list_task_events", org, task_id)]

    async def change(self, change: TaskChange, call: KeyedCall | None = None) -> ChangeOutcome:
        """Replace a task's row, and append its event; see `Tasks.change`."""
        sql = self._connections.sql

        async def work(connection: Connection) -> int:
            if not await _replace_task(connection, sql, change.row, change.event):
                raise _Stale
            return 1

        try:
            await self._write("change a task in", lambda connection: do_once(connection, sql, call, work))
        except _Stale:
            return ChangeOutcome.STALE
        return ChangeOutcome.DONE


class _Stale(Exception):
    """Rolls a change back: the task is at another version."""


def prepare_list(query: TaskFilter) -> tuple[str, tuple[Any, ...]]:
    """The statement of a list, and what it takes."""
    key = choose_key(query)
    if query.order is TaskOrder.DUE:
        name = "list_tasks_by_due"
    else:
        name = "list_tasks_open" if query.states and query.is_open_only else "list_tasks"
    values = (
        query.org,
        [str(one) for one in query.states] or None,
        query.assignee,
        query.claimer,
        query.group,
        query.user,
        query.name,
        query.workflow,
        query.execution_id,
        query.queue,
        query.business_key,
        query.due_before,
        query.after_id,
        query.limit,
        query.after_due,
        None if key is None else key[0],
        None if key is None else key[1],
    )
    return name if key is None else f"{name}_of", values
