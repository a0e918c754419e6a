"""Calls from threads into an event loop that runs in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import wait
from typing import Final, TypeVar

from holdfast.errors import EngineClosed, WrongEventLoop

T = TypeVar("T")

_LOOK_INTERVAL: Final = 1.0
"""Seconds between looks whether the loop has ended without having seen the call."""


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

    running = run()
    try:
        future = asyncio.run_coroutine_threadsafe(running, loop)
    except RuntimeError:  # it is closed
        discard(running)
        discard(awaitable)
        raise _ended() from None
    try:
        while not wait({future}, timeout=_LOOK_INTERVAL).done:
            if loop.is_closed() and not future.done():  # it ended before it saw the call
                discard(running)
                discard(awaitable)
                raise _ended()
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _ended() -> EngineClosed:
    return EngineClosed("Expected an event loop that runs, but it has ended. Make the call earlier, or open another.")


def discard(awaitable: Awaitable[T]) -> None:
    """Let go of something that will not be awaited."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
