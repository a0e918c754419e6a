"""A handle on one execution: everything that can be done with it, without naming it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.engine.views import ExecutionInfo, History

R = TypeVar("R")


class SignalResponse(msgspec.Struct, frozen=True):
    """A signal was accepted. The sequence is its place in the history; absent where it still waits in the inbox."""

    workflow_execution_id: str
    signal_event_sequence: int | None


class SignalWithStartResponse(msgspec.Struct, frozen=True):
    """A signal was accepted by an execution that existed or was created for it."""

    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int | None


class WorkflowHandle(Generic[R]):
    """One execution, by execution id or, where that is not known, the newest of a workflow id."""

    def __init__(
        self,
        engine: Engine,
        org: str,
        workflow_id: str,
        execution_id: str | None = None,
        *,
        created: bool = False,
        hint: Any = Any,
    ) -> None:
        self._engine = engine
        self._hint = hint
        self.org = org
        self.workflow_id = workflow_id
        self.execution_id = execution_id
        self.created = created
        """Whether the start that gave this handle made the execution."""

    @property
    def _target(self) -> str:
        return self.execution_id or self.workflow_id

    async def result(self) -> R:
        """Wait for the end; raises WorkflowFailed, WorkflowCancelled or WorkflowTerminated. Follows `continue_as`."""
        value: R = await self._engine.wait_for_result(self._target, self._hint, org=self.org)
        return value

    async def status(self) -> ExecutionInfo:
        """How it stands now."""
        return await self._engine.query_status(self._target, org=self.org)

    async def history(self) -> History:
        """Its whole history."""
        return await self._engine.history(self._target, org=self.org)

    async def signal(self, name: str, value: Any = None, *, request_id: str | None = None) -> SignalResponse:
        """Send it a signal."""
        return await self._engine.signal_workflow(self._target, name, value, org=self.org, request_id=request_id)

    async def cancel(self, reason: str = "") -> bool:
        """Ask it to cancel; False if it is closed."""
        return await self._engine.cancel(self._target, reason, org=self.org)

    async def terminate(self, reason: str = "") -> bool:
        """End it at once; False if it is closed."""
        return await self._engine.terminate(self._target, reason, org=self.org)

    def __repr__(self) -> str:
        return f"<handle of {self.workflow_id!r} ({self.execution_id or 'newest'})>"
