"""Moving what the log holds into the database file, beside the loop instead of within some unlucky commit.

Others may write meanwhile. What they append is moved in a second, short step that keeps them out: only a log that has been
moved whole begins anew, and does not grow for ever.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from concurrent.futures import Executor
from typing import Final

from holdfast.store.sqlite.connections import Connections

EVERY: Final = 10_000
"""So many pages begin a checkpoint: at most 40 MB of log, by an estimate that is rather too high."""
_PAGES_OF_A_COMMIT: Final = 6
"""What it writes beside a page for each changed row: the ends of tables and indexes, in which it makes no other changes."""

_log: Final = logging.getLogger("holdfast.store")


class Checkpoints:
    """Makes checkpoints in another thread, whenever enough was written."""

    def __init__(self, connections: Connections, lock: asyncio.Lock, threads: Executor) -> None:
        self._connections = connections
        self._lock = lock
        self._threads = threads
        self._changes_before = 0
        self._pages = 0
        self._task: asyncio.Task[None] | None = None

    def note(self, total_changes: int) -> None:
        """A transaction of the writer's is committed; so many rows have changed on its connection."""
        changes = max(total_changes - self._changes_before, 0)
        self._changes_before = total_changes
        self.note_changes(changes)

    def note_changes(self, rows: int) -> None:
        """A transaction that changed so many rows is committed."""
        self._pages += rows + _PAGES_OF_A_COMMIT
        if self._pages >= EVERY and self._task is None:
            self._pages = 0
            self._task = asyncio.get_running_loop().create_task(self._make())

    async def finish(self) -> None:
        """Wait for what is under way."""
        if self._task is not None:
            await self._task

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._connections.make_checkpoint)
            async with self._lock:
                await loop.run_in_executor(self._threads, self._connections.make_checkpoint)
        except sqlite3.Error as error:
            # Nothing is lost: the log holds it, and the next attempt, or the next commit, meets the same trouble.
            _log.warning("could not make a checkpoint of '%s', and try again later: %s", self._connections.path, error)
        finally:
            self._task = None
