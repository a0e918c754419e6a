"""When an engine is at rest: no batch under way, nothing queued, nothing delivered, no activity worth waiting for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from holdfast.engine.trouble_log import tag_task
from holdfast.log_events import LogEvent
from holdfast.testing.clock import PASSES

if TYPE_CHECKING:
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.turns.pump import Pump

log = logging.getLogger("holdfast.testing")

SUSPICIOUS: Final = 10.0
"""Real seconds after which an activity that keeps time from moving is reported."""


class Rest:
    """Tells whether an engine is at rest, and waits for it; `tasks` are its background tasks."""

    def __init__(
        self, pump: Pump, runner: ActivityRunner, tasks: Callable[[], Collection[asyncio.Task[Any]]], patience: float
    ) -> None:
        self._pump = pump
        self._runner = runner
        self._tasks = tasks
        self._patience = patience
        self._seen: WeakKeyDictionary[asyncio.Task[None], float] = WeakKeyDictionary()
        """Since when each attempt has been waited for, in the real time of the loop."""
        self._reported: WeakKeyDictionary[asyncio.Task[None], None] = WeakKeyDictionary()
        self._listeners: list[asyncio.Future[None]] = []
        self._is_closed = False
        pump.on_rest(self._notify)

    def is_reached(self, *, strictly: bool) -> bool:
        """Whether the engine is at rest now; `strictly`: not while any activity runs, however long it takes."""
        if self._is_closed:
            return True
        return self._pump.is_idle and not self._tasks() and not self._find_attempts(strictly=strictly)

    async def wait(self, *, strictly: bool) -> None:
        """Wait until the engine is at rest, and stays so for a few passes of the loop."""
        passes = 0
        while passes < PASSES and not self._is_closed:
            obstacle = self._find_obstacle(strictly=strictly)
            if obstacle is None:
                passes += 1
                await asyncio.sleep(0)
            else:
                passes = 0
                await obstacle

    def close(self) -> None:
        """Note that the engine is closed: it counts as at rest."""
        self._is_closed = True
        self._notify()

    def _find_obstacle(self, *, strictly: bool) -> Awaitable[object] | None:
        """An awaitable for what keeps the engine busy; None if it is at rest."""
        if not self._pump.is_idle:
            listener: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._listeners.append(listener)
            return listener
        tasks = self._tasks()
        if tasks:
            return asyncio.wait(tasks)
        attempts = self._find_attempts(strictly=strictly)
        if not attempts:
            return None
        return self._wait_for_one(attempts, strictly=strictly)

    def _find_attempts(self, *, strictly: bool) -> dict[asyncio.Task[None], float]:
        """The attempts to wait for, each with the real seconds that it has left."""
        if not self._runner.running_count:
            return {}
        now = asyncio.get_running_loop().time()
        found = {}
        for attempt in self._runner.under_way:
            left = self._seen.setdefault(attempt, now) + self._patience - now
            if strictly or left > 0:
                found[attempt] = left
        return found

    async def _wait_for_one(self, attempts: dict[asyncio.Task[None], float], *, strictly: bool) -> None:
        limit = SUSPICIOUS if strictly else max(attempts.values())
        done, late = await asyncio.wait(attempts, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not strictly or done:
            return
        tasks = self._runner.under_way
        for attempt in late:
            if attempt in tasks and attempt not in self._reported:
                self._reported[attempt] = None
                task = tasks[attempt]
                log.warning(
                    "time stands still because activity '%s' of '%s' has been running for %.0f s; "
                    "call engine.clock.advance(...) to let its timeouts pass",
                    task.event.name,
                    task.workflow_id,
                    SUSPICIOUS,
                    extra=tag_task(LogEvent.TIME_STANDS_STILL, task),
                )

    def _notify(self) -> None:
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            if not listener.done():
                listener.set_result(None)
