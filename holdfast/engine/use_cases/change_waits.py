"""Waits for an execution to change, for those who would otherwise ask about it again and again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.errors import AnswerTimedOut, HoldfastError

if TYPE_CHECKING:
    from holdfast.engine.changes import Changes
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.engine.use_cases.queries import Queries
    from holdfast.engine.views import ExecutionInfo


class ChangeWaits:
    """Waits for executions to have another version."""

    def __init__(self, delivery: Delivery, queries: Queries, changes: Changes) -> None:
        self._delivery = delivery
        self._queries = queries
        self._changes = changes

    async def wait(self, org: str, target: str, seen: int | None, timeout: Duration | None) -> ExecutionInfo:
        """The status of an execution, once its version is another than the one that was seen. Raises AnswerTimedOut."""
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        seconds = None if timeout is None else to_micros(timeout, "the timeout") / SECOND
        try:
            async with asyncio.timeout(seconds):
                return await self._wait(org, target, seen)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise AnswerTimedOut(
                f"Expected execution '{target}' to change within {seconds:g} seconds, but it did not. Wait for longer."
            ) from None

    async def _wait(self, org: str, target: str, seen: int | None) -> ExecutionInfo:
        while True:
            row = await self._delivery.find_or_raise(org, target, "watch")
            watch = self._changes.watch(row.execution_id, row.state_version if seen is None else seen)
            try:
                info = await self._queries.status(org, row.execution_id)
                if info.state_version != seen:
                    return info
                await watch.changed
            finally:
                self._changes.forget(watch)
