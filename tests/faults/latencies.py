"""How long short workflows take from start to result, as a client sees it, before and after something goes wrong.

One begins every few hundredths of a second, whatever became of those before it: while nothing gets on they pile up, and
each counts with all the time that it had to wait.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from holdfast.errors import StoreUnavailable
from tests.eventually import eventually
from tests.faults.callers import Caller
from tests.faults.flows import brief
from tests.faults.nodes import PATIENCE

T = TypeVar("T")

WINDOW: Final = 2.5
"""Seconds of beginnings that are judged together."""
NOISE_FACTOR: Final = 3
NOISE_SECONDS: Final = 0.25
"""As fast as before: at most so many times the 99th percentile of before, and so much more."""
GRID: Final = 0.25
"""Seconds between the beginnings of two windows."""


class Probe(AbstractAsyncContextManager["Probe"]):
    """Starts a workflow of an activity, a timer and a signal every `pace` seconds, from `async with` on."""

    def __init__(self, caller: Caller, pace: float = 0.04) -> None:
        self._caller = caller
        self._pace = pace
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False
        self._took: dict[float, float | None] = {}
        """How long each took, by the time when it began; None while it goes on."""
        self.expected: dict[str, str] = {}
        """The workflow of each id that was started."""

    async def __aenter__(self) -> Self:
        self._tasks.append(asyncio.create_task(self._begin_all()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Begin nothing new, and wait until all that was begun has ended. Raises if a result is wrong."""
        self._is_over = True
        await eventually(lambda: all(task.done() for task in self._tasks), "every probe to end", PATIENCE)
        for task in self._tasks:
            task.result()

    async def watch(self) -> float:
        """Wait until there is a window's worth of probes that have ended; their 99th percentile in seconds."""
        since = time.monotonic()
        await eventually(lambda: self.find_p99(since, since + WINDOW) is not None, "the probes of a window to end", PATIENCE)
        return self.find_p99(since, since + WINDOW) or 0.0

    async def recover(self, since: float, before: float, patience: float) -> tuple[float, float]:
        """Wait for a window from `since` on in which they are as fast as before: when it began, and its percentile.

        Fails if none has begun by `patience` seconds after `since`.
        """
        allowed = NOISE_FACTOR * before + NOISE_SECONDS
        begin, found = since, None
        while begin <= since + patience:
            await eventually(partial(self._has_p99, begin, begin + WINDOW), "the probes to end", PATIENCE)
            found = self.find_p99(begin, begin + WINDOW)
            if found is not None and found <= allowed:
                return begin, found
            begin += GRID
        raise AssertionError(
            f"Expected a 99th percentile of at most {allowed:.3f} s within {patience:g} s, but it is {found or 0:.3f} s."
        )

    def find_p99(self, begin: float, end: float) -> float | None:
        """The 99th percentile of those that began in this time; None if that is not over, or some of them go on."""
        within = [took for began, took in self._took.items() if begin <= began < end]
        if time.monotonic() < end or None in within or not within:
            return None
        ordered = sorted(took for took in within if took is not None)
        return ordered[math.ceil(0.99 * len(ordered)) - 1]

    def _has_p99(self, begin: float, end: float) -> bool:
        return self.find_p99(begin, end) is not None

    def find_longest(self, begin: float, end: float) -> float:
        """How long the slowest of those took that began in this time and have ended."""
        return max((took for began, took in self._took.items() if begin <= began < end and took is not None), default=0.0)

    async def _begin_all(self) -> None:
        began = time.monotonic()
        while not self._is_over:
            number = len(self._took)
            self._took[began] = None
            self._tasks.append(asyncio.create_task(self._run(number, began)))
            began = max(began + self._pace, time.monotonic())
            await asyncio.sleep(began - time.monotonic())

    async def _run(self, number: int, began: float) -> None:
        workflow_id = f"probe-{number}"
        self.expected[workflow_id] = brief.name
        handle = await insist(
            lambda: self._caller.start(brief, number, workflow_id=workflow_id, idempotency_key=workflow_id)
        )
        await insist(lambda: self._caller.signal_workflow(workflow_id, "add", 1, request_id=workflow_id))
        result = await insist(handle.result)
        assert result == 2 * number + 1, f"{workflow_id} returned {result!r}"
        self._took[began] = time.monotonic() - began


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the store takes it."""
    while True:
        try:
            return await call()
        except StoreUnavailable:
            await asyncio.sleep(0.02)
