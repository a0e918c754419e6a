"""Beginnings of activities that run at most once, where another node takes the turns of their execution.

The record that such an attempt begins goes into the execution's inbox then. That it is there is not enough: before it is
taken, the attempt may be replaced by another one. So the function is called only when the row says that it has begun.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Final

from holdfast.core.activities import has_ended
from holdfast.core.instants import SECOND, Micros
from holdfast.engine.clock import call_after
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import CorruptStore, NewerFormat, StoreError

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store

FIRST_PAUSE: Final = SECOND // 50
LONGEST_PAUSE: Final = SECOND


class Beginnings:
    """Waits until the beginnings of attempts are recorded in the rows of their executions."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def wait(self, task: ActivityTask) -> bool:
        """Wait until the row says that an attempt has begun, or that it is not wanted any more; whether it has begun."""
        pause = FIRST_PAUSE
        while True:
            try:
                known = await self._find(task)
            except StoreError:
                known = None  # it is asked again
            if known is not None:
                return known
            await self._pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _find(self, task: ActivityTask) -> bool | None:
        """Whether an attempt has begun, by the row of its execution; None if that is not decided yet."""
        row = await self._store.find_execution(task.org, task.execution_id)
        if row is None or row.closed_at is not None:
            return False
        try:
            attempt = from_row(row).attempt_of(task.event.number)
            if attempt.attempt != task.attempt or attempt.retry_at is not None:
                return False
            if attempt.may_not_repeat:
                return True
            turns = to_turns(await self._store.load_history(row.execution_id, task.sequence))
        except (CorruptStore, NewerFormat):
            return None  # nodes that can read it go on
        return False if any(has_ended(turn.events, task.event.number) for turn in turns) else None

    async def _pause(self, length: Micros) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = call_after(self._clock, length, functools.partial(_settle, over))
        try:
            await over
        finally:
            alarm.cancel()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
