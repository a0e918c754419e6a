"""The verbs about human tasks over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from holdfast.client.encoded_starts import LARGEST
from holdfast.client.socket_calls import SocketCalls
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.serving.messages import TaskPage
from holdfast.engine.task_views import TASK_TIMEOUT, TaskEvent, TaskInfo, TaskList
from holdfast.engine.use_cases.human_tasks import TaskConditions


class SocketTaskVerbs(SocketCalls):
    """Takes calls about human tasks to the owner of a database."""

    async def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold; `cursor` of the list leads to the next page."""
        page = await self._call("tasks", TaskPage, [], to_plain_conditions(conditions))
        found = TaskList(page.tasks)
        found.cursor = page.cursor
        return found

    async def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        return await self._call("task", TaskInfo, [task_id], {"org": org})

    async def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, who did it and when, in order. Raises TaskNotFound."""
        return await self._call("task_events", builtins.list[TaskEvent], [task_id], {"org": org})

    async def claim_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Take a human task, as its assignee or a candidate. Raises TaskClaimed, NotTaskCandidate or TaskEnded."""
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id}
        return await self._call("claim_task", TaskInfo, [task_id], named)

    async def release_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Give back a human task that one has claimed. Raises TaskNotClaimed or TaskEnded."""
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id}
        return await self._call("release_task", TaskInfo, [task_id], named)

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
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id}
        return await self._call("assign_task", TaskInfo, [task_id, assignee], named)

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
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id, "timeout": timeout}
        return await self._call(
            "complete_task", TaskInfo, [task_id, payloads.encode(form, "the form of a human task", LARGEST).data], named
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
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id, "timeout": timeout}
        return await self._call("cancel_task", TaskInfo, [task_id, reason], named)

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
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id}
        return await self._call("comment_task", TaskInfo, [task_id, comment], named)

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
        named = {"by": by, "groups": [*groups], "org": org, "request_id": request_id}
        return await self._call("set_task_priority", TaskInfo, [task_id, priority], named)

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
        named = {"due": due, "by": by, "groups": [*groups], "org": org, "request_id": request_id, "timeout": timeout}
        return await self._call("set_task_due", TaskInfo, [task_id], named)


def to_plain_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions of a list as JSON can hold them."""
    plain = dict(conditions)
    workflow, state = plain.get("workflow"), plain.get("state")
    if isinstance(workflow, Workflow):
        plain["workflow"] = workflow.name
    if state is not None and not isinstance(state, str):
        plain["state"] = [*state]
    return plain
