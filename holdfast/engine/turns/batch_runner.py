"""Runs batches and trials for the workers of a pump, and does what follows from each: commit outcome or failure.

The pump says when; see there for the theory of operation.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import SECOND, Instant
from holdfast.core.placing import MayKeep
from holdfast.core.retry import retry_delay
from holdfast.core.safe_texts import count_noun
from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.turns.batch import Batch, BatchSetting
from holdfast.engine.turns.batch_failures import FailedOnce, find_orders, is_cut, keep_or_refuse, may_be_outage
from holdfast.engine.turns.claims import BatchOrder, Claims, ClaimTarget, WorkflowKey
from holdfast.engine.turns.commit_outcome import CommitOutcome
from holdfast.engine.turns.parked_deadlines import ParkedDeadlines
from holdfast.engine.turns.plan import NOTHING_NEWER, LeaveAlone
from holdfast.engine.turns.prefetch import HistoryPrefetch
from holdfast.engine.turns.request_queue import RequestQueue
from holdfast.engine.turns.resting import Resting
from holdfast.engine.turns.trials import Trial, Trials
from holdfast.engine.turns.turn_taking import as_answer
from holdfast.engine.turns.work_watch import SHORTEST_PAUSE, WorkWatch
from holdfast.engine.turns.workers import BatchWorker, BatchWorkers
from holdfast.errors import OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.turns.services import TurnServices

log = logging.getLogger("holdfast.engine")

LONGEST_BACKOFF: Final = SECOND // 20
"""The longest pause of a worker before it tries again what other nodes or workers hold."""
UNSKIP_INTERVAL: Final = 30 * SECOND
"""How long executions are left out of claims before they are looked at again."""


class BatchRunner:
    """Takes work from the queue, the store and the trials, a batch at a time."""

    def __init__(
        self,
        services: TurnServices,
        workers: BatchWorkers,
        watch: WorkWatch,
        on_outcome: Callable[[CommitOutcome], None],
        make_may_keep: Callable[[], MayKeep | None],
        pause: Callable[[BatchWorker, int], Awaitable[None]],
    ) -> None:
        self._services = services
        self._workers = workers
        self._watch = watch
        self._on_outcome = on_outcome
        self._make_may_keep = make_may_keep
        """For each batch: says which activities this node can run itself; None: all."""
        self._pause = pause
        """Lets a worker rest for a while."""
        self.queue = RequestQueue(services.cache, workers)
        self.skip: set[str] = set()
        """Executions that are left out of claims: they cannot take turns here, or not now."""
        self.skip_workflow_ids: set[WorkflowKey] = set()
        """Workflow ids of which what is addressed by them alone is left out of claims."""
        self._unskips = 0
        """How often some of them were let go again."""
        self._reported: set[str | WorkflowKey] = set()
        """What the log says to be left to a newer Holdfast."""
        self.is_draining = False
        """Whether nothing more is taken from the store."""
        self.is_stopping = False
        """Whether only what is queued is still done."""
        self.prefetch = HistoryPrefetch(services, self._on_prefetched)
        self.parked_deadlines = ParkedDeadlines(services.clock, self.unskip)
        self._trials = Trials(services.quarantine)
        self._resting = Resting(services.clock, self._on_rested)
        self._failed_once = FailedOnce()
        self._batch_size = services.config.batch_size
        """How much a batch takes: less after an outage, since a large one may be more than the store can take."""
        self._postponed: set[str] = set()
        """Suspects that wait until no other is noted."""
        self._look_later = False
        """Whether to look once a worker is done: it may hold what was skipped."""
        self._committed = 0
        """How many batches were committed."""
        self._failures = 0
        """How many batches in a row the store did not take."""

    @property
    def has_work(self) -> bool:
        """Whether there is anything left to do of what was handed in here."""
        return bool(self.queue) or self.prefetch.is_busy or self._trials.is_busy

    def unskip(self, execution_ids: Collection[str] | None) -> None:
        """Let executions take turns again that could not: these, or all of them."""
        self._unskips += 1
        if execution_ids is None:
            self.skip.clear()
            self.skip_workflow_ids.clear()
        else:
            self.skip.difference_update(execution_ids)
        self.skip.update(self._services.quarantine.apart)
        self._watch.look()

    def abandon_resting(self) -> None:
        """The pump ends: who waits for an execution that rests is told why it does."""
        for request, error in self._resting.abandon():
            request.resolve(as_answer(error))

    # --- batches ---

    async def run_next(self, worker: BatchWorker) -> bool:
        """Run one trial or batch of what there is; False if there is nothing that this worker can do now."""
        if self._trials.is_due:
            await self._run_trial(worker)
            return True
        size, watch = self._batch_size, self._watch
        requests = self.queue.take(worker, size)
        looks = watch.may_have_work and not self.is_draining and not self.is_stopping
        if not requests and not looks:
            return False
        if looks:
            watch.may_have_work = False
        now, committed, unskips = self._services.clock.now(), self._committed, self._unskips
        batch = self._make_batch(worker, now)
        worker.busy_since = time.monotonic()
        try:
            order = BatchOrder(
                requests,
                (),
                size if looks else 0,
                self.skip,
                self.skip_workflow_ids,
            )
            outcome = await batch.run(order)
        except Exception as error:  # noqa: BLE001 - the pump must outlive whatever a batch meets
            watch.may_have_work = watch.may_have_work or looks or self._look_later
            self.queue.release(worker)
            await self._recover(worker, batch, requests, error)
            return True
        finally:
            worker.busy_since = None
        self._failures = 0
        if self._failed_once.ids:
            self._failed_once.acquit(outcome)
        self._batch_size = min(2 * size, self._services.config.batch_size)
        if outcome.parked and self._unskips != unskips:
            outcome.parked = ()  # what they wait for may be over since the batch looked: look again
            watch.may_have_work = True
        self._follow(worker, outcome, looked=looks)
        if outcome.skipped and self._committed > committed:
            watch.may_have_work = True  # another worker may have held it, and is done since
        elif outcome.skipped and (self._workers.busy_since is not None or self.prefetch.busy_since is not None):
            self._look_later = True
        self._committed += 1
        if looks and not watch.may_have_work:
            await self._find_next_due(worker, now, skipped=outcome.skipped)
        if outcome.next_due is not None:
            watch.note_due(outcome.next_due)
        await self._back_off(worker, outcome)
        return True

    def _make_batch(self, worker: BatchWorker, now: Instant, trial: Collection[str] = ()) -> Batch:
        setting = BatchSetting(now, worker.slot, trial, self._make_may_keep())
        on_claimed = None if self._workers.is_single else functools.partial(self._on_claimed, worker)
        return Batch(self._services, self.prefetch, setting, on_claimed)

    def _on_claimed(self, worker: BatchWorker, claims: Claims) -> None:
        """A batch holds what it holds: others keep away from it, and look for what it left."""
        worker.holds |= claims.names
        if claims.found_work:
            self._watch.may_have_work = True
            self._workers.wake()

    def _follow(self, worker: BatchWorker, outcome: CommitOutcome, *, looked: bool) -> None:
        """A batch is committed: what it put off comes next, and the engine does the rest."""
        self.skip.update(outcome.parked)
        if outcome.deadlines:
            self.parked_deadlines.note(outcome.deadlines)
        if outcome.newer is not NOTHING_NEWER:
            self._leave_to_newer(outcome.newer)
        if self.skip:
            self.skip.difference_update(outcome.terminated)
            # What still arrives for those that closed is to be answered.
            self.skip.difference_update(execution.execution_id for execution, _ in outcome.closed)
        if outcome.lost_closings or self._services.lost_closings.losses:
            self._services.lost_closings.note(outcome.lost_closings)
            self._services.lost_closings.forget(execution.execution_id for execution, _ in outcome.closed)
        self.queue.release(worker)
        if outcome.forwards:
            own = [one for one in outcome.forwards if self._workers.is_held_elsewhere(worker, one.execution_id)]
            outcome.retries.extend(one.request for one in own)
            outcome.forwards = [one for one in outcome.forwards if one not in own]
        for one in outcome.prefetches:
            self.skip.add(one.execution_id)
            self.prefetch.begin(one.org, one.execution_id, list(one.requests))
        if outcome.postponed:
            self.skip.update(outcome.postponed)
            self._postponed.update(outcome.postponed)
        if outcome.noted:
            self.skip.update(one.target.execution_id for one in outcome.noted)
            self._trials.note(outcome.noted)
        self._let_postponed_go()
        for execution_id, requests in outcome.awaiting_trial:
            if not self._join_trial(execution_id, requests):
                outcome.retries.extend(requests)
        if outcome.retries:
            self.queue.put_first(outcome.retries)
        turn_order = self._services.turn_order
        if outcome.overtaken or turn_order.overtaken:
            turn_order.follow(outcome)
            if looked and not outcome.found_work and not self.queue:
                turn_order.forget_ranks()
        if (looked and outcome.found_work) or outcome.has_sent or outcome.has_put_off or self._look_later:
            self._watch.may_have_work, self._look_later = True, False
        self._on_outcome(outcome)
        if not self._workers.is_single and (self.queue or self._watch.may_have_work or self._trials.is_due):
            self._workers.wake()

    def _leave_to_newer(self, newer: LeaveAlone) -> None:
        """Leave out of claims what only a newer Holdfast can read; the log says so, once for each."""
        self.skip.update(newer.executions)
        self.skip_workflow_ids.update(newer.workflow_ids)
        if self._services.store.exclusive:  # a codec may get the key that it lacks, and no heartbeat lets us look again
            self.parked_deadlines.note(dict.fromkeys(newer.executions, self._services.clock.now() + UNSKIP_INTERVAL))
        for execution_id, reason in newer.executions.items():
            if execution_id not in self._reported:
                self._reported.add(execution_id)
                extra = tag(LogEvent.LEFT_TO_NEWER, execution_id=execution_id)
                log.warning("execution %s is left to other nodes: %s", execution_id, reason, extra=extra)
        for key, reason in newer.workflow_ids.items():
            if key not in self._reported:
                self._reported.add(key)
                log.warning(
                    "workflow id '%s' of org '%s' is left to other nodes: %s",
                    key[1],
                    key[0],
                    reason,
                    extra=tag(LogEvent.LEFT_TO_NEWER, org=key[0], workflow_id=key[1], node=self._services.node),
                )

    def _on_prefetched(self, execution_id: str, requests: Sequence[Request]) -> None:
        """An execution was replayed, or cannot be: what was put off for it is due."""
        self.queue.put_first(requests)
        self.unskip([execution_id])

    async def _back_off(self, worker: BatchWorker, outcome: CommitOutcome) -> None:
        """Pause before the next batch if requests have to wait for another node or worker; longer each time in a row."""
        if self._services.store.exclusive or not outcome.retries:
            worker.pause = 0
            return
        worker.pause = min(max(SHORTEST_PAUSE, 2 * worker.pause), LONGEST_BACKOFF)
        await asyncio.sleep(worker.pause / SECOND)  # by the loop's own time: this is no rest, there is work to do

    # --- trials ---

    async def _run_trial(self, worker: BatchWorker) -> None:
        trial = self._trials.begin()
        worker.holds.update(trial.execution_ids)
        batch = self._make_batch(worker, self._services.clock.now(), trial.execution_ids)
        worker.busy_since = time.monotonic()
        try:
            outcome = await batch.run(trial.make_order())
        except Exception as error:  # noqa: BLE001 - the pump must outlive whatever a batch meets
            self.queue.release(worker)
            await self._recover_trial(worker, trial, error, was_claimed=bool(batch.members))
            return
        finally:
            worker.busy_since = None
        busy = set[str]() if self.is_stopping else set(trial.execution_ids) & outcome.busy
        untried = outcome.lost | busy
        again = trial.keep(untried)
        if again is not None:  # another transaction was faster, or looks at it: that was no try
            # A request by workflow id may have been taken all the same, by the run that follows the one that was wanted.
            still_open = {*outcome.retries, *(one.request for one in outcome.forwards)}
            again.replace_requests(still_open.intersection)
            kept = set(again.requests)
            outcome.retries = [request for request in outcome.retries if request not in kept]
            outcome.forwards = [one for one in outcome.forwards if one.request not in kept]
        if not busy:
            self._trials.end(again)
        tried = [execution_id for execution_id in trial.execution_ids if execution_id not in untried]
        self._failures = 0
        self._services.quarantine.forget(tried)
        self._rejoin(tried)
        self._let_postponed_go()
        self._watch.may_have_work = True
        self._committed += 1
        self._follow(worker, outcome, looked=False)
        if outcome.next_due is not None:
            self._watch.note_due(outcome.next_due)
        if busy:
            await asyncio.sleep(LONGEST_BACKOFF / SECOND)  # it is still under way: other workers do all else meanwhile
            self._trials.end(again)
        elif again is not None:
            await self._back_off(worker, outcome)

    def _let_postponed_go(self) -> None:
        """Once no trial is under way or to come, the next suspects may be noted."""
        if self._postponed and not self._trials.is_busy:
            self.skip.difference_update(self._postponed)
            self._postponed.clear()
            self._watch.may_have_work = True

    def _join_trial(self, execution_id: str, requests: Sequence[AnyRequest]) -> bool:
        """Let requests be part of the next trial of their execution; False if none is to come, or it is under way."""
        return self._trials.add(execution_id, requests) or self._resting.add(execution_id, requests)

    def _rejoin(self, execution_ids: Collection[str]) -> None:
        """These executions took their turns, or were found to be unable to: they are no longer kept apart."""
        self._services.quarantine.rejoin(execution_ids)
        self._resting.forget(execution_ids)
        self.skip.difference_update(execution_ids)

    def _on_rested(self, trial: Trial) -> None:
        self._trials.plan(trial)
        self._workers.wake()

    async def _recover_trial(self, worker: BatchWorker, trial: Trial, error: Exception, *, was_claimed: bool) -> None:
        """Nothing of a trial was committed: it is tried again after an outage, else split, or rests if it was of one."""
        done = await self._take_orders(worker, trial.requests, error)
        if done:
            trial.replace_requests(lambda requests: [request for request in requests if request not in done])
        if isinstance(error, StoreUnavailable) and (not was_claimed or isinstance(error, OutcomeUnknown)):
            self._trials.replace_requests(lambda requests: self._keep_or_refuse(requests, error))
            self._trials.end(trial)
            await self._pause_after_failure(worker, error, f"a trial of {count_noun(len(trial), 'suspect')}")
        elif len(trial) > 1:
            log.warning(
                "a trial of %d suspects failed, and is split to find the one that fails: %s",
                len(trial),
                error,
                extra=tag(LogEvent.BATCH_SPLIT, node=self._services.node),
            )
            self._trials.end()
            self._trials.isolate(trial)
            if may_be_outage(error):
                await self._pause_after_failure(worker, error, f"a trial of {count_noun(len(trial), 'suspect')}")
        else:
            await self._fail_alone(worker, trial, error)
            self._trials.end()
        self._let_postponed_go()
        self._workers.wake()

    async def _fail_alone(self, worker: BatchWorker, trial: Trial, error: Exception) -> None:
        """One execution alone cannot take its turn: it rests apart. If that counts as a try, it is blocked after some."""
        (execution_id,) = trial.execution_ids
        self._services.quarantine.keep_apart([execution_id])
        self.skip.add(execution_id)
        is_try, most = self._resting.count(execution_id, error), self._services.config.max_lost
        follows = f"after {most} tries in a row the execution is blocked" if is_try else "it is tried again later, apart"
        unexpected = None if isinstance(error, StoreUnavailable) else error
        log.error(
            "the turn of execution %s cannot be committed; %s: %s",
            execution_id,
            follows,
            error,
            exc_info=unexpected,
            extra=_tag_target(LogEvent.TURN_NOT_COMMITTED, trial),
        )
        if is_try or not is_cut(error):
            await self._note_failure(worker, trial, error, is_try=is_try)
        else:  # by chance, mostly: it is tried again at once
            trial.replace_requests(lambda requests: self._keep_or_refuse(requests, error))
            self._trials.plan_next(trial)

    async def _note_failure(self, worker: BatchWorker, trial: Trial, error: Exception, *, is_try: bool) -> None:
        """Write into the row of an execution that its turn fails, then let it rest; or block it, if that was its last try.

        That this can be committed also shows that the store is there, and takes what others write.
        """
        (execution_id,) = trial.execution_ids
        batch = self._make_batch(worker, self._services.clock.now(), trial.execution_ids)
        self._services.quarantine.forget([execution_id])
        try:
            outcome = await batch.note_failure(trial.make_order(), error, is_try=is_try)
        except StoreUnavailable as outage:
            self._resting.pardon(execution_id)
            self._rest(trial, trial.requests, outage)
            await self._pause_after_failure(worker, outage, f"noting the failed turn of execution {execution_id}")
            return
        except Exception:
            log.exception(
                "the failed turn of execution %s could not be noted; it is tried again later",
                execution_id,
                extra=_tag_target(LogEvent.TURN_NOT_NOTED, trial),
            )
            self._rest(trial, trial.requests, error)
            return
        self._failures = 0
        retries, outcome.retries = outcome.retries, []
        if execution_id in outcome.parked:
            self._rejoin([execution_id])
            self.queue.put_first(retries)
        else:
            self._rest(trial, retries, error)
        self._follow(worker, outcome, looked=False)

    def _rest(self, trial: Trial, requests: Sequence[AnyRequest], error: Exception) -> None:
        """Let an execution rest that failed alone, with the requests that may be tried again; the others are refused."""
        kept = self._keep_or_refuse(requests, error)
        if self.is_stopping:
            for request in kept:
                request.resolve(as_answer(error))
            self._rejoin(trial.execution_ids)
            return
        trial.replace_requests(lambda _: kept)
        self._resting.begin(trial)

    # --- failures ---

    async def _recover(self, worker: BatchWorker, batch: Batch, requests: Sequence[AnyRequest], error: Exception) -> None:
        """Handle a batch that failed and committed nothing: retry it after an outage, else split it."""
        done = await self._take_orders(worker, requests, error)
        requests = [request for request in requests if request not in done]
        members = [] if isinstance(error, OutcomeUnknown) else batch.members
        members = [(target, [request for request in own if request not in done]) for target, own in members]
        ids = {target.execution_id for target, _ in members}
        if isinstance(error, StoreUnavailable) or not members:
            self._batch_size = max(1, self._batch_size // 2)
        if not members or (may_be_outage(error) and not self._failed_once.is_repeated(ids)):
            self.queue.put_first(self._keep_or_refuse(requests, error))
            await self._pause_after_failure(worker, error, f"a batch with {count_noun(len(requests), 'request')}")
            return
        quarantine = self._services.quarantine
        suspects: list[tuple[ClaimTarget, Sequence[Request]]] = []
        handed_on = set[AnyRequest]()
        for target, own in members:
            if not quarantine.is_apart(target.execution_id) and not quarantine.is_noted(target.execution_id):
                suspects.append((target, own))
                handed_on.update(own)
            elif self._join_trial(target.execution_id, own):  # it has its trial: not this batch
                handed_on.update(own)
        self.queue.put_first(request for request in requests if request not in handed_on)
        trial = Trial(suspects)
        if len(trial) > 1:
            log.warning(
                "a batch of %d executions failed, and is split to find the one that fails: %s",
                len(trial),
                error,
                extra=tag(LogEvent.BATCH_SPLIT, node=self._services.node),
            )
            quarantine.keep_apart(trial.execution_ids)
            self.skip.update(trial.execution_ids)
            self._trials.isolate(trial)
            self._workers.wake()
        elif len(trial):
            await self._fail_alone(worker, trial, error)
        else:
            await self._pause_after_failure(worker, error, f"a batch with {count_noun(len(requests), 'request')}")

    async def _take_orders(
        self, worker: BatchWorker, requests: Sequence[AnyRequest], error: Exception
    ) -> Collection[AnyRequest]:
        """In an outage of the codec, do at once what needs no value: cancel and terminate. The requests that are done with.

        Who is to be cancelled finds that in its inbox once it can take turns again.
        """
        orders = find_orders(requests, error)
        if not orders:
            return ()
        setting = BatchSetting(self._services.clock.now(), worker.slot, leaves_values=True)
        try:
            outcome = await Batch(self._services, self.prefetch, setting).run(BatchOrder(orders))
        except StoreError:
            return ()  # handled as what failed before
        outcome.parked, outcome.newer = (), NOTHING_NEWER  # that is so only for now
        self._follow(worker, outcome, looked=False)
        self._watch.may_have_work = True
        return set(orders)

    def _keep_or_refuse(self, requests: Sequence[AnyRequest], error: Exception) -> list[AnyRequest]:
        return keep_or_refuse(requests, error, self._services.config.storage_retry.max_attempts)

    async def _pause_after_failure(self, worker: BatchWorker, error: Exception, what: str) -> None:
        """Log what failed, where no execution is the cause, and pause as `storage_retry` says, longer each time in a row."""
        self._failures += 1
        pause = retry_delay(self._services.config.storage_retry, self._failures, self._services.node)
        unexpected = None if isinstance(error, StoreError) else error  # the store's messages say all; others need a trace
        log.error(
            "%s failed, and is tried again in %.2f s: %s",
            what,
            pause / SECOND,
            error,
            exc_info=unexpected,
            extra=tag(LogEvent.BATCH_FAILED, node=self._services.node),
        )
        if self.is_stopping:
            self.abandon_resting()
            abandoned = [*self.queue.clear(), *self._trials.abandon()]
            for request in abandoned:
                request.resolve(as_answer(error))
            return
        await self._pause(worker, pause)

    async def _find_next_due(self, worker: BatchWorker, claimed_at: Instant, *, skipped: bool) -> None:
        """Arm for the next timer. What was there at the last claim and not had is held by another: look again soon."""
        watch = self._watch
        changes = watch.due_changes
        try:
            found = await self._services.store.find_next_due(self.skip, self._services.routes.takes)
        except StoreError as error:
            watch.may_have_work = True
            await self._pause_after_failure(worker, error, "the look-up of the next timer")
            return
        watch.set_next_due(found, changes)
        if watch.next_due is not None and watch.next_due <= claimed_at:
            watch.forget_next_due()
            skipped = True  # held by another, or set since
        if not self._look_later:  # else it looks as soon as the other worker is done
            watch.look_soon(is_worth_it=skipped)


def _tag_target(event: LogEvent, trial: Trial) -> dict[str, Any]:
    """The fields of a record about the one execution of a trial."""
    (target,) = trial.targets
    workflow_id = target.workflow_id or None
    return tag(event, org=target.org, workflow_id=workflow_id, execution_id=target.execution_id)
