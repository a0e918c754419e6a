"""Advances virtual time while a test waits for a result and the engines are at rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from holdfast.testing.clock import VirtualClock

T = TypeVar("T")

MOST_JUMPS: Final = 100_000
"""After so many jumps without a result, waiting fails."""
PATIENCE: Final = 2.0
"""Real seconds without anything that could happen, after which the log tells what the awaited executions wait for."""
RARER: Final = 10
"""By what the time until it is told again grows each time."""


class Skipper:
    """Lets a clock jump from alarm to alarm while anyone waits for a result. Each clock has one."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._awaited: set[asyncio.Future[Any]] = set()
        self._task: asyncio.Task[None] | None = None

    async def wait_for(self, future: asyncio.Future[T]) -> T:
        """Wait for a future; meanwhile time jumps whenever the engines are at rest."""
        self._awaited.add(future)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="holdfast-skipper")
        try:
            return await future
        finally:
            self._awaited.discard(future)

    async def _run(self) -> None:
        try:
            await self._skip()
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            for future in self._open_ones():
                future.set_exception(error)

    async def _skip(self) -> None:
        clock, jumps = self._clock, 0
        while True:
            await clock.settle(strictly=True)
            if not self._open_ones():
                return
            if clock.is_moving:
                await clock.wait_for_change()
                continue
            if not (alarms := clock.alarms):
                await self._wait_for_others()
                continue
            if (left := alarms[0].not_before - asyncio.get_running_loop().time()) > 0:
                await self._wait_for_change(left)
                continue
            clock.step()
            jumps += 1
            if jumps > MOST_JUMPS:
                raise TimeoutError(
                    f"Expected a result, but none came though time has jumped {MOST_JUMPS} times, to {clock.present}. "
                    "Look for an activity that fails at every attempt (give it Retry(max_attempts=…)) or a loop that only "
                    "sleeps; or open TestEngine(..., auto_advance=False) and move the clock yourself."
                )

    async def _wait_for_change(self, seconds: float) -> None:
        """Wait until alarms have changed, but no longer than so many real seconds."""
        change = asyncio.ensure_future(self._clock.wait_for_change())
        try:
            await asyncio.wait([change], timeout=seconds)
        finally:
            change.cancel()

    async def _wait_for_others(self) -> None:
        """Wait until somebody else changes something: only the test itself can, and the log says so after a while."""
        change, pause = asyncio.ensure_future(self._clock.wait_for_change()), PATIENCE
        try:
            while not (await asyncio.wait([change], timeout=pause))[0]:
                if not self._open_ones() or self._clock.alarms:
                    return
                await self._clock.tell_waits()
                pause *= RARER
        finally:
            change.cancel()

    def _open_ones(self) -> list[asyncio.Future[Any]]:
        return [future for future in self._awaited if not future.done()]
