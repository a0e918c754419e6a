"""Runs coroutines on one database in an order that somebody else chooses, one wait at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.store.memory.database import MemoryDatabase


class Interleaver:
    """Whoever waits for the database waits here, until `choose` picks it out of those that wait."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.database = MemoryDatabase(self._wait)
        self._choose = choose
        self._waiting: list[asyncio.Future[None]] = []
        self._is_running = False

    async def _wait(self, _point: str) -> None:
        if self._is_running:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    async def run(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run them all; what each returned, in their order."""
        self._is_running = True
        tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
        while not all(task.done() for task in tasks):
            for _ in range(4 * len(tasks)):
                await asyncio.sleep(0)  # everybody who can go on does, up to the next wait
            if self._waiting:
                self._waiting.pop(self._choose(len(self._waiting))).set_result(None)
            else:
                assert all(task.done() for task in tasks), "they wait for each other"
        self._is_running = False
        return [task.result() for task in tasks]
