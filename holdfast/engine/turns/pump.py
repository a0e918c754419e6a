"""Waits for work without polling, and runs one batch after the other, with as many workers as the store has transactions.

Theory of operation
-------------------
Work is: a request of this node (`submit`), rows in an inbox or a due timer (`look`), or a trial of suspects. Each worker
is a task that runs batches as long as there is work, then rests until it is woken.

*When it may sleep.* `WorkWatch.may_have_work` says that inboxes or timers may hold something for this node. It is cleared
only when a batch begins to look, and set again by everything that may add work: a wake-up of another node, a heartbeat, a
timer that comes due, envelopes that a batch sent, a claim that found something (there may be more). So the pump goes to
sleep only after a claim that found nothing and began after its own last commit. Rows that other nodes hold (`skipped`) are
looked at again after a pause that grows, since nobody tells when they let go.

*The next due time* is looked up after an empty claim and armed as an alarm (`WorkWatch`). Workers may set timers meanwhile
and tell of them (`note_due`); a look-up that began before such news may not put it out of mind (`due_changes`).

*Order.* Requests wait in one queue. A request that a batch could not handle goes back to its front. A worker never takes a
request for an execution that another worker holds: it stays in the queue, in its place.

*Fairness.* A batch computes for half a second at most. What it has no time for waits for the next: whole executions, next
runs and children, which begin from their inboxes, or the rest of what has arrived for one. Whoever is quick goes before
what is known to take long, and neither requests nor inboxes have to wait for each other for more than some batches
(`turn_order`). Between two batches the loop runs.

*When a batch fails.* Nothing was committed.
- It may be an outage: the store is out of reach or short of room (StoreUnavailable), or nobody knows (OutcomeUnknown,
  resolved by the batch). Callers are told or tried again as `storage_retry` says, what the engine itself fed in is kept, and
  the worker pauses. If one of its executions is in a second batch that fails so, and the store answered the claims of both,
  the store is there: that is taken for the next case.
- Anything else, a time limit of the store included, may be the fault of one execution: the batch is split. Its executions
  take their turns in *trials* of fewer and fewer, apart from the others, who go on, and with the requests for them.
- A trial of one that fails is noted in its row and *rests* apart, longer each time; requests that come for it meanwhile wait
  with it. If its connection broke it is tried twice more at once before that. After some tries it is blocked; see
  `engine.quarantine` for what counts as one. If not even the note can be written, it is an outage after all, and nothing
  counts.

*Who is skipped.* Executions that cannot take turns here (blocked, of unknown code, tried by another process) or must not now
(they wait for their trial, or for a replay) are left out of claims until something changes. So are executions, and workflow
ids, for which something waits that only a newer Holdfast can read: nodes of that version take them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from holdfast.core.instants import Instant
from holdfast.core.safe_texts import name_type
from holdfast.engine.clock import call_after
from holdfast.engine.requests import Request
from holdfast.engine.turns.batch_runner import UNSKIP_INTERVAL, BatchRunner
from holdfast.engine.turns.work_watch import WorkWatch
from holdfast.engine.turns.workers import BatchWorker, BatchWorkers
from holdfast.errors import EngineClosed
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.core.placing import MayKeep
    from holdfast.engine.requests import AnyRequest
    from holdfast.engine.turns.commit_outcome import CommitOutcome
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.engine.turns.services import TurnServices

log = logging.getLogger("holdfast.engine")


class Pump:
    """Keeps the workers of one node running, and wakes them when there may be something to do."""

    def __init__(
        self,
        services: TurnServices,
        on_outcome: Callable[[CommitOutcome], None],
        make_may_keep: Callable[[], MayKeep | None],
    ) -> None:
        self._clock = services.clock
        self._workers = BatchWorkers(services.store.max_transactions)
        self._watch = WorkWatch(services.clock, self._workers.wake)
        self._runner = BatchRunner(services, self._workers, self._watch, on_outcome, make_may_keep, self._pause)
        self._rest_listeners: list[Callable[[], None]] = []
        self._skipping_since: Instant = 0

    # --- feeding ---

    def submit(self, request: AnyRequest) -> None:
        """Put a request into the next batch."""
        if self._runner.is_stopping:
            request.resolve(EngineClosed("Expected the engine to be open, but it is shut down. Open a new one."))
            return
        if type(request) is Request and not request.at:
            request.at = self._clock.now()
        self._runner.queue.append(request)
        self._workers.wake()

    def look(self) -> None:
        """Look for inbox rows and due timers with the next batch: another node may have left some."""
        self._watch.look()

    def note_due(self, when: Instant) -> None:
        """A timer of an execution will come due at this time: look then."""
        self._watch.note_due(when)

    def unskip(self, execution_ids: Collection[str] | None = None) -> None:
        """Let executions take turns again that could not: these, or all of them."""
        self._runner.unskip(execution_ids)

    def unskip_if_overdue(self) -> None:
        """Look again at executions that were skipped for long: on a shared store another node may have retried them."""
        now = self._clock.now()
        if not self._runner.skip and not self._runner.skip_workflow_ids:
            self._skipping_since = now
        elif not 0 <= now - self._skipping_since < UNSKIP_INTERVAL:  # the clock may have been set back
            self._skipping_since = now
            self._runner.unskip(None)

    def note_went_back(self) -> None:
        """The database is at an earlier state: forget what was found out, and look at everything anew."""
        self.prefetch.forget_all()
        self._runner.unskip(None)

    # --- how it stands ---

    def is_held(self, execution_id: str) -> bool:
        """Whether a batch that is under way holds an execution."""
        return self._workers.is_held(execution_id)

    def on_rest(self, callback: Callable[[], None]) -> None:
        """Call back whenever there is nothing to do before the next due time."""
        self._rest_listeners.append(callback)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done before the next due time."""
        return not self._watch.looks_soon and not self.prefetch.is_busy and self._workers.are_idle

    @property
    def busy_since(self) -> float | None:
        """Since when a batch has been under way, or a part of a replay, by the monotonic clock."""
        since = [self._workers.busy_since, self.prefetch.busy_since]
        return min((one for one in since if one is not None), default=None)

    @property
    def next_due(self) -> Instant | None:
        """When the next timer comes due, as far as is known."""
        return self._watch.next_due

    @property
    def skipped(self) -> frozenset[str]:
        """Executions that are left out of claims."""
        return frozenset(self._runner.skip)

    @property
    def prefetch(self) -> HistoryPrefetch:
        """What replays long histories before their executions are locked."""
        return self._runner.prefetch

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The loop's tasks in which the workers run."""
        return [worker.task for worker in self._workers.all if worker.task is not None]

    # --- beginning and ending ---

    def start(self) -> None:
        """Begin to run batches: one task for each worker."""
        loop = asyncio.get_running_loop()
        for worker in self._workers.all:
            worker.task = loop.create_task(self._run(worker), name=f"holdfast-pump-{worker.slot + 1}")
            worker.task.add_done_callback(self._on_worker_end)

    def drain(self) -> None:
        """Take no more work from the store. What is handed in here is still done."""
        self._runner.is_draining = True

    async def stop(self) -> None:
        """Finish what is queued, then stop."""
        self._runner.is_stopping = True
        self._runner.abandon_resting()
        await self.prefetch.stop()
        for worker in self._workers.all:
            if worker.resting is not None and not worker.resting.done():
                worker.resting.set_result(None)
        for task in self.tasks:
            await task
        self._watch.cancel()
        self._runner.parked_deadlines.cancel()

    async def kill(self) -> None:
        """Stop at once, as a crash would: what is not committed never was."""
        self._runner.is_stopping = True
        await self.prefetch.kill()
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._watch.cancel()
        self._runner.parked_deadlines.cancel()

    async def _run(self, worker: BatchWorker) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while await self._runner.run_next(worker):  # noqa: ASYNC110 - this is no polling
                await asyncio.sleep(0)  # a batch may not have waited for anything: others come between two
            if self._runner.is_stopping and not self._runner.has_work:
                for other in self._workers.all:
                    other.wake()
                return
            worker.waiter = loop.create_future()
            await self._rest(worker, worker.waiter)
            worker.waiter = None

    async def _rest(self, worker: BatchWorker, until: asyncio.Future[None]) -> None:
        worker.resting = until
        self._notify_rest()
        await until

    async def _pause(self, worker: BatchWorker, length: int) -> None:
        pause = asyncio.get_running_loop().create_future()
        call_after(self._clock, length, lambda: None if pause.done() else pause.set_result(None))
        await self._rest(worker, pause)

    def _on_worker_end(self, task: asyncio.Task[None]) -> None:
        """A worker ends with its pump. If anything else ended it, its process cannot do its work any more."""
        if not self._runner.is_stopping and not task.cancelled() and (error := task.exception()) is not None:
            log.critical(
                "%s was ended by %s: restart this process",
                task.get_name(),
                name_type(error),
                exc_info=error,
                extra=tag(LogEvent.TASK_ENDED),
            )
        self._notify_rest()

    def _notify_rest(self) -> None:
        for callback in self._rest_listeners:
            callback()
