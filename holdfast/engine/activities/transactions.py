"""Activities whose SQL commits together with their result.

In one transaction: what the function wrote, a trace that keeps every other attempt from doing it too, and the result as an
envelope in the execution's inbox. So whichever attempt commits first is the only one, and its result counts, whichever is
the present attempt by then.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import codec, payloads
from holdfast.core.activities import has_ended
from holdfast.core.envelopes import ActivityReturned
from holdfast.core.instants import SECOND, Instant
from holdfast.engine.rows import to_turns
from holdfast.errors import AlreadyDone, StoreUnavailable
from holdfast.store.contract import HistoryRow, InboxRow, Once, RequestRow

if TYPE_CHECKING:
    from holdfast.code.definitions import TransactionActivity
    from holdfast.engine.activities.attempt import Attempt
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store, Work

log = logging.getLogger("holdfast.activities")

KIND: Final = "transaction"
"""As what its trace is remembered."""
KEPT: Final = 30 * 24 * 3600 * SECOND
"""How long: longer than any attempt that was given out before another one committed can still be on its way."""
FIRST_PAUSE: Final = SECOND // 20
LONGEST_PAUSE: Final = 5 * SECOND


class Transactions:
    """Runs them on the engine's store. `on_put` is called whenever one has committed."""

    def __init__(self, store: Store, clock: Clock, payload_limit: int, on_put: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._payload_limit = payload_limit
        self._on_put = on_put

    async def run(self, activity: TransactionActivity[..., Any], attempt: Attempt) -> None:
        """Run one attempt. Raises what the function raises: then nothing was committed.

        A database that is out of reach is not the function's fault: it is called again when that is back. Whether a commit
        took place that nobody could tell of shows then, by its trace.
        """
        task = attempt.task
        args = activity.signature.decode_arguments(task.event.input)
        key = f"{task.execution_id}/{task.event.number}"
        request = RequestRow(task.org, KIND, key, task.execution_id, None, self._clock.now() + KEPT)
        once = Once(request, task.sequence, functools.partial(_is_wanted, task.event.number))
        pause = FIRST_PAUSE
        while True:
            call = _Call(activity, attempt, args, self._payload_limit)
            try:
                await self._store.transact(call.as_work(), once)
            except AlreadyDone as error:
                log.info("attempt %d of '%s' was not needed: %s", task.attempt, activity.name, error)
                self._on_put()  # the commit may have been this one's own, of which nobody could tell
                return
            except StoreUnavailable as error:
                if error is call.error:
                    raise
                log.warning("transaction '%s' of '%s' is tried again: %s", activity.name, task.workflow_id, error)
            else:
                self._on_put()
                return
            await self._pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _pause(self, length: Instant) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_at(self._clock.now() + length, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            alarm.cancel()


class _Call:
    """One call of the function within a transaction."""

    def __init__(
        self, activity: TransactionActivity[..., Any], attempt: Attempt, args: Sequence[Any], payload_limit: int
    ) -> None:
        self._activity = activity
        self._attempt = attempt
        self._args = args
        self._payload_limit = payload_limit
        self.error: BaseException | None = None
        """What the function itself raised."""

    def as_work(self) -> Work[None]:
        """As the store takes it: async if the function is."""
        work: Any = self._work_async if iscoroutinefunction(self._activity.function) else self._work
        return work  # type: ignore[no-any-return]

    def _work(self, connection: Any, put: Callable[[InboxRow], None]) -> Any:
        try:
            result = self._activity.function(connection, *self._args)
        except BaseException as error:
            self.error = error
            raise
        put(self._make_row(result))
        return None

    async def _work_async(self, connection: Any, put: Callable[[InboxRow], None]) -> None:
        try:
            result = await self._activity.function(connection, *self._args)
        except BaseException as error:
            self.error = error
            raise
        put(self._make_row(result))

    def _make_row(self, result: Any) -> InboxRow:
        """The result as the envelope that commits with it. Raises PayloadError, or CancelledError if nobody wants it."""
        if self._attempt.is_over:
            raise asyncio.CancelledError("the transaction is not wanted any more")
        task, what = self._attempt.task, f"the result of {self._activity.signature.what}"
        encoded = payloads.encode(result, what, self._payload_limit)
        envelope = ActivityReturned(number=task.event.number, attempt=task.attempt, result=encoded, committed=True)
        return InboxRow(task.org, task.execution_id, "", codec.encode(envelope), route=task.route)


def _is_wanted(number: int, history: Sequence[HistoryRow]) -> bool:
    return not any(has_ended(turn.events, number) for turn in to_turns(history))
