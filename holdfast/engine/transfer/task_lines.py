"""The human tasks of an execution, with what happened to them, as parts of its exported line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Raw

from holdfast.core.instants import from_datetime, to_datetime
from holdfast.engine.transfer.line_types import Name, Number, StrictStruct, Text, Time, Uuid
from holdfast.store.rows import ExecutionRow
from holdfast.store.tasks import TaskEventRow, TaskRow, TaskState


class TaskEventFields(StrictStruct, frozen=True, kw_only=True):
    """A step of a human task."""

    kind: Name
    at: Time
    by: Text
    groups: Sequence[Name]
    body: Raw


class TaskFields(StrictStruct, frozen=True, kw_only=True):
    """A human task of the execution, with what happened to it."""

    task_id: Uuid
    number: Number
    name: Name
    queue: Name
    state: TaskState
    assignee: Text
    claimer: Text
    users: Sequence[Name]
    groups: Sequence[Name]
    roles: Sequence[Name]
    priority: Number
    due: Time | None
    follow_up: Time | None
    business_key: Text
    created_at: Time
    updated_at: Time
    ended_at: Time | None
    body: Raw
    events: Sequence[TaskEventFields]


# --- writing --------------------------------------------------------------------------------------------------------------


def write_tasks(rows: Sequence[TaskRow], events: Sequence[TaskEventRow]) -> list[TaskFields]:
    """The tasks of an execution, each with its own of all `events`."""
    return [_write_task(row, [one for one in events if one.task_id == row.task_id]) for row in rows]


def _write_task(row: TaskRow, events: Sequence[TaskEventRow]) -> TaskFields:
    return TaskFields(
        task_id=row.task_id,
        number=row.number,
        name=row.name,
        queue=row.queue,
        state=TaskState(row.state),
        assignee=row.assignee,
        claimer=row.claimer,
        users=row.users,
        groups=row.groups,
        roles=row.roles,
        priority=row.priority,
        due=_write_time(row.due),
        follow_up=_write_time(row.follow_up),
        business_key=row.business_key,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        ended_at=_write_time(row.ended_at),
        body=Raw(row.body),
        events=[
            TaskEventFields(kind=one.kind, at=to_datetime(one.at), by=one.by, groups=one.groups, body=Raw(one.body))
            for one in events
        ],
    )


def _write_time(at: int | None) -> datetime | None:
    return None if at is None else to_datetime(at)


# --- reading --------------------------------------------------------------------------------------------------------------


def read_tasks(row: ExecutionRow, tasks: Sequence[TaskFields]) -> tuple[TaskRow, ...]:
    """The rows of the tasks of an execution."""
    return tuple(_read_task(row, one) for one in tasks)


def read_task_events(tasks: Sequence[TaskFields]) -> tuple[TaskEventRow, ...]:
    """The rows of everything that happened to tasks, in the order in which it happened to each."""
    return tuple(
        TaskEventRow(task.task_id, place, one.kind, from_datetime(one.at), one.by, tuple(one.groups), bytes(one.body))
        for task in tasks
        for place, one in enumerate(task.events, 1)
    )


def _read_task(row: ExecutionRow, task: TaskFields) -> TaskRow:
    return TaskRow(
        row.org,
        task.task_id,
        row.execution_id,
        task.number,
        row.workflow,
        row.workflow_id,
        task.name,
        task.queue,
        task.state.value,
        len(task.events),
        task.assignee,
        task.claimer,
        tuple(task.users),
        tuple(task.groups),
        tuple(task.roles),
        task.priority,
        _read_time(task.due),
        _read_time(task.follow_up),
        task.business_key,
        from_datetime(task.created_at),
        from_datetime(task.updated_at),
        _read_time(task.ended_at),
        bytes(task.body),
    )


def _read_time(at: datetime | None) -> int | None:
    return None if at is None else from_datetime(at)
