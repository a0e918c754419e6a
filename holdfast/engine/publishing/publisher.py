"""Publishes what this node's callers ask for and what turns left in the outbox, many at once, after the turns' commits.

Theory of operation
-------------------
A turn never publishes: it leaves rows in the outbox, in its own commit. The publisher takes them, and the requests of this
node's callers, in transactions of its own (`publish_batch`). One is under way at a time, so what one caller sends in order
is published in order; all that came meanwhile goes into the next (group commit).

*When it runs.* It is a background task that ends when there is nothing to do: a request came (`submit`), a commit of this
node left something in the outbox, a heartbeat tells that the outbox or the list of subscribers that have not got something
yet is not empty (`look`): another node may have died. An idle node asks nothing.

*Busy.* Who does not get a lock is tried again after a short pause that grows; callers wait meanwhile. Rows of the outbox
that are busy are left until the pause is over, so that others behind them are published however many they are.

*Outages.* A pause after one is an alarm of the clock: under virtual time the engine is at rest. If certainly nothing was
stored, callers are tried again or told, as `storage_retry` says; the outbox is tried without end. An unknown outcome is
resolved before anybody is answered (`PublishBatch`). If it never can be, callers get OutcomeUnknown; rows of the outbox show
by themselves what became of them.

*Many subscribers.* The commit of a broadcast fixes who gets it. If they are more than one transaction should write, their
inbox rows follow in transactions of their own, between which requests are served.

*Kept messages.* A message that was kept while no living node had the workflow that it starts would wait for ever: nobody
closes who could let it start. So a node that offers to start workflows by messages matches what is kept of these names
again, in transactions of some hundred; each takes a message once, under the lock of whoever publishes. A node whose
message found no such workflow looks again after its commit: it may have read what is offered just before that changed.

*What fails for another reason* may be one request or one row of the outbox: those of the transaction are tried one by one.
A request that fails alone is told why. A row that does rests for a while; after some tries it becomes a dead letter, and the
execution that published it is told. So it is with what has yet to reach subscribers. Callers are never published together
with an outbox that failed, and never wait for it; of the outbox, only what has the same name and key waits behind such a
row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.retry import retry_delay
from holdfast.engine.clock import call_after
from holdfast.engine.publishing.publish_batch import (
    NO_OUTBOX,
    OUTBOX_LIMIT,
    KeptOrder,
    OutboxOrder,
    PublishBatch,
    PublishBatchDeps,
    PublishOutcome,
)
from holdfast.engine.publishing.publish_requests import PublishQueue
from holdfast.engine.publishing.spread_batch import SpreadBatch
from holdfast.errors import EngineClosed, HoldfastError, OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm
    from holdfast.engine.publishing.publish_requests import PublishRequest

log = logging.getLogger("holdfast.engine")

MOST_REQUESTS: Final = 200
"""How many requests one transaction publishes."""
SHORTEST_PAUSE: Final = SECOND // 1_000
LONGEST_PAUSE: Final = SECOND // 20
"""How long a publication that another transaction keeps from its lock waits before it is tried again."""
REST_OF_ROW: Final = SECOND
"""How long a row of the outbox rests that cannot be published."""
MOST_FAILURES: Final = 5
MOST_OUTAGES: Final = 20
"""So often in a row a row of the outbox may fail before it is given up; and so often if it fails as if the store were out of
reach, though other calls reach it."""
ROWS_ALONE: Final = 50
"""How many rows of the outbox are published one by one before callers get their turn."""
CLOSING_TRIES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherCallbacks:
    """What follows from a committed publication."""

    on_sent: Callable[[], None]
    """Rows were put into inboxes."""
    on_kept: Callable[[Instant], None]
    """Something is kept, until then."""
    on_dead_letters: Callable[[], None]


class Publisher:
    """Publishes, for as long as the engine is open."""

    def __init__(
        self,
        deps: PublishBatchDeps,
        callbacks: PublisherCallbacks,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._deps = deps
        self._callbacks = callbacks
        self._spawn = spawn
        self._queue = PublishQueue()
        self._has_outbox = False
        """Whether the outbox may hold something."""
        self._has_spreads = False
        """Whether something may not have reached all of its subscribers yet."""
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        """Clear while the task runs."""
        self._newer: set[int] = set()
        """Ids of rows of the outbox that a newer Holdfast wrote: another node publishes them."""
        self._isolates_rows = False
        """Whether rows of the outbox are published one by one, since they failed together."""
        self._resting: set[int] = set()
        """Ids of rows of the outbox that failed alone, and are not tried again before `_row_alarm` rings."""
        self._busy: set[int] = set()
        """Ids of rows of the outbox that are not tried again before the pause is over, at `_busy_until`."""
        self._busy_until = 0.0
        self._isolates_spreads = False
        """Whether what reaches its subscribers in batches is watched row by row, since one failed."""
        self._unmatched: set[str] = set()
        """Names of messages of which the kept ones are to be matched again, behind `_matched_until`."""
        self._matched_until = 0
        self._match_number = 0
        """Grows with each `match_kept`: what is under way then may have read too early."""
        self._isolates_kept = False
        """Whether the next kept message is matched alone, since one of several failed."""
        self._failed: dict[int, _Failures] = {}
        self._row_alarm: Alarm | None = None
        self._is_closed = False
        self._alarm: Alarm | None = None
        self._pause: Micros = 0
        self._failures = 0

    # --- feeding ---

    def submit(self, request: PublishRequest) -> None:
        """Publish something for a caller, with the next transaction."""
        if self._is_closed:
            request.resolve(_make_closed())
            return
        self._queue.append(request)
        self._wake()

    def look(self) -> None:
        """Look into the outbox: a commit, or a node that died, may have left something there."""
        self._has_outbox = self._has_spreads = True
        self._wake()

    def match_kept(self, names: Collection[str]) -> None:
        """Match kept messages of these names again: a node has begun to offer workflows that they start."""
        if names:
            self._unmatched.update(names)
            self._matched_until = 0
            self._match_number += 1
            self._wake()

    def note_outbox(self) -> None:
        """A commit of this node left something in the outbox."""
        self._has_outbox = True
        self._wake()

    def note_went_back(self) -> None:
        """The database is at an earlier state: ids of rows of the outbox may be given anew."""
        self._newer.clear()
        self._resting.clear()
        self._busy.clear()
        self._failed.clear()
        self.look()

    async def close(self) -> None:
        """Publish what was handed in, and take no more. What else the outbox holds is for other nodes or the next engine."""
        self._is_closed = True
        self._disarm()
        await self._at_rest.wait()
        for _ in range(CLOSING_TRIES):
            if not self._queue and not self._has_outbox:
                break
            if not await self._publish_next():
                break  # the store is out of reach: nobody waits for it
        self.kill()

    def kill(self) -> None:
        """Publish no more, at once. Callers are told that the engine is closed."""
        self._is_closed = True
        self._disarm()
        for request in self._queue.drain():
            request.resolve(_make_closed())

    # --- running ---

    def _wake(self) -> None:
        if self._at_rest.is_set() and self._alarm is None and not self._is_closed:
            self._at_rest.clear()
            self._spawn(self._run())

    def _disarm(self) -> None:
        for alarm in (self._alarm, self._row_alarm):
            if alarm is not None:
                alarm.cancel()
        self._alarm = self._row_alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    async def _run(self) -> None:
        """Publish until nothing is left, or a pause is due."""
        goes_on = True
        try:
            while (
                goes_on and not self._is_closed and (self._queue or self._has_outbox or self._has_spreads or self._unmatched)
            ):
                if self._queue or self._has_outbox:
                    goes_on = await self._publish_next()
                if self._has_spreads and goes_on:
                    goes_on = await self._spread_next()
                if self._unmatched and goes_on:
                    goes_on = await self._match_next()
                await asyncio.sleep(0)
        finally:
            self._at_rest.set()
        if not goes_on and not self._is_closed:
            self._alarm = call_after(self._deps.clock, self._pause, self._ring)

    async def _publish_next(self) -> bool:
        """One transaction, or one for each row of an outbox that failed. False: a pause is due before the next."""
        if asyncio.get_running_loop().time() >= self._busy_until:
            self._queue.resume()
        requests = self._queue.take(MOST_REQUESTS)
        takes_outbox, self._has_outbox = self._has_outbox, False
        if not (takes_outbox and self._isolates_rows):
            return await self._publish(requests, takes_outbox=takes_outbox)
        self._has_outbox = True
        goes_on = not requests or await self._publish(requests, takes_outbox=False)
        return goes_on and await self._publish_rows()

    async def _publish(self, requests: list[PublishRequest], *, takes_outbox: bool) -> bool:
        if asyncio.get_running_loop().time() >= self._busy_until:
            self._busy.clear()
        order = OutboxOrder(skip=self._newer | self._resting | self._busy) if takes_outbox else NO_OUTBOX
        try:
            outcome = await PublishBatch(self._deps, requests, order).run()
        except StoreUnavailable as error:
            self._note_failed_outbox(takes_outbox=takes_outbox)
            self._keep_or_refuse(requests, error)
            return self._rest_after(error)
        except Exception:  # noqa: BLE001 - one publication that cannot be handled must not stop the others
            self._note_failed_outbox(takes_outbox=takes_outbox)
            await self._isolate(requests)
            return True
        except BaseException:  # it is cancelled: the engine crashes
            for request in requests:
                request.resolve(_make_closed())
            raise
        is_settled = self._settle(outcome)
        if (is_settled and not self._busy and not self._queue) or outcome.is_full or self._queue.has_ready:
            return True  # behind those that are busy there may be others
        # Real time: whoever has the lock lets go of it in real time.
        await asyncio.sleep(max(self._pause / SECOND, self._busy_until - asyncio.get_running_loop().time()))
        self._has_outbox |= bool(self._busy)
        self._busy.clear()
        return True

    def _settle(self, outcome: PublishOutcome) -> bool:
        """Do what follows from a commit: nothing is answered before it."""
        self._failures = 0
        self._newer.update(outcome.newer)
        for request, answer in outcome.answers:
            request.resolve(answer)
        self._queue.put_off(outcome.busy)
        self._has_outbox |= outcome.has_more or outcome.is_busy
        self._has_spreads |= outcome.has_spreads
        if outcome.has_sent:
            self._callbacks.on_sent()
        if outcome.kept_until is not None:
            self._callbacks.on_kept(outcome.kept_until)
        if outcome.has_dead_letters:
            self._callbacks.on_dead_letters()
        if outcome.unstarted and not self._deps.store.exclusive:
            self.match_kept(outcome.unstarted)
        self._busy.update(outcome.busy_rows)
        is_put_off = bool(outcome.busy or outcome.busy_kept) or outcome.is_busy
        if (not is_put_off and not self._busy and not self._queue.has_put_off) or outcome.answers:
            self._pause = 0
        if is_put_off:
            self._pause = min(max(2 * self._pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            self._busy_until = asyncio.get_running_loop().time() + self._pause / SECOND
        return not is_put_off

    async def _spread_next(self) -> bool:
        """Put the next inbox rows of what has many subscribers. False: a pause is due before the next."""
        self._has_spreads = False
        isolates = self._isolates_spreads
        batch = SpreadBatch(self._deps, self._resting, _list_given_up(self._failed))
        try:
            count = await batch.run(finds_head=isolates)
        except Exception as error:  # noqa: BLE001 - what others have yet to get goes on
            self._has_spreads = self._isolates_spreads = True
            is_outage = isinstance(error, StoreUnavailable) and not await self._reaches_store()
            if is_outage or (isolates and batch.head is None):
                return self._rest_after(error)
            if batch.head is not None:
                self._let_rest(batch.head.id, error)
            return True
        if batch.head is not None:
            self._failed.pop(batch.head.id, None)
        self._isolates_spreads = batch.head is not None
        if batch.has_dead_letters:
            self._callbacks.on_dead_letters()
        if count:
            self._has_spreads = True
            self._callbacks.on_sent()
        return True

    async def _match_next(self) -> bool:
        """Match the next kept messages that wait for no start. False: a pause is due before the next."""
        number = self._match_number
        limit = 1 if self._isolates_kept else OUTBOX_LIMIT
        batch = PublishBatch(self._deps, [], kept=KeptOrder(self._unmatched.copy(), self._matched_until, limit))
        try:
            outcome = await batch.run()
        except StoreUnavailable as error:
            return self._rest_after(error)
        except Exception as error:
            if not batch.taken_kept:
                return self._rest_after(error)
            if self._isolates_kept:
                self._matched_until = batch.taken_kept[0]
                log.exception(
                    "message %d cannot be matched again, and stays kept",
                    batch.taken_kept[0],
                    extra=tag(LogEvent.PUBLISHING_FAILED, node=self._deps.node),
                )
            self._isolates_kept = not self._isolates_kept
            return True
        if not self._settle(outcome):
            await asyncio.sleep(self._pause / SECOND)
        if number != self._match_number:
            return True  # it begins anew
        if outcome.busy_kept:
            self._matched_until = min(outcome.busy_kept) - 1
        elif len(batch.taken_kept) >= limit:
            self._matched_until = batch.taken_kept[-1]
        else:
            self._unmatched.clear()
        self._isolates_kept = False
        return True

    # --- failures ---

    def _keep_or_refuse(self, requests: list[PublishRequest], error: StoreUnavailable) -> None:
        most = self._deps.config.storage_retry.max_attempts
        kept: list[PublishRequest] = []
        for request in requests:
            request.attempts += 1
            if not isinstance(error, OutcomeUnknown) and (most is None or request.attempts < most):
                kept.append(request)
            else:
                request.resolve(error)
        self._queue.put_back(kept)

    def _rest_after(self, error: Exception) -> bool:
        self._failures += 1
        self._pause = retry_delay(self._deps.config.storage_retry, self._failures, self._deps.node)
        log.error(
            "publishing failed, and is tried again in %.2f s: %s",
            self._pause / SECOND,
            error,
            extra=tag(LogEvent.PUBLISHING_FAILED, node=self._deps.node),
        )
        return False

    def _note_failed_outbox(self, *, takes_outbox: bool) -> None:
        """A transaction failed: if it took rows of the outbox, these are tried again one by one."""
        if takes_outbox:
            self._has_outbox = self._isolates_rows = True

    async def _isolate(self, requests: list[PublishRequest]) -> None:
        """Something is wrong with one of the requests, or with the outbox: publish the requests one by one."""
        for request in requests:
            try:
                outcome = await PublishBatch(self._deps, [request]).run()
            except StoreUnavailable as unavailable:
                self._keep_or_refuse([request], unavailable)
            except Exception as wrong:  # noqa: BLE001 - its caller is told
                request.resolve(_as_error(wrong))
            else:
                self._settle(outcome)

    async def _publish_rows(self) -> bool:
        """Publish rows of the outbox one by one, up to `ROWS_ALONE`. False: the store is out of reach, so a pause is due."""
        busy: set[int] = set()
        for _ in range(ROWS_ALONE):
            order = OutboxOrder(1, self._newer | self._resting | busy, _list_given_up(self._failed))
            batch = PublishBatch(self._deps, [], order)
            try:
                outcome = await batch.run()
            except Exception as error:  # noqa: BLE001 - the other rows are published
                is_outage = isinstance(error, StoreUnavailable) and not await self._reaches_store()
                if is_outage or not batch.taken:
                    return self._rest_after(error)
                self._let_rest(batch.taken[0], error)
                continue
            self._settle(outcome)
            for taken in batch.taken:
                self._failed.pop(taken, None)
            if outcome.is_busy:
                busy.update(batch.taken)
            if not batch.taken:  # all others are published
                self._isolates_rows = False
                self._has_outbox = bool(busy)
                break
        return True

    async def _reaches_store(self) -> bool:
        """Whether the store can be read now: then what failed did so by itself."""
        try:
            transaction = await self._deps.store.begin()
            try:
                await transaction.read_outbox(1)
            finally:
                await transaction.rollback()
        except StoreError:
            return False
        return True

    def _let_rest(self, row_id: int, error: Exception) -> None:
        """A row of the outbox failed alone: it is tried again after a while, or given up then."""
        failures = self._failed.setdefault(row_id, _Failures(_as_error(error)))
        failures.count += 1
        failures.error = _as_error(error)
        log.error(
            "row %d of the outbox cannot be published (%d times so far): %s",
            row_id,
            failures.count,
            error,
            extra=tag(LogEvent.PUBLISHING_FAILED, node=self._deps.node),
        )
        self._resting.add(row_id)
        if self._row_alarm is None and not self._is_closed:
            self._row_alarm = call_after(self._deps.clock, REST_OF_ROW, self._wake_rows)

    def _wake_rows(self) -> None:
        self._row_alarm = None
        self._resting.clear()
        self._isolates_rows = self._has_outbox = self._has_spreads = True
        self._wake()


@dataclass(slots=True)
class _Failures:
    """How often in a row a row of the outbox could not be published, and why the last time."""

    error: HoldfastError
    count: int = 0

    @property
    def is_final(self) -> bool:
        return self.count >= (MOST_OUTAGES if isinstance(self.error, StoreUnavailable) else MOST_FAILURES)


def _list_given_up(failed: Mapping[int, _Failures]) -> dict[int, HoldfastError]:
    """Why rows failed that are tried no more, by their ids."""
    return {one: failures.error for one, failures in failed.items() if failures.is_final}


def _as_error(error: Exception) -> HoldfastError:
    if isinstance(error, HoldfastError):
        return error
    return HoldfastError(f"Expected to publish, but {type(error).__name__}: {error}. See the engine's log.")


def _make_closed() -> EngineClosed:
    return EngineClosed("Expected the engine to be open, but it is shut down. Open a new one.")
