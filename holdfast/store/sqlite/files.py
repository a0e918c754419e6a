"""A database file that others may own, to be read: nothing is locked for long, nothing is written."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from holdfast.errors import NewerDatabase, NotOurDatabase, OlderDatabase, StoreUnavailable
from holdfast.store.sqlite.failures import translate
from holdfast.store.sqlite.opening import APPLICATION_ID, connect_reader, list_migrations, require_file
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.store import SqliteStore

T = TypeVar("T")


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
        try:
            with closing(connect_reader(self.path)) as connection:
                return work(connection)
        except sqlite3.Error as error:
            raise translate(error, "read", self.path) from error

    async def _read_in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, self._read, work)

    def _require_writer(self) -> None:  # type: ignore[override]  # nothing that needs a writer works here
        raise StoreUnavailable(f"Expected to write to '{self.path}', but it was opened for reading. Open the store itself.")
