"""Waiting for something that happens by itself, in a loop, in a thread or in another process."""

from __future__ import annotations

import asyncio
import linecache
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 25.0
"""Real seconds after which something that should happen is taken not to happen."""
SPINNING: Final = 0.05
"""For so many seconds the loop goes round without a pause: most things are a matter of a few callbacks."""
PAUSE: Final = 0.005
"""Seconds between two looks from then on, so that other processes get the machine."""


async def eventually(condition: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """Look again and again until the condition, sync or async, is truthy, and give its value.

    The loop goes on meanwhile. After `patience` seconds of real time it fails and says what was awaited: `what` completes
    the sentence "Expected …"; without it the condition's place and source line are given. What the condition raises is
    raised at once.
    """
    began = time.monotonic()
    while True:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        waited = time.monotonic() - began
        if waited > patience:
            raise AssertionError(_describe(condition, what, patience))
        await asyncio.sleep(0 if waited < SPINNING else PAUSE)


def eventually_blocking(condition: Callable[[], T], what: str = "", patience: float = PATIENCE) -> T:
    """The same for code without a loop, such as fixtures that start servers: it blocks the thread between two looks."""
    give_up = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(_describe(condition, what, patience))
        time.sleep(PAUSE)
    return value


def _describe(condition: Callable[[], object], what: str, patience: float) -> str:
    code = getattr(condition, "__code__", None)
    if not what and code is not None:
        line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
        what = f"the condition of {code.co_filename}:{code.co_firstlineno} ({line})"
    return f"Expected {what or repr(condition)} within {patience:g} s, but it did not come."
