"""The verbs for code without an event loop. Written by `python -m tools.facades`: change the protocol, and run it again."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack, overload

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.code.workflow_types import WorkflowTaking
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome
from holdfast.core.times.calendars import Calendar
from holdfast.engine.deployment_views import DefinitionInfo, DefinitionList, Deployment
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle, make_handle
from holdfast.engine.incident_views import IncidentList
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.processes.source_files import Files
from holdfast.engine.stale_views import StaleList
from holdfast.engine.task_views import TASK_TIMEOUT, TaskEvent, TaskInfo, TaskList
from holdfast.engine.thread_connections import take_connection
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.human_tasks import TaskConditions
from holdfast.engine.use_cases.publications import PendingEvent
from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleOptions, ScheduleRun
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.verbs import Verbs
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, Pause

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

    def wait_for(self, predicate: Callable[[ExecutionInfo], object], *, timeout: Duration | None = None) -> ExecutionInfo:
        """Wait until the status of the execution is as wanted, through `continue_as` and retries; that status.

        `predicate` gets an ExecutionInfo, now and after each change, whichever node makes it; nothing is polled. Watched
        are turns and pauses; what comes into `inbox` without a turn is not. Raises ExecutionClosed if the execution ends
        first, AnswerTimedOut after `timeout` (seconds or a timedelta).
        """
        return self._run(self._handle.wait_for(predicate, timeout=timeout))

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

    def query(self, name: str, *args: Any, timeout: Duration | None = None, hint: Any = Any) -> Any:
        """Ask a query handler of the execution, open or closed; what it returns, read as `hint`. Changes nothing.

        A handle that `start` gave asks the run that it was made for, also after that continued as another; the handle of a
        workflow id, `engine.handle(…)`, asks the newest run.
        """
        return self._run(self._handle.query(name, *args, timeout=timeout, hint=hint))

    def update(
        self,
        name: str,
        value: Any = None,
        *,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of the execution; what it returns, read as `hint`, after what it did is durable."""
        return self._run(
            self._handle.update(name, value, request_id=request_id, headers=headers, timeout=timeout, hint=hint)
        )

    def variables(self, *, scope: str | None = None, timeout: Duration | None = None) -> dict[str, Any]:
        """The variables of the process, open or closed, or those of an element of it (`scope`)."""
        return self._run(self._handle.variables(scope=scope, timeout=timeout))

    def set_variables(
        self,
        variables: Mapping[str, Any],
        *,
        scope: str | None = None,
        local: bool = False,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Set variables of the process, as `engine.set_variables` does; it returns when that is durable."""
        return self._run(
            self._handle.set_variables(variables, scope=scope, local=local, request_id=request_id, timeout=timeout)
        )

    def incidents(self, *, limit: int = 100) -> IncidentList:
        """List the open incidents of the process."""
        return self._run(self._handle.incidents(limit=limit))

    def resolve_incident(
        self,
        number: int | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Let the process try again where something went wrong, after `variables` were set; without a number, everywhere."""
        return self._run(self._handle.resolve_incident(number, variables=variables, request_id=request_id, timeout=timeout))

    def cancel(self, reason: str = "", *, request_id: str | None = None, connection: Any = None) -> bool:
        """Ask the execution to cancel; False if it is closed. With `connection`, as part of the caller's own transaction."""
        return self._run(self._handle.cancel(reason, request_id=request_id, connection=take_connection(connection)))

    def terminate(self, reason: str = "", *, request_id: str | None = None) -> bool:
        """End the execution at once, without running its code; False if it is closed."""
        return self._run(self._handle.terminate(reason, request_id=request_id))

    def pause(self, reason: str = "", by: str = "", *, request_id: str | None = None) -> bool:
        """Let the execution take no turns until it is resumed; False if it is closed, blocked, or paused already."""
        return self._run(self._handle.pause(reason, by, request_id=request_id))

    def resume(self, *, request_id: str | None = None) -> bool:
        """Let the execution go on after a pause; False if it is not paused."""
        return self._run(self._handle.resume(request_id=request_id))


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

    def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status of an execution as soon as its `state_version` is another than `seen`; `handle.wait_for` calls this.

        With `seen_pauses`, the pauses that were seen as texts, also as soon as it has others. It may return sooner, with
        what was seen. Raises ExecutionNotFound, or AnswerTimedOut after `timeout`.
        """
        return self._run(self._verbs.wait_for_change(target, seen, seen_pauses=seen_pauses, org=org, timeout=timeout))

    def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        return self._run(self._verbs.history(target, org=org))

    def pause(
        self, target: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let an execution take no turns until it is resumed; what arrives meanwhile waits, in order.

        Returns False if it is closed, blocked, or paused already. Raises ExecutionNotFound.
        """
        return self._run(self._verbs.pause(target, reason, by, org=org, request_id=request_id))

    def resume(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused execution go on. Returns False if it is not paused. Raises ExecutionNotFound."""
        return self._run(self._verbs.resume(target, org=org, request_id=request_id))

    def pause_workflow(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a workflow take a turn, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        return self._run(self._verbs.pause_workflow(name, reason, by, org=org, request_id=request_id))

    def resume_workflow(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions of a paused workflow go on. Returns False if it is not paused."""
        return self._run(self._verbs.resume_workflow(name, org=org, request_id=request_id))

    def pause_queue(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a queue take a turn, and no activity of it begin, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        return self._run(self._verbs.pause_queue(name, reason, by, org=org, request_id=request_id))

    def resume_queue(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions and activities of a paused queue go on. Returns False if it is not paused."""
        return self._run(self._verbs.resume_queue(name, org=org, request_id=request_id))

    def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused; `list(status="paused")` finds executions."""
        return self._run(self._verbs.pauses(org=org))

    def query(
        self, target: str, name: str, *args: Any, org: str = DEFAULT_ORG, timeout: Duration | None = None, hint: Any = Any
    ) -> Any:
        """Ask a query handler of an execution, open or closed; what it returns, read as `hint`. Changes nothing.

        A node that has the code answers. Raises UnknownQuery, which names the queries that there are; ExecutionNotBegun;
        InvalidArguments; ReadOnlyHandler; QueryFailed; AnswerTimedOut after `timeout`, or after half a minute; and
        NobodyAnswers.
        """
        return self._run(self._verbs.query(target, name, *args, org=org, timeout=timeout, hint=hint))

    def update(
        self,
        target: str,
        name: str,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of an open execution, by workflow id or execution id; what it returns, read as `hint`.

        The answer comes after what the handler did is durable. Calls with the same `request_id` for the same target are one
        call. Raises UnknownUpdate, InvalidArguments or UpdateRejected, after which nothing is stored; UpdateFailed;
        UpdateUnfinished; AnswerTimedOut after `timeout`, while the update goes on; NobodyAnswers.
        """
        return self._run(
            self._verbs.update(
                target, name, value, org=org, request_id=request_id, headers=headers, timeout=timeout, hint=hint
            )
        )

    def update_with_start(
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        update_name: str,
        update_value: Any = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
        **options: Any,
    ) -> Any:
        """Update the open execution that has the workflow id, or start one that has the update, in one transaction.

        The options are those of `signal_with_start_workflow`, and keywords that are none are arguments of the workflow.
        """
        return self._run(
            self._verbs.update_with_start(
                workflow_id,
                workflow,
                *args,
                update_name=update_name,
                update_value=update_value,
                org=org,
                timeout=timeout,
                hint=hint,
                **options,
            )
        )

    def send_event(
        self,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to whoever waits for it: an instance of a class that `@event` decorates, or a name and a value.

        If nobody waits, it is kept as its type says. By name, the type is one of the engine's `events`, or one that a living
        node announces. Raises UnknownEvent, or TooManyKept.
        """
        return self._run(self._verbs.send_event(event, value, org=org, request_id=request_id, headers=headers))

    def send_event_to(
        self,
        target: str,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to one open execution, by workflow id or execution id; it is kept until that waits for it.

        If the execution ends first, `on_target_terminated` of the type says what becomes of it. Raises ExecutionNotFound or
        ExecutionClosed, and what `send_event` raises.
        """
        return self._run(self._verbs.send_event_to(target, event, value, org=org, request_id=request_id, headers=headers))

    def send_message(
        self,
        name: str,
        key: str,
        value: Any = None,
        *,
        ttl: Duration | None = None,
        message_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> MessageOutcome:
        """Send a message to the execution that waits for its name and correlation key; else it starts a workflow.

        If neither is there, it is kept for `ttl`, or for the engine's `message_ttl`; without one, MessageRefused is raised.
        While a message is kept, another with its `message_id` is refused with DuplicateMessage. `request_id` makes a
        repeated call safe instead: it gets the first answer.
        """
        return self._run(
            self._verbs.send_message(
                name, key, value, ttl=ttl, message_id=message_id, org=org, request_id=request_id, headers=headers
            )
        )

    def broadcast_signal(
        self,
        name: str,
        variables: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Broadcast:
        """Send a signal to everybody who waits for it at this moment, and start the workflows that start by it.

        Nothing is kept. `delivered` of the answer counts the subscriptions that were found: one that ends in the same moment
        is counted.
        """
        return self._run(self._verbs.broadcast_signal(name, variables, org=org, request_id=request_id, headers=headers))

    def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type, given by class or name, that are kept, in the order of sending; `after` is a position."""
        return self._run(self._verbs.pending_events(event, org=org, limit=limit, after=after))

    def remove_pending_event(
        self, event: Any, event_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Remove a kept event of a type, given by class or name, by its id. Returns False if it is not there."""
        return self._run(self._verbs.remove_pending_event(event, event_id, org=org, request_id=request_id))

    def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold; `cursor` of the list leads to the next page."""
        return self._run(self._verbs.tasks(**conditions))

    def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        return self._run(self._verbs.task(task_id, org=org))

    def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, who did it and when, in order. Raises TaskNotFound."""
        return self._run(self._verbs.task_events(task_id, org=org))

    def claim_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Take a human task, as its assignee or a candidate. Raises TaskClaimed, NotTaskCandidate or TaskEnded."""
        return self._run(self._verbs.claim_task(task_id, by=by, groups=groups, org=org, request_id=request_id))

    def release_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Give back a human task that one has claimed. Raises TaskNotClaimed or TaskEnded."""
        return self._run(self._verbs.release_task(task_id, by=by, groups=groups, org=org, request_id=request_id))

    def assign_task(
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
        return self._run(self._verbs.assign_task(task_id, assignee, by=by, groups=groups, org=org, request_id=request_id))

    def complete_task(
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
        return self._run(
            self._verbs.complete_task(task_id, form, by=by, groups=groups, org=org, request_id=request_id, timeout=timeout)
        )

    def cancel_task(
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
        return self._run(
            self._verbs.cancel_task(task_id, reason, by=by, groups=groups, org=org, request_id=request_id, timeout=timeout)
        )

    def comment_task(
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
        return self._run(self._verbs.comment_task(task_id, comment, by=by, groups=groups, org=org, request_id=request_id))

    def set_task_priority(
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
        return self._run(
            self._verbs.set_task_priority(task_id, priority, by=by, groups=groups, org=org, request_id=request_id)
        )

    def set_task_due(
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
        return self._run(
            self._verbs.set_task_due(task_id, due, by=by, groups=groups, org=org, request_id=request_id, timeout=timeout)
        )

    def create_schedule(
        self,
        schedule_id: str,
        spec: str | datetime | Calendar,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *inputs: Any,
        args: Sequence[Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Create a schedule that starts a workflow at the times that `spec` says, from now on.

        `spec` is a cron line, a cycle (`R3/PT10M`), a date, a duration or a `Calendar`. Arguments of the workflow follow it,
        as for `start`, or are the list `args`. Raises InvalidSchedule, ScheduleExists, or what a start with these arguments
        raises.
        """
        return self._run(
            self._verbs.create_schedule(
                schedule_id, spec, workflow, *inputs, args=args, org=org, request_id=request_id, **options
            )
        )

    def update_schedule(
        self,
        schedule_id: str,
        spec: str | datetime | Calendar | None = None,
        *,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str | None = None,
        args: Sequence[Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Change what is given of a schedule. If when it fires changes, it counts from now on; else its count stays.

        Raises ScheduleNotFound, and as `create_schedule`.
        """
        return self._run(
            self._verbs.update_schedule(
                schedule_id, spec, workflow=workflow, args=args, org=org, request_id=request_id, **options
            )
        )

    def pause_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a schedule fire no more until it is resumed. Returns False if it does not fire now.

        Raises ScheduleNotFound.
        """
        return self._run(self._verbs.pause_schedule(schedule_id, org=org, request_id=request_id))

    def resume_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused schedule fire again; what fell into the pause is left out. Returns False if it is not paused.

        Raises ScheduleNotFound.
        """
        return self._run(self._verbs.resume_schedule(schedule_id, org=org, request_id=request_id))

    def run_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> ScheduleRun:
        """Start an execution of a schedule now, whatever is open, also while it is paused. Raises ScheduleNotFound."""
        return self._run(self._verbs.run_schedule(schedule_id, org=org, request_id=request_id))

    def backfill_schedule(
        self,
        schedule_id: str,
        first: datetime,
        last: datetime,
        *,
        overlap: str = "allow",
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> int:
        """Start executions for the times from `first` to `last`, which have passed. Returns how many.

        All at once, or with overlap="queue" one after the other. Raises ScheduleNotFound or InvalidArguments.
        """
        return self._run(
            self._verbs.backfill_schedule(schedule_id, first, last, overlap=overlap, org=org, request_id=request_id)
        )

    def delete_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Delete a schedule. Returns False if there is none. Executions that it started continue."""
        return self._run(self._verbs.delete_schedule(schedule_id, org=org, request_id=request_id))

    def describe_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG) -> ScheduleInfo:
        """Describe a schedule, with its next five fire times and its recent runs. Raises ScheduleNotFound."""
        return self._run(self._verbs.describe_schedule(schedule_id, org=org))

    def schedules(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: str = "") -> builtins.list[ScheduleInfo]:
        """List the schedules of an org behind the id `after`, in the order of their ids; up to 1,000 at once."""
        return self._run(self._verbs.schedules(org=org, limit=limit, after=after))

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

    def stale(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """List the human tasks, then the executions, that nobody has touched for `older_than`; nothing is changed.

        What waits for something that comes by itself is not stale: a timer, an activity, a child, a due date. Nor is what is
        paused or blocked. `cursor` of the list leads to the next page. Raises InvalidArguments.
        """
        return self._run(self._verbs.stale(older_than, org=org, limit=limit, cursor=cursor))

    def end_stale(
        self,
        older_than: Duration,
        *,
        reason: str = "",
        by: str = "",
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> StaleList:
        """Cancel the tasks and terminate the executions that `stale` lists; those that were ended are returned.

        Whatever somebody touches in the meantime is left alone. `reason` is kept in the histories, and `by` with the tasks.
        `cursor` of the list leads on. To call it again does no harm. Raises InvalidArguments.
        """
        return self._run(self._verbs.end_stale(older_than, reason=reason, by=by, org=org, limit=limit, cursor=cursor))

    def variables(
        self, target: str, *, scope: str | None = None, org: str = DEFAULT_ORG, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """The variables of a process, open or closed, by workflow id or execution id; or those of an element (`scope`).

        Raises ExecutionNotFound; InvalidArguments if the workflow is code, or the scope is not there; and what `query`
        raises.
        """
        return self._run(self._verbs.variables(target, scope=scope, org=org, timeout=timeout))

    def set_variables(
        self,
        target: str,
        variables: Mapping[str, Any],
        *,
        scope: str | None = None,
        local: bool = False,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Set variables of an open process; it returns when that is durable.

        Each goes to the nearest scope that has it, from `scope` (the id of an element) outwards, else to the process; with
        `local`, all go to the scope itself. Calls with the same `request_id` are one call. Raises InvalidArguments,
        EncodingError, ExecutionNotFound, ExecutionClosed, and AnswerTimedOut after `timeout`, while the call goes on.
        """
        return self._run(
            self._verbs.set_variables(
                target, variables, scope=scope, local=local, org=org, request_id=request_id, timeout=timeout
            )
        )

    def incidents(
        self,
        *,
        workflow: str | None = None,
        target: str | None = None,
        element: str | None = None,
        kind: str | None = None,
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> IncidentList:
        """List the open incidents for which all conditions hold, those of the oldest executions first.

        `target` is a workflow id or an execution id; `element` the id of a BPMN element. `cursor` of the list leads to the
        next page. Raises InvalidArguments, or ExecutionNotFound for a target that is not there.
        """
        return self._run(
            self._verbs.incidents(
                workflow=workflow, target=target, element=element, kind=kind, org=org, limit=limit, cursor=cursor
            )
        )

    def count_incidents(
        self,
        *,
        workflow: str | None = None,
        target: str | None = None,
        element: str | None = None,
        kind: str | None = None,
        org: str = DEFAULT_ORG,
    ) -> int:
        """Count the open incidents under the conditions of `incidents`, up to 10,000."""
        return self._run(self._verbs.count_incidents(workflow=workflow, target=target, element=element, kind=kind, org=org))

    def resolve_incident(
        self,
        target: str,
        number: int | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Let an open process try again where something went wrong, once `variables` are set; without a number, everywhere.

        If nothing has changed, the same goes wrong again, and that is a new incident. Raises IncidentNotFound,
        InvalidArguments, ExecutionNotFound, ExecutionClosed, and AnswerTimedOut after `timeout`, while the call goes on.
        """
        return self._run(
            self._verbs.resolve_incident(
                target, number, variables=variables, org=org, request_id=request_id, timeout=timeout
            )
        )

    def deploy(self, files: Files, *, org: str = DEFAULT_ORG) -> Deployment:
        """Deploy BPMN processes, DMN decisions and forms: a path, several, or a dictionary from file names to content.

        All or nothing: everything is checked first. Unchanged content makes no new version. When it returns, every start on
        every node gets the new version; executions keep theirs. Message, signal and timer start events hold from then on.
        Raises InvalidProcess, which lists all problems with file, line, element and remedy; DeploymentRefused if a code
        workflow has the id of a process, or a message would start two; InvalidArguments if a file cannot be read.
        """
        return self._run(self._verbs.deploy(files, org=org))

    def undeploy(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing any more, or one version of it; its executions go on.

        It is removed with its last execution. Returns False if nothing was to be done. Raises UnknownDefinition.
        """
        return self._run(self._verbs.undeploy(definition_id, version=version, kind=kind, org=org))

    def disable(self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG) -> bool:
        """Let a definition start nothing until it is enabled; its executions go on. Its start timers end.

        It stays the newest version. Returns False if it is disabled already. Raises UnknownDefinition.
        """
        return self._run(self._verbs.disable(definition_id, version=version, kind=kind, org=org))

    def enable(self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG) -> bool:
        """Let a disabled definition start executions again; its start timers count from now on.

        Dates that have passed do not fire. Returns False if it is enabled already. Raises UnknownDefinition.
        """
        return self._run(self._verbs.enable(definition_id, version=version, kind=kind, org=org))

    def definitions(
        self,
        *,
        definition_id: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        all_versions: bool = False,
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> DefinitionList:
        """The deployed processes, decisions and forms of an org, by kind and id; `cursor` of the list leads on.

        Of each the newest version that is not undeployed, or with `all_versions` all of them, the newest first.
        """
        return self._run(
            self._verbs.definitions(
                definition_id=definition_id,
                kind=kind,
                state=state,
                all_versions=all_versions,
                org=org,
                limit=limit,
                cursor=cursor,
            )
        )

    def definition(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> DefinitionInfo:
        """One version of a definition in any state, or the newest that is not undeployed. Raises UnknownDefinition."""
        return self._run(self._verbs.definition(definition_id, version=version, kind=kind, org=org))

    def definition_xml(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bytes:
        """The file that a version of a definition came with, byte for byte. Raises UnknownDefinition."""
        return self._run(self._verbs.definition_xml(definition_id, version=version, kind=kind, org=org))
