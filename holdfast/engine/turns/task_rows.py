"""The rows of human tasks that a turn creates, and what it does to those that are open."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.effects import CreatedTask, TaskChange, Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.store.contract import TurnWrite
from holdfast.store.tasks import TaskBody, TaskEventBody, TaskEventRow, TaskRow, TaskState, TurnTaskChange, decode_body


def write_tasks(write: TurnWrite, execution: Execution, turn: Turn) -> None:
    """Note in what a turn writes which tasks it creates, and what it changes about others."""
    write.tasks = [_make_row(execution, one, turn.now) for one in turn.created_tasks]
    write.task_events = [_make_event(one, turn.now) for one in write.tasks]
    write.task_changes = [_make_change(one, turn.now) for one in turn.task_changes]
    for one in turn.task_changes:
        row = None if turn.task_standings is None else turn.task_standings.get(one.number)
        if one.result is not None and isinstance(row, TaskRow):
            body = codec.encode(replace(decode_body(row), result=one.result))
            write.completed_tasks = [*write.completed_tasks, replace(row, body=body)]


def _make_change(change: TaskChange, now: Instant) -> TurnTaskChange:
    after = {"groups": change.groups} if change.groups else change.after
    return TurnTaskChange(
        change.number,
        change.kind,
        now,
        codec.encode(TaskEventBody(reason=change.reason, before=change.before, after=after)),
        change.groups,
        change.ends,
        change.by,
        change.actor_groups,
        change.after.get("due"),
        "due" in change.after,
    )


def _make_row(execution: Execution, created: CreatedTask, now: Instant) -> TaskRow:
    event = created.event
    body = TaskBody(
        payload=event.payload,
        description=event.description,
        form=event.form,
        form_schema=msgspec.Raw(created.schema),
        form_check=msgspec.Raw(created.check),
    )
    return TaskRow(
        org=execution.org,
        task_id=event.task_id,
        execution_id=execution.execution_id,
        number=event.number,
        workflow=execution.workflow,
        workflow_id=execution.workflow_id,
        name=event.name,
        queue=event.queue,
        state=TaskState.OPEN,
        version=1,
        assignee=event.assignee,
        claimer="",
        users=event.users,
        groups=event.groups,
        roles=event.groups,
        priority=event.priority,
        due=event.due,
        follow_up=event.follow_up,
        business_key="" if execution.details.reference is None else execution.details.reference.key,
        created_at=now,
        updated_at=now,
        ended_at=None,
        body=codec.encode(body),
    )


def _make_event(row: TaskRow, now: Instant) -> TaskEventRow:
    after = {"assignee": row.assignee, "users": row.users, "groups": row.groups}
    body = TaskEventBody(after={name: value for name, value in after.items() if value})
    return TaskEventRow(row.task_id, 1, "created", now, "", (), codec.encode(body))
