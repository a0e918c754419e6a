"""The engine: opens a store, runs workflows on it, and is the API in process."""

from __future__ import annotations

import asyncio
import builtins
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from holdfast.code.definitions import Activity, Workflow
from holdfast.core import events
from holdfast.core.ids import DEFAULT_ORG, check_identifier, make_execution_id
from holdfast.core.instants import Duration
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnClosed, OnOpen
from holdfast.engine.activities import ActivityRunner
from holdfast.engine.clock import Clock, SystemClock
from holdfast.engine.config import check_node, check_queue_limits, make_config
from holdfast.engine.delivery import Delivery
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle
from holdfast.engine.programs import ProgramCache
from holdfast.engine.pump import Pump
from holdfast.engine.recovery import Heartbeat, Recovery
from holdfast.engine.registry import Registry
from holdfast.engine.requests import Request
from holdfast.engine.results import Outcomes, to_value
from holdfast.engine.rows import to_turns
from holdfast.engine.settling import Settled
from holdfast.engine.stores import open_store
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, RecoveryReport, to_dead_letter, to_info
from holdfast.engine.watchdog import Watchdog
from holdfast.errors import CorruptStore, EngineClosed, InvalidArguments, StoreError
from holdfast.store.contract import Filter

if TYPE_CHECKING:
    from holdfast.store.contract import Store

P = ParamSpec("P")
R = TypeVar("R")


class Engine:
    """Runs durable workflows in this process.

        async with Engine("sqlite:///app.db", workflows=[greet], activities=[say]) as engine:
            handle = await engine.start(greet, "Ann", workflow_id="greet-ann")
            print(await handle.result())

    `store` is a URL (`sqlite:///file.db`, `memory://`) or a store. `entropy` gives as many random bits as asked for, from
    which ids are made. Further options are those of `engine.config.Config`.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        node: str | None = None,
        clock: Clock | None = None,
        entropy: Callable[[int], int] = secrets.randbits,
        queue_limits: Mapping[str, int] | None = None,
        **options: Any,
    ) -> None:
        self.config = make_config(options)
        self.clock: Clock = clock or SystemClock()
        self.registry = Registry(workflows, activities, self.config.payload_limit)
        self.store: Store = open_store(store)
        self.node = check_node(node) if node is not None else f"node-{make_execution_id(self.clock.now(), entropy(62))}"
        self.recovery_report: RecoveryReport | None = None
        """What was found when the engine opened."""
        self._queue_limits = check_queue_limits(queue_limits)
        self._outcomes = Outcomes()
        self._cache = ProgramCache(self.config.max_live_programs, self.config.max_live_bytes)
        self._pump = Pump(
            self.store, self._cache, self.registry.make_program, self.config, self.clock, self.node, self._on_settled
        )
        self._runner = ActivityRunner(
            self.registry.activities, self.config, self.clock, self._pump.submit, self._queue_limits
        )
        self._delivery = Delivery(self.store, self.registry, self.config, self.clock, self._submit, entropy)
        self._recovery = Recovery(self.store, self._pump, self.clock, self.node)
        self._heartbeat: Heartbeat | None = None
        self._watchdog = Watchdog(self._pump, self.config.slow_turn)
        self._background: set[asyncio.Task[None]] = set()
        self._is_open = False
        self._was_closed = False

    # --- lifecycle ---

    async def open(self) -> RecoveryReport:
        """Open the store, recover what was in flight, and begin to work. Does nothing if it is open."""
        if self._is_open and self.recovery_report is not None:
            return self.recovery_report
        if self._was_closed:
            raise EngineClosed("Expected to open a new engine, but this one was shut down. Make another: Engine(...).")
        await self.store.open()
        try:
            self.store.on_wake(self._pump.look)
            if not self.store.exclusive:
                self._heartbeat = Heartbeat(
                    self.store, self._recovery, self.clock, self.config, self.node, self._on_heartbeat
                )
                await self._heartbeat.beat()
            self._is_open = True
            # Nothing runs here yet: what names this node was left by an earlier process of the same name.
            self.recovery_report = await self._recovery.recover(await self._list_others())
            self._pump.start()
        except BaseException:
            self._is_open = False
            await self._pump.kill()
            if self._heartbeat is not None:
                await self._heartbeat.stop(leave=False)
            await self.store.close()
            raise
        self._watchdog.start()
        return self.recovery_report

    async def recover(self) -> RecoveryReport:
        """Take over what dead nodes left and try blocked executions again. Done by `open`; safe to repeat."""
        self._check_open()
        return await self._recovery.recover([self.node, *await self._list_others()])

    async def _list_others(self) -> builtins.list[str]:
        """The other nodes that have not said goodbye."""
        nodes = [] if self.store.exclusive else await self.store.list_nodes()
        return [one.node for one in nodes if one.node != self.node]

    async def shutdown(self) -> None:
        """Let running activities finish within the grace time, commit, and close. Idempotent."""
        if not self._is_open:
            return
        self._is_open, self._was_closed = False, True
        self._watchdog.stop()
        await self._runner.close(self.config.shutdown_grace)
        await self._pump.stop()
        for task in builtins.list(self._background):
            await task
        if self._heartbeat is not None:
            await self._heartbeat.stop(leave=True)
        self._cache.clear()
        self._outcomes.fail_all(EngineClosed("Expected to wait for a result, but the engine was shut down. Ask another."))
        await self.store.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    # --- starting and signalling ---

    async def start(
        self,
        workflow: Workflow[..., R] | str,
        *args: Any,
        workflow_id: str | None = None,
        org: str = DEFAULT_ORG,
        queue: str | None = None,
        on_open: OnOpen | str = OnOpen.USE_EXISTING,
        on_closed: OnClosed | str = OnClosed.ALLOW,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        idempotency_ttl: Duration | None = None,
    ) -> WorkflowHandle[R]:
        """Start a workflow, or find the open one that has the id; the handle's `created` tells which."""
        self._check_open()
        opened = await self._delivery.start(
            org,
            workflow,
            args,
            workflow_id=workflow_id,
            queue=queue,
            on_open=on_open,
            on_closed=on_closed,
            metadata=metadata,
            idempotency_key=idempotency_key,
            idempotency_ttl=idempotency_ttl,
        )
        hint = self.registry.find(workflow).signature.result_hint
        found = workflow_id or opened.execution_id
        if idempotency_key is not None and not opened.created:  # the key counts, whatever the id of this call
            found = (await self._delivery.find_or_raise(org, opened.execution_id, "find")).workflow_id
        return WorkflowHandle(self, org, found, opened.execution_id, created=opened.created, hint=hint)

    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        queue: str | None = None,
        metadata: Mapping[str, str] | None = None,
        request_id: str | None = None,
    ) -> SignalWithStartResponse:
        """Signal the open execution that has the id, or start one with the signal in hand: one transaction."""
        self._check_open()
        opened = await self._delivery.start(
            org,
            workflow,
            args,
            workflow_id=check_identifier(workflow_id, "the workflow id"),
            queue=queue,
            on_open=OnOpen.USE_EXISTING,
            on_closed=OnClosed.ALLOW,
            metadata=metadata,
            idempotency_key=request_id,
            idempotency_ttl=None,
            signal=self._delivery.make_signal(signal_name, signal_value),
        )
        return SignalWithStartResponse(opened.execution_id, opened.created, opened.signal_sequence)

    async def signal_workflow(
        self,
        target: str,
        signal_name: str,
        signal_value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> SignalResponse:
        """Signal an open execution, by workflow id or execution id. A repeated `request_id` delivers once."""
        self._check_open()
        accepted = await self._delivery.signal(org, target, signal_name, signal_value, request_id)
        return SignalResponse(accepted.execution_id, accepted.sequence)

    async def cancel(self, target: str, reason: str = "", *, org: str = DEFAULT_ORG) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. False if it is closed."""
        self._check_open()
        return await self._delivery.cancel(org, target, reason)

    async def terminate(self, target: str, reason: str = "", *, org: str = DEFAULT_ORG) -> bool:
        """End an execution at once, without its code having a say. False if it is closed."""
        self._check_open()
        return await self._delivery.terminate(org, target, reason)

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG) -> bool:
        """Let a blocked execution try again, after its code was mended. False if it is not blocked."""
        self._check_open()
        row = await self._delivery.find_or_raise(org, target, "retry")
        return row.status == Status.BLOCKED and await self._recovery.retry_blocked(row)

    # --- asking ---

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        check_identifier(target, "the id of an execution")
        hint = Any if workflow is None else workflow.signature.result_hint
        return WorkflowHandle(self, org, target, hint=hint)

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """How an execution stands. Raises ExecutionNotFound."""
        self._check_open()
        return to_info(await self._delivery.find_or_raise(org, target, "query"))

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of a closed execution as plain JSON values, None while it is open; raises how it ended otherwise."""
        self._check_open()
        row = await self._delivery.find_or_raise(org, target, "query")
        if row.closed_at is None:
            return None
        closing = await self._read_closing(row.execution_id)
        if isinstance(closing, events.ContinuedAs):
            return await self.query_result(closing.execution_id, org=org)
        return to_value(closing, Any, row.workflow_id, row.execution_id)

    async def wait_for_result(self, target: str, hint: Any = Any, *, org: str = DEFAULT_ORG) -> Any:
        """Wait until an execution ends and give its result as `hint`; `handle(…).result()` calls this."""
        self._check_open()
        closing = self._outcomes.recall((org, target))
        live = self._cache.get(target) if self.store.exclusive else None  # else another node may have closed it
        if closing is None and live is not None and live.execution.org == org:
            watcher = self._outcomes.watch((org, target))
            try:
                closing = await self._await_end(watcher)
            finally:
                self._outcomes.forget((org, target), watcher)
        workflow_id = execution_id = target
        while closing is None or isinstance(closing, events.ContinuedAs):
            row = await self._delivery.find_or_raise(org, closing.execution_id if closing else target, "wait for")
            workflow_id, execution_id = row.workflow_id, row.execution_id
            closing = await self._wait_for_end(org, execution_id)
        return to_value(closing, hint, workflow_id, execution_id)

    async def _wait_for_end(self, org: str, execution_id: str) -> events.AnyEvent:
        key = (org, execution_id)
        watcher = self._outcomes.watch(key)
        try:
            # Only now that it is watched: what closed before is in the store, what closes later reaches the watcher.
            row = await self.store.find_execution(org, execution_id)
            if row is not None and row.closed_at is not None:
                return self._outcomes.recall(key) or await self._read_closing(execution_id)
            return await self._await_end(watcher)
        finally:
            self._outcomes.forget(key, watcher)

    async def _await_end(self, watcher: asyncio.Future[events.AnyEvent]) -> events.AnyEvent:
        return await watcher

    async def _read_closing(self, execution_id: str) -> events.AnyEvent:
        last = await self.store.load_last_turn(execution_id)
        if last is None:
            raise CorruptStore(
                f"Expected execution {execution_id} to have a history, but it has none. Run `holdfast check`."
            )
        return to_turns([last])[0].events[-1]

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution."""
        self._check_open()
        row = await self._delivery.find_or_raise(org, target, "read the history of")
        return History(to_turns(await self.store.load_history(row.execution_id)), row.execution_id, row.org)

    async def list(
        self,
        *,
        org: str = DEFAULT_ORG,
        status: Status | str | Iterable[Status | str] = (),
        workflow: str | Workflow[..., Any] | None = None,
        workflow_id: str | None = None,
        parent_execution_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> builtins.list[ExecutionInfo]:
        """Executions, newest first; `before` is the last execution id of the page before."""
        self._check_open()
        if not 1 <= limit <= 10_000:
            raise InvalidArguments(f"Expected limit to be between 1 and 10,000, but it is {limit!r}.")
        wanted = [status] if isinstance(status, str) else builtins.list(status)
        try:
            statuses = [Status(one) for one in wanted]
        except ValueError:
            raise InvalidArguments(f"Expected status to be among {', '.join(Status)}, but it is {status!r}.") from None
        name = workflow.name if isinstance(workflow, Workflow) else workflow
        query = Filter(org, statuses, name, workflow_id, parent_execution_id, before, limit)
        return [to_info(row) for row in await self.store.list_executions(query)]

    # --- dead letters ---

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, oldest first."""
        self._check_open()
        return [to_dead_letter(row) for row in await self.store.list_dead_letters(org, limit, after)]

    async def requeue_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG) -> int:
        """Try dead letters again; how many there were."""
        self._check_open()
        count = await self.store.requeue_dead_letters(org, ids)
        self._pump.look()
        return count

    async def discard_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG) -> int:
        """Throw dead letters away; how many there were."""
        self._check_open()
        return await self.store.discard_dead_letters(org, ids)

    # --- inside ---

    def _check_open(self) -> None:
        if not self._is_open:
            raise EngineClosed(
                "Expected the engine to be open, but it is not. Use `async with Engine(...)`, or await open()."
            )

    def _submit(self, request: Request) -> None:
        self._pump.submit(request)

    def _on_heartbeat(self) -> None:
        """A slow pulse that also notices what a lost wake-up did not tell."""
        self._pump.look()
        if self._outcomes.watched:
            self._spawn(self._look_after_watched())

    async def _look_after_watched(self) -> None:
        """Executions that others closed: who waits here hears of it."""
        for org, execution_id in self._outcomes.watched:
            try:
                last = await self.store.load_last_turn(execution_id)
            except StoreError:
                return  # the next heartbeat looks again
            if last is not None:
                closing = to_turns([last])[0].events[-1]
                if type(closing) in events.CLOSING:
                    self._outcomes.note((org, execution_id), closing)

    def _on_settled(self, settled: Settled) -> None:
        """A batch is committed: answer, stop and start activities, tell who waits."""
        for request, answer in settled.answers:
            request.resolve(answer)
        for execution_id, number in settled.stopped:
            self._runner.stop(execution_id, number)
        for task in settled.dispatched:
            self._runner.start(task)
        for execution, closing in settled.closed:
            self._outcomes.note((execution.org, execution.execution_id), closing)
        if settled.elsewhere:
            self._spawn(self._delivery.deliver_elsewhere(settled.elsewhere))
        if settled.sent and not self.store.exclusive:
            self._spawn(self.store.wake())

    def _spawn(self, coro: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coro)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
