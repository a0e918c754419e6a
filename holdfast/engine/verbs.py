"""The verbs: what can be asked of Holdfast about executions, whoever takes the call.

`Engine` takes calls in process, `Client` takes them to the database or to the process that owns it, and `SyncClient` does so
for code without an event loop. All have these methods with these parameters; tests compare them, and those of clients are
written by `python -m tools.facades` from this protocol. What only an engine can do (opening, transactions, copies of
executions) is not here.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack, overload

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.code.workflow_types import WorkflowTaking
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.views import DeadLetter, ExecutionInfo, History

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Verbs(Protocol):
    """Everything that can be done with executions from outside of them, by an engine or a client."""

    # --- starting and signalling ---

    @overload
    async def start(
        self, workflow: BoundWorkflow[R], *, org: str = DEFAULT_ORG, connection: Any = None, **options: Unpack[StartOptions]
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(
        self, workflow: str, *args: Any, org: str = DEFAULT_ORG, connection: Any = None, **options: Any
    ) -> WorkflowHandle[Any]: ...
    @overload
    async def start(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(
        self,
        workflow: WorkflowTaking[T, R],
        *,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R]: ...
    async def start(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[Any]:
        """Start a workflow, or find the open execution that has the workflow id; `created` of the handle tells which.

        Keywords that are no options are arguments of the workflow. With `connection`, the start is part of the caller's own
        transaction on it, on PostgreSQL.
        """
        ...

    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: BoundWorkflow[Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Any,
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[*Ts, Any],
        *args: *Ts,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[T, Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    async def signal_with_start_workflow(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse:
        """Signal the open execution that has the workflow id, or start one that has the signal, in one transaction."""
        ...

    async def signal_workflow(
        self,
        target: str = "",
        signal_name: str = "",
        signal_value: Any = None,
        *,
        workflow_execution_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Signal an open execution, by workflow id or execution id. Calls with the same `request_id` deliver one signal.

        `workflow_execution_id` is another name for `target`. Its code finds the `headers` by `ctx.last_signal_headers`.
        Raises ExecutionNotFound or ExecutionClosed.
        """
        ...

    async def cancel(
        self,
        target: str,
        reason: str = "",
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. Returns False if it is closed."""
        ...

    async def terminate(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """End an execution at once, without running its code. Returns False if it is closed."""
        ...

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked."""
        ...

    # --- asking ---

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        ...

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        ...

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        ...

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        ...

    async def wait_for_result(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait until an execution ends and return its result, decoded as `hint`; `handle(…).result()` calls this.

        Raises ResultTimedOut after `timeout`; ExecutionBlocked if `on_blocked` is "raise", and the execution is blocked.
        """
        ...

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        ...

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first; `cursor` of the list leads to the next page."""
        ...

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`; up to 10,000 of them."""
        ...

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue. Counts end at 10,000."""
        ...

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name. A client is none."""
        ...

    # --- dead letters ---

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        ...

    async def requeue_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were."""
        ...

    async def discard_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Delete dead letters. Returns how many of the ids there were."""
        ...
