"""Calls that go directly to a database: an engine that has no code, takes no work and is no node.

Theory of operation
-------------------
An engine's batches already do everything that is needed for executions whose code is on other nodes: a start registers
the execution, with its start in its inbox; what is sent to an open one becomes a row of its inbox; terminating needs no
code. So this is an engine with an empty catalog. Its pump runs batches for its own requests only and never looks for work:
it claims nothing, fires no timer and takes no activity. It sends no heartbeats: `nodes` does not list it, and nobody takes
over from it.

Ends of executions are learnt by the nodes' wake-ups, and by a look every few seconds while somebody waits: one query for
all. On a shared store the time is the store's: it is asked for when the client opens, and every minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holdfast.client.definitions import NamedWorkflows
from holdfast.client.left_steps import UnansweredCalls, UnansweredTasks
from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.clock import StoreClock
from holdfast.engine.encoded_store import find_bare_store
from holdfast.engine.engine import Engine
from holdfast.engine.runtime import Runtime
from holdfast.engine.transfer.marks import refuse_moved
from holdfast.engine.use_cases.answered_calls import AnsweredCalls
from holdfast.engine.use_cases.human_tasks import HumanTasks
from holdfast.engine.views import RecoveryReport
from holdfast.errors import EngineClosed, InvalidArguments, NobodyAnswers, NotOurDatabase, StoreError, StoreMoved
from holdfast.log_events import LogEvent, tag
from holdfast.store.nodes import TimeKeeper, WakeReason
from holdfast.store.transfer import PersistentStore

if TYPE_CHECKING:
    from holdfast.activities.definitions import Activity
    from holdfast.code.definitions import Workflow
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.replies import ReplyWaiters
    from holdfast.engine.runtime_deps import RuntimeDeps
    from holdfast.store.contract import Store

R = TypeVar("R")
T = TypeVar("T")

log = logging.getLogger("holdfast.client")

LOOK_INTERVAL: Final = 2.0
"""Seconds between two looks for ends of executions of which no wake-up told."""
CLOCK_INTERVAL: Final = 30
"""After so many looks the store is asked for its time, and whether executions that somebody waits for are gone."""
_STARTED: Final = "workflow '%s' was started, but no living node has it: the execution waits until one does.%s"
_SCHEDULED: Final = "a schedule is to start workflow '%s', but no living node has it: nothing starts until one does.%s"
_NOTHING_FOUND: Final = RecoveryReport(resumed=0, waiting=0, timers=0, taken_over=0, blocked=0, inbox=0)


class CallRuntime(Runtime):
    """The parts of an engine that takes calls alone: its pump runs batches for its own requests and nothing else."""

    _keeper: asyncio.Task[None] | None = None

    async def open(self) -> RecoveryReport:
        """Connect to a database that is there, and begin to take calls. On a shared one, a missing schema is made."""
        store = self._store
        try:
            await _open_existing(store)
        except NotOurDatabase:
            if store.exclusive:
                raise
            await store.open()
        try:
            await refuse_moved(store)
            await self._ask_time()
            store.on_wake(self._on_wake)
            self.membership.peers.note_wake_up()  # whoever is there: a client wakes them all
            self.is_open = True
            self.pump.drain()
            self.pump.start()
        except BaseException:
            self.is_open = False
            await self.pump.kill()
            await store.close()
            raise
        if not store.exclusive:
            self._keeper = asyncio.get_running_loop().create_task(self._keep_looking(), name="holdfast-client")
        return _NOTHING_FOUND

    async def close(self) -> None:
        """Finish what was asked, and disconnect."""
        self.is_open = False
        if self._keeper is not None:
            self._keeper.cancel()
        await self.pump.stop()
        await self.publisher.close()
        for task in list(self.background):
            await task
        self._forget(EngineClosed("Expected to wait for a result, but the client was closed. Ask another."))
        try:
            await self._store.forget_processes([self._process])
        except StoreError as error:
            log.debug("what this client had in flight stays marked: %s", error)
        await self._store.close()

    async def _keep_looking(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            looks += 1
            try:
                if self.result_waiters.watched:
                    await self.remote_results.look()
                await self.reply_waiters.look()
                await self.questions.look()
                self.changes.on_heartbeat()
                await refuse_moved(self._store)
                if looks % CLOCK_INTERVAL == 0:
                    await self._ask_time()
                    await self.remote_results.look_for_missing()
            except StoreMoved as error:
                self._tell_replaced(error)
                return
            except StoreError as error:
                log.debug("the client could not look for ends of executions, and tries again: %s", error)

    async def _ask_time(self) -> None:
        store = find_bare_store(self._store)
        if isinstance(self._clock, StoreClock) and isinstance(store, TimeKeeper):
            asked = self._clock.steady()
            now = await store.read_time()
            self._clock.synchronise(asked, self._clock.steady(), now)

    def _on_wake(self, why: WakeReason) -> None:
        if why is WakeReason.ENDS and self.result_waiters.watched:
            self.spawn(self.remote_results.look())
        elif why is WakeReason.REPLIES:
            self._look_for_answers()
        elif why is WakeReason.WATCHED:
            self.changes.on_watched()
        elif why is WakeReason.CHANGES:
            self.spawn(self.changes.look())


def make_silence(what: str) -> NobodyAnswers:
    """The error of a call that only workflow code can answer, on a file that no process with code owns."""
    return NobodyAnswers(
        f"Expected {what} to be answered, but no process owns the database file, so that nobody runs the code of its "
        "workflows. Start the application, and call again."
    )


async def _open_existing(store: Store) -> None:
    bare = find_bare_store(store)
    if isinstance(bare, PersistentStore):
        await bare.open_existing()
    else:
        await bare.open()


class DirectVerbs(Engine):
    """The verbs on a database itself, without code. On a file that one process owns, it is the owner while it is open."""

    _runs_code = False
    _named: NamedWorkflows

    if not TYPE_CHECKING:  # to type checkers they are those of any engine, with its overloads

        async def start(self, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.start`; by name, the arguments are checked by what nodes announce."""
            start = super().start
            workflow = args[0] if args else keywords.get("workflow")
            return await self._check_by_name(workflow, keywords.get("version"), lambda: start(*args, **keywords))

        async def signal_with_start_workflow(self, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.signal_with_start_workflow`; by name, the arguments are checked by what nodes announce."""
            signal_with_start = super().signal_with_start_workflow
            workflow = args[1] if len(args) > 1 else keywords.get("workflow")
            return await self._check_by_name(workflow, keywords.get("version"), lambda: signal_with_start(*args, **keywords))

        async def create_schedule(self, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.create_schedule`; by name, the arguments are checked by what nodes announce."""
            create = super().create_schedule
            workflow = args[2] if len(args) > 2 else keywords.get("workflow")
            version = keywords.get("version")
            return await self._check_by_name(workflow, version, lambda: create(*args, **keywords), _SCHEDULED)

        async def update_schedule(self, schedule_id: str, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.update_schedule`; by name, or of the schedule's own, the arguments are checked in the same way."""
            update = super().update_schedule
            workflow = keywords.get("workflow")
            if workflow is None and keywords.get("args") is not None:
                workflow = (await self.describe_schedule(schedule_id, org=keywords.get("org", DEFAULT_ORG))).workflow
            version = keywords.get("version")
            return await self._check_by_name(workflow, version, lambda: update(schedule_id, *args, **keywords), _SCHEDULED)

        async def update(self, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.update`. On a file that nobody else owns, nobody would answer."""
            self._check_answered(f"update '{args[1] if len(args) > 1 else keywords.get('name')}'")
            return await super().update(*args, **keywords)

        async def update_with_start(self, *args: Any, **keywords: Any) -> Any:
            """As `Verbs.update_with_start`; by name, the arguments are checked by what nodes announce."""
            self._check_answered(f"update '{keywords.get('update_name')}'")
            update_with_start = super().update_with_start
            workflow = args[1] if len(args) > 1 else keywords.get("workflow")
            return await self._check_by_name(workflow, keywords.get("version"), lambda: update_with_start(*args, **keywords))

    @property
    def _human_tasks(self) -> HumanTasks:
        kind = UnansweredTasks if self.store.exclusive else HumanTasks
        return kind(self.store, self._delivery, self._answered)

    def _make_answered(self, replies: ReplyWaiters) -> AnsweredCalls:
        return (UnansweredCalls if self.store.exclusive else AnsweredCalls)(self._delivery, replies, self._wait_time)

    def _check_answered(self, what: str) -> None:
        """Raises NobodyAnswers on a file that only this process owns, which has no code."""
        self._check_open()
        if self.store.exclusive:
            raise make_silence(what)

    async def _check_by_name(
        self, workflow: object, version: str | None, call: Callable[[], Awaitable[T]], unknown: str = _STARTED
    ) -> T:
        """Make a call that starts a workflow, with what nodes announce of it known if it is started by its name.

        `unknown`: what is logged of a name that no living node has.
        """
        if isinstance(workflow, BoundWorkflow):
            workflow = workflow.workflow
        if not isinstance(workflow, str):
            return await call()
        self._check_open()
        is_new = await self._named.learn(self.store, self.clock, workflow, version)
        await self._named.learn_processes(workflow)
        try:
            answer = await call()
        except InvalidArguments:
            if is_new:
                raise
        else:
            self._warn_of_unknown(workflow, unknown)
            return answer
        await self._named.learn(self.store, self.clock, workflow, version, anew=True)  # a newer node may take them
        return await call()

    def _warn_of_unknown(self, workflow: str, told: str) -> None:
        """Log once that no living node has a workflow which was named in a call: it may be misspelt."""
        near = self._named.take_unknown(workflow)
        if near is None:
            return
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        log.warning(
            told,
            workflow,
            hint,
            extra=tag(LogEvent.WORKFLOW_NOT_ANNOUNCED, workflow=workflow),
        )

    def _make_catalog(
        self,
        workflows: Iterable[Workflow[..., Any]],
        activities: Iterable[Activity[..., Any]],
    ) -> Catalog:
        self._named = NamedWorkflows(self._processes)
        return self._named

    def _make_runtime(self, deps: RuntimeDeps) -> Runtime:
        return CallRuntime(deps, self._on_replaced)

    def _check_open(self) -> None:
        if self._replaced_by is not None:
            raise self._replaced_by
        super()._check_open()
