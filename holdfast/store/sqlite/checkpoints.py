"""Moving what the log holds into the database file, beside the loop instead of within some unlucky commit.

Others may write meanwhile. What they append is moved in a second, short step that keeps them out: only a log that has been
moved whole begins anew, and does not grow for ever.

How long the log gets
---------------------
A checkpoint begins when the log has `BEGIN_AT` bytes, and writers wait for its end when it has `MOST`. So the log has at
most `MOST` bytes and what one transaction writes. Two things make it longer: a program that reads from the file for long,
since what it may still read cannot be moved; and a disk that does not take what is moved.

On a small disk
---------------
To move the log takes room in the database file, at most as much as the log has. If the disk has no more than twice of that
left, it is moved at once, writers wait, and its file is given back: the log does not take the room that its content needs.
What a transaction wrote for which there was no room is given back before the next one begins (`make_room`). See also
`disk_room`, which keeps the last room free.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from concurrent.futures import Executor
from typing import Final

from holdfast.log_events import LogEvent, tag
from holdfast.store.sqlite.connections import Connections

MEGABYTE: Final = 1 << 20
BEGIN_AT: Final = 32 * MEGABYTE
"""How many bytes of log begin a checkpoint; SQLite's `journal_size_limit` in `queries.sql` is the same."""
MOST: Final = 40 * MEGABYTE
"""With how many bytes of log writers wait until the checkpoint that is under way has ended."""
STEP: Final = MEGABYTE
"""By how much the log grows before a checkpoint is tried again that could not move all of it."""

_log: Final = logging.getLogger("holdfast.store")


class Checkpoints:
    """Makes checkpoints in another thread, whenever the log is long, or too long for the room that is left."""

    def __init__(self, connections: Connections, lock: asyncio.Lock, threads: Executor) -> None:
        self._connections = connections
        self._file = connections.log_file
        self._lock = lock
        self._threads = threads
        self._size = 0
        """The size of the log's file after the last commit."""
        self._tried_at = 0
        """The size at which a checkpoint could not move all of it; 0 if the last one did."""
        self._is_short = False
        """Whether the disk had little more room than the log needs when the last checkpoint began."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether writers should wait until the checkpoint that is under way has ended."""
        return self._task is not None and (self._is_short or self._size >= MOST)

    def note_commit(self) -> None:
        """Begin a checkpoint if the transaction that was committed made the log too long."""
        before, self._size = self._size, self._file.read_size()
        if self._size < before:
            self._tried_at = 0  # it began anew
        if self._size <= before or self._task is not None or (self._tried_at and self._size < self._tried_at + STEP):
            return
        self._is_short = 2 * self._size > self._connections.room.look()
        if self._size > BEGIN_AT or self._is_short:
            self._task = asyncio.get_running_loop().create_task(self._make())

    async def finish(self) -> None:
        """Wait for what is under way."""
        if self._task is not None:
            await self._task

    async def make_room(self) -> None:
        """Move the log and give its file back, as far as possible: the disk was full. The caller keeps others out."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._connections.empty_log)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._connections.make_checkpoint)
            async with self._lock:
                self._is_short = self._is_short or 2 * self._size > self._connections.room.look()
                work = self._connections.empty_log if self._is_short else self._connections.make_checkpoint
                has_moved_all = await loop.run_in_executor(self._threads, work)
            self._tried_at = 0 if has_moved_all else self._size
        except (sqlite3.Error, OSError) as error:
            # Nothing is lost: the log holds it, and the next attempt, or the next commit, meets the same trouble.
            self._tried_at = self._size
            self._warn(error)
        finally:
            self._task = None

    def _warn(self, error: Exception) -> None:
        _log.warning(
            "could not make a checkpoint of '%s', and try again later: %s",
            self._connections.path,
            error,
            extra=tag(LogEvent.CHECKPOINT_FAILED),
        )
