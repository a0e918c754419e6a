"""Workflows that do harm beyond themselves: code that never rests, asks for far too much, or ends its process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from holdfast import Context, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from tests.faults.flows import step

LARGE: Final = "x" * 2_000_000
"""Nearly as much as one value may have. It is there once, however often a turn asks for it."""
TIMES: Final = 1_100
"""So often it makes more than 2 GB."""


@activity
async def swallow(text: str) -> int:
    return len(text)


async def loop(_: Context) -> None:
    while True:  # harm
        pass  # harm


async def compute(_: Context) -> None:
    """About 20 s of Python, and it would end."""
    for _number in range(1_000_000_000):  # harm
        pass  # harm


async def wait(_: Context) -> None:
    """20 s in a call that cannot be interrupted, and lets other threads run."""
    threading.Event().wait(20)  # harm


async def sum_up(_: Context) -> None:
    """About 20 s in a call that cannot be interrupted, and lets no other thread run."""
    sum(range(1_000_000_000))  # harm


async def write(ctx: Context) -> None:
    """A turn of more than 2 GB."""
    await asyncio.gather(*(ctx.run(swallow, LARGE) for _ in range(TIMES)))  # harm


async def leave(_: Context) -> None:
    os._exit(9)  # harm


async def crash(_: Context) -> None:
    """As C code does that reads where it must not; only that nothing is dumped."""
    signal.raise_signal(signal.SIGKILL)  # harm


DEEDS: Final[Mapping[str, Callable[[Context], Awaitable[None]]]] = {
    deed.__name__: deed for deed in (loop, compute, wait, sum_up, write, leave, crash)
}


@workflow
async def poison(ctx: Context, deed: str) -> str:
    """Does no harm before it is told to."""
    await ctx.run(step, 1)
    await ctx.wait_for_signal("go")
    await DEEDS[deed](ctx)
    return "came to rest"


@workflow
async def poison_at_once(ctx: Context, deed: str) -> str:
    """Does harm in its first turn."""
    await DEEDS[deed](ctx)
    return "came to rest"


WORKFLOWS: Final[list[Workflow[..., Any]]] = [poison, poison_at_once]
ACTIVITIES: Final[list[Activity[..., Any]]] = [swallow]
