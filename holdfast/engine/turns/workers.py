"""Batches that are under way at once, and what each of them holds: two of one node never want the same execution."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.engine.requests import AnyRequest
    from holdfast.engine.turns.claims import ExecutionName


class BatchWorker:
    """Runs one batch after the other."""

    __slots__ = ("busy_since", "holds", "pause", "resting", "set_aside", "slot", "task", "waiter")

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
        self.set_aside: list[AnyRequest] = []
        """Requests for those executions that came meanwhile, in the order of arrival: they wait until its batch is over."""
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

    def __init__(self, count: int) -> None:
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

    def is_held(self, execution_id: str) -> bool:
        """Whether any worker of this node holds an execution."""
        return any(execution_id in worker.holds for worker in self.all)

    def is_held_elsewhere(self, worker: BatchWorker, execution_id: str) -> bool:
        """Whether another worker of this node holds an execution."""
        return any(execution_id in other.holds for other in self.all if other is not worker)
