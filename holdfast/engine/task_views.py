"""Human tasks as they are shown: values for people and programs to read."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.core.instants import Instant, to_datetime
from holdfast.core.shown_values import ShownPage, ShownValue
from holdfast.engine.pending import show_payload
from holdfast.errors import CorruptStore
from holdfast.store.tasks import (
    TaskBody,
    TaskEventBody,
    TaskEventRow,
    TaskRow,
    TaskState,
    decode_body,
    decode_event_body,
    describe_damage,
)

TASK_TIMEOUT: Final = 30.0
"""For how many seconds who completes or cancels a task waits, unless told otherwise, while its workflow takes no turn."""


class TaskInfo(ShownValue, frozen=True, kw_only=True):
    """One human task as it stood when it was asked about."""

    org: str
    task_id: str
    name: str
    description: str
    state: TaskState
    version: int
    """How many task events it has."""
    workflow: str
    workflow_id: str
    execution_id: str
    number: int
    """The number of the command that asked for it, as in the history."""
    queue: str
    assignee: str | None
    claimer: str | None
    """Who has claimed it; of a completed task, who completed it."""
    candidate_users: tuple[str, ...]
    candidate_groups: tuple[str, ...]
    effective_roles: tuple[str, ...]
    """The candidate groups as they were when it was created; an escalation adds none."""
    priority: int
    due: datetime | None
    follow_up: datetime | None
    business_key: str | None
    payload: Any
    """What the person is shown, as JSON values."""
    form: str
    """The type of the form, in words."""
    form_schema: Any
    """The JSON Schema that a completion must fit."""
    result: Any
    """The form as it was filled in, as JSON values; None while the task is not completed."""
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    damage: str | None = None
    """What of the task cannot be read, if its row is damaged: that is shown as empty. Its execution can be terminated."""


class TaskEvent(ShownValue, frozen=True, kw_only=True):
    """One step of a human task. Steps are never changed or removed, except with their execution."""

    task_id: str
    sequence: int
    kind: str
    """`created`, `claimed`, `released`, `assigned`, `reassigned`, `commented`, `prioritized`, `follow_up`, `overdue`,
    `escalated`, `completed` or `cancelled`."""
    at: datetime
    by: str | None
    """Who did it; None if that was the engine, for the workflow or for a date that passed."""
    groups: tuple[str, ...]
    """The groups of whoever did it, as they were told."""
    comment: str | None
    reason: str
    before: dict[str, Any]
    """What was changed, as it was."""
    after: dict[str, Any]
    damage: str | None = None
    """What of the step cannot be read, if its row is damaged: that is shown as empty."""


class TaskList(ShownPage[TaskInfo]):
    """A page of human tasks. `cursor` leads to the next page; it is None if that was all."""

    items_name = "tasks"


def to_task_info(row: TaskRow) -> TaskInfo:
    """A task as it is shown; one damaged row does not hide the others."""
    damage = describe_damage(row)
    try:
        body = decode_body(row)
    except CorruptStore as error:
        body, damage = TaskBody(), damage or error.message
    state, unknown = _read_state(row)
    return TaskInfo(
        org=row.org,
        task_id=row.task_id,
        name=row.name,
        description=body.description,
        state=state,
        version=row.version,
        workflow=row.workflow,
        workflow_id=row.workflow_id,
        execution_id=row.execution_id,
        number=row.number,
        queue=row.queue,
        assignee=row.assignee or None,
        claimer=row.claimer or None,
        candidate_users=row.users,
        candidate_groups=row.groups,
        effective_roles=row.roles,
        priority=row.priority,
        due=_show_time(row.due),
        follow_up=_show_time(row.follow_up),
        business_key=row.business_key or None,
        payload=show_payload(body.payload),
        form=body.form,
        form_schema=msgspec.json.decode(body.form_schema),
        result=show_payload(body.result),
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        ended_at=_show_time(row.ended_at),
        damage=damage or unknown or None,
    )


def _read_state(row: TaskRow) -> tuple[TaskState, str]:
    """The state of a task; if that is none that is known here, the one that its other columns tell, and what is wrong."""
    try:
        return TaskState(row.state), ""
    except ValueError:
        told = f"Expected task {row.task_id} to be in a known state, but it is '{row.state}'. Run `holdfast check`."
    if not row.is_open:
        return TaskState.CANCELLED, told
    return TaskState.CLAIMED if row.claimer else TaskState.OPEN, told


def to_task_event(row: TaskEventRow) -> TaskEvent:
    """A step of a task as it is shown; one that is damaged does not hide the others."""
    damage = row.damage
    try:
        body = decode_event_body(row)
    except CorruptStore as error:
        body, damage = TaskEventBody(), damage or error.message
    return TaskEvent(
        task_id=row.task_id,
        sequence=row.sequence,
        kind=row.kind,
        at=to_datetime(row.at),
        by=row.by or None,
        groups=row.groups,
        comment=show_payload(body.comment),
        reason=body.reason,
        before=body.before,
        after=body.after,
        damage=damage or None,
    )


def _show_time(at: Instant | None) -> datetime | None:
    return None if at is None else to_datetime(at)
