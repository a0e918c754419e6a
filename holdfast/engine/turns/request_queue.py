"""The requests that were handed in to this node and wait for a batch, in the order of arrival.

Two workers of one node never want the same execution. A request for an execution that another worker's batch holds is set
aside with that worker, and comes back to the head of the queue when that batch is over: in the store it would only find the
lock taken, and make a detour through the inbox. So each batch looks at the requests that it takes, and at those that came
since the last batch and cannot be taken; never at the whole queue.

While more waits than a batch takes, callers and executions take turns (`_Lanes`): else thousands of activities of one
execution would let everybody else wait until all of their ends are handled.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.engine.requests import AnyRequest, Request

if TYPE_CHECKING:
    from holdfast.engine.turns.claims import ExecutionName
    from holdfast.engine.turns.program_cache import ProgramCache
    from holdfast.engine.turns.workers import BatchWorker, BatchWorkers

SMALLEST_SHARE: Final = 256
"""How many requests are worth a batch of their own: while the store works on one, the next is computed."""


class _Lanes:
    """What waits where that is more than a batch takes: every second one is a caller's, the others' executions alternate.

    Of one caller's requests, and of what comes of an execution's activities, the order stays that of arrival.
    """

    def __init__(self) -> None:
        self._calls: deque[AnyRequest] = deque()
        self._own: OrderedDict[str, deque[AnyRequest]] = OrderedDict()
        """By execution: what nobody waits for, which is the ends of its activities."""
        self._is_call_next = True
        self.count = 0

    def append(self, request: AnyRequest) -> None:
        self.count += 1
        if (name := _own_name(request)) is None:
            self._calls.append(request)
        else:
            self._own.setdefault(name, deque()).append(request)

    def put_first(self, request: AnyRequest) -> None:
        self.count += 1
        if (name := _own_name(request)) is None:
            self._calls.appendleft(request)
        else:
            self._own.setdefault(name, deque()).appendleft(request)

    def pop(self) -> AnyRequest:
        self.count -= 1
        self._is_call_next = not self._is_call_next
        if self._calls and (not self._is_call_next or not self._own):
            return self._calls.popleft()
        name, lane = next(iter(self._own.items()))
        request = lane.popleft()
        if lane:
            self._own.move_to_end(name)
        else:
            del self._own[name]
        return request


class RequestQueue:
    """What the workers of one node take their requests from: first come, first served, while a batch can take them all."""

    def __init__(self, cache: ProgramCache, workers: BatchWorkers) -> None:
        self._cache = cache
        self._workers = workers
        self._ready: deque[AnyRequest] = deque()
        self._lanes = _Lanes()
        """What came before all that is ready, and did not fit into a batch."""

    def __bool__(self) -> bool:
        return bool(self._ready or self._lanes.count) or any(worker.set_aside for worker in self._workers.all)

    def append(self, request: AnyRequest) -> None:
        """Queue a request behind all others."""
        self._ready.append(request)

    def put_first(self, requests: Iterable[AnyRequest]) -> None:
        """Queue requests before all others, in their order: they have waited already."""
        if not self._lanes.count:
            self._ready.extendleft(reversed(list(requests)))
            return
        for request in reversed(list(requests)):
            self._lanes.put_first(request)

    def take(self, worker: BatchWorker, size: int) -> list[AnyRequest]:
        """What this worker may take now, in the order of arrival; it holds their executions until `release`."""
        ready, lanes = self._ready, self._lanes
        waiting = len(ready) + lanes.count
        if not self._workers.is_single:
            size = min(size, max(SMALLEST_SHARE, -(-waiting // len(self._workers.all))))
        if waiting > size or lanes.count:
            while ready:
                lanes.append(ready.popleft())
            pop = lanes.pop
        else:
            pop = ready.popleft
        if self._workers.is_single:
            return [pop() for _ in range(min(size, waiting))]
        others = [other for other in self._workers.all if other is not worker and other.holds]
        taken: list[AnyRequest] = []
        while waiting and len(taken) < size:
            waiting -= 1
            request = pop()
            names = self._names_of(request)
            holder = next((other for other in others if not names.isdisjoint(other.holds)), None)
            if holder is None:
                taken.append(request)
                worker.holds |= names
            else:
                holder.set_aside.append(request)
        return taken

    def release(self, worker: BatchWorker) -> None:
        """A worker's batch is over: it holds nothing any more, and what was set aside for it comes next."""
        worker.holds.clear()
        if worker.set_aside:
            self.put_first(worker.set_aside)
            worker.set_aside.clear()

    def clear(self) -> list[AnyRequest]:
        """Remove all requests, and return them."""
        for worker in self._workers.all:
            self.put_first(worker.set_aside)
            worker.set_aside.clear()
        removed = [self._lanes.pop() for _ in range(self._lanes.count)] + list(self._ready)
        self._ready.clear()
        return removed

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


def _own_name(request: AnyRequest) -> str | None:
    """The execution for which the engine itself has made a request; None for those of callers."""
    return request.execution_id or None if isinstance(request, Request) and request.future is None else None
