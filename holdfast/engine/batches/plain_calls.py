"""Where programs run: in plain callbacks of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def call_plainly(function: Callable[[], T]) -> Awaitable[T]:
    """Call `function` from a plain callback of the loop: workflow tasks must not run inside a task of the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        if future.cancelled():
            return
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits
            future.set_exception(error)

    loop.call_soon(call)
    return future
