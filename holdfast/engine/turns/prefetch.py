"""Long histories are replayed before their executions are locked: under the lock only what happened since is missing.

Processes are compiled here as well, where an execution needs one that is not. Snapshots are used as under the lock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.core.failures import Failure
from holdfast.core.lifecycle import Status
from holdfast.engine.quarantine import REPLAY_SLOTS
from holdfast.engine.rows import from_row
from holdfast.engine.turns.loading import note_version, replay
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.snapshots import (
    continues,
    first_to_read,
    may_have_snapshot,
    read_snapshot,
    restore_snapshot,
)
from holdfast.errors import EngineClosed, HoldfastError, QueryFailed, StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.attributes import is_process

if TYPE_CHECKING:
    from holdfast.core.program import Program
    from holdfast.engine.requests import Request
    from holdfast.engine.turns.services import TurnServices
    from holdfast.store.nodes import InFlightMark
    from holdfast.store.rows import ExecutionRow, HistoryRow

T = TypeVar("T")

log = logging.getLogger("holdfast.engine")

SLICE: Final = 100
"""How many events are replayed, or some more, before others get their turn on the loop."""
MOST_AT_ONCE: Final = 4
"""How many histories are in memory for that."""
MOST_READY: Final = 1_000


class HistoryPrefetch:
    """Replays executions that a batch put off, and says when each is `ready`, with what waits for it."""

    def __init__(self, services: TurnServices, on_ready: Callable[[str, list[Request]], None]) -> None:
        self._store = services.store
        self._cache = services.cache
        self._make_program = services.make_program
        self._routes = services.routes
        self._processes = services.processes
        self._cpu_timer = services.cpu_timer
        self._clock = services.clock
        self._process = services.process
        self._quarantine = services.quarantine
        self._slots = list(range(REPLAY_SLOTS, REPLAY_SLOTS + MOST_AT_ONCE))
        """In-flight slots that are free."""
        self._marked: set[int] = set()
        """In-flight slots by which something is marked."""
        self._on_ready = on_ready
        self._waiting: dict[str, list[Request]] = {}
        """Requests that wait for executions which are being replayed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self._semaphore = asyncio.Semaphore(MOST_AT_ONCE)
        self.busy_since: float | None = None
        """Since when a part of a replay has been under way, by the monotonic clock."""
        self._ready: dict[str, None] = {}
        """Executions that were replayed ahead: one whose program is not in the cache even so is replayed under its lock."""
        self._epoch = 0
        """How often the database was found to have gone back."""

    @property
    def is_busy(self) -> bool:
        """Whether any history is being replayed ahead of its turn."""
        return bool(self._waiting)

    def wants(self, execution_id: str) -> bool:
        """Whether an execution is to be put off until it is replayed."""
        if self._is_stopped or execution_id in self._ready:
            self._ready.pop(execution_id, None)
            return False
        return True

    def forget(self, execution_ids: Iterable[str]) -> None:
        """Let executions whose programs were in the cache be put off again, the next time that their replay is long."""
        if self._ready:
            for execution_id in execution_ids:
                self._ready.pop(execution_id, None)

    def forget_all(self) -> None:
        """The database went back: what is being replayed may be ahead of it, and is not kept."""
        self._ready.clear()
        self._epoch += 1

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
        task = asyncio.get_running_loop().create_task(
            self._replay_ahead(org, execution_id), name=f"holdfast-replay-{execution_id}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def replay_to_look(self, org: str, execution_id: str) -> LiveExecution | None:
        """The program of an execution, for somebody who looks at it and closes it; None as `_replay` says, or if stopped.

        It is marked as in flight like any other replay: asking about an execution must not end process after process.
        """
        async with self._semaphore:
            if self._is_stopped:
                return None
            return await self._with_slot(lambda slot: self._replay(org, execution_id, slot, self._quarantine.max_tries))

    async def replay_to_ask(
        self, row: ExecutionRow, ask: Callable[[Program], T], may_ask: Callable[[], Awaitable[None]]
    ) -> T:
        """Replay an execution, open or not, into a program of its own, ask that something, and throw it away.

        Between the two `may_ask` is awaited.

        Nothing of it is kept, whatever asking does to it. Raises QueryFailed if the history cannot be replayed here, or may
        end the process; UnknownWorkflow if its code is not here.
        """
        async with self._semaphore:
            if self._is_stopped:
                raise EngineClosed("Expected to ask a workflow, but the engine was shut down. Ask another.")
            return await self._with_slot(lambda slot: self._replay_and_ask(row, ask, may_ask, slot))

    async def _replay_and_ask(
        self, row: ExecutionRow, ask: Callable[[Program], T], may_ask: Callable[[], Awaitable[None]], slot: int
    ) -> T:
        execution = from_row(row)
        if execution.details.tries or execution.details.suspect:
            raise _refuse(row, "a process ended while it took its turn, so that it is in quarantine", "Look at its status.")
        # A closed one is not marked: it is replayed only when somebody asks.
        if row.closed_at is None and await self._mark(row, slot) >= self._quarantine.max_tries:
            raise _refuse(
                row,
                f"{self._quarantine.max_tries} processes ended while they replayed it",
                "Correct its code; it is tried again once it has taken a turn, or some minutes later.",
            )
        await self._make_ready(row)
        live, failure = await self._build(row)
        try:
            if failure is not None:
                why = f"its history does not fit its code: {failure.type}: {failure.message}"
                raise _refuse(row, why, "Look at its status.")
            await may_ask()
            return call_outside_task(partial(self._ask, ask, live.program))
        finally:
            call_outside_task(live.program.close)

    def _ask(self, ask: Callable[[Program], T], program: Program) -> T:
        self.busy_since = time.monotonic()
        try:
            with self._cpu_timer:
                return ask(program)
        finally:
            self.busy_since = None

    async def _make_ready(self, row: ExecutionRow) -> None:
        """Let the process of an execution be compiled, if it is one of a process."""
        if is_process(row.details):
            await self._processes.make_ready(row.org, row.workflow, row.code_version)

    async def _build(self, row: ExecutionRow) -> tuple[LiveExecution, Failure | None]:
        """The program of an execution at the version of a row, and the failure if it does not agree with its history."""
        if may_have_snapshot(row) and (restored := await self._build_from_snapshot(row)) is not None:
            return restored, None
        execution = from_row(row)
        live = LiveExecution(execution, self._make_program(execution), row, 0)
        try:
            history = [one for one in await self._store.load_history(row.execution_id) if one.first <= row.sequence]
            live.note_history(history)
            return live, await self._replay_all(live, history)
        except BaseException:
            call_outside_task(live.program.close)
            raise

    async def _build_from_snapshot(self, row: ExecutionRow) -> LiveExecution | None:
        """The same by a snapshot; None if there is none of use: then all of the history says what is the matter."""
        execution = from_row(row)
        stored = await self._store.load_snapshot(row.execution_id)
        snapshot = read_snapshot(stored, execution)
        if stored is None or snapshot is None:
            return None
        loaded = await self._store.load_history(row.execution_id, first_to_read(snapshot))
        history = [one for one in loaded if one.first <= row.sequence]
        if not continues(snapshot, history):
            return None
        live = LiveExecution(execution, self._make_program(execution), row, 0)
        is_done = False
        try:
            if call_outside_task(restore_snapshot, execution, live.program, snapshot, self._clock.now()):
                live.note_snapshot(snapshot, len(stored.body))
                live.note_history(history[1:])
                is_done = await self._replay_all(live, history[1:]) is None
        finally:
            if not is_done:
                call_outside_task(live.program.close)
        return live if is_done else None

    async def _replay_all(self, live: LiveExecution, history: Sequence[HistoryRow]) -> Failure | None:
        for turns in _slice(history):
            failure = call_outside_task(self._replay_part, live, turns)
            if failure is not None:
                return failure
            await asyncio.sleep(0)  # others come between two parts
        return None

    async def stop(self) -> None:
        """Replay no further. What waits goes on as if everything were ready."""
        await self.kill()
        for execution_id in list(self._waiting):
            self._finish(execution_id)

    async def kill(self) -> None:
        """Stop at once, as a crash would: replays are abandoned where they are."""
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _replay_ahead(self, org: str, execution_id: str) -> None:
        try:
            async with self._semaphore:
                epoch = self._epoch
                live = await self._with_slot(lambda slot: self._replay(org, execution_id, slot, most_lost=1))
                if live is not None:
                    await self._keep(live, epoch)
        except HoldfastError as error:
            _log_failed(org, execution_id, error, None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn that is taken under the lock meets it too
            _log_failed(org, execution_id, error, error)
        self._finish(execution_id)

    def _finish(self, execution_id: str) -> None:
        self._ready[execution_id] = None
        if len(self._ready) > MOST_READY:  # those that other nodes took
            del self._ready[next(iter(self._ready))]
        self._on_ready(execution_id, self._waiting.pop(execution_id))

    async def _keep(self, live: LiveExecution, epoch: int) -> None:
        """Unless a batch took its turn meanwhile, or the database went back: what is open by the cache must be."""
        execution, row = live.execution, None
        try:
            row = await self._store.find_execution(execution.org, execution.execution_id)
        finally:
            is_free = self._cache.get(execution.execution_id) is None and epoch == self._epoch
            if row is not None and row.closed_at is None and is_free:
                self._cache.put(live)
            else:
                live.program.close()

    async def _with_slot(self, replay: Callable[[int], Awaitable[T]]) -> T:
        """Replay with a slot to mark it by. The mark is cleared at the end: who is killed later did not end by it.

        Not if the coroutine is closed, as by the end of its process: it cannot wait any more.
        """
        slot = self._slots.pop()
        try:
            found = await replay(slot)
            await self._clear_mark(slot)
        except (Exception, asyncio.CancelledError):
            await self._clear_mark(slot)
            raise
        else:
            return found
        finally:
            self._marked.discard(slot)
            self._slots.append(slot)

    async def _clear_mark(self, slot: int) -> None:
        if slot not in self._marked or self._is_stopped:
            return
        self._marked.discard(slot)
        try:
            await self._put_mark(slot, {})
        except StoreError as error:
            log.debug("the mark of a replay stays: %s", error)

    async def _mark(self, row: ExecutionRow, slot: int) -> int:
        """Leave a trace, should the process end in the replay; how many others ended while they had this execution."""
        self._marked.add(slot)
        found = await self._put_mark(slot, {row.execution_id: row.state_version})
        return self._quarantine.count_lost(found.get(row.execution_id, ()))

    async def _put_mark(self, slot: int, versions: dict[str, int]) -> dict[str, list[InFlightMark]]:
        transaction = await self._store.begin()
        try:
            return await transaction.mark_in_flight(self._process, slot, versions)
        finally:
            await transaction.rollback()

    async def _replay(self, org: str, execution_id: str, slot: int, most_lost: int) -> LiveExecution | None:
        """The program at a committed version; None if it takes no turns here, does not fit, or is suspect.

        It is suspect if so many processes have ended while they had it.
        """
        row = await self._store.find_execution(org, execution_id)
        if row is None or row.closed_at is not None or row.status in (Status.BLOCKED, Status.PAUSED):
            return None
        await self._make_ready(row)
        execution = from_row(row)
        if not self._routes.fits(execution):
            return None
        if execution.details.tries or execution.details.suspect:
            return None  # it is tried apart from others, and each try is counted first
        if await self._mark(row, slot) >= most_lost:
            return None  # the batch that finds it not replayed finds the same, and tries it apart from others
        live, failure = await self._build(row)
        if failure is not None:
            call_outside_task(live.program.close)
            return None
        if row.sequence == 0:
            note_version(live.execution, live.program)
        return live

    def _replay_part(self, live: LiveExecution, turns: Sequence[HistoryRow]) -> Failure | None:
        self.busy_since = time.monotonic()
        try:
            with self._cpu_timer:
                return replay(live.execution, live.program, turns, self._clock.now())
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


def _refuse(row: ExecutionRow, why: str, remedy: str) -> QueryFailed:
    return QueryFailed(
        f"Expected to replay execution '{row.workflow_id}' ({row.execution_id}) for a query, but {why}. {remedy}"
    )


def _log_failed(org: str, execution_id: str, error: Exception, unexpected: Exception | None) -> None:
    log.log(
        logging.WARNING if unexpected is None else logging.ERROR,
        "execution %s could not be replayed ahead, and is replayed under its lock: %s",
        execution_id,
        error,
        exc_info=unexpected,
        extra=tag(LogEvent.REPLAY_AHEAD_FAILED, org=org, execution_id=execution_id),
    )
