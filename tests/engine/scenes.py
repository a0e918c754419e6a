"""Props that several tests use: doors that activities wait at, and a patient eye."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.events import AnyEvent
from holdfast.engine.engine import Engine

E = TypeVar("E", bound=AnyEvent)

PATIENCE = 10.0
"""Real seconds after which something that should happen is taken not to happen."""


async def until(condition: Callable[[], Any], what: str = "it") -> Any:
    """Let the loop go round until the condition, sync or async, holds; its value."""
    give_up = asyncio.get_running_loop().time() + PATIENCE
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < give_up, f"Expected {what} to come true, but it did not."
        await asyncio.sleep(0)


class Door:
    """Where activities wait until a test lets them through. Notes who came, and who was turned away."""

    def __init__(self) -> None:
        self.came: list[Any] = []
        self.left: list[Any] = []
        self.turned_away: list[Any] = []
        self._open = threading.Event()

    def open(self) -> None:
        """Let everybody through, from now on."""
        self._open.set()

    def shut(self) -> None:
        """Let nobody through."""
        self._open.clear()

    @property
    def inside(self) -> int:
        """How many wait here now."""
        return len(self.came) - len(self.left) - len(self.turned_away)

    async def wait(self, who: Any = None) -> None:
        """Wait here, as an async activity does."""
        self.came.append(who)
        try:
            while not self._open.is_set():
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.turned_away.append(who)
            raise
        self.left.append(who)

    def block(self, who: Any = None) -> None:
        """Wait here, as an activity in a thread does."""
        self.came.append(who)
        assert self._open.wait(PATIENCE), "the door was never opened"
        self.left.append(who)


async def find_events(engine: Engine, target: str, kind: type[E]) -> list[E]:
    """The events of one kind in an execution's history."""
    return [one.event for one in (await engine.history(target)).events if type(one.event) is kind]
