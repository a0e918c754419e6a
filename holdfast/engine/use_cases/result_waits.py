"""Waiting for the end of executions, wherever they take their turns, through `continue_as`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core import events
from holdfast.engine.results import Ending, read_closing

if TYPE_CHECKING:
    from holdfast.engine.results import RemoteResults, ResultWaiters
    from holdfast.engine.turns.program_cache import ProgramCache
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWaitsDeps:
    """What waiting for results works with."""

    store: Store
    delivery: Delivery
    cache: ProgramCache
    """The programs that are alive here: who is among them is open, and nobody need ask."""
    waiters: ResultWaiters
    remote: RemoteResults
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    await_end: Callable[[asyncio.Future[events.AnyEvent]], Awaitable[events.AnyEvent]]
    """Awaits a future of an end: in virtual time, that is what lets time go on."""


class ResultWaits:
    """Waits for how executions end. However many wait, they hold no connection to the store."""

    def __init__(self, deps: ResultWaitsDeps) -> None:
        self._store = deps.store
        self._delivery = deps.delivery
        self._cache = deps.cache
        self._waiters = deps.waiters
        self._remote = deps.remote
        self._spawn = deps.spawn
        self._await_end = deps.await_end

    async def wait(self, org: str, target: str) -> Ending:
        """How an execution ended, or the last run of its chain, once that is so. Raises ExecutionNotFound."""
        closing = self._waiters.recall((org, target))
        live = self._cache.get(target)
        if closing is None and live is not None and live.execution.org == org:
            closing = await self._wait_for_end(org, target, is_open=self._store.exclusive)
        workflow_id = execution_id = target
        while closing is None or isinstance(closing, events.ContinuedAs):
            row = await self._delivery.find_or_raise(org, closing.execution_id if closing else target, "wait for")
            workflow_id, execution_id = row.workflow_id, row.execution_id
            closing = await self._wait_for_end(org, execution_id, is_open=False)
        return Ending(closing, workflow_id, execution_id)

    async def _wait_for_end(self, org: str, execution_id: str, *, is_open: bool) -> events.AnyEvent:
        key = (org, execution_id)
        watcher = self._waiters.watch(key)
        try:
            # Only now that it is watched: what closed before is in the store, what closes later reaches the watcher.
            if not is_open and not self._store.exclusive:
                self._spawn(self._remote.look())  # one query for all who begin to wait at the same time
            elif not is_open:
                row = await self._store.find_execution(org, execution_id)
                if row is not None and row.closed_at is not None:
                    return self._waiters.recall(key) or await read_closing(self._store, execution_id)
            return await self._await_end(watcher)
        finally:
            self._waiters.forget(key, watcher)
