"""The verbs about human tasks: lists of them, and what people do with one."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, Unpack

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.task_views import TASK_TIMEOUT, TaskEvent, TaskInfo, TaskList
from holdfast.engine.use_cases.human_tasks import TaskConditions


class TaskVerbs(Protocol):
    """Lists human tasks, and does what people do with one."""

    async def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold; `cursor` of the list leads to the next page."""
        ...

    async def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        ...

    async def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, who did it and when, in order. Raises TaskNotFound."""
        ...

    async def claim_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Take a human task, as its assignee or a candidate. Raises TaskClaimed, NotTaskCandidate or TaskEnded."""
        ...

    async def release_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Give back a human task that one has claimed. Raises TaskNotClaimed or TaskEnded."""
        ...

    async def assign_task(
        self,
        task_id: str,
        assignee: str | None,
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> TaskInfo:
        """Assign a human task to somebody, or to nobody; a claim ends by it. Raises TaskEnded."""
        ...

    async def complete_task(
        self,
        task_id: str,
        form: Any = None,
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = TASK_TIMEOUT,
    ) -> TaskInfo:
        """Complete a human task that one has claimed: its workflow gets the form.

        Raises TaskFormMismatch, TaskNotClaimed or TaskEnded; nothing is changed then.
        """
        ...

    async def cancel_task(
        self,
        task_id: str,
        reason: str = "",
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = TASK_TIMEOUT,
    ) -> TaskInfo:
        """Cancel a human task: its workflow catches HumanTaskCancelled. Raises TaskEnded."""
        ...

    async def comment_task(
        self,
        task_id: str,
        comment: str,
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> TaskInfo:
        """Say something about a human task: a task event keeps it. Raises TaskEnded."""
        ...

    async def set_task_priority(
        self,
        task_id: str,
        priority: int,
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> TaskInfo:
        """Change how urgent a human task is. Raises TaskEnded."""
        ...

    async def set_task_due(
        self,
        task_id: str,
        due: datetime | None,
        *,
        by: str,
        groups: Sequence[str] = (),
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = TASK_TIMEOUT,
    ) -> TaskInfo:
        """Change when a human task is due; None: never. Its timer follows. Raises TaskEnded or AnswerTimedOut."""
        ...
