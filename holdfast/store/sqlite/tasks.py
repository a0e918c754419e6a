"""Human tasks on SQLite: what turns do to them, and what people do."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from holdfast.store.contract import TurnWrite
from holdfast.store.once import KeyedCall
from holdfast.store.sqlite.queues import do_once
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence
from holdfast.store.tasks import (
    ChangeOutcome,
    TaskChange,
    TaskEventRow,
    TaskFilter,
    TaskKey,
    TaskOrder,
    TaskRow,
    apply_turn_change,
    choose_key,
    from_event_row,
    from_task_row,
    list_keys,
    read_event_row,
    read_task_row,
)

T = TypeVar("T")

_LISTS: Final = {
    (TaskOrder.DUE, True, False): SQL["list_tasks_by_due"],
    (TaskOrder.DUE, True, True): SQL["list_tasks_by_due_of"],
    (TaskOrder.CREATED, True, False): SQL["list_tasks_open"],
    (TaskOrder.CREATED, True, True): SQL["list_tasks_open_of"],
    (TaskOrder.CREATED, False, False): SQL["list_tasks"],
    (TaskOrder.CREATED, False, True): SQL["list_tasks_of"],
}
"""By order, whether only open ones are asked for, and whether a key leads."""


class Write(Protocol):
    """Runs work in a transaction of its own."""

    async def __call__(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T: ...


class Read(Protocol):
    """Runs a query that is no part of a batch."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


# --- what turns do --------------------------------------------------------------------------------------------------------


def read_open_tasks(connection: sqlite3.Connection, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
    """Those of these tasks that are open. There is one writer: nobody is changing them."""
    found = ((key, connection.execute(SQL["read_open_task"], key).fetchone()) for key in keys)
    return {key: read_task_row(columns) for key, columns in found if columns is not None}


def write_tasks(connection: sqlite3.Connection, turns: Sequence[TurnWrite]) -> None:
    """Tasks that begin, then what becomes of those that are open."""
    for turn in turns:
        if turn.tasks:
            connection.executemany(SQL["put_tasks"], map(from_task_row, turn.tasks))
            for row in turn.tasks:
                put_task_keys(connection, row)
            connection.executemany(SQL["put_task_events"], map(from_event_row, turn.task_events))
        for change in turn.task_changes:
            found = connection.execute(SQL["read_open_task"], (turn.row.execution_id, change.number)).fetchone()
            if found is not None:
                _replace_task(connection, *apply_turn_change(read_task_row(found), change, turn.completed_tasks))


def put_task_keys(connection: sqlite3.Connection, row: TaskRow) -> None:
    """Put the keys by which lists find a task."""
    keys = [(row.task_id, *key, row.org, row.is_open, row.due) for key in list_keys(row)]
    connection.executemany(SQL["put_task_keys"], keys)


def _replace_task(connection: sqlite3.Connection, row: TaskRow, event: TaskEventRow) -> bool:
    """Replace a row that is at the version before; whether it was."""
    columns = from_task_row(row)
    values = (*columns[8:14], *columns[15:18], *columns[20:23], row.org, row.task_id, row.version - 1)
    if connection.execute(SQL["change_task"], values).rowcount != 1:
        return False
    connection.execute(SQL["remove_task_keys"], (row.task_id,))
    put_task_keys(connection, row)
    connection.execute(SQL["put_task_events"], from_event_row(event))
    return True


def purge_tasks(connection: sqlite3.Connection, numbers: str) -> None:
    """Remove the tasks of executions that go, whose row numbers are a JSON list."""
    connection.execute(SQL["purge_task_events"], (numbers,))
    connection.execute(SQL["purge_task_keys"], (numbers,))
    connection.execute(SQL["purge_tasks"], (numbers,))


# --- what people do -------------------------------------------------------------------------------------------------------


class SqliteTasks:
    """What people ask and do about human tasks, outside of batches."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def find(self, org: str, task_id: str) -> TaskRow | None:
        """A task by its id, open or ended."""
        found = await self._read(lambda db: db.execute(SQL["find_task"], (org, task_id)).fetchone())
        return None if found is None else read_task_row(found)

    async def search(self, query: TaskFilter) -> list[TaskRow]:
        """The tasks that a filter selects, in its order."""
        statement, values = prepare_list(query)
        return [read_task_row(row) for row in await self._read(lambda db: db.execute(statement, values).fetchall())]

    async def list_events(self, org: str, task_id: str) -> list[TaskEventRow]:
        """What happened to a task, in order."""
        rows = await self._read(lambda db: db.execute(SQL["list_task_events"], (org, task_id)).fetchall())
        return [read_event_row(row) for row in rows]

    async def change(self, change: TaskChange, call: KeyedCall | None = None) -> ChangeOutcome:
        """Replace a task's row, and append its event; see `Tasks.change`."""
        work = partial(_change, change)
        try:
            await self._write("change a task in", work if call is None else partial(do_once, call, work))
        except _Stale:
            return ChangeOutcome.STALE
        return ChangeOutcome.DONE


class _Stale(Exception):
    """Rolls a change back: the task is at another version."""


def _change(change: TaskChange, connection: sqlite3.Connection, changes: Changes) -> int:
    event = change.event
    if not _replace_task(connection, change.row, event):
        raise _Stale
    values = (event.task_id, event.sequence, event.kind, event.by, event.at)
    changes.evidence = CommitEvidence("has_task_event", values, True)
    return 1


def prepare_list(query: TaskFilter) -> tuple[str, dict[str, Any]]:
    """The statement of a list, and what it takes."""
    key = choose_key(query)
    is_open = query.order is TaskOrder.DUE or (bool(query.states) and query.is_open_only)
    kind, value = (None, None) if key is None else key
    return _LISTS[query.order, is_open, key is not None], {
        "org": query.org,
        "states": as_json([str(one) for one in query.states]) if query.states else None,
        "assignee": query.assignee,
        "claimer": query.claimer,
        "group": query.group,
        "user": query.user,
        "name": query.name,
        "workflow": query.workflow,
        "execution": query.execution_id,
        "queue": query.queue,
        "business": query.business_key,
        "due_before": query.due_before,
        "after": query.after_id,
        "limit": query.limit,
        "after_due": query.after_due,
        "kind": kind,
        "value": value,
    }
