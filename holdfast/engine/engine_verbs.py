"""The verbs of an engine: each is checked, stands on a use case, and returns after the commit.

Whether it may be called now, and in this event loop, is for the engine to say (`EngineVerbs._check_open`).
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.code.workflow_types import WorkflowTaking
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome
from holdfast.engine.clock import Clock
from holdfast.engine.engine_task_verbs import EngineTaskVerbs
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle, make_handle
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.repair_verbs import EngineRepairVerbs
from holdfast.engine.runtime import Runtime
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.dead_letters import check_ids
from holdfast.engine.use_cases.delivery import Delivery, choose_target
from holdfast.engine.use_cases.human_tasks import HumanTasks
from holdfast.engine.use_cases.pausing import Pausing
from holdfast.engine.use_cases.publications import PendingEvent, PublicationCalls
from holdfast.engine.use_cases.queries import Queries
from holdfast.engine.use_cases.result_waits import ResultWaits
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.use_cases.transactional_outbox import (
    TransactionWork,
    make_envelope_row,
    make_start_row,
)
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, Pause
from holdfast.store.pauses import PauseKind
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.store.contract import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class EngineVerbs(EngineTaskVerbs, EngineRepairVerbs):
    """Everything that can be asked of an engine while it is open: the protocol `Verbs`, on the engine's own use cases."""

    store: Store
    clock: Clock
    catalog: Catalog
    _delivery: Delivery
    _publications: PublicationCalls
    _queries: Queries
    _result_waits: ResultWaits
    _pausing: Pausing
    _runtime: Runtime
    _on_blocked: OnBlocked = "wait"
    """What `result()` does about a blocked execution, unless it is told."""

    def _check_open(self) -> None:
        """Raises EngineClosed or WrongEventLoop if the engine cannot take calls now."""
        raise NotImplementedError

    @property
    def _human_tasks(self) -> HumanTasks:
        return HumanTasks(self.store, self._delivery, self._answered)

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

        Without `version`, the newest version that this engine has is started. With `version`, the execution is pinned to
        that version, whatever the workflow's own policy: only nodes that have it take its turns. Raises UnknownWorkflow if
        this engine does not have it.

        With `delay`, the execution exists at once and its code begins later; with `execution_timeout`, `run_timeout` or
        `retry` it is bounded or tried again, see `holdfast.engine.use_cases.start_options`.

        With `connection`, the start is part of the caller's own transaction on it, see `transaction`.
        """
        self._check_open()
        await self._delivery.unknown_names.learn(org, workflow, options.get("version"))
        prepared = self._delivery.make_start(org, workflow, args, options)
        start, hint = prepared.start, prepared.result_hint
        if connection is not None:
            await self.store.enlist(connection, [make_start_row(org, prepared, at=self.clock.now())])
            return WorkflowHandle(self, org, start.workflow_id, start.execution_id, created=None, hint=hint)
        opened = await self._delivery.start(org, prepared)
        found = options.get("workflow_id") or opened.execution_id
        is_repeated = prepared.key is not None and opened.execution_id != start.execution_id
        if is_repeated and (options.get("idempotency_key") or not options.get("workflow_id")):
            # The key counts, whatever the id of this call; and the first run of the chain may have been removed.
            found = (await self._delivery.find_or_raise(org, opened.execution_id, "find")).workflow_id
        return WorkflowHandle(self, org, found, opened.execution_id, created=opened.created, hint=hint)

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
        """Signal the open execution that has the workflow id, or start one that has the signal, in one transaction.

        `version` is used if an execution is started, as in `start`; an open one is signalled whatever its version is.

        With `connection`, this is part of the caller's own transaction on it, see `transaction`.
        """
        self._check_open()
        signal = self._delivery.make_signal(signal_name, signal_value, options.get("headers"))
        await self._delivery.unknown_names.learn(org, workflow, options.get("version"))
        prepared = self._delivery.make_start_with_signal(org, workflow_id, workflow, args, options)
        if connection is not None:
            await self.store.enlist(connection, [make_start_row(org, prepared, signal, at=self.clock.now())])
            return SignalWithStartResponse(prepared.start.execution_id, None, None)
        opened = await self._delivery.start(org, prepared, signal)
        return SignalWithStartResponse(opened.execution_id, opened.created, opened.signal_sequence)

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

        `workflow_execution_id` is another name for `target`: give one of the two. Its code finds the `headers` by
        `ctx.last_signal_headers`.

        With `connection`, the signal is part of the caller's own transaction on it, see `transaction`.
        """
        self._check_open()
        target = choose_target(target, workflow_execution_id)
        if connection is not None:
            rows: builtins.list[InboxRow] = []
            TransactionWork(self, self._delivery, rows.append).signal(
                target, signal_name, signal_value, org=org, request_id=request_id, headers=headers
            )
            await self.store.enlist(connection, rows)
            return SignalResponse("", None)
        accepted = await self._delivery.signal(org, target, signal_name, signal_value, request_id, headers)
        return SignalResponse(accepted.execution_id, accepted.sequence)

    async def cancel(
        self,
        target: str,
        reason: str = "",
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. Returns False if it is closed.

        Calls with the same `request_id` for the same target are one call: each gets the answer of the first.

        With `connection`, this is part of the caller's own transaction on it, see `transaction`, and always returns True.
        """
        self._check_open()
        if connection is not None:
            cancel = self._delivery.make_cancel(reason, request_id, target)
            row = make_envelope_row(org, target, cancel, at=self.clock.now())
            await self.store.enlist(connection, [row])
            return True
        return await self._delivery.cancel(org, target, reason, request_id)

    async def terminate(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """End an execution at once, without running its code. Returns False if it is closed. `request_id` as in `cancel`."""
        self._check_open()
        return await self._delivery.terminate(org, target, reason, request_id)

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked.

        `request_id` as in `cancel`.
        """
        self._check_open()
        row = await self._delivery.find_or_raise(org, target, "retry")
        call = self._delivery.make_call(org, "retry_blocked", request_id, target, row.execution_id)
        return await self._runtime.recovery.retry_blocked(row, call)

    async def pause(
        self, target: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let an execution take no turns until it is resumed; what arrives meanwhile waits, in order.

        Returns False if it is closed, blocked, or paused already. Raises ExecutionNotFound.
        """
        self._check_open()
        return await self._pausing.pause(org, target, reason, by, request_id)

    async def resume(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused execution go on. Returns False if it is not paused. Raises ExecutionNotFound."""
        self._check_open()
        return await self._pausing.resume(org, target, request_id)

    async def pause_workflow(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a workflow take a turn, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        self._check_open()
        return await self._pausing.pause_all(org, PauseKind.WORKFLOW, name, reason, by, request_id)

    async def resume_workflow(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions of a paused workflow go on. Returns False if it is not paused."""
        self._check_open()
        return await self._pausing.resume_all(org, PauseKind.WORKFLOW, name, request_id)

    async def pause_queue(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a queue take a turn, and no activity of it begin, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        self._check_open()
        return await self._pausing.pause_all(org, PauseKind.QUEUE, name, reason, by, request_id)

    async def resume_queue(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions and activities of a paused queue go on. Returns False if it is not paused."""
        self._check_open()
        return await self._pausing.resume_all(org, PauseKind.QUEUE, name, request_id)

    async def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused; `list(status="paused")` finds executions."""
        self._check_open()
        return await self._pausing.list(org)

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        self._check_open()
        return (await self._delivery.find_started(org, workflow_id, execution_id, "find")).execution_id

    # --- messages, events, broadcast signals ---

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
        self._check_open()
        return await self._publications.send_event(org, (event, value), None, request_id, headers)

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
        self._check_open()
        return await self._publications.send_event(org, (event, value), target, request_id, headers)

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
        self._check_open()
        return await self._publications.send_message(org, (name, key, value), ttl, message_id, request_id, headers)

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
        self._check_open()
        return await self._publications.broadcast(org, name, variables, request_id, headers)

    async def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type, given by class or name, that are kept, in the order of sending; `after` is a position."""
        self._check_open()
        return await self._publications.list_pending(org, event, limit, after)

    async def remove_pending_event(
        self, event: Any, event_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Remove a kept event of a type, given by class or name, by its id. Returns False if it is not there."""
        self._check_open()
        return await self._publications.remove_pending(org, event, event_id, request_id)

    # --- asking ---

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        return make_handle(self, target, org, workflow)

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        self._check_open()
        return await self._queries.status(org, target)

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        self._check_open()
        ending = await self._queries.ending(org, target)
        return None if ending is None else ending.to_value(Any, self.catalog.find_errors)

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

        Raises ResultTimedOut, which is a TimeoutError, after `timeout` (seconds or a timedelta), and says what the
        execution waits for. If the execution is or becomes blocked, `on_blocked="raise"` raises ExecutionBlocked;
        `"wait"`, the default, logs it once and waits.
        """
        self._check_open()
        policy = self._on_blocked if on_blocked is None else on_blocked
        ending = await self._result_waits.wait(org, target, timeout=timeout, on_blocked=policy)
        return ending.to_value(hint, self.catalog.find_errors)

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        self._check_open()
        return await self._queries.history(org, target)

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first; `cursor` of the list leads to the next page.

        Executions that are created or closed between two pages make none appear twice or get lost.
        """
        self._check_open()
        return await self._queries.list(options)

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`; up to 10,000 of them."""
        self._check_open()
        return await self._queries.count(conditions)

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue. Counts end at 10,000."""
        self._check_open()
        return await self._queries.backlog()

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name."""
        self._check_open()
        return await self._queries.nodes()

    # --- dead letters ---

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        self._check_open()
        return await self._queries.dead_letters(org, limit, after)

    async def requeue_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were.

        Calls with the same `request_id` in an org are one call: each gets the answer of the first.
        """
        self._check_open()
        letters = check_ids(org, ids)
        call = self._delivery.make_call(org, "requeue_dead_letters", request_id)
        count = await self.store.requeue_dead_letters(org, letters, self.clock.now(), call)
        self._runtime.on_put()
        return count

    async def discard_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Delete dead letters. Returns how many of the ids there were. `request_id` as in `requeue_dead_letters`."""
        self._check_open()
        return await self.store.discard_dead_letters(
            org, check_ids(org, ids), self._delivery.make_call(org, "discard_dead_letters", request_id)
        )
