"""The verbs that pause and resume executions, workflows and queues."""

from __future__ import annotations

import builtins
from typing import Protocol

from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.views import Pause


class PauseVerbs(Protocol):
    """Pauses and resumes executions, workflows and queues."""

    async def pause(
        self, target: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let an execution take no turns until it is resumed; what arrives meanwhile waits, in order.

        Returns False if it is closed, blocked, or paused already. Raises ExecutionNotFound.
        """
        ...

    async def resume(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused execution go on. Returns False if it is not paused. Raises ExecutionNotFound."""
        ...

    async def pause_workflow(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a workflow take a turn, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        ...

    async def resume_workflow(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions of a paused workflow go on. Returns False if it is not paused."""
        ...

    async def pause_queue(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a queue take a turn, and no activity of it begin, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        ...

    async def resume_queue(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions and activities of a paused queue go on. Returns False if it is not paused."""
        ...

    async def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused; `list(status="paused")` finds executions."""
        ...
