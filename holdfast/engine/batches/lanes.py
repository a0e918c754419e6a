"""Batches that are under way at once, and what each of them holds: two of one node never want the same execution.

A request for an execution that another lane holds waits in the queue until that lane is done; in the store it would only
find the lock taken, and make a detour through the inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from holdfast.engine.batches.programs import ProgramCache
    from holdfast.engine.batches.requests import Request

SMALLEST_SHARE: Final = 256
"""How many requests are worth a batch of their own: while the store works on one, the next is computed."""

Name: TypeAlias = str | tuple[str, str]
"""What an execution goes by: its id, or its org and workflow id."""


class Lane:
    """One batch after the other."""

    __slots__ = ("busy_since", "holds", "pause", "resting", "task", "waiter")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.resting: asyncio.Future[None] | None = None
        """What is awaited while nothing can be done: the waiter, or the end of a pause."""
        self.busy_since: float | None = None
        """Since when a batch has been under way, by the monotonic clock."""
        self.holds: set[Name] = set()
        """What its batch holds, or is about to claim."""
        self.pause = 0
        """How long it waited last for what others are at."""

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        is_over = self.task is not None and self.task.done()
        return is_over or (self.resting is not None and not self.resting.done())

    def wake(self) -> bool:
        """Let it look for work; whether it was waiting for that."""
        if self.waiter is None or self.waiter.done():
            return False
        self.waiter.set_result(None)
        return True


class Lanes:
    """All of them."""

    def __init__(self, cache: ProgramCache, count: int) -> None:
        self._cache = cache
        self.all = [Lane() for _ in range(count)]
        self.is_single = count == 1

    def take(self, lane: Lane, queue: Sequence[Request], size: int) -> tuple[list[Request], list[Request]]:
        """What this lane may take of the queue, and what stays there, in their order."""
        if self.is_single:
            return list(queue[:size]), list(queue[size:])
        size = min(size, max(SMALLEST_SHARE, -(-len(queue) // len(self.all))))
        elsewhere = [other.holds for other in self.all if other is not lane and other.holds]
        taken: list[Request] = []
        left: list[Request] = []
        for request in queue:
            names = self._names_of(request)
            if len(taken) >= size or any(not names.isdisjoint(holds) for holds in elsewhere):
                left.append(request)
            else:
                taken.append(request)
                lane.holds |= names
        return taken, left

    def _names_of(self, request: Request) -> set[Name]:
        """Everything that its execution goes by, as far as is known here."""
        org, execution_id, workflow_id = request.org, request.execution_id, request.workflow_id
        if execution_id:
            live = self._cache.get(execution_id)
            return {execution_id} if live is None else {execution_id, (org, live.execution.workflow_id)}
        key = (org, workflow_id)
        found = self._cache.find_open(key)
        return {key} if found is None else {key, found}

    def is_held_elsewhere(self, lane: Lane, execution_id: str) -> bool:
        """Whether another lane of this node holds an execution."""
        return any(execution_id in other.holds for other in self.all if other is not lane)
