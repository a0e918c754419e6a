"""A handle on one execution: everything that can be done with it, without naming it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from holdfast.core.ids import check_identifier
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.core.shown_values import ShownValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.code.definitions import Workflow
    from holdfast.engine.views import ExecutionInfo, History

R = TypeVar("R")


class SignalResponse(ShownValue, frozen=True):
    """A signal was accepted. The sequence is its position in the history; None while it waits in the inbox.

    If it is part of a transaction of the caller, its receiver is found after the commit: then the id is empty.
    """

    workflow_execution_id: str
    signal_event_sequence: int | None


class SignalWithStartResponse(ShownValue, frozen=True):
    """A signal was accepted by an execution that existed or was created for it.

    If it is part of a transaction of the caller, that is known only after the commit: then `workflow_created` is None, and
    the id is the one that the execution gets if it is created.
    """

    workflow_execution_id: str
    workflow_created: bool | None
    signal_event_sequence: int | None


class ExecutionVerbs(Protocol):
    """What a handle asks of an engine, or of whatever else reaches executions: each verb with the id of one."""

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str) -> str:
        """The id of the execution that a start in a caller's transaction led to. Raises ExecutionNotFound."""
        ...

    async def wait_for_result(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait until an execution ends and return its result, decoded as `hint`."""
        ...

    async def query_status(self, target: str, *, org: str) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        ...

    async def history(self, target: str, *, org: str) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        ...

    async def signal_workflow(
        self,
        target: str,
        signal_name: str,
        signal_value: Any = None,
        *,
        org: str,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Signal an open execution, once per `request_id`. Raises ExecutionNotFound or ExecutionClosed."""
        ...

    async def cancel(
        self, target: str, reason: str = "", *, org: str, request_id: str | None = None, connection: Any = None
    ) -> bool:
        """Ask an execution to cancel; False if it is closed."""
        ...

    async def terminate(self, target: str, reason: str = "", *, org: str, request_id: str | None = None) -> bool:
        """End an execution at once; False if it is closed."""
        ...


class WorkflowHandle(Generic[R]):
    """A handle on one execution: by its execution id or, if that is not known, on the newest one of a workflow id.

    The handle of a start in a transaction of the caller can be used after the commit. Its `execution_id` is the one that the
    execution gets if it is created; `created` is None until the handle was first used.
    """

    def __init__(
        self,
        engine: ExecutionVerbs,
        org: str,
        workflow_id: str,
        execution_id: str | None = None,
        *,
        created: bool | None = False,
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
    def _address(self) -> str:
        """The id by which it is reached as far as is known: one that is not created yet, by workflow id."""
        return self.workflow_id if self.created is None or self.execution_id is None else self.execution_id

    async def _find(self) -> str:
        """The id by which it is reached, certainly."""
        if self.created is None and self.execution_id is not None:
            started = await self._engine.find_started(self.workflow_id, self.execution_id, org=self.org)
            self.created, self.execution_id = started == self.execution_id, started
        return self._address

    async def result(
        self,
        *,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> R:
        """Wait for the result, through `continue_as` and retries.

        Raises WorkflowFailed (ExecutionTimedOut is one), WorkflowCancelled or WorkflowTerminated. After `timeout` (seconds
        or a timedelta) it raises ResultTimedOut, which is a TimeoutError, and says what the execution waits for; the
        execution goes on. If the execution is or becomes blocked, `on_blocked="raise"` raises ExecutionBlocked; `"wait"`
        logs it once and waits. That is the default, but for engines of `holdfast.testing`.
        """
        value: R = await self._engine.wait_for_result(
            await self._find(), self._hint, org=self.org, timeout=timeout, on_blocked=on_blocked
        )
        return value

    async def status(self) -> ExecutionInfo:
        """The present status of the execution, what it waits for, and its times."""
        return await self._engine.query_status(await self._find(), org=self.org)

    async def history(self) -> History:
        """Every event of the execution so far, in order."""
        return await self._engine.history(await self._find(), org=self.org)

    async def signal(
        self,
        name: str,
        value: Any = None,
        *,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Send the execution a signal; with `connection`, as part of the caller's own transaction."""
        target = await self._find() if connection is None else self._address
        return await self._engine.signal_workflow(
            target, name, value, org=self.org, request_id=request_id, headers=headers, connection=connection
        )

    async def cancel(self, reason: str = "", *, request_id: str | None = None, connection: Any = None) -> bool:
        """Ask the execution to cancel; False if it is closed. With `connection`, as part of the caller's own transaction."""
        target = await self._find() if connection is None else self._address
        return await self._engine.cancel(target, reason, org=self.org, request_id=request_id, connection=connection)

    async def terminate(self, reason: str = "", *, request_id: str | None = None) -> bool:
        """End the execution at once, without running its code; False if it is closed."""
        return await self._engine.terminate(await self._find(), reason, org=self.org, request_id=request_id)

    def bind(self, verbs: ExecutionVerbs) -> WorkflowHandle[R]:
        """The same handle, which asks somebody else."""
        return WorkflowHandle(verbs, self.org, self.workflow_id, self.execution_id, created=self.created, hint=self._hint)

    def __repr__(self) -> str:
        return f"<handle of {self.workflow_id!r} ({self.execution_id or 'newest'})>"


def make_handle(verbs: ExecutionVerbs, target: str, org: str, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
    """A handle on an execution, by workflow id or execution id; `workflow` types its result. Raises InvalidIdentifier."""
    check_identifier(target, "the id of an execution")
    return WorkflowHandle(verbs, org, target, hint=Any if workflow is None else workflow.result_hint)
