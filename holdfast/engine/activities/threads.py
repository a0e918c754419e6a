"""The threads in which sync activities run.

A thread cannot be ended from outside. So these are daemon threads, which do not keep the process from ending, and there are
as many as are asked for: `limits` says how many activities may run at once, and how many threads may be given up because
their function goes on although nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

_NAMES: Final = itertools.count(1)


class _Job(NamedTuple):
    """A call that a thread is to make, and the future of its result, which belongs to a loop."""

    function: Callable[[], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class ActivityThreads:
    """Calls functions in threads; those that are idle are used again, up to `most_idle` of them."""

    def __init__(self, most_idle: int) -> None:
        self._most_idle = most_idle
        self._idle: deque[SimpleQueue[_Job | None]] = deque()
        self._is_closed = False

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in a thread and return its result. If this is cancelled, the function goes on, unheard."""
        loop = asyncio.get_running_loop()
        job = _Job(function, loop.create_future(), loop)
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name=f"holdfast-activity-{next(_NAMES)}", daemon=True).start()
        jobs.put(job)
        return await job.future

    def close(self) -> None:
        """Let idle threads end, and the others when their functions have."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _work(self, jobs: SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = job.function()
            except BaseException as raised:  # noqa: BLE001 - whoever awaits the future gets it
                error = raised
            is_wanted = not self._is_closed and len(self._idle) < self._most_idle
            if is_wanted:
                self._idle.append(jobs)  # before the answer, so that the next call finds this thread
            _answer(job, result, error)
            del job, result, error  # while it waits, nothing is kept
            if not is_wanted:
                return


def _answer(job: _Job, result: Any, error: BaseException | None) -> None:
    try:
        job.loop.call_soon_threadsafe(_settle, job.future, result, error)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
