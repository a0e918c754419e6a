"""Calls from threads into an event loop that runs in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from holdfast.errors import EngineClosed, WrongEventLoop

T = TypeVar("T")


def refuse_running_loop() -> None:
    """Raises WrongEventLoop in a thread whose event loop runs: to block it would hold up everything in it."""
    if asyncio._get_running_loop() is not None:
        raise WrongEventLoop(
            "Expected a thread without an event loop, since this call blocks until it is done, but one is running here. Use "
            "Client, whose verbs are awaited; or call this by asyncio.to_thread."
        )


def call_in_loop(loop: asyncio.AbstractEventLoop, awaitable: Awaitable[T]) -> T:
    """The result of what is awaited in a loop of another thread. Who stops waiting, by Ctrl-C for instance, cancels it."""

    async def run() -> T:
        return await awaitable

    if loop.is_closed():
        discard(awaitable)
        raise EngineClosed("Expected an event loop that runs, but it has ended. Make the call earlier, or open another.")
    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def discard(awaitable: Awaitable[T]) -> None:
    """Let go of something that will not be awaited."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
