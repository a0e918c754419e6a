"""Stale attempts: they run on this node, while a turn that another node took has ended their activity. They are stopped.

What this node's own turns end is stopped at once. Only attempts that have been running since the last heartbeat are checked,
so short ones cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.core.activities import has_ended, is_cancel_awaited
from holdfast.core.options import Cancellation
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import CorruptStore, NewerFormat, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.core.effects import ActivityTask
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

AttemptKey: TypeAlias = tuple[str, int, int]
"""Which attempt: (execution id, number of the activity, attempt)."""


class StaleAttempts:
    """Finds and stops the stale attempts of one node."""

    def __init__(self, store: Store, runner: ActivityRunner, node: str) -> None:
        self._store = store
        self._runner = runner
        self._node = node
        self._known: dict[AttemptKey, int] = {}
        """Attempts that ran at the last check, and up to which event their execution's history was read by then."""
        self._is_busy = False

    def find_long_running(self) -> list[ActivityTask]:
        """Attempts that were running at the last call too; without taken offers, which the store withdraws.

        It does not withdraw those that are cancelled and whose end is awaited, so these are among them.
        """
        tasks = [task for task in self._runner.tasks if not task.is_offered or _is_end_awaited(task)]
        old = [task for task in tasks if key_of(task) in self._known]
        self._known = {key_of(task): self._known.get(key_of(task), task.sequence) for task in tasks}
        return old

    async def stop(self, tasks: Iterable[ActivityTask]) -> None:
        """Stop those of these attempts that their execution does not wait for any more."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._stop(list(tasks))
        except StoreError:
            return  # the next heartbeat checks again
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
            if row is None or await self._is_stale(row, task):
                self._runner.stop(task.execution_id, task.event.number, task.attempt)

    async def is_cancelled(self, task: ActivityTask) -> bool:
        """Whether the program has cancelled an activity since it was given out, and waits for its end. Raises StoreError."""
        try:
            turns = to_turns(await self._store.load_history(task.execution_id, task.sequence))
        except (CorruptStore, NewerFormat):
            return False  # its next turn reports it
        return any(is_cancel_awaited(turn.events, task.event.number) for turn in turns)

    async def _is_stale(self, row: ExecutionRow, task: ActivityTask) -> bool:
        if row.closed_at is not None:
            return True
        number = task.event.number
        try:
            execution = from_row(row)
            attempt = execution.attempt_of(number)
            if attempt.attempt != task.attempt or attempt.retry_at is not None:
                return True
            if not task.is_offered and execution.runner_of(number) != self._node:
                return True
            return await self._has_ended(row, task)
        except (CorruptStore, NewerFormat):
            return False  # its next turn reports it

    async def _has_ended(self, row: ExecutionRow, task: ActivityTask) -> bool:
        """Whether an event since the last check ended the activity."""
        read = self._known.get(key_of(task), task.sequence)
        if row.sequence <= read:
            if key_of(task) in self._known:
                self._known[key_of(task)] = row.sequence  # if the database went back, what follows comes behind this
            return False
        turns = to_turns(await self._store.load_history(row.execution_id, read))
        if key_of(task) in self._known:
            self._known[key_of(task)] = row.sequence
        if _is_end_awaited(task) and any(is_cancel_awaited(turn.events, task.event.number) for turn in turns):
            self._runner.cancel(task.execution_id, task.event.number, task.attempt)
        return any(has_ended(turn.events, task.event.number) for turn in turns)


def _is_end_awaited(task: ActivityTask) -> bool:
    return task.event.options.cancellation is Cancellation.WAIT


def find_present(runner: ActivityRunner) -> set[AttemptKey]:
    """The attempts that run on a node, wait there for a slot, or have an outcome that is on its way to their execution."""
    return {key_of(task) for task in runner.tasks}.union(runner.outcomes.keys())


def key_of(task: ActivityTask) -> AttemptKey:
    """The key of an attempt: its execution, number and attempt."""
    return task.execution_id, task.event.number, task.attempt
