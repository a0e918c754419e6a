"""An engine for tests: its time is virtual, and it can crash and come back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, runtime_checkable
from weakref import WeakSet

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.core.events import AnyEvent
from holdfast.core.options import OnBlocked
from holdfast.engine.config import EngineOptions
from holdfast.engine.encoded_store import find_bare_store
from holdfast.engine.engine import Engine
from holdfast.engine.leftovers import forget_open
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.requests import AnyRequest
from holdfast.engine.stores import make_store
from holdfast.engine.views import RecoveryReport, describe_wait
from holdfast.engine.wait_time import WaitTime
from holdfast.errors import EngineClosed
from holdfast.log_events import LogEvent, tag_execution
from holdfast.testing.clock import VirtualClock
from holdfast.testing.rest import Rest
from holdfast.testing.wait_time import VirtualWaitTime

if TYPE_CHECKING:
    from holdfast.store.contract import Store


log = logging.getLogger("holdfast.testing")

MOST_TOLD: Final = 5
"""Of how many executions at most the log tells what they wait for."""
SELDOM: Final = {"heartbeat": 10_000_000.0, "lease": 20_000_000.0}
"""Months: where nobody else lives by the same clock, nobody judges by heartbeats, and years may pass in a test."""


@runtime_checkable
class Abandonable(Protocol):
    """A store that can be let go as by the end of the process."""

    def abandon(self) -> None:
        """Let the database go at once: wait for no write, and tell no other node."""
        ...


class VirtualEngineOptions(EngineOptions, total=False):
    """The options of a test engine: those of any engine, and how it is named and what it serves."""

    codec: PayloadCodec | None
    node: str | None
    entropy: Callable[[int], int]
    queues: Iterable[str] | None
    queue_limits: Mapping[str, int] | None


class TestEngine(Engine):
    """The engine as it is, on a clock that tests move.

        async with TestEngine(workflows=[remind], activities=[send]) as engine:
            handle = await engine.start(remind, "Ann")
            assert await handle.result() == "sent"  # though it sleeps for 30 days

    While somebody awaits a result, an answer or a status, and nothing else can happen, time jumps to the next due moment by
    itself; with `auto_advance=False` it moves only by `engine.clock.advance(…)`. If nothing waits for time either, the log
    says after two real seconds what the awaited execution waits for. Activities are real: time does not jump while one
    runs.

    `start` is the time at which it begins. `patience` is how many real seconds `clock.advance` and `settle` wait for an
    activity: one that takes longer is taken to wait for time to pass. With 0 only those that need no real waiting count.
    `clock` lets several engines on one store share their time; without it the engine is alone in its time, and beats so
    seldom on a shared store that a test does not notice. `result()` raises ExecutionBlocked if the execution is blocked,
    unless it gets `on_blocked="wait"`; its `timeout` is in virtual time. Other options are those of `Engine`.
    """

    __test__ = False  # a name for users, not a class of tests
    _on_blocked: OnBlocked = "raise"
    clock: VirtualClock  # type: ignore[mutable-override]  # tests drive it; the engine only reads it

    def __init__(
        self,
        store: str | Store = "memory://",
        *,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        start: datetime | None = None,
        auto_advance: bool = True,
        patience: float = 1.0,
        clock: VirtualClock | None = None,
        **options: Unpack[VirtualEngineOptions],
    ) -> None:
        self.auto_advance = auto_advance
        self._patience = patience
        self._workflows = list(workflows)
        self._activities = list(activities)
        self._options: dict[str, Any] = {"shutdown_grace": 0.1} | (SELDOM if clock is None else {}) | options
        self._asked: WeakSet[asyncio.Future[Any]] = WeakSet()
        # Only a store in memory must stay the same object: what another holds is found again by its URL.
        self._url = store if isinstance(store, str) and not store.startswith("memory:") else None
        self._make(store, clock or VirtualClock(start))

    def _make(self, store: str | Store, clock: VirtualClock) -> None:
        opened = make_store(store, clock.now)
        super().__init__(opened, workflows=self._workflows, activities=self._activities, clock=clock, **self._options)
        self._options["node"] = self.node  # who comes back under its name need not wait until its lease has run out
        self._rest = Rest(self._runtime.pump, self._runtime.runner, self._find_tasks, self._patience)

    # --- time ---

    async def settle(self) -> None:
        """Wait until the engine is at rest. Time does not move, and activities get as long as `patience` says."""
        self._check_open()
        await self.clock.settle()

    def is_at_rest(self, *, strictly: bool = False) -> bool:
        """Whether only time, or a call, can make it go on. `strictly`: no activity runs, however long it takes."""
        return self._rest.is_reached(strictly=strictly)

    async def come_to_rest(self, *, strictly: bool = False) -> None:
        """Wait until the engine is at rest; `settle` does so for every engine on the clock."""
        await self._rest.wait(strictly=strictly)

    async def tell_waits(self) -> None:
        """Log what the executions wait for whose results are awaited: nothing that this engine knows of can end the wait."""
        for org, execution_id in self._runtime.result_waiters.watched[:MOST_TOLD]:
            info = await self.query_status(execution_id, org=org)
            log.warning(
                "the result of execution '%s' of workflow '%s' is awaited, but nothing can happen unless the test does "
                "something: %s; result(timeout=…) fails instead of waiting",
                info.workflow_id,
                info.workflow,
                describe_wait(info),
                extra=tag_execution(LogEvent.RESULT_WAITS_FOR_TEST, info, node=self.node),
            )

    def _make_wait_time(self) -> WaitTime:
        return VirtualWaitTime(self.clock, lambda: self.auto_advance)

    async def _await_end(self, watcher: asyncio.Future[AnyEvent]) -> AnyEvent:
        if self.auto_advance:
            return await self.clock.run_until(watcher)
        return await super()._await_end(watcher)

    # --- lifecycle ---

    async def open(self) -> RecoveryReport:
        """Open the engine. From now on virtual time moves only while it is at rest."""
        report = await super().open()
        self.clock.attach(self)
        return report

    async def shutdown(self) -> None:
        """Shut the engine down. Virtual time no longer waits for it."""
        if self.is_open:
            self._leave_clock()
        await super().shutdown()

    async def crash(self) -> None:
        """End as a killed process does: what is not committed never was, and nobody is told.

        Time may pass before `restart`. Who awaits an answer or a result gets EngineClosed. Async activities are cancelled;
        what a thread does goes on unheard.
        """
        if not self.is_open:
            return
        self._leave_clock()
        gone = EngineClosed("Expected an answer, but the engine crashed before it gave one. Ask again after restart().")
        await self._runtime.crash(gone)
        forget_open(self)
        for future in list(self._asked):
            if not future.done():
                future.set_exception(gone)
        if isinstance(find_bare_store(self.store), Abandonable):
            self.store.abandon()  # type: ignore[attr-defined]  # with a codec before it or without
        else:
            await self.store.close()

    async def restart(
        self,
        *,
        workflows: Iterable[Workflow[..., Any]] | None = None,
        activities: Iterable[Activity[..., Any]] | None = None,
    ) -> RecoveryReport:
        """Crash, unless it has already, and come back on the same store, with other code if given.

        Nothing in memory survives: programs are replayed, running activities begin a new attempt.
        """
        await self.crash()
        if workflows is not None:
            self._workflows = list(workflows)
        if activities is not None:
            self._activities = list(activities)
        self._make(self._url or self.store, self.clock)
        return await self.open()

    # --- inside ---

    def _submit(self, request: AnyRequest) -> None:
        if request.future is not None:
            self._asked.add(request.future)
        super()._submit(request)

    def _find_tasks(self) -> list[asyncio.Task[Any]]:
        return [*self._runtime.background, *self._runtime.membership.tasks]

    def _leave_clock(self) -> None:
        self._rest.close()
        self.clock.detach(self)
