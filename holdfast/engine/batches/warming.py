"""Long histories are replayed before their executions are locked: under the lock only what happened since is missing."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.core.failures import Failure
from holdfast.core.lifecycle import Status
from holdfast.engine.batches.loading import replay
from holdfast.engine.batches.plain_calls import call_plainly
from holdfast.engine.batches.programs import Live, MakeProgram, ProgramCache
from holdfast.engine.rows import from_row
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.engine.batches.requests import Request
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import HistoryRow, Store

log = logging.getLogger("holdfast.engine")

SLICE: Final = 100
"""How many events are replayed, or some more, before others get their turn on the loop."""
MOST_AT_ONCE: Final = 4
"""How many histories are in memory for that."""
MOST_READY: Final = 1_000


class Warming:
    """Replays executions that a batch put off, and says when each is `ready`, with what waits for it."""

    def __init__(
        self,
        store: Store,
        cache: ProgramCache,
        make_program: MakeProgram,
        routes: Routes,
        on_ready: Callable[[str, list[Request]], None],
    ) -> None:
        self._store = store
        self._cache = cache
        self._make_program = make_program
        self._routes = routes
        self._on_ready = on_ready
        self._waiting: dict[str, list[Request]] = {}
        """What arrived here for executions that are being replayed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self.busy_since: float | None = None
        """Since when a part of a replay has been under way, by the monotonic clock."""
        self._ready: dict[str, None] = {}
        """Those that had their chance: whose program is not there even so is replayed under the lock."""

    @property
    def is_busy(self) -> bool:
        """Whether anything is being replayed."""
        return bool(self._waiting)

    def wants(self, execution_id: str) -> bool:
        """Whether an execution is to be put off until it is replayed."""
        if self._is_stopped or execution_id in self._ready:
            self._ready.pop(execution_id, None)
            return False
        return True

    def forget(self, execution_ids: Iterable[str]) -> None:
        """These found their programs: the next time, they may be put off again."""
        if self._ready:
            for execution_id in execution_ids:
                self._ready.pop(execution_id, None)

    def begin(self, org: str, execution_id: str, requests: list[Request]) -> None:
        """Replay an execution; `requests` wait until it is ready."""
        waiting = self._waiting.get(execution_id)
        if waiting is not None:
            waiting.extend(requests)
            return
        self._waiting[execution_id] = requests
        if self._is_stopped:
            self._finish(execution_id)
            return
        task = asyncio.get_running_loop().create_task(self._warm(org, execution_id), name=f"holdfast-replay-{execution_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Replay no further. What waits goes on as if everything were ready."""
        await self.kill()
        for execution_id in list(self._waiting):
            self._finish(execution_id)

    async def kill(self) -> None:
        """Stop at once."""
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _warm(self, org: str, execution_id: str) -> None:
        try:
            async with self._places:
                live = await self._replay(org, execution_id)
                if live is not None:
                    await self._keep(live)
        except HoldfastError as error:
            log.warning("execution %s is replayed under its lock: %s", execution_id, error)
        except Exception:
            log.exception("execution %s could not be replayed ahead", execution_id)
        self._finish(execution_id)

    def _finish(self, execution_id: str) -> None:
        self._ready[execution_id] = None
        if len(self._ready) > MOST_READY:  # those that other nodes took
            del self._ready[next(iter(self._ready))]
        self._on_ready(execution_id, self._waiting.pop(execution_id))

    async def _keep(self, live: Live) -> None:
        """Unless a batch took its turn all the same, meanwhile: what is open by the cache must be."""
        execution, row = live.execution, None
        try:
            row = await self._store.find_execution(execution.org, execution.execution_id)
        finally:
            if row is not None and row.closed_at is None and self._cache.get(execution.execution_id) is None:
                self._cache.put(live)
            else:
                live.program.close()

    async def _replay(self, org: str, execution_id: str) -> Live | None:
        """The program at a committed version; None if it takes no turns here, or does not fit."""
        row = await self._store.find_execution(org, execution_id)
        if row is None or row.closed_at is not None or row.status == Status.BLOCKED:
            return None
        execution = from_row(row)
        if not self._routes.fits(execution):
            return None
        history = [one for one in await self._store.load_history(execution_id) if one.first <= row.sequence]
        live = Live(execution, self._make_program(execution), row, sum(len(one.body) for one in history))
        is_done = False
        try:
            for turns in _slice(history):
                if await call_plainly(functools.partial(self._replay_part, live, turns)) is not None:
                    return None
            is_done = True
        finally:
            if not is_done:
                live.program.close()
        return live

    def _replay_part(self, live: Live, turns: Sequence[HistoryRow]) -> Failure | None:
        self.busy_since = time.monotonic()
        try:
            return replay(live.execution, live.program, turns)
        finally:
            self.busy_since = None


def _slice(history: Sequence[HistoryRow]) -> Iterator[list[HistoryRow]]:
    """The turns of a history, in parts of about the same length."""
    part: list[HistoryRow] = []
    count = 0
    for turn in history:
        part.append(turn)
        count += turn.count
        if count >= SLICE:
            yield part
            part, count = [], 0
    if part:
        yield part
