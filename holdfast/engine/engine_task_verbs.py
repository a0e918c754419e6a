"""The verbs about human tasks, on the engine's own use cases; see `engine_verbs`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine import task_rules
from holdfast.engine.task_views import TASK_TIMEOUT, TaskEvent, TaskInfo, TaskList
from holdfast.engine.use_cases.human_tasks import HumanTasks, TaskConditions


class EngineTaskVerbs:
    """What can be asked of an engine about human tasks while it is open."""

    @property
    def _human_tasks(self) -> HumanTasks:
        """The use case that these verbs stand on."""
        raise NotImplementedError

    def _check_open(self) -> None:
        """Raises EngineClosed or WrongEventLoop if the engine cannot take calls now."""
        raise NotImplementedError

    async def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold; `cursor` of the list leads to the next page."""
        self._check_open()
        return await self._human_tasks.search(conditions)

    async def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        self._check_open()
        return await self._human_tasks.find(org, task_id)

    async def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, who did it and when, in order. Raises TaskNotFound."""
        self._check_open()
        return await self._human_tasks.list_events(org, task_id)

    async def claim_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Take a human task, as its assignee or a candidate. Raises TaskClaimed, NotTaskCandidate or TaskEnded."""
        self._check_open()
        rule = task_rules.claim
        return await self._human_tasks.step("claim", org, task_id, by, groups, rule, request_id=request_id)

    async def release_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Give back a human task that one has claimed. Raises TaskNotClaimed or TaskEnded."""
        self._check_open()
        rule = task_rules.release
        return await self._human_tasks.step("release", org, task_id, by, groups, rule, request_id=request_id)

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
        self._check_open()
        rule = self._human_tasks.assigning(assignee)
        return await self._human_tasks.step("assign", org, task_id, by, groups, rule, request_id=request_id)

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
        self._check_open()
        make = self._human_tasks.completing(form)
        return await self._human_tasks.send(
            "complete", org, task_id, by, groups, make, request_id=request_id, timeout=timeout
        )

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
        self._check_open()
        make = self._human_tasks.cancelling(reason)
        return await self._human_tasks.send("cancel", org, task_id, by, groups, make, request_id=request_id, timeout=timeout)

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
        self._check_open()
        rule = self._human_tasks.commenting(comment)
        return await self._human_tasks.step("comment", org, task_id, by, groups, rule, request_id=request_id)

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
        self._check_open()
        rule = self._human_tasks.prioritizing(priority)
        return await self._human_tasks.step("prioritize", org, task_id, by, groups, rule, request_id=request_id)

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
        self._check_open()
        make = self._human_tasks.rescheduling(due)
        return await self._human_tasks.send(
            "reschedule", org, task_id, by, groups, make, request_id=request_id, timeout=timeout
        )
