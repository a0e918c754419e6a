"""Activities that run in this node's memory while another node took the turn that ended them: they are told, if late.

What this node's own turns end, it hears of at once. Only activities that have been running for longer than from one
heartbeat to the next are looked after, so short ones cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.core.activities import has_ended
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import CorruptStore, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.core.effects import ActivityTask
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.store.contract import ExecutionRow, Store

Key: TypeAlias = tuple[str, int, int]
"""(execution id, number, attempt)."""


class Unwanted:
    """Finds them."""

    def __init__(self, store: Store, runner: ActivityRunner, node: str) -> None:
        self._store = store
        self._runner = runner
        self._node = node
        self._known: dict[Key, int] = {}
        """What was in hand at the last look, and how much of its execution's history was read by then."""
        self._is_busy = False

    def find_old(self) -> list[ActivityTask]:
        """What has been in hand since the last look. What was taken as an offer is not among it: its offer is withdrawn."""
        tasks = [task for task in self._runner.tasks if not task.is_offered]
        old = [task for task in tasks if key_of(task) in self._known]
        self._known = {key_of(task): self._known.get(key_of(task), task.sequence) for task in tasks}
        return old

    async def stop(self, tasks: Iterable[ActivityTask]) -> None:
        """Stop those of them that nobody wants any more."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._stop(list(tasks))
        except StoreError:
            return  # the next heartbeat looks again
        finally:
            self._is_busy = False

    async def _stop(self, tasks: list[ActivityTask]) -> None:
        transaction = await self._store.begin()
        try:
            rows = await transaction.read_rows(dict.fromkeys(task.execution_id for task in tasks))
        finally:
            await transaction.rollback()
        for task in tasks:
            row = rows.get(task.execution_id)
            if row is None or await self._is_unwanted(row, task):
                self._runner.stop(task.execution_id, task.event.number, task.attempt)

    async def _is_unwanted(self, row: ExecutionRow, task: ActivityTask) -> bool:
        if row.closed_at is not None:
            return True
        number = task.event.number
        try:
            execution = from_row(row)
            attempt = execution.attempt_of(number)
            if attempt.attempt != task.attempt or attempt.retry_at is not None:
                return True
            if execution.runner_of(number) != self._node:
                return True
            return await self._has_ended(row, task)
        except CorruptStore:
            return False  # whoever takes its next turn reports it

    async def _has_ended(self, row: ExecutionRow, task: ActivityTask) -> bool:
        """Whether what was written since the last look ends it."""
        read = self._known.get(key_of(task), task.sequence)
        if row.sequence <= read:
            return False
        turns = to_turns(await self._store.load_history(row.execution_id, read))
        if key_of(task) in self._known:
            self._known[key_of(task)] = row.sequence
        return any(has_ended(turn.events, task.event.number) for turn in turns)


def key_of(task: ActivityTask) -> Key:
    """What tells an attempt from all others."""
    return task.execution_id, task.event.number, task.attempt
