"""Where programs run: outside of any task of the engine's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_outside_task(function: Callable[..., T], *args: object) -> T:
    """Call `function` as if no task of the loop were running: it runs tasks of its own, and one may not be inside another.

    For as long as it runs, the task that calls this is put aside, by the two functions that asyncio has for those who write
    tasks of their own. Going through a callback of the loop would do as well, but cost an iteration of the loop.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        return function(*args)
    asyncio._leave_task(loop, task)
    try:
        return function(*args)
    finally:
        asyncio._enter_task(loop, task)
