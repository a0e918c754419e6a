"""Waits for an execution to change, for those who would otherwise ask about it again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.errors import AnswerTimedOut, HoldfastError

if TYPE_CHECKING:
    from holdfast.engine.changes import Changes
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.engine.use_cases.queries import Queries
    from holdfast.engine.views import ExecutionInfo, Pause
    from holdfast.engine.wait_time import WaitTime


LONGEST_LOOK: Final = 10.0
"""Seconds that the first look at an execution may take, however short the timeout is: the present status is told at once."""


class ChangeWaits:
    """Waits for executions to have another version, or to be paused by others than before."""

    def __init__(self, delivery: Delivery, queries: Queries, changes: Changes, time: WaitTime) -> None:
        self._delivery = delivery
        self._queries = queries
        self._changes = changes
        self._time = time

    async def wait(
        self, org: str, target: str, seen: int | None, seen_pauses: Sequence[str] | None, timeout: Duration | None
    ) -> ExecutionInfo:
        """The status of an execution, once its version or its pauses are others than those that were seen.

        `seen_pauses` are the pauses of the status that was seen, as texts; None: they do not matter. Raises AnswerTimedOut.
        """
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        seconds = None if timeout is None else to_micros(timeout, "the timeout") / SECOND
        ends_at, has_looked = None if seconds is None else self._time.read() + seconds, False
        try:
            async with self._time.limit(None if seconds is None else max(seconds, LONGEST_LOOK)) as limit:
                while True:
                    row = await self._delivery.find_or_raise(org, target, "watch")
                    watch = self._changes.watch(row.execution_id, row.state_version if seen is None else seen)
                    try:
                        info = await self._queries.status(org, row.execution_id)
                        if info.state_version != seen or not _are_same(info.pauses, seen_pauses):
                            return info
                        if not has_looked:
                            has_looked = True
                            limit.reschedule(ends_at)
                        await self._time.wait(watch.changed)
                    finally:
                        self._changes.forget(watch)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            if not has_looked:
                raise AnswerTimedOut(
                    f"Expected to read the status of execution '{target}' within {max(seconds or 0, LONGEST_LOOK):g} "
                    "seconds, but the database did not answer. Look at the database, and wait again."
                ) from None
            raise AnswerTimedOut(
                f"Expected execution '{target}' to change within {seconds:g} seconds, but it did not. Wait for longer."
            ) from None


def _are_same(pauses: Sequence[Pause], seen: Sequence[str] | None) -> bool:
    return seen is None or [str(one) for one in pauses] == list(seen)
