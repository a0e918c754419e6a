"""A database file that others may own, to be read: nothing is locked for long, nothing is written."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import closing
from typing import Final, TypeVar

from holdfast.core.instants import Instant
from holdfast.errors import NewerDatabase, NotOurDatabase, OlderDatabase, StoreUnavailable
from holdfast.store.rows import RequestKeyId, RequestRow
from holdfast.store.sqlite.failures import primary_code, translate
from holdfast.store.sqlite.log_files import LogFile
from holdfast.store.sqlite.opening import (
    APPLICATION_ID,
    connect_reader,
    connect_unchanging,
    list_migrations,
    require_file,
)
from holdfast.store.sqlite.reads import find_requests
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.store import SqliteStore

T = TypeVar("T")

PATIENCE: Final = 5.0
"""Seconds for which a read is tried while an owner opens, recovers or closes the file, when it lets nobody else in."""
_PAUSE: Final = 0.02
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_NO_LOG_CAN_BE_MADE: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""How SQLite says that it cannot make the log and its index, without which it reads no database of this kind."""


class SqliteFile(SqliteStore):
    """The reading half of a SQLite store, without owning the file: it sees what is committed, whoever writes.

    Each read has a connection of its own. Everything that writes raises StoreUnavailable.
    """

    async def open(self) -> None:
        """See that the file is a database that can be read. Raises a StoreError that says what is wrong."""
        await self.open_existing()

    async def open_existing(self, *, upgrade: bool = False) -> None:
        """See that the file is a database that can be read. Raises a StoreError that says what is wrong."""
        require_file(self.path)
        self._read(self._check)

    async def close(self) -> None:
        """There is nothing to close: no connection outlives its read."""

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        """What was answered to those of these keyed requests that have not expired."""
        return await self._read_in_thread(lambda db: find_requests(db, keys, now))

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute(SQL["read_application_id"]).fetchone()
        if application != APPLICATION_ID:
            raise NotOurDatabase(
                f"Expected '{self.path}' to be a Holdfast database, but it is one of another application. Name another file."
            )
        (version,) = connection.execute(SQL["read_schema_version"]).fetchone()
        newest = list_migrations()[-1][0]
        if version > newest:
            raise NewerDatabase(
                f"Expected '{self.path}' to have schema {newest} or older, but it has schema {version}: a newer Holdfast "
                "wrote it. Use that version."
            )
        if version < newest:
            raise OlderDatabase(
                f"Expected '{self.path}' to have schema {newest}, but it has schema {version}: an older Holdfast wrote it. "
                "Open it once with an engine of this version, which brings it up to date."
            )

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                with closing(connect_reader(self.path)) as connection:
                    connection.execute(SQL["begin_reading"])  # all of it at one moment, whoever writes meanwhile
                    return work(connection)
            except sqlite3.Error as error:
                code = primary_code(error)
                if code in _NO_LOG_CAN_BE_MADE and not LogFile(self.path).read_size():
                    return self._read_unchanging(work)
                if code not in _BUSY or time.monotonic() > give_up:
                    raise translate(error, "read", self.path) from error
            time.sleep(_PAUSE)

    def _read_unchanging(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read where SQLite cannot make its files beside the database: there is no log, so the file itself is whole."""
        try:
            with closing(connect_unchanging(self.path)) as connection:
                return work(connection)
        except sqlite3.Error as error:
            raise translate(error, "read", self.path) from error

    async def _read_in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, self._read, work)

    def _require_writer(self) -> None:  # type: ignore[override]  # nothing that needs a writer works here
        raise StoreUnavailable(f"Expected to write to '{self.path}', but it was opened for reading. Open the store itself.")
