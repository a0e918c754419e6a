"""Activities that tests watch and hold up."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast import activity

CALLS: Final[list[str]] = []
"""What was called, in order."""
GATES: Final[dict[str, asyncio.Event]] = {}
"""The gates that somebody has come to."""


@activity
async def call(name: str) -> str:
    CALLS.append(name)
    return name


@activity
async def note(what: Any) -> Any:
    return what


@activity
async def pass_gate(name: str) -> str:
    """Waits until the test opens the gate."""
    try:
        await gate(name).wait()
    except asyncio.CancelledError:
        CALLS.append(f"{name} cancelled")
        raise
    return name


def gate(name: str) -> asyncio.Event:
    return GATES.setdefault(name, asyncio.Event())


def forget_steps() -> None:
    """Between tests."""
    CALLS.clear()
    GATES.clear()
