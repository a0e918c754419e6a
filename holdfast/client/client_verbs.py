"""The verbs of a client. Written by `python -m tools.facades`: change the protocol, and run it again."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

from holdfast.client.reaches import Reach, find_key, is_keyed
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
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.human_tasks import TaskConditions
from holdfast.engine.use_cases.publications import PendingEvent
from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleOptions, ScheduleRun
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, Pause

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ClientVerbs:
    """The verbs, each handed to whatever reaches the database."""

    @property
    def _reach(self) -> Reach:
        """What reaches the database. Raises EngineClosed if it is not connected."""
        raise NotImplementedError

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
        return (
            await self._reach.write(
                lambda verbs: verbs.start(workflow, *args, org=org, connection=connection, **options),
                is_safe=is_keyed(options),
            )
        ).bind(self)

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
        return await self._reach.write(
            lambda verbs: verbs.signal_with_start_workflow(
                workflow_id,
                workflow,
                *args,
                signal_name=signal_name,
                signal_value=signal_value,
                org=org,
                connection=connection,
                **options,
            ),
            is_safe=is_keyed(options),
        )

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
        return await self._reach.write(
            lambda verbs: verbs.signal_workflow(
                target,
                signal_name,
                signal_value,
                workflow_execution_id=workflow_execution_id,
                org=org,
                request_id=request_id,
                headers=headers,
                connection=connection,
            ),
            is_safe=request_id is not None,
        )

    async def cancel(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None, connection: Any = None
    ) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. Returns False if it is closed."""
        return await self._reach.write(
            lambda verbs: verbs.cancel(target, reason, org=org, request_id=request_id, connection=connection),
            is_safe=request_id is not None,
        )

    async def terminate(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """End an execution at once, without running its code. Returns False if it is closed."""
        return await self._reach.write(
            lambda verbs: verbs.terminate(target, reason, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked."""
        return await self._reach.write(
            lambda verbs: verbs.retry_blocked(target, org=org, request_id=request_id), is_safe=request_id is not None
        )

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...

    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        return make_handle(self, target, org, workflow)

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        return await self._reach.read(lambda verbs: verbs.find_started(workflow_id, execution_id, org=org))

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        return await self._reach.read(lambda verbs: verbs.query_status(target, org=org))

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        return await self._reach.read(lambda verbs: verbs.query_result(target, org=org))

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
        return await self._reach.wait(target, hint, org=org, timeout=timeout, on_blocked=on_blocked)

    async def wait_for_change(
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
        return await self._reach.watch(
            lambda verbs: verbs.wait_for_change(target, seen, seen_pauses=seen_pauses, org=org, timeout=timeout)
        )

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        return await self._reach.read(lambda verbs: verbs.history(target, org=org))

    async def pause(
        self, target: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let an execution take no turns until it is resumed; what arrives meanwhile waits, in order.

        Returns False if it is closed, blocked, or paused already. Raises ExecutionNotFound.
        """
        return await self._reach.write(
            lambda verbs: verbs.pause(target, reason, by, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def resume(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused execution go on. Returns False if it is not paused. Raises ExecutionNotFound."""
        return await self._reach.write(
            lambda verbs: verbs.resume(target, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def pause_workflow(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a workflow take a turn, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        return await self._reach.write(
            lambda verbs: verbs.pause_workflow(name, reason, by, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

    async def resume_workflow(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions of a paused workflow go on. Returns False if it is not paused."""
        return await self._reach.write(
            lambda verbs: verbs.resume_workflow(name, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def pause_queue(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a queue take a turn, and no activity of it begin, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        return await self._reach.write(
            lambda verbs: verbs.pause_queue(name, reason, by, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def resume_queue(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions and activities of a paused queue go on. Returns False if it is not paused."""
        return await self._reach.write(
            lambda verbs: verbs.resume_queue(name, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused; `list(status="paused")` finds executions."""
        return await self._reach.read(lambda verbs: verbs.pauses(org=org))

    async def query(
        self, target: str, name: str, *args: Any, org: str = DEFAULT_ORG, timeout: Duration | None = None, hint: Any = Any
    ) -> Any:
        """Ask a query handler of an execution, open or closed; what it returns, read as `hint`. Changes nothing.

        A node that has the code answers. Raises UnknownQuery, which names the queries that there are; ExecutionNotBegun;
        InvalidArguments; ReadOnlyHandler; QueryFailed; AnswerTimedOut after `timeout`, or after half a minute; and
        NobodyAnswers.
        """
        return await self._reach.read(lambda verbs: verbs.query(target, name, *args, org=org, timeout=timeout, hint=hint))

    async def update(
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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.update(
                target, name, value, org=org, request_id=key, headers=headers, timeout=left, hint=hint
            ),
            key=request_id,
            timeout=timeout,
        )

    async def update_with_start(
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
        return await self._reach.ask(
            lambda verbs, _, left: verbs.update_with_start(
                workflow_id,
                workflow,
                *args,
                update_name=update_name,
                update_value=update_value,
                org=org,
                timeout=left,
                hint=hint,
                **options,
            ),
            key=find_key(options),
            timeout=timeout,
        )

    async def send_event(
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
        return await self._reach.write(
            lambda verbs: verbs.send_event(event, value, org=org, request_id=request_id, headers=headers),
            is_safe=request_id is not None,
        )

    async def send_event_to(
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
        return await self._reach.write(
            lambda verbs: verbs.send_event_to(target, event, value, org=org, request_id=request_id, headers=headers),
            is_safe=request_id is not None,
        )

    async def send_message(
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
        return await self._reach.write(
            lambda verbs: verbs.send_message(
                name, key, value, ttl=ttl, message_id=message_id, org=org, request_id=request_id, headers=headers
            ),
            is_safe=request_id is not None,
        )

    async def broadcast_signal(
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
        return await self._reach.write(
            lambda verbs: verbs.broadcast_signal(name, variables, org=org, request_id=request_id, headers=headers),
            is_safe=request_id is not None,
        )

    async def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type, given by class or name, that are kept, in the order of sending; `after` is a position."""
        return await self._reach.read(lambda verbs: verbs.pending_events(event, org=org, limit=limit, after=after))

    async def remove_pending_event(
        self, event: Any, event_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Remove a kept event of a type, given by class or name, by its id. Returns False if it is not there."""
        return await self._reach.write(
            lambda verbs: verbs.remove_pending_event(event, event_id, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

    async def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold; `cursor` of the list leads to the next page."""
        return await self._reach.read(lambda verbs: verbs.tasks(**conditions))

    async def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        return await self._reach.read(lambda verbs: verbs.task(task_id, org=org))

    async def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, who did it and when, in order. Raises TaskNotFound."""
        return await self._reach.read(lambda verbs: verbs.task_events(task_id, org=org))

    async def claim_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Take a human task, as its assignee or a candidate. Raises TaskClaimed, NotTaskCandidate or TaskEnded."""
        return await self._reach.write(
            lambda verbs: verbs.claim_task(task_id, by=by, groups=groups, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

    async def release_task(
        self, task_id: str, *, by: str, groups: Sequence[str] = (), org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> TaskInfo:
        """Give back a human task that one has claimed. Raises TaskNotClaimed or TaskEnded."""
        return await self._reach.write(
            lambda verbs: verbs.release_task(task_id, by=by, groups=groups, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

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
        return await self._reach.write(
            lambda verbs: verbs.assign_task(task_id, assignee, by=by, groups=groups, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.complete_task(
                task_id, form, by=by, groups=groups, org=org, request_id=key, timeout=left
            ),
            key=request_id,
            timeout=timeout,
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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.cancel_task(
                task_id, reason, by=by, groups=groups, org=org, request_id=key, timeout=left
            ),
            key=request_id,
            timeout=timeout,
        )

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
        return await self._reach.write(
            lambda verbs: verbs.comment_task(task_id, comment, by=by, groups=groups, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

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
        return await self._reach.write(
            lambda verbs: verbs.set_task_priority(task_id, priority, by=by, groups=groups, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.set_task_due(
                task_id, due, by=by, groups=groups, org=org, request_id=key, timeout=left
            ),
            key=request_id,
            timeout=timeout,
        )

    async def create_schedule(
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
        return await self._reach.write(
            lambda verbs: verbs.create_schedule(
                schedule_id, spec, workflow, *inputs, args=args, org=org, request_id=request_id, **options
            ),
            is_safe=request_id is not None,
        )

    async def update_schedule(
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
        return await self._reach.write(
            lambda verbs: verbs.update_schedule(
                schedule_id, spec, workflow=workflow, args=args, org=org, request_id=request_id, **options
            ),
            is_safe=request_id is not None,
        )

    async def pause_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a schedule fire no more until it is resumed. Returns False if it does not fire now.

        Raises ScheduleNotFound.
        """
        return await self._reach.write(
            lambda verbs: verbs.pause_schedule(schedule_id, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def resume_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused schedule fire again; what fell into the pause is left out. Returns False if it is not paused.

        Raises ScheduleNotFound.
        """
        return await self._reach.write(
            lambda verbs: verbs.resume_schedule(schedule_id, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def run_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> ScheduleRun:
        """Start an execution of a schedule now, whatever is open, also while it is paused. Raises ScheduleNotFound."""
        return await self._reach.write(
            lambda verbs: verbs.run_schedule(schedule_id, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def backfill_schedule(
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
        return await self._reach.write(
            lambda verbs: verbs.backfill_schedule(schedule_id, first, last, overlap=overlap, org=org, request_id=request_id),
            is_safe=request_id is not None,
        )

    async def delete_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Delete a schedule. Returns False if there is none. Executions that it started continue."""
        return await self._reach.write(
            lambda verbs: verbs.delete_schedule(schedule_id, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def describe_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG) -> ScheduleInfo:
        """Describe a schedule, with its next five fire times and its recent runs. Raises ScheduleNotFound."""
        return await self._reach.read(lambda verbs: verbs.describe_schedule(schedule_id, org=org))

    async def schedules(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: str = "") -> builtins.list[ScheduleInfo]:
        """List the schedules of an org behind the id `after`, in the order of their ids; up to 1,000 at once."""
        return await self._reach.read(lambda verbs: verbs.schedules(org=org, limit=limit, after=after))

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first; `cursor` of the list leads to the next page."""
        return await self._reach.read(lambda verbs: verbs.list(**options))

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`; up to 10,000 of them."""
        return await self._reach.read(lambda verbs: verbs.count(**conditions))

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue. Counts end at 10,000."""
        return await self._reach.read(lambda verbs: verbs.backlog())

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name. A client is none."""
        return await self._reach.read(lambda verbs: verbs.nodes())

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        return await self._reach.read(lambda verbs: verbs.dead_letters(org=org, limit=limit, after=after))

    async def requeue_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were."""
        return await self._reach.write(
            lambda verbs: verbs.requeue_dead_letters(ids, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def discard_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Delete dead letters. Returns how many of the ids there were."""
        return await self._reach.write(
            lambda verbs: verbs.discard_dead_letters(ids, org=org, request_id=request_id), is_safe=request_id is not None
        )

    async def stale(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """List the human tasks, then the executions, that nobody has touched for `older_than`; nothing is changed.

        What waits for something that comes by itself is not stale: a timer, an activity, a child, a due date. Nor is what is
        paused or blocked. `cursor` of the list leads to the next page. Raises InvalidArguments.
        """
        return await self._reach.read(lambda verbs: verbs.stale(older_than, org=org, limit=limit, cursor=cursor))

    async def end_stale(
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
        return await self._reach.write(
            lambda verbs: verbs.end_stale(older_than, reason=reason, by=by, org=org, limit=limit, cursor=cursor),
            is_safe=False,
        )

    async def variables(
        self, target: str, *, scope: str | None = None, org: str = DEFAULT_ORG, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """The variables of a process, open or closed, by workflow id or execution id; or those of an element (`scope`).

        Raises ExecutionNotFound; InvalidArguments if the workflow is code, or the scope is not there; and what `query`
        raises.
        """
        return await self._reach.read(lambda verbs: verbs.variables(target, scope=scope, org=org, timeout=timeout))

    async def set_variables(
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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.set_variables(
                target, variables, scope=scope, local=local, org=org, request_id=key, timeout=left
            ),
            key=request_id,
            timeout=timeout,
        )

    async def incidents(
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
        return await self._reach.read(
            lambda verbs: verbs.incidents(
                workflow=workflow, target=target, element=element, kind=kind, org=org, limit=limit, cursor=cursor
            )
        )

    async def count_incidents(
        self,
        *,
        workflow: str | None = None,
        target: str | None = None,
        element: str | None = None,
        kind: str | None = None,
        org: str = DEFAULT_ORG,
    ) -> int:
        """Count the open incidents under the conditions of `incidents`, up to 10,000."""
        return await self._reach.read(
            lambda verbs: verbs.count_incidents(workflow=workflow, target=target, element=element, kind=kind, org=org)
        )

    async def resolve_incident(
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
        return await self._reach.ask(
            lambda verbs, key, left: verbs.resolve_incident(
                target, number, variables=variables, org=org, request_id=key, timeout=left
            ),
            key=request_id,
            timeout=timeout,
        )

    async def deploy(self, files: Files, *, org: str = DEFAULT_ORG) -> Deployment:
        """Deploy BPMN processes, DMN decisions and forms: a path, several, or a dictionary from file names to content.

        All or nothing: everything is checked first. Unchanged content makes no new version. When it returns, every start on
        every node gets the new version; executions keep theirs. Message, signal and timer start events hold from then on.
        Raises InvalidProcess, which lists all problems with file, line, element and remedy; DeploymentRefused if a code
        workflow has the id of a process, or a message would start two; InvalidArguments if a file cannot be read.
        """
        return await self._reach.write(lambda verbs: verbs.deploy(files, org=org), is_safe=True)

    async def undeploy(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing any more, or one version of it; its executions go on.

        It is removed with its last execution. Returns False if nothing was to be done. Raises UnknownDefinition.
        """
        return await self._reach.write(
            lambda verbs: verbs.undeploy(definition_id, version=version, kind=kind, org=org), is_safe=True
        )

    async def disable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing until it is enabled; its executions go on. Its start timers end.

        It stays the newest version. Returns False if it is disabled already. Raises UnknownDefinition.
        """
        return await self._reach.write(
            lambda verbs: verbs.disable(definition_id, version=version, kind=kind, org=org), is_safe=True
        )

    async def enable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a disabled definition start executions again; its start timers count from now on.

        Dates that have passed do not fire. Returns False if it is enabled already. Raises UnknownDefinition.
        """
        return await self._reach.write(
            lambda verbs: verbs.enable(definition_id, version=version, kind=kind, org=org), is_safe=True
        )

    async def definitions(
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
        return await self._reach.read(
            lambda verbs: verbs.definitions(
                definition_id=definition_id,
                kind=kind,
                state=state,
                all_versions=all_versions,
                org=org,
                limit=limit,
                cursor=cursor,
            )
        )

    async def definition(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> DefinitionInfo:
        """One version of a definition in any state, or the newest that is not undeployed. Raises UnknownDefinition."""
        return await self._reach.read(lambda verbs: verbs.definition(definition_id, version=version, kind=kind, org=org))

    async def definition_xml(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bytes:
        """The file that a version of a definition came with, byte for byte. Raises UnknownDefinition."""
        return await self._reach.read(lambda verbs: verbs.definition_xml(definition_id, version=version, kind=kind, org=org))
