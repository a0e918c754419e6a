"""Activities whose SQL commits together with their result.

One transaction holds what the function wrote, a request row that keeps every other attempt from committing too, and the
result as an envelope in the execution's inbox. So the first attempt that commits is the only one, and its result counts,
whichever attempt is the present one by then.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import codec
from holdfast.core.activities import has_ended
from holdfast.core.envelopes import ActivityReturned
from holdfast.core.instants import SECOND, Instant
from holdfast.engine.clock import call_after
from holdfast.engine.rows import to_turns
from holdfast.engine.trouble_log import tag_task
from holdfast.errors import AlreadyDone, OutcomeUnknown, StoreFault, StoreUnavailable
from holdfast.log_events import LogEvent
from holdfast.store.once import Once
from holdfast.store.rows import HistoryRow, InboxRow, RequestRow

if TYPE_CHECKING:
    from holdfast.activities.definitions import TransactionActivity
    from holdfast.engine.activities.attempt import ActivityAttempt
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store, UserFunction

log = logging.getLogger("holdfast.activities")

KIND: Final = "transaction"
"""The kind of the request row that a committed attempt leaves."""
KEPT: Final = 30 * 24 * 3600 * SECOND
"""How long that row is kept: longer than an attempt that began before the commit can still run."""
FIRST_PAUSE: Final = SECOND // 20
LONGEST_PAUSE: Final = 5 * SECOND
MOST_CUTS: Final = 5
"""How often the connection may break while the function of one attempt runs before that is no accident any more."""


class TransactionRunner:
    """Runs transaction activities on the engine's store. `on_put` is called whenever one has committed."""

    def __init__(self, store: Store, clock: Clock, payload_limit: int, on_put: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._payload_limit = payload_limit
        self._on_put = on_put

    async def run(self, activity: TransactionActivity[..., Any], attempt: ActivityAttempt) -> None:
        """Run one attempt. Raises what the function raises: then nothing was committed.

        If the database is out of reach, the function is called again until it is back. If the outcome of a commit was
        unknown, the request row tells then whether it took place. If the database gave up the transaction because it idled
        or took too long, or the connection broke again and again while the function ran, that is the attempt's failure.
        """
        task = attempt.task
        args = activity.signature.decode_arguments(attempt.bind_input(activity))
        expires_at = self._clock.now() + KEPT
        request = RequestRow(task.org, KIND, task.idempotency_key, task.execution_id, None, expires_at)
        once = Once(request, task.sequence, functools.partial(_is_wanted, task.event.number))
        pause, cuts = FIRST_PAUSE, 0
        while True:
            call = _Call(activity, attempt, args, self._payload_limit, self._clock)
            try:
                await self._store.transact(call.as_work(), once)
            except AlreadyDone as error:
                if error is call.error:
                    raise
                log.info(
                    "attempt %d of transaction '%s' of '%s' was not needed: %s",
                    task.attempt,
                    activity.name,
                    task.workflow_id,
                    error,
                )
                self._on_put()  # it may have been this attempt's own commit, whose outcome was unknown
                return
            except StoreUnavailable as error:
                cuts += call.has_begun
                if error is call.error or self._is_its_fault(error, call, cuts):
                    raise
                log.warning(
                    "transaction '%s' of '%s' is tried again: %s",
                    activity.name,
                    task.workflow_id,
                    error,
                    extra=tag_task(LogEvent.TRANSACTION_REPEATED, task),
                )
            else:
                self._on_put()
                return
            await self._pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _is_its_fault(self, error: StoreUnavailable, call: _Call, cuts: int) -> bool:
        """Whether the store gave up this very transaction, so that calling the function again would not help.

        Not if the transaction may have been committed after all: then the next call finds that out.
        """
        if not call.has_begun or isinstance(error, OutcomeUnknown):
            return False
        if error.fault is StoreFault.TIMED_OUT:
            return True
        return error.fault is StoreFault.OUT_OF_REACH and cuts >= MOST_CUTS and not self._store.exclusive

    async def _pause(self, length: Instant) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = call_after(self._clock, length, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            alarm.cancel()


class _Call:
    """One call of a transaction activity's function within a transaction of the store."""

    def __init__(
        self,
        activity: TransactionActivity[..., Any],
        attempt: ActivityAttempt,
        args: Sequence[Any],
        payload_limit: int,
        clock: Clock,
    ) -> None:
        self._activity = activity
        self._attempt = attempt
        self._args = args
        self._payload_limit = payload_limit
        self._clock = clock
        self.has_begun = False
        """Whether the function was called."""
        self.error: BaseException | None = None
        """The exception that the function itself raised, or its result when it was encoded: the store's are others."""

    def as_work(self) -> UserFunction[None]:
        """The call as the store runs it: async if the function is."""
        work: Any = self._work_async if iscoroutinefunction(self._activity.function) else self._work
        return work  # type: ignore[no-any-return]

    def _work(self, connection: Any, put: Callable[[InboxRow], None]) -> None:
        self.has_begun = True
        try:
            put(self._make_row(self._call(connection)))
        except BaseException as error:
            self.error = error
            raise

    async def _work_async(self, connection: Any, put: Callable[[InboxRow], None]) -> None:
        self.has_begun = True
        try:
            put(self._make_row(await self._call(connection)))
        except BaseException as error:
            self.error = error
            raise

    def _call(self, connection: Any) -> Any:
        return self._activity.signature.call(self._activity.function, self._args, connection)

    def _make_row(self, result: Any) -> InboxRow:
        """The result as the inbox row that commits with it. Raises PayloadError; CancelledError if the attempt is over."""
        if self._attempt.is_over:
            raise asyncio.CancelledError("no workflow waits for the transaction any more")
        task = self._attempt.task
        encoded = self._activity.signature.encode_result(result, self._payload_limit)
        number, attempt = task.event.number, task.attempt
        envelope = ActivityReturned(number=number, attempt=attempt, work=task.work, result=encoded, committed=True)
        body = codec.encode(envelope)
        return InboxRow(task.org, task.execution_id, "", body, route=task.route, at=self._clock.now())


def _is_wanted(number: int, history: Sequence[HistoryRow]) -> bool:
    return not any(has_ended(turn.events, number) for turn in to_turns(history))
