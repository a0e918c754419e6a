"""Batches that are under way at once, and what each of them holds: two of one node never want the same execution.

A request for an execution that another worker holds waits in the queue until that worker is done; in the store it would only
find the lock taken, and make a detour through the inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.engine.requests import AnyRequest, Request

if TYPE_CHECKING:
    from holdfast.engine.turns.claims import ExecutionName
    from holdfast.engine.turns.program_cache import ProgramCache

SMALLEST_SHARE: Final = 256
"""How many requests are worth a batch of their own: while the store works on one, the next is computed."""


class BatchWorker:
    """Runs one batch after the other."""

    __slots__ = ("busy_since", "holds", "pause", "resting", "slot", "task", "waiter")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        """The worker's number among those of this process."""
        self.task: asyncio.Task[None] | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.resting: asyncio.Future[None] | None = None
        """What is awaited while nothing can be done: the waiter, or the end of a pause."""
        self.busy_since: float | None = None
        """Since when a batch has been under way, by the monotonic clock."""
        self.holds: set[ExecutionName] = set()
        """The ids of all executions that the worker's batch holds, or is about to claim."""
        self.pause = 0
        """Microseconds of its last pause for what other nodes or workers hold."""

    @property
    def is_idle(self) -> bool:
        """Whether the worker has nothing to do."""
        is_over = self.task is not None and self.task.done()
        return is_over or (self.resting is not None and not self.resting.done())

    def wake(self) -> bool:
        """Wake the worker, so that it looks for work. Returns False if it was not waiting."""
        if self.waiter is None or self.waiter.done():
            return False
        self.waiter.set_result(None)
        return True


class BatchWorkers:
    """The workers of one pump: as many as the store allows transactions at once."""

    def __init__(self, cache: ProgramCache, count: int) -> None:
        self._cache = cache
        self.all = [BatchWorker(slot) for slot in range(count)]
        self.is_single = count == 1

    def wake(self) -> None:
        """Wake one of the waiting workers, so that it looks for work."""
        for worker in self.all:
            if worker.wake():
                return

    @property
    def are_idle(self) -> bool:
        """Whether no worker has anything to do."""
        return all(worker.is_idle for worker in self.all)

    @property
    def busy_since(self) -> float | None:
        """Since when a batch has been under way, by the monotonic clock."""
        return min((worker.busy_since for worker in self.all if worker.busy_since is not None), default=None)

    def take(self, worker: BatchWorker, queue: Sequence[AnyRequest], size: int) -> tuple[list[AnyRequest], list[AnyRequest]]:
        """What this worker may take of the queue, and what stays there, in their order."""
        if self.is_single:
            return list(queue[:size]), list(queue[size:])
        size = min(size, max(SMALLEST_SHARE, -(-len(queue) // len(self.all))))
        elsewhere = [other.holds for other in self.all if other is not worker and other.holds]
        taken: list[AnyRequest] = []
        left: list[AnyRequest] = []
        for request in queue:
            names = self._names_of(request)
            if len(taken) >= size or any(not names.isdisjoint(holds) for holds in elsewhere):
                left.append(request)
            else:
                taken.append(request)
                worker.holds |= names
        return taken, left

    def _names_of(self, request: AnyRequest) -> set[ExecutionName]:
        """All ids of the execution that a request is for, as far as they are known here."""
        org = request.org
        if isinstance(request, Request) and request.execution_id:
            live = self._cache.get(request.execution_id)
            execution_id = request.execution_id
            return {execution_id} if live is None else {execution_id, (org, live.execution.workflow_id)}
        key = (org, request.workflow_id)
        found = self._cache.find_open(key)
        return {key} if found is None else {key, found}

    def is_held_elsewhere(self, worker: BatchWorker, execution_id: str) -> bool:
        """Whether another worker of this node holds an execution."""
        return any(execution_id in other.holds for other in self.all if other is not worker)
