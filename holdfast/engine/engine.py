"""The engine: opens a store, runs workflows on it, and is the API in process."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow, check_workflow
from holdfast.core import events
from holdfast.core.ids import DEFAULT_ORG, make_execution_id
from holdfast.core.instants import to_micros
from holdfast.core.lifecycle import Status
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
from holdfast.engine.deployment_verbs import EngineDeploymentVerbs
from holdfast.engine.encoded_store import find_bare_store, put_codec_before
from holdfast.engine.engine_verbs import EngineVerbs
from holdfast.engine.leftovers import let_go_of_files, note_open, warn_unclosed
from holdfast.engine.loop_calls import call_in_loop
from holdfast.engine.nodes.event_announcements import AnnouncedEvents, index_events
from holdfast.engine.nodes.stale_retention import StaleRetention, StaleRetentionDeps
from holdfast.engine.payload_codecs import PayloadCodec, check_codec
from holdfast.engine.processes.deployed_processes import DeployedProcesses
from holdfast.engine.publishing.publish_requests import PublishRequest
from holdfast.engine.publishing.start_subscriptions import check_starts
from holdfast.engine.replies import ReplyWaiters
from holdfast.engine.requests import AnyRequest
from holdfast.engine.routes import Routes
from holdfast.engine.runtime import Runtime
from holdfast.engine.runtime_deps import RuntimeDeps
from holdfast.engine.schedule_verbs import EngineScheduleVerbs
from holdfast.engine.serving.encoded_events import make_event_verbs
from holdfast.engine.serving.ends import make_end_verbs
from holdfast.engine.serving.places import remove_left
from holdfast.engine.serving.server import ClientServer, list_verbs
from holdfast.engine.stale_verbs import StaleVerbs
from holdfast.engine.stopping import Stopper
from holdfast.engine.stores import make_store
from holdfast.engine.sync_verbs import SyncVerbs
from holdfast.engine.transfer import copying
from holdfast.engine.use_cases.answered_calls import AnsweredCalls
from holdfast.engine.use_cases.change_waits import ChangeWaits
from holdfast.engine.use_cases.delivery import Delivery
from holdfast.engine.use_cases.deployments import Deployments, DeploymentsDeps
from holdfast.engine.use_cases.incidents import IncidentQueries
from holdfast.engine.use_cases.pausing import Pausing
from holdfast.engine.use_cases.pending_work import ThisNode
from holdfast.engine.use_cases.program_queries import ProgramQueries, ProgramQueriesDeps
from holdfast.engine.use_cases.publications import PublicationCalls, PublicationCallsDeps
from holdfast.engine.use_cases.queries import Queries
from holdfast.engine.use_cases.result_waits import ResultWaits, ResultWaitsDeps
from holdfast.engine.use_cases.schedules import Schedules, SchedulesDeps
from holdfast.engine.use_cases.stale_work import StaleCalls, StalePlace, StaleScope
from holdfast.engine.use_cases.transactional_outbox import (
    TransactionWork,
    wrap_user_function,
)
from holdfast.engine.verbs import Verbs
from holdfast.engine.views import RecoveryReport
from holdfast.engine.wait_time import WaitTime
from holdfast.errors import EngineClosed, HoldfastError, WrongEventLoop
from holdfast.log_events import LogEvent, tag
from holdfast.store.endpoints import OwnedStore

if TYPE_CHECKING:
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

P = ParamSpec("P")
R = TypeVar("R")


class Engine(EngineVerbs, EngineScheduleVerbs, StaleVerbs, EngineDeploymentVerbs):
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

    _runs_code = True
    """Whether this engine takes turns and serves clients; one that only takes calls does neither."""

    def __init__(
        self,
        store: str | Store = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        events: Iterable[type[Any]] = (),
        codec: PayloadCodec | None = None,
        node: str | None = None,
        clock: Clock | None = None,
        entropy: Callable[[int], int] = secrets.randbits,
        queues: Iterable[str] | None = None,
        queue_limits: Mapping[str, int] | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        self.config = make_config(options)
        if codec is not None and self.config.searchable_state is None:
            self.config = msgspec.structs.replace(self.config, searchable_state=frozenset())
        check_clock(clock)
        check_entropy(entropy)
        check_codec(codec)
        limits = check_queue_limits(queue_limits)
        known_events = index_events(events)
        self.store: Store = put_codec_before(make_store(store), codec)
        self._processes = DeployedProcesses(self.store)
        self.catalog = self._make_catalog(workflows, activities)
        check_starts(self.catalog)
        self.clock: Clock = clock or (SystemClock() if self.store.exclusive else StoreClock())
        self.node = check_node(node) if node is not None else f"node-{make_execution_id(self.clock.now(), entropy(62))}"
        self.recovery_report: RecoveryReport | None = None
        """What was found when the engine opened."""
        self.routes = Routes(self.catalog, queues, limits, exclusive=self._runs_code and self.store.exclusive)
        self._wait_time = self._make_wait_time()
        replies = ReplyWaiters(self.store, self.clock)
        self._delivery = Delivery(self.store, self.catalog, self.config, self.clock, self._submit, entropy)
        self._answered = self._make_answered(replies)
        self._runtime = self._make_runtime(
            RuntimeDeps(
                store=self.store,
                catalog=self.catalog,
                processes=self._processes,
                routes=self.routes,
                config=self.config,
                clock=self.clock,
                node=self.node,
                queue_limits=limits,
                find_client=self._find_client,
                replies=replies,
                entropy=entropy,
                events=known_events,
            )
        )
        self._publications = self._make_publications(AnnouncedEvents(self.store, self.clock, known_events), entropy)
        self._queries = self._make_queries()
        self._incident_queries = IncidentQueries(self.store, self._delivery)
        self._program_queries = self._make_program_queries()
        self._change_waits = ChangeWaits(self._delivery, self._queries, self._runtime.changes, self._wait_time)
        self._result_waits = self._make_result_waits()
        news = self._runtime.pause_news
        self._pausing = Pausing(
            self.store, self._delivery, self.clock, news.on_execution_paused, news.on_execution_resumed, news.follow
        )
        self._schedules = Schedules(
            SchedulesDeps(self.store, self._delivery, self.clock, self._runtime.schedules.note_changed, self._runtime.on_put)
        )
        self._stale_calls = StaleCalls(self.store, self._delivery, self._answered, self._runtime.pauses)
        if self.config.stale_after is not None:
            self._runtime.retentions.append(self._make_stale_retention(self.config.stale_after))
        self._deployments = self._make_deployments(entropy)
        self._stopper = Stopper()
        self._was_closed = False
        self._replaced_by: HoldfastError | None = None
        self._forced_shutdown: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None
        self._server: ClientServer | None = None

    def _make_catalog(self, workflows: Iterable[Workflow[..., Any]], activities: Iterable[Activity[..., Any]]) -> Catalog:
        return Catalog(workflows, activities, self._processes)

    def _make_deployments(self, entropy: Callable[[int], int]) -> Deployments:
        news = self._runtime.definition_news
        return Deployments(
            DeploymentsDeps(
                store=self.store,
                catalog=self.catalog,
                processes=self._processes,
                clock=self.clock,
                entropy=entropy,
                follow=lambda plan: news.follow(plan.new_messages, has_schedules=bool(plan.write.schedules)),
            )
        )

    def _make_runtime(self, deps: RuntimeDeps) -> Runtime:
        return Runtime(deps, self._on_replaced)

    def _make_wait_time(self) -> WaitTime:
        return WaitTime()

    def _make_answered(self, replies: ReplyWaiters) -> AnsweredCalls:
        return AnsweredCalls(self._delivery, replies, self._wait_time)

    def _make_publications(self, events: AnnouncedEvents, entropy: Callable[[int], int]) -> PublicationCalls:
        return PublicationCalls(
            PublicationCallsDeps(
                store=self.store,
                clock=self.clock,
                config=self.config,
                events=events,
                entropy=entropy,
                submit=self._submit_publication,
                make_key=self._delivery.make_request_key,
            )
        )

    def _make_queries(self) -> Queries:
        here = ThisNode(
            node=self.node,
            cache=self._runtime.cache,
            prefetch=self._runtime.pump.prefetch,
            runner=self._runtime.runner,
            routes=self.routes,
        )
        return Queries(
            self.store, self._delivery, self.clock, here, self.config.searchable_state if self._runs_code else None
        )

    def _make_program_queries(self) -> ProgramQueries:
        return ProgramQueries(
            ProgramQueriesDeps(
                delivery=self._delivery,
                queries=self._queries,
                answers=self._runtime.query_answers,
                desk=self._runtime.questions,
                changes=self._runtime.changes,
                exclusive=self.store.exclusive,
            )
        )

    def _make_stale_retention(self, seconds: float) -> StaleRetention[StalePlace]:
        scope, calls = StaleScope(to_micros(seconds)), self._stale_calls
        ends = self.config.stale_action == "terminate"
        return StaleRetention(
            StaleRetentionDeps(
                store=self.store,
                clock=self.clock,
                node=self.node,
                window=scope.length,
                spawn=self._runtime.spawn,
                begin=StalePlace(),
                step=partial(calls.end_found if ends else calls.look, scope),
                ends=ends,
            )
        )

    def _make_result_waits(self) -> ResultWaits:
        return ResultWaits(
            ResultWaitsDeps(
                node=self.node,
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
        bare = find_bare_store(self.store)
        if isinstance(bare, OwnedStore):
            let_go_of_files()
        self.recovery_report = await self._runtime.open()
        note_open(self)
        if isinstance(bare, OwnedStore):
            await self._serve(bare)
        return self.recovery_report

    async def _serve(self, store: OwnedStore) -> None:
        """Take calls of clients, if this is an engine that runs in real time, and tidy up after one that was killed."""
        if (left := store.find_left_endpoint()) is not None:
            remove_left(left)
        if self._runs_code and isinstance(self.clock, SystemClock):
            ends = make_end_verbs(self._queries, self._result_waits, self._check_open, self._on_blocked)
            events = make_event_verbs(self._publications, self._check_open, self.config.payload_limit)
            self._server = ClientServer({**list_verbs(self), **ends, **events}, self.config.payload_limit)
            await self._server.open(store)

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
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="holdfast-shutdown")
        if self._closing is not None:
            await asyncio.shield(self._closing)
        elif self._forced_shutdown is not None:
            await asyncio.wait([self._forced_shutdown])

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.stop()
        try:
            await self._runtime.close()
        finally:
            if self._server is not None:
                await self._server.close()

    @property
    def is_open(self) -> bool:
        """Whether the engine was opened and has not been shut down since."""
        return self._runtime.is_open and self._closing is None

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None and self.is_open:
            self._let_go_of_file()
            warn_unclosed(self)

    def _let_go_of_file(self) -> None:
        """Give back the file that an engine owns which can be used no more: its loop was closed, or nobody has it.

        As the end of its process would, so that the next engine may have it. Not in a forked child: its parent owns it.
        """
        bare = find_bare_store(self.store)
        if self._loop is not None and not self._loop.is_running() and isinstance(bare, OwnedStore) and bare.is_owned:
            if self._server is not None:
                self._server.leave()
            bare.abandon()

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
            await self._runtime.definition_news.on_wake()  # executions bring their definitions along
            self._runtime.pump.look()
            self._runtime.publisher.look()

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

    def _find_client(self) -> Verbs | SyncVerbs:
        """The verbs for an activity of this engine: to be awaited in its loop, blocking in any other thread."""
        if asyncio._get_running_loop() is self._loop:
            return self
        return SyncVerbs(self, partial(call_in_loop, self.loop))

    async def _await_end(self, watcher: asyncio.Future[events.AnyEvent]) -> events.AnyEvent:
        return await watcher

    def _submit_publication(self, request: PublishRequest) -> None:
        self._runtime.publisher.submit(request)

    def _submit(self, request: AnyRequest) -> None:
        self._runtime.pump.submit(request)
