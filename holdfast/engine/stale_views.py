"""Stale work as it is shown: open executions and human tasks that nobody has touched for a long time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from holdfast.core.instants import SECOND, Micros, to_datetime
from holdfast.core.safe_texts import count_noun
from holdfast.core.shown_values import ShownPage, ShownValue
from holdfast.store.stale import StaleExecution, StaleTask


class StaleItem(ShownValue, frozen=True, kw_only=True):
    """An open execution, or an open human task, that nobody has touched for a long time."""

    org: str
    kind: Literal["execution", "task"]
    execution_id: str
    """The execution, or that of the task."""
    workflow_id: str
    workflow: str
    queue: str
    state: str
    """The status of the execution, or the state of the task."""
    task_id: str | None = None
    task: str | None = None
    """The name of the task."""
    touched_at: datetime
    """When somebody did something with it last."""

    def __str__(self) -> str:
        if self.kind == "task":
            return f"task {self.task_id} ('{self.task}') of '{self.workflow_id}'"
        return f"execution {self.execution_id} ('{self.workflow_id}', {self.workflow})"


class StaleList(ShownPage[StaleItem]):
    """A page of stale executions and tasks. `cursor` leads to the next page; it is None if that was all.

    A page may have fewer than were asked for, even none, although there are more: how many are looked at is bounded.
    """

    items_name = "stale"


def show_length(length: Micros) -> str:
    """A length of time for people: '30 days', '1 day', or as hours, minutes and seconds."""
    days, rest = divmod(length, 24 * 3600 * SECOND)
    return count_noun(days, "day") if days and not rest else str(timedelta(microseconds=length))


def to_stale_item(found: StaleExecution | StaleTask) -> StaleItem:
    """What was found, as it is shown."""
    return StaleItem(
        org=found.org,
        kind="task" if isinstance(found, StaleTask) else "execution",
        execution_id=found.execution_id,
        workflow_id=found.workflow_id,
        workflow=found.workflow,
        queue=found.queue,
        state=str(found.state if isinstance(found, StaleTask) else found.status),
        task_id=found.task_id if isinstance(found, StaleTask) else None,
        task=found.name if isinstance(found, StaleTask) else None,
        touched_at=to_datetime(found.touched_at),
    )
