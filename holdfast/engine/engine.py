"""The engine: opens a store, runs workflows on it, and is the API in process."""

from __future__ import annotations

import asyncio
import builtins
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow, check_workflow
from holdfast.core import events
from holdfast.core.ids import DEFAULT_ORG, check_identifier, make_execution_id
from holdfast.core.instants import Duration
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnBlocked
from holdfast.engine.catalog import Catalog
from holdfast.engine.clock import Clock, StoreClock, SystemClock
from holdfast.engine.config import (
    EngineOptions,
    check_clock,
    check_entropy,
    check_node,
    check_queue_limits,
    make_config,
)
from holdfast.engine.encoded_store import find_bare_store, put_codec_before
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle
from holdfast.engine.leftovers import note_open
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.payload_codecs import PayloadCodec, check_codec
from holdfast.engine.requests import AnyRequest
from holdfast.engine.routes import Routes
from holdfast.engine.runtime import Runtime, RuntimeDeps
from holdfast.engine.stopping import Stopper
from holdfast.engine.stores import make_store
from holdfast.engine.transfer import copying
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.delivery import Delivery, choose_target
from holdfast.engine.use_cases.pending_work import ThisNode
from holdfast.engine.use_cases.queries import Queries
from holdfast.engine.use_cases.result_waits import ResultWaits, ResultWaitsDeps
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.engine.use_cases.transactional_outbox import (
    TransactionWork,
    make_envelope_row,
    make_start_row,
    wrap_user_function,
)
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, RecoveryReport
from holdfast.errors import EngineClosed, HoldfastError, WrongEventLoop
from holdfast.log_events import LogEvent, tag
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

P = ParamSpec("P")
R = TypeVar("R")


class Engine:
    """Runs durable workflows in this process.

        async with Engine("sqlite:///app.db", workflows=[greet], activities=[say]) as engine:
            handle = await engine.start(greet, "Ann", workflow_id="greet-ann")
            print(await handle.result())

    `store` is a URL (`sqlite:///file.db`, `postgresql://user@host/database`, `memory://`) or a store. `entropy` returns as
    many random bits as it is asked for; ids are made from them. `codec` encodes values before they are stored, and decodes
    them: see `PayloadCodec`. All other options are keywords: see docs/options.md and
    `holdfast.engine.config.EngineOptions`.

    `queues` are the queues from which this engine takes workflows and activities. By default, an engine that owns its store
    takes from all queues; one that shares its store takes from the queue 'default', from the queues that its activities
    name, and from those in `queue_limits`.
    """

    _takes_all = True
    """Whether an engine that owns its store takes what nobody else would: not where it only takes calls."""
    _on_blocked: OnBlocked = "wait"
    """What `result()` does about a blocked execution, unless it is told."""

    def __init__(
        self,
        store: str | Store = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        codec: PayloadCodec | None = None,
        node: str | None = None,
        clock: Clock | None = None,
        entropy: Callable[[int], int] = secrets.randbits,
        queues: Iterable[str] | None = None,
        queue_limits: Mapping[str, int] | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        self.config = make_config(options)
        check_clock(clock)
        check_entropy(entropy)
        check_codec(codec)
        self.catalog = self._make_catalog(workflows, activities)
        self.store: Store = put_codec_before(make_store(store), codec)
        self.clock: Clock = clock or (SystemClock() if self.store.exclusive else StoreClock())
        self.node = check_node(node) if node is not None else f"node-{make_execution_id(self.clock.now(), entropy(62))}"
        self.recovery_report: RecoveryReport | None = None
        """What was found when the engine opened."""
        limits = check_queue_limits(queue_limits)
        self.routes = Routes(self.catalog, queues, limits, exclusive=self._takes_all and self.store.exclusive)
        self._delivery = Delivery(self.store, self.catalog, self.config, self.clock, self._submit, entropy)
        self._runtime = self._make_runtime(
            RuntimeDeps(
                store=self.store,
                catalog=self.catalog,
                routes=self.routes,
                config=self.config,
                clock=self.clock,
                node=self.node,
                queue_limits=limits,
            )
        )
        here = ThisNode(
            node=self.node,
            cache=self._runtime.cache,
            prefetch=self._runtime.pump.prefetch,
            runner=self._runtime.runner,
            routes=self.routes,
        )
        self._queries = Queries(self.store, self._delivery, self.clock, here)
        self._result_waits = self._make_result_waits()
        self._stopper = Stopper()
        self._was_closed = False
        self._replaced_by: HoldfastError | None = None
        self._forced_shutdown: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None

    def _make_catalog(self, workflows: Iterable[Workflow[..., Any]], activities: Iterable[Activity[..., Any]]) -> Catalog:
        return Catalog(workflows, activities)

    def _make_runtime(self, deps: RuntimeDeps) -> Runtime:
        return Runtime(deps, self._on_replaced)

    def _make_result_waits(self) -> ResultWaits:
        return ResultWaits(
            ResultWaitsDeps(
                store=self.store,
                clock=self.clock,
                delivery=self._delivery,
                runtime=self._runtime,
                routes=self.routes,
                query_status=self.query_status,
                await_end=self._await_end,
            )
        )

    # --- lifecycle ---

    async def open(self) -> RecoveryReport:
        """Open the store, recover what was in flight, and start working. Does nothing if the engine is open."""
        if self.is_open and self.recovery_report is not None:
            self._check_loop()
            return self.recovery_report
        if self._replaced_by is not None:
            raise self._replaced_by
        if self._was_closed:
            raise EngineClosed("Expected to open a new engine, but this one was shut down. Make another: Engine(...).")
        loop = asyncio._get_running_loop()
        if loop is None:
            raise WrongEventLoop(
                "Expected to be awaited in an event loop, but none is running. Call asyncio.run(main()), and open the "
                "engine within main()."
            )
        self._loop = loop
        self.recovery_report = await self._runtime.open()
        note_open(self)
        return self.recovery_report

    async def recover(self) -> RecoveryReport:
        """Take over from nodes that left cleanly, and retry blocked executions. `open` does this too; safe to repeat."""
        self._check_open()
        return await self._runtime.recover()

    def add_workflow(self, workflow: Workflow[..., Any]) -> None:
        """Add a workflow, or another version of one. The engine may be open.

        It becomes the newest version of its name: starts that ask for no version use it, and so do the next turns of
        executions that are not pinned. Executions that waited for it continue. On a shared store other nodes learn of it
        with the next heartbeat. Executions that an older version blocked are retried by `recover`. Call this from the
        engine's own thread. Raises InvalidDefinition, or DuplicateName if another function has its name and version.
        """
        self.catalog.add(check_workflow(workflow))
        self._follow_catalog()

    def remove_workflow(self, name: str, version: str | None = None) -> None:
        """Remove a version of a workflow, or all of its versions. The engine may be open.

        A turn that is under way ends with the version with which it began. Executions that need what was removed then wait:
        whatever arrives for them stays in their inboxes, due timers wait too, and `query_status` says so in
        `missing_definition`. They continue when the version is added again, here or on another node. Executions that are not
        pinned continue with the version that was added last among those left. Raises UnknownWorkflow, which lists the known
        workflows or versions.
        """
        self.catalog.remove(name, version)
        self._follow_catalog()

    def _follow_catalog(self) -> None:
        self.routes.refresh()
        if self.is_open:
            self._runtime.note_definitions()

    async def run_until_stopped(self) -> None:
        """Work until SIGTERM or SIGINT arrives or `stop` is called, then shut down cleanly and return.

        Opens the engine if it is not open. A second signal ends the process at once, as if there were no handler. Raises
        NodeNameTaken if another process turns out to work under this node's name.
        """
        with self._stopper.listening():
            await self.open()
            try:
                await self._stopper.wait()
            finally:
                await self.shutdown()

    def _on_replaced(self, error: HoldfastError) -> None:
        log.critical("this engine shuts down: %s", error, extra=tag(LogEvent.NODE_REPLACED, node=self.node))
        self._replaced_by = error
        if not self._stopper.fail(error):
            self._forced_shutdown = asyncio.get_running_loop().create_task(self.shutdown())

    def stop(self) -> None:
        """Make `run_until_stopped` shut down. May be called from any thread, also before `run_until_stopped`."""
        self._stopper.stop()

    async def shutdown(self) -> None:
        """Take no more work, let running activities finish within `shutdown_grace`, leave, close the store. Idempotent.

        Activities that have not finished by then are cancelled and handed back: other nodes take them over at once, or the
        next engine does. Those that go on nevertheless are left behind two seconds later, and their results are refused. If
        the wait for the shutdown is cancelled, the engine goes on to close.
        """
        if self.is_open:
            self._check_loop()
            self._was_closed = True
            self._closing = asyncio.get_running_loop().create_task(self._runtime.close(), name="holdfast-shutdown")
        if self._closing is not None:
            await asyncio.shield(self._closing)
        elif self._forced_shutdown is not None:
            await asyncio.wait([self._forced_shutdown])

    @property
    def is_open(self) -> bool:
        """Whether the engine was opened and has not been shut down since."""
        return self._runtime.is_open and self._closing is None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in which the engine was opened: all its methods must be awaited there."""
        if self._loop is None:
            raise EngineClosed("Expected an engine that has been opened, but this one has not. Await open() first.")
        return self._loop

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
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]:
        """Start a workflow, or find the open execution that has the workflow id; `created` of the handle tells which.

        Without `version`, the newest version that this engine has is started. With `version`, the execution is pinned to
        that version, whatever the workflow's own policy: only nodes that have it take its turns. Raises UnknownWorkflow if
        this engine does not have it.

        With `delay`, the execution exists at once and its code begins later; with `execution_timeout`, `run_timeout` or
        `retry` it is bounded or tried again, see `holdfast.engine.use_cases.start_options`.

        With `connection`, the start is part of the caller's own transaction on it, see `transaction`.
        """
        self._check_open()
        prepared = self._delivery.make_start(org, workflow, args, options)
        start, hint = prepared.start, prepared.result_hint
        if connection is not None:
            await self.store.enlist(connection, [make_start_row(org, prepared, at=self.clock.now())])
            return WorkflowHandle(self, org, start.workflow_id, start.execution_id, created=None, hint=hint)
        opened = await self._delivery.start(org, prepared)
        found = options.get("workflow_id") or opened.execution_id
        if options.get("idempotency_key") is not None and not opened.created:  # the key counts, whatever the id of this call
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
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse:
        """Signal the open execution that has the workflow id, or start one that has the signal, in one transaction.

        `version` is used if an execution is started, as in `start`; an open one is signalled whatever its version is.

        With `connection`, this is part of the caller's own transaction on it, see `transaction`.
        """
        self._check_open()
        signal = self._delivery.make_signal(signal_name, signal_value, options.get("headers"))
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

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked."""
        self._check_open()
        row = await self._delivery.find_or_raise(org, target, "retry")
        return row.status == Status.BLOCKED and await self._runtime.recovery.retry_blocked(row)

    # --- users' transactions ---

    @overload
    async def transaction(self, function: Callable[[Any, TransactionWork], Awaitable[R]]) -> R: ...
    @overload
    async def transaction(self, function: Callable[[Any, TransactionWork], R]) -> R: ...
    async def transaction(self, function: Callable[[Any, TransactionWork], Any]) -> Any:
        """Call `function(connection, work)` in a transaction on the engine's own database, and return its result.

        What it writes with the connection and what it asks of `work` (`work.start(…)`, `work.signal(…)`) commit together
        when it returns; if it raises, both are rolled back. On SQLite it is a plain function and the connection is a
        `sqlite3.Connection`: nothing else happens in the process meanwhile, so keep it short. On PostgreSQL it is
        `async def` and the connection is asyncpg's.

        On PostgreSQL, starts and signals can also be part of any transaction of the caller, by `connection=…` of asyncpg,
        psycopg or SQLAlchemy. They take effect when that transaction commits, which is at once in autocommit. If the
        receiver is closed or unknown by then, the caller cannot be told: see `dead_letters`.
        """
        self._check_open()
        try:
            return await self.store.transact(wrap_user_function(function, partial(TransactionWork, self, self._delivery)))
        finally:
            self._runtime.on_put()  # whatever was raised: of a commit nobody may have been able to tell

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        self._check_open()
        return (await self._delivery.find_started(org, workflow_id, execution_id, "find")).execution_id

    # --- asking ---

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        check_identifier(target, "the id of an execution")
        hint = Any if workflow is None else workflow.result_hint
        return WorkflowHandle(self, org, target, hint=hint)

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        self._check_open()
        return await self._queries.status(org, target)

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        self._check_open()
        return await self._queries.result(org, target)

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
        return (await self._result_waits.wait(org, target, timeout=timeout, on_blocked=policy)).to_value(hint)

    async def _await_end(self, watcher: asyncio.Future[events.AnyEvent]) -> events.AnyEvent:
        return await watcher

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

    async def requeue_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were."""
        self._check_open()
        count = await self.store.requeue_dead_letters(org, ids, self.clock.now())
        self._runtime.pump.look()
        return count

    async def discard_dead_letters(self, ids: Collection[int], *, org: str = DEFAULT_ORG) -> int:
        """Delete dead letters. Returns how many of the ids there were."""
        self._check_open()
        return await self.store.discard_dead_letters(org, ids)

    # --- taking executions elsewhere ---

    async def export_executions(
        self, *targets: str, org: str = DEFAULT_ORG, status: Status | str | Iterable[Status | str] = ()
    ) -> AsyncIterator[bytes]:
        """Export executions as lines of JSON, oldest first: all of an org, or those with these workflow or execution ids.

        A workflow id stands for its newest execution. Each line holds one execution with its history and everything that
        waits for it, as of one moment; `import_executions` reads it. Raises CorruptStore at one that cannot be read.
        """
        self._check_open()
        async for line in copying.export_executions(
            find_bare_store(self.store), targets, org=org, statuses=copying.read_statuses(status)
        ):
            yield copying.require_sound(line)

    async def import_executions(self, lines: Iterable[bytes | str], *, skip_existing: bool = False) -> copying.ImportReport:
        """Import exported executions, each whole or not at all. Open ones continue here: end them where they come from.

        Raises InvalidArguments, which names the line and the field, if a line is invalid, or if its execution exists and
        `skip_existing` is False.
        """
        self._check_open()
        try:
            return await copying.import_executions(find_bare_store(self.store), lines, skip_existing=skip_existing)
        finally:
            self._runtime.pump.look()

    # --- inside ---

    def _check_open(self) -> None:
        if not self.is_open:
            raise EngineClosed(
                "Expected the engine to be open, but it is not. Use `async with Engine(...)`, or await open()."
            )
        if asyncio._get_running_loop() is not self._loop:
            self._check_loop()

    def _check_loop(self) -> None:
        """Raises WrongEventLoop unless the loop runs in which the engine was opened: in any other, awaiting would hang."""
        if asyncio._get_running_loop() is self._loop:
            return
        if self._loop is not None and self._loop.is_closed():
            raise WrongEventLoop(
                "Expected to be awaited in the event loop in which the engine was opened, but that loop is closed: the "
                "engine was not shut down in it, and can be used no more. Do everything within one asyncio.run(…), by "
                "`async with Engine(…)` or with shutdown() at its end, not in atexit; then make another Engine(…)."
            )
        if self._loop is not None:
            raise WrongEventLoop(
                "Expected to be awaited in the event loop in which the engine was opened, but another one is running. From "
                "another thread, call asyncio.run_coroutine_threadsafe(engine.start(…), engine.loop).result(); in one "
                "thread, do everything within one asyncio.run(…)."
            )

    def _submit(self, request: AnyRequest) -> None:
        self._runtime.pump.submit(request)
