"""The one way to write: one transaction at a time, committed where that disturbs least."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final, Protocol

from holdfast.errors import StoreUnavailable
from holdfast.store.sqlite.checkpoints import Checkpoints
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.failures import SHORTAGES, primary_code, translate, translate_os
from holdfast.store.sqlite.in_flight import InFlightFile
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.writer_cache import StoredCounters, WriterCache

QUICK: Final = 0.001
"""Commits that take less, in seconds, are made in the loop's own thread: handing them to another costs about as much."""
_WEIGHT: Final = 0.2
"""How much the last commit counts in the moving average."""
_ATTEMPTS: Final = 50
_PAUSE: Final = 0.05


class Doubtful(Protocol):
    """A transaction that may have taken place."""

    def find_outcome(self, connection: sqlite3.Connection) -> None:
        """Look into the database, which has been opened anew."""
        ...


class Writer:
    """The right to write, which one transaction has at a time, with what it needs; others wait for it."""

    def __init__(self, connections: Connections, writer_cache: WriterCache, in_flight: InFlightFile) -> None:
        self.connections = connections
        self.writer_cache = writer_cache
        self.in_flight = in_flight
        self.threads = ThreadPoolExecutor(3, thread_name_prefix="holdfast-sqlite")
        """One each for the commit, the checkpoint and a read; they start when needed."""
        self._lock = asyncio.Lock()
        self._checkpoints = Checkpoints(connections, self._lock, self.threads)
        self._is_closing = False
        self._doubtful: Doubtful | None = None
        self._average = 0.0
        self._was_full = False

    # --- in and out ---

    async def enter(self) -> None:
        """Wait for one's turn, then begin a transaction."""
        await self._wait()
        try:
            await self._begin(self.connections.writer)
        except BaseException:
            self._lock.release()
            raise

    async def enter_with_user_connection(self) -> sqlite3.Connection:
        """Wait for one's turn, then begin a transaction on a connection of its own, which is closed at its end."""
        await self._wait()
        user_connection: sqlite3.Connection | None = None
        try:
            user_connection = self.connections.connect_user()
            await self._begin(user_connection)
        except BaseException as error:
            if user_connection is not None:
                user_connection.close()
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise translate(error, "write to", self.connections.path) from error
            raise
        return user_connection

    async def _wait(self) -> None:
        await self._lock.acquire()
        while self._checkpoints.is_behind:
            self._lock.release()
            await self._checkpoints.finish()
            await self._lock.acquire()
        try:
            if self._is_closing:
                raise StoreUnavailable(f"Expected to write to '{self.connections.path}', but the store is being closed.")
            if self._was_full and self._doubtful is None:
                self._was_full = False
                await self._checkpoints.make_room()
            self._reopen()
        except BaseException:
            self._lock.release()
            raise

    def leave(self, doubtful: Doubtful | None = None) -> None:
        """The transaction has ended; if that is doubtful, it is found out before the next one begins."""
        self._doubtful = doubtful
        self._lock.release()

    async def settle(self) -> None:
        """Find out about whoever is doubtful. Raises StoreUnavailable if the database cannot tell yet."""
        async with self._lock:
            self._reopen()

    async def close(self) -> None:
        """Wait for what is under way, let nobody in any more, and disconnect."""
        self._is_closing = True
        await self._checkpoints.finish()
        async with self._lock:
            await asyncio.get_running_loop().run_in_executor(self.threads, self.connections.close)
        self.threads.shutdown()

    async def _begin(self, connection: sqlite3.Connection) -> None:
        """Other programs may hold the database for a moment; the loop does not stand still for that."""
        for attempt in range(_ATTEMPTS):
            try:
                if self.connections.room.is_little:
                    self.connections.room.limit(connection)
                connection.execute(SQL["begin"])
                return
            except OSError as error:
                raise translate_os(error, "look at", self.connections.path) from error
            except sqlite3.Error as error:
                if primary_code(error) != sqlite3.SQLITE_BUSY or attempt == _ATTEMPTS - 1:
                    raise translate(error, "write to", self.connections.path) from error
            await asyncio.sleep(_PAUSE)

    # --- the end of a transaction ---

    @property
    def is_quick(self) -> bool:
        """Whether commits are short enough for the loop to wait for them."""
        return self._average < QUICK

    def commit(self, user_connection: sqlite3.Connection | None = None) -> sqlite3.Error | None:
        """Commit, in whatever thread; what went wrong, if anything."""
        begun = perf_counter()
        try:
            (user_connection or self.connections.writer).execute(SQL["commit"])
        except sqlite3.Error as error:
            return error
        self._average += (perf_counter() - begun - self._average) * _WEIGHT
        return None

    def note_commit(self) -> None:
        """After the commit, in the loop's thread."""
        self._checkpoints.note_commit()

    def note_failure(self, error: sqlite3.Error) -> None:
        """A transaction failed. If the disk was full, there is made room before the next one, as far as that is possible."""
        if primary_code(error) in SHORTAGES:
            self._was_full = True
            self.connections.room.look()

    def roll_back(self) -> None:
        """Never raises: what cannot be rolled back is not committed either, and goes with the connection."""
        try:
            if self.connections.writer.in_transaction:
                self.connections.writer.execute(SQL["rollback"])
        except (sqlite3.Error, StoreUnavailable):
            self.connections.close()

    # --- doubt ---

    def learn(self) -> None:
        """Read what the only writer keeps in memory."""
        counters = self.connections.writer.execute(SQL["read_counters"]).fetchone()
        self.writer_cache.learn(StoredCounters(*counters))

    def _require_durable(self) -> None:
        """What is read from the log now may never have reached the disk: move it into the file, or have it fail again."""
        try:
            is_empty = self.connections.empty_log()
        except OSError as error:
            raise translate_os(error, "move the log into", self.connections.path) from error
        if not is_empty:
            raise StoreUnavailable(
                f"Expected to move the log into '{self.connections.path}' after a failed commit, but others read from it. "
                "Try again; end other programs that have the file open."
            )

    def _reopen(self) -> None:
        """Open the database again, as after a crash, if a commit is in doubt or the connections are lost."""
        if self._doubtful is None and self.connections.are_open:
            return
        self.connections.close()
        self.connections.open()
        try:
            self._require_durable()
            self.learn()
            if self._doubtful is not None:
                self._doubtful.find_outcome(self.connections.writer)
        except BaseException as error:
            self.connections.close()  # so that the next one tries again
            if isinstance(error, sqlite3.Error):
                raise translate(error, "read", self.connections.path) from error
            raise
        self._doubtful = None
