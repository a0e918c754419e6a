"""The time by which callers wait for answers and for changes: the loop's, but in engines for tests."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Limit(Protocol):
    """A limit of time that can be moved while it holds."""

    def reschedule(self, when: float | None) -> None:
        """Let it be over at `when`, by `WaitTime.read`; None: never."""
        ...


class WaitTime:
    """Real time: an answer that needs a month is there after a month."""

    def read(self) -> float:
        """The present of this time, in seconds since some moment."""
        return asyncio.get_running_loop().time()

    def limit(self, seconds: float | None) -> AbstractAsyncContextManager[Limit]:
        """Raises TimeoutError, when it is left, if what is done within it takes longer."""
        return asyncio.timeout(seconds)

    async def wait(self, future: asyncio.Future[T]) -> T:
        """Wait for a future that something else in the engine settles."""
        return await future
