"""A door that holds activities until a test lets them go on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.eventually import PATIENCE


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

    def begin_anew(self) -> None:
        """Let nobody through, and forget who came before: each test begins so."""
        self.shut()
        for noted in (self.came, self.left, self.turned_away):
            noted.clear()

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
