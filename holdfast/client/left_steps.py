"""Steps of human tasks on a SQLite file that no engine owns: they are left in inboxes, and the next engine answers them.

Who puts a step into an inbox owns the file for that long only. An engine that could answer it would have to own the file,
so that nobody may wait for the answer as its owner.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.core.ids import check_person
from holdfast.core.replies import Replied
from holdfast.core.request_keys import MADE_UP
from holdfast.engine.task_rules import Actor
from holdfast.engine.turns.claims import key_id_of
from holdfast.engine.use_cases.answered_calls import AnsweredCalls
from holdfast.engine.use_cases.human_tasks import HumanTasks, check_groups
from holdfast.errors import AnswerTimedOut

if TYPE_CHECKING:
    from holdfast.core.envelopes import AnyAnswered, AnyTaskStep
    from holdfast.core.instants import Duration
    from holdfast.core.request_keys import RequestKey
    from holdfast.engine.task_views import TaskInfo
    from holdfast.store.rows import RequestKeyId
    from holdfast.store.tasks import TaskRow


class StepLeft(Exception):
    """A step of a human task is in the inbox of its execution: a call with this request id joins it."""

    def __init__(self, request_id: str, reply_key: RequestKeyId) -> None:
        super().__init__(request_id)
        self.request_id = request_id
        self.reply_key = reply_key
        """Under which the answer will be kept."""


class UnansweredCalls(AnsweredCalls):
    """Puts envelopes into inboxes and does not wait: whoever could answer cannot open the file meanwhile."""

    async def reach(self, org: str, target: str, envelope: AnyAnswered, timeout: Duration | None = None) -> Replied:
        """Deliver an envelope; what was answered before. Raises AnswerTimedOut if it waits in the inbox."""
        key = envelope.request
        answer = await self._delivery.reach(org, target, envelope, None if key.kind == MADE_UP else key)
        if isinstance(answer, Replied):
            return answer
        raise AnswerTimedOut(
            "Expected an answer, but no process that has the code owns the database file. Start the application; it finds "
            "what waits in the inbox."
        )


class UnansweredTasks(HumanTasks):
    """Human tasks of a file that no engine owns. Steps that a turn has to decide are left for the next engine."""

    async def send(
        self,
        verb: str,
        org: str,
        task_id: str,
        by: str,
        groups: Sequence[str],
        make: Callable[[TaskRow, Actor, RequestKey], AnyTaskStep],
        *,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> TaskInfo:
        """Leave a step for the next engine; the task, if it was answered before. Raises as `step`, or StepLeft.

        A step without a request id gets one: so whoever left it can join it.
        """
        check_person(by)
        actor = Actor(by, check_groups(groups), self._delivery.now)
        joining_id = secrets.token_hex(16) if request_id is None else request_id
        key = self._delivery.make_reply_key(f"task_{verb}", joining_id, task_id)
        try:
            return await self._send(
                org, task_id, lambda row: make(row, actor, key), is_new=request_id is None, timeout=timeout
            )
        except AnswerTimedOut:
            raise StepLeft(joining_id, key_id_of(org, key)) from None
