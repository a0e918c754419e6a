"""The heart: waits for work without polling, and runs one batch after the other, in as many lanes as the store has.

Work is: a request of this node, a due timer, or rows in an inbox. The pump sleeps until one of them is there; it goes to
sleep only after a claim that found nothing and began after its own last commit.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core.instants import SECOND, Instant
from holdfast.core.placing import MayKeep
from holdfast.engine.batches.batch import Batch
from holdfast.engine.batches.care import Care
from holdfast.engine.batches.lanes import Lane, Lanes
from holdfast.engine.batches.programs import MakeProgram, ProgramCache
from holdfast.engine.batches.requests import Request
from holdfast.engine.batches.settling import Settled
from holdfast.engine.batches.warming import Warming
from holdfast.engine.routes import Routes
from holdfast.errors import EngineClosed, HoldfastError, StoreError

if TYPE_CHECKING:
    from holdfast.engine.batches.routing import Router
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

FIRST_BACKOFF = SECOND // 20
LONGEST_BACKOFF = 5 * SECOND
LONGEST_SKIP = 30 * SECOND
SHORTEST_PAUSE = SECOND // 1_000
LONGEST_PAUSE = SECOND // 10


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
        routes: Routes,
        on_settled: Callable[[Settled], None],
    ) -> None:
        self._store = store
        self._cache = cache
        self._make_program = make_program
        self._config = config
        self._clock = clock
        self._node = node
        self._routes = routes
        self.make_room: Callable[[], MayKeep | None] | None = None
        """For each batch: says which activities this node can run itself; None: all."""
        self._on_settled = on_settled
        self._queue: list[Request] = []
        self._look = True
        """Whether inboxes or timers may hold something for this node."""
        self._look_later = False
        """Whether to look once a lane is done: it may hold what was skipped."""
        self._done = 0
        """How many batches were committed."""
        self._soon: asyncio.TimerHandle | None = None
        self._skips = 0
        """How often in a row others held all that has work."""
        self._next_due: Instant | None = None
        self._dues = 0
        """How often a due time was told or looked up."""
        self._alarm: Alarm | None = None
        self._lanes = Lanes(cache, store.lanes)
        self._batch_size = config.batch_size
        """How much a batch takes: less after one that failed, since a large one may be more than the store can take."""
        self.on_rest: Callable[[], None] | None = None
        """Called whenever there is nothing to do before the next due time."""
        self._stopping = False
        self._is_draining = False
        self._backoff = 0
        self.skip: set[str] = set()
        """Executions that cannot take turns here until somebody retries them."""
        self._skipping_since: Instant = 0
        self.care = Care(clock)
        self._warming = Warming(store, cache, make_program, routes, self._on_ready)

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

    def forget_skipped(self) -> None:
        """On a shared store another node may have retried them: from time to time each is looked at again."""
        now = self._clock.now()
        if not self.skip:
            self._skipping_since = now
        elif now - self._skipping_since >= LONGEST_SKIP:
            self.skip.clear()
            self.look()

    def note_due(self, when: Instant) -> None:
        """A timer will come due."""
        self._dues += 1
        if self._next_due is None or when < self._next_due:
            self._next_due = when
            self._arm()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done before the next due time."""
        return self._soon is None and not self._warming.is_busy and all(lane.is_idle for lane in self._lanes.all)

    @property
    def busy_since(self) -> float | None:
        """Since when a batch has been under way, or a part of a replay, by the monotonic clock."""
        since = [lane.busy_since for lane in self._lanes.all] + [self._warming.busy_since]
        return min((one for one in since if one is not None), default=None)

    @property
    def next_due(self) -> Instant | None:
        """When the next timer comes due, as far as is known."""
        return self._next_due

    def _wake(self) -> None:
        for lane in self._lanes.all:
            if lane.wake():
                return

    def _arm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._next_due is not None:
            self._alarm = self._clock.call_at(self._next_due, self.look)

    # --- running ---

    def start(self) -> None:
        """Begin to pump."""
        loop = asyncio.get_running_loop()
        for number, lane in enumerate(self._lanes.all, 1):
            lane.task = loop.create_task(self._run(lane), name=f"holdfast-pump-{number}")
            lane.task.add_done_callback(lambda _: self._tell_rest())

    def drain(self) -> None:
        """Take no more work from the store. What is handed in here is still done."""
        self._is_draining = True

    async def stop(self) -> None:
        """Finish what is queued, then stop."""
        self._stopping = True
        await self._warming.stop()
        for lane in self._lanes.all:
            if lane.resting is not None and not lane.resting.done():
                lane.resting.set_result(None)
        for lane in self._lanes.all:
            if lane.task is not None:
                await lane.task
        self.care.stop()
        self._cancel_alarms()

    async def kill(self) -> None:
        """Stop at once, as a crash would: what is not committed never was."""
        self._stopping = True
        await self._warming.kill()
        tasks = [lane.task for lane in self._lanes.all if lane.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.care.stop()
        self._cancel_alarms()

    async def _run(self, lane: Lane) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while await self._run_batch(lane):
                pass
            if self._stopping and not self._queue and not self._warming.is_busy:
                for other in self._lanes.all:
                    other.wake()
                return
            lane.waiter = loop.create_future()
            await self._rest(lane, lane.waiter)
            lane.waiter = None

    async def _rest(self, lane: Lane, until: asyncio.Future[None]) -> None:
        lane.resting = until
        self._tell_rest()
        await until

    async def _pause(self, lane: Lane, length: int) -> None:
        pause = asyncio.get_running_loop().create_future()
        self._clock.call_at(self._clock.now() + length, lambda: None if pause.done() else pause.set_result(None))
        await self._rest(lane, pause)

    def _tell_rest(self) -> None:
        if self.on_rest is not None:
            self.on_rest()

    async def _run_batch(self, lane: Lane) -> bool:
        """Take one batch of what there is; False if there is nothing that this lane can do now."""
        if self.care.is_taken and lane is not self._lanes.all[0]:
            return False
        size = 1 if self.care.is_taken else self._batch_size
        self.care.put_first(self._queue)
        requests, self._queue = self._lanes.take(lane, self._queue, size)
        look = self._look and not self._is_draining and not self._stopping
        if self.care.is_taken and requests:
            look = False
        if not requests and not look:
            return False
        if look:
            self._look = False
        lane.busy_since, now, done = time.monotonic(), self._clock.now(), self._done
        may_keep = None if self.make_room is None else self.make_room()
        batch = Batch(
            self._store,
            self._cache,
            self._make_program,
            self._config,
            self._node,
            now,
            self._routes,
            self.care,
            self._warming,
            may_keep,
            joins=size == self._config.batch_size,  # not after a failure, and not with care
        )
        if not self._lanes.is_single:
            batch.on_claimed = functools.partial(self._on_claimed, lane)
        try:
            settled = await batch.run(requests, size if look else 0, self.skip)
        except Exception as error:  # noqa: BLE001 - the pump must outlive whatever a batch meets
            self._look = self._look or look or self._look_later
            self._batch_size = max(1, size // 2)
            lane.holds.clear()
            await self._recover_from(lane, error, requests)
            return True
        finally:
            lane.busy_since = None
        self._backoff = 0
        self._batch_size = min(2 * size, self._config.batch_size)
        self._settle(lane, settled, look=look)
        if settled.skipped and self._done > done:
            self._look = True  # another lane may have held it, and is done since
        elif settled.skipped and self.busy_since is not None:
            self._look_later = True
        self._done += 1
        if not self._look and not self._queue and self.busy_since is None:
            self.care.rest()
        if look and not self._look:
            await self._find_next_due(lane, now, skipped=settled.skipped)
        if settled.next_due is not None:
            self.note_due(settled.next_due)
        await self._give_way(lane, settled)
        return True

    def _on_claimed(self, lane: Lane, router: Router) -> None:
        """A batch holds what it holds: others keep away from it, and look for what it left."""
        lane.holds |= router.held
        if router.took:
            self._look = True
            self._wake()

    def _settle(self, lane: Lane, settled: Settled, *, look: bool) -> None:
        """A batch is committed."""
        self.skip.update(settled.parked)
        if self.skip:
            self.skip.difference_update(settled.doomed)
            # What still arrives for those that closed is to be answered.
            self.skip.difference_update(execution.execution_id for execution, _ in settled.closed)
        lane.holds.clear()
        if settled.elsewhere:
            # What lets a noted execution take its turn must not get away: all others wait for that here.
            own = [
                request
                for request, target in settled.elsewhere
                if self.care.is_noted(target) or self._lanes.is_held_elsewhere(lane, target)
            ]
            settled.again.extend(own)
            settled.elsewhere = [one for one in settled.elsewhere if one[0] not in own]
        for org, execution_id, requests in settled.cold:
            self.skip.add(execution_id)
            self._warming.begin(org, execution_id, requests)
        if settled.again:
            self._queue = settled.again + self._queue
        if (look and settled.took) or settled.sent or self._look_later:
            self._look, self._look_later = True, False
        self._on_settled(settled)
        if not self._lanes.is_single and (self._queue or self._look):
            self._wake()

    def _on_ready(self, execution_id: str, requests: list[Request]) -> None:
        """An execution was replayed, or cannot be: what was put off for it is due."""
        self.skip.discard(execution_id)
        self._queue = requests + self._queue
        self.look()

    async def _give_way(self, lane: Lane, settled: Settled) -> None:
        """What another node, or another lane, is at right now is worth a little patience."""
        if self._store.exclusive or not settled.again:
            lane.pause = 0
            return
        lane.pause = min(max(SHORTEST_PAUSE, 2 * lane.pause), FIRST_BACKOFF)
        await asyncio.sleep(lane.pause / SECOND)  # by the loop's own time: this is no rest, there is work to do

    async def _find_next_due(self, lane: Lane, claimed_at: Instant, *, skipped: bool) -> None:
        """Arm for the next timer. What was there at the last claim and not had is held by another: look again soon."""
        dues = self._dues
        try:
            found = await self._store.find_next_due(self.skip, self._routes.takes)
            if self._dues != dues and self._next_due is not None:
                # Another lane told of a timer that this look-up may have missed. Too early does no harm.
                found = self._next_due if found is None else min(found, self._next_due)
            self._dues += 1
            self._next_due = found
            if self._next_due is not None and self._next_due <= claimed_at:
                self._next_due, skipped = None, True  # held by another, or set since
        except StoreError as error:
            self._look = True
            await self._recover_from(lane, error, [])
        else:
            self._arm()
            if skipped:
                self._look_soon()
            else:
                self._skips = 0

    def _look_soon(self) -> None:
        """Others hold what has work here. They are quick, or dead, and nobody tells when they let go: look again.

        By the loop's time, since theirs is no matter of the engine's clock.
        """
        if self._soon is None:
            pause = min(SHORTEST_PAUSE << min(self._skips, 10), LONGEST_PAUSE)
            self._skips += 1
            self._soon = asyncio.get_running_loop().call_later(pause / SECOND, self._on_soon)

    def _on_soon(self) -> None:
        self._soon = None
        self.look()

    def _cancel_alarms(self) -> None:
        for alarm in (self._alarm, self._soon):
            if alarm is not None:
                alarm.cancel()
        self._alarm = self._soon = None

    async def _recover_from(self, lane: Lane, error: Exception, requests: list[Request]) -> None:
        """Nothing was committed. Callers are told; what the engine itself fed in is fed in again, after a pause."""
        told = error if isinstance(error, HoldfastError) else StoreError(f"Expected to commit, but {error!r}. See the log.")
        kept = []
        for request in requests:
            if request.future is None:
                kept.append(request)
            else:
                request.resolve(told)
                self.care.give_up(request)
        self._queue = kept + self._queue
        self._backoff = min(max(FIRST_BACKOFF, 2 * self._backoff), LONGEST_BACKOFF)
        log.error("a batch of %d failed and is tried again in %.2f s: %s", len(requests), self._backoff / SECOND, error)
        if not isinstance(error, StoreError):
            log.error("this should not happen", exc_info=error)
        if self._stopping:
            self._queue.clear()
            return
        await self._pause(lane, self._backoff)
