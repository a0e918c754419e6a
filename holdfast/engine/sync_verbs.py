"""The verbs for code without an event loop. Written by `python -m tools.facades`: change the protocol, and run it again."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack, overload

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.code.workflow_types import WorkflowTaking
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle, make_handle
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.thread_connections import take_connection
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.verbs import Verbs
from holdfast.engine.views import DeadLetter, ExecutionInfo, History

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Run(Protocol):
    """Runs something that can be awaited, in the loop to which it belongs, and waits for its result."""

    def __call__(self, awaitable: Awaitable[T], /) -> T:
        """The result of what is awaited, or what it raises."""
        ...


class SyncWorkflowHandle(Generic[R]):
    """A handle on one execution, for code without an event loop: everything blocks until it is done."""

    def __init__(self, handle: WorkflowHandle[R], run: Run) -> None:
        self._handle = handle
        self._run = run

    @property
    def org(self) -> str:
        """The organisation that the execution belongs to."""
        return self._handle.org

    @property
    def workflow_id(self) -> str:
        """The workflow id under which it was started or asked for."""
        return self._handle.workflow_id

    @property
    def execution_id(self) -> str | None:
        """The id of the execution; None for the newest one of the workflow id."""
        return self._handle.execution_id

    @property
    def created(self) -> bool | None:
        """Whether the start that gave this handle made the execution."""
        return self._handle.created

    def __repr__(self) -> str:
        return repr(self._handle)

    def result(self, *, timeout: Duration | None = None, on_blocked: OnBlocked | None = None) -> R:
        """Wait for the result, through `continue_as` and retries.

        Raises WorkflowFailed (ExecutionTimedOut is one), WorkflowCancelled or WorkflowTerminated. After `timeout` (seconds
        or a timedelta) it raises ResultTimedOut, which is a TimeoutError, and says what the execution waits for; the
        execution goes on. If the execution is or becomes blocked, `on_blocked="raise"` raises ExecutionBlocked; `"wait"`
        logs it once and waits. That is the default, but for engines of `holdfast.testing`.
        """
        return self._run(self._handle.result(timeout=timeout, on_blocked=on_blocked))

    def status(self) -> ExecutionInfo:
        """The present status of the execution, what it waits for, and its times."""
        return self._run(self._handle.status())

    def history(self) -> History:
        """Every event of the execution so far, in order."""
        return self._run(self._handle.history())

    def signal(
        self,
        name: str,
        value: Any = None,
        *,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Send the execution a signal; with `connection`, as part of the caller's own transaction."""
        return self._run(
            self._handle.signal(name, value, request_id=request_id, headers=headers, connection=take_connection(connection))
        )

    def cancel(self, reason: str = "", *, request_id: str | None = None, connection: Any = None) -> bool:
        """Ask the execution to cancel; False if it is closed. With `connection`, as part of the caller's own transaction."""
        return self._run(self._handle.cancel(reason, request_id=request_id, connection=take_connection(connection)))

    def terminate(self, reason: str = "", *, request_id: str | None = None) -> bool:
        """End the execution at once, without running its code; False if it is closed."""
        return self._run(self._handle.terminate(reason, request_id=request_id))


class SyncVerbs:
    """The verbs, for threads that run no event loop: each blocks until it is done."""

    def __init__(self, verbs: Verbs, run: Run) -> None:
        self._verbs = verbs
        self._run = run

    @overload
    def start(
        self, workflow: BoundWorkflow[R], *, org: str = DEFAULT_ORG, connection: Any = None, **options: Unpack[StartOptions]
    ) -> SyncWorkflowHandle[R]: ...

    @overload
    def start(
        self, workflow: str, *args: Any, org: str = DEFAULT_ORG, connection: Any = None, **options: Any
    ) -> SyncWorkflowHandle[Any]: ...

    @overload
    def start(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> SyncWorkflowHandle[R]: ...

    @overload
    def start(
        self,
        workflow: WorkflowTaking[T, R],
        *,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> SyncWorkflowHandle[R]: ...

    @overload
    def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> SyncWorkflowHandle[R]: ...

    def start(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> SyncWorkflowHandle[Any]:
        """Start a workflow, or find the open execution that has the workflow id; `created` of the handle tells which.

        Keywords that are no options are arguments of the workflow. With `connection`, the start is part of the caller's own
        transaction on it, on PostgreSQL.
        """
        return SyncWorkflowHandle(
            self._run(self._verbs.start(workflow, *args, org=org, connection=take_connection(connection), **options)),
            self._run,
        )

    @overload
    def signal_with_start_workflow(
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
    def signal_with_start_workflow(
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
    def signal_with_start_workflow(
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
    def signal_with_start_workflow(
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

    def signal_with_start_workflow(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
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
        return self._run(
            self._verbs.signal_with_start_workflow(
                workflow_id,
                workflow,
                *args,
                signal_name=signal_name,
                signal_value=signal_value,
                org=org,
                connection=take_connection(connection),
                **options,
            )
        )

    def signal_workflow(
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
        return self._run(
            self._verbs.signal_workflow(
                target,
                signal_name,
                signal_value,
                workflow_execution_id=workflow_execution_id,
                org=org,
                request_id=request_id,
                headers=headers,
                connection=take_connection(connection),
            )
        )

    def cancel(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None, connection: Any = None
    ) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. Returns False if it is closed."""
        return self._run(
            self._verbs.cancel(target, reason, org=org, request_id=request_id, connection=take_connection(connection))
        )

    def terminate(self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """End an execution at once, without running its code. Returns False if it is closed."""
        return self._run(self._verbs.terminate(target, reason, org=org, request_id=request_id))

    def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked."""
        return self._run(self._verbs.retry_blocked(target, org=org, request_id=request_id))

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> SyncWorkflowHandle[Any]: ...

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> SyncWorkflowHandle[R]: ...

    def handle(
        self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None
    ) -> SyncWorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        return SyncWorkflowHandle(make_handle(self._verbs, target, org, workflow), self._run)

    def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        return self._run(self._verbs.find_started(workflow_id, execution_id, org=org))

    def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        return self._run(self._verbs.query_status(target, org=org))

    def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        return self._run(self._verbs.query_result(target, org=org))

    def wait_for_result(
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
        return self._run(self._verbs.wait_for_result(target, hint, org=org, timeout=timeout, on_blocked=on_blocked))

    def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        return self._run(self._verbs.history(target, org=org))

    def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first; `cursor` of the list leads to the next page."""
        return self._run(self._verbs.list(**options))

    def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`; up to 10,000 of them."""
        return self._run(self._verbs.count(**conditions))

    def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue. Counts end at 10,000."""
        return self._run(self._verbs.backlog())

    def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name. A client is none."""
        return self._run(self._verbs.nodes())

    def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        return self._run(self._verbs.dead_letters(org=org, limit=limit, after=after))

    def requeue_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were."""
        return self._run(self._verbs.requeue_dead_letters(ids, org=org, request_id=request_id))

    def discard_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None) -> int:
        """Delete dead letters. Returns how many of the ids there were."""
        return self._run(self._verbs.discard_dead_letters(ids, org=org, request_id=request_id))
