"""The heart: waits for work without polling, and runs one batch after the other.

Work is: a request of this node, a due timer, or rows in an inbox. The pump sleeps until one of them is there; it goes to
sleep only after a claim that found nothing and began after its own last commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core.instants import SECOND, Instant
from holdfast.engine.batch import Batch, MakeProgram
from holdfast.engine.programs import ProgramCache
from holdfast.engine.requests import Request
from holdfast.engine.settling import Settled
from holdfast.errors import EngineClosed, HoldfastError, StoreError

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

FIRST_BACKOFF = SECOND // 20
LONGEST_BACKOFF = 5 * SECOND


class Pump:
    """Feeds batches and hands what they settled to the engine."""

    def __init__(
        self,
        store: Store,
        cache: ProgramCache,
        make_program: MakeProgram,
        config: Config,
        clock: Clock,
        node: str,
        on_settled: Callable[[Settled], None],
    ) -> None:
        self._store = store
        self._cache = cache
        self._make_program = make_program
        self._config = config
        self._clock = clock
        self._node = node
        self._on_settled = on_settled
        self._queue: list[Request] = []
        self._look = True
        """Whether inboxes or timers may hold something for this node."""
        self._next_due: Instant | None = None
        self._alarm: Alarm | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._resting: asyncio.Future[None] | None = None
        """What is awaited while nothing can be done: the waiter, or the end of a pause after a failure."""
        self.on_rest: Callable[[], None] | None = None
        """Called whenever there is nothing to do before the next due time."""
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._backoff = 0
        self.busy_since: float | None = None
        """Since when a batch has been under way, by the monotonic clock."""
        self.skip: set[str] = set()
        """Executions that cannot take turns here until somebody retries them."""

    # --- feeding ---

    def submit(self, request: Request) -> None:
        """Put a request into the next batch."""
        if self._stopping:
            request.resolve(EngineClosed("Expected the engine to be open, but it is shut down. Open a new one."))
            return
        self._queue.append(request)
        self._wake()

    def look(self) -> None:
        """Look into the inboxes and at the timers: somebody may have left something."""
        self._look = True
        self._wake()

    def note_due(self, when: Instant) -> None:
        """A timer will come due."""
        if self._next_due is None or when < self._next_due:
            self._next_due = when
            self._arm()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done before the next due time."""
        is_over = self._task is not None and self._task.done()
        return is_over or (self._resting is not None and not self._resting.done())

    @property
    def next_due(self) -> Instant | None:
        """When the next timer comes due, as far as is known."""
        return self._next_due

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _arm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._next_due is not None:
            self._alarm = self._clock.call_at(self._next_due, self.look)

    # --- running ---

    def start(self) -> None:
        """Begin to pump."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="holdfast-pump")
        self._task.add_done_callback(lambda _: self._tell_rest())

    async def stop(self) -> None:
        """Finish what is queued, then stop."""
        self._stopping = True
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)
        if self._task is not None:
            await self._task
        if self._alarm is not None:
            self._alarm.cancel()

    async def kill(self) -> None:
        """Stop at once, as a crash would: what is not committed never was."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._alarm is not None:
            self._alarm.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._queue or (self._look and not self._stopping):
                await self._run_batch()
            if self._stopping:
                return
            self._waiter = loop.create_future()
            await self._rest(self._waiter)
            self._waiter = None

    async def _rest(self, until: asyncio.Future[None]) -> None:
        self._resting = until
        self._tell_rest()
        await until

    def _tell_rest(self) -> None:
        if self.on_rest is not None:
            self.on_rest()

    async def _run_batch(self) -> None:
        size = self._config.batch_size
        requests, self._queue = self._queue[:size], self._queue[size:]
        look, self._look = self._look, False
        self.busy_since, now = time.monotonic(), self._clock.now()
        batch = Batch(self._store, self._cache, self._make_program, self._config, self._node, now)
        try:
            settled = await batch.run(requests, size if look else 0, self.skip)
        except Exception as error:  # noqa: BLE001 - the pump must outlive whatever a batch meets
            self._look = self._look or look
            await self._recover_from(error, requests)
            return
        finally:
            self.busy_since = None
        self._backoff = 0
        self.skip.update(settled.parked)
        if self.skip:
            self.skip.difference_update(settled.doomed)
            # What still arrives for those that closed is to be answered.
            self.skip.difference_update(execution.execution_id for execution, _ in settled.closed)
        if settled.again:
            self._queue = settled.again + self._queue
        if (look and settled.took) or settled.sent:
            self._look = True
        self._on_settled(settled)
        if look and not self._look:
            await self._find_next_due(now)
        if settled.next_due is not None:
            self.note_due(settled.next_due)

    async def _find_next_due(self, claimed_at: Instant) -> None:
        """Arm for the next timer. One that was due at the last claim and not had then is held by another node: wait."""
        try:
            self._next_due = await self._store.find_next_due(self.skip)
            if self._next_due is not None and self._next_due <= claimed_at:
                self._next_due = claimed_at + FIRST_BACKOFF
        except StoreError as error:
            self._look = True
            await self._recover_from(error, [])
        else:
            self._arm()

    async def _recover_from(self, error: Exception, requests: list[Request]) -> None:
        """Nothing was committed. Callers are told; what the engine itself fed in is fed in again, after a pause."""
        told = error if isinstance(error, HoldfastError) else StoreError(f"Expected to commit, but {error!r}. See the log.")
        kept = []
        for request in requests:
            if request.future is None:
                kept.append(request)
            else:
                request.resolve(told)
        self._queue = kept + self._queue
        self._backoff = min(max(FIRST_BACKOFF, 2 * self._backoff), LONGEST_BACKOFF)
        log.error("a batch of %d failed and is tried again in %.2f s: %s", len(requests), self._backoff / SECOND, error)
        if not isinstance(error, StoreError):
            log.error("this should not happen", exc_info=error)
        if self._stopping:
            self._queue.clear()
            return
        pause = asyncio.get_running_loop().create_future()
        self._clock.call_at(self._clock.now() + self._backoff, lambda: None if pause.done() else pause.set_result(None))
        await self._rest(pause)
