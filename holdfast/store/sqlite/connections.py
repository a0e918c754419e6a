"""The connections of an open store: one that writes, one that reads, and others for a moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.errors import StoreUnavailable
from holdfast.store.sqlite.disk_room import DiskRoom
from holdfast.store.sqlite.failures import SHORTAGES, primary_code, translate
from holdfast.store.sqlite.log_files import LogFile
from holdfast.store.sqlite.opening import connect_checkpointer, connect_reader, connect_user, connect_writer
from holdfast.store.sqlite.statements import SQL


class Connections:
    """What is open on one database file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_file = LogFile(path)
        self.room = DiskRoom(path)
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    @property
    def are_open(self) -> bool:
        """Whether the database is open: its writing connection exists."""
        return self._writer is not None

    @property
    def writer(self) -> sqlite3.Connection:
        """Sees what its own transaction has not committed yet."""
        if self._writer is None:
            raise self._closed()
        return self._writer

    @property
    def reader(self) -> sqlite3.Connection:
        """Sees what is committed, for reads that take microseconds."""
        if self._reader is None:
            raise self._closed()
        return self._reader

    def connect_for_thread(self) -> sqlite3.Connection:
        """A new connection that reads, for use in another thread; the caller closes it."""
        if self._writer is None:
            raise self._closed()
        return connect_reader(self.path)

    def connect_user(self) -> sqlite3.Connection:
        """A new connection for the statements of a user's transaction; closed at its end."""
        if self._writer is None:
            raise self._closed()
        return connect_user(self.path)

    def make_checkpoint(self) -> bool:
        """Move what is committed from the log into the file, whatever thread this is; whether that was all."""
        with closing(connect_checkpointer(self.path)) as connection:
            _, in_log, moved = connection.execute(SQL["checkpoint"]).fetchone()
            return bool(in_log == moved)

    def empty_log(self) -> bool:
        """Move the whole log into the file, and give the log's room back; whether no reader stood in the way.

        If the disk has no room for that, what a failed transaction left in the log is given back first.
        """
        with closing(connect_checkpointer(self.path)) as connection:
            try:
                return _empty_log(connection)
            except sqlite3.Error as error:
                if primary_code(error) not in SHORTAGES:
                    raise
            connection.execute(SQL["begin"])  # nobody writes meanwhile, other programs included
            try:
                self.log_file.cut()
            finally:
                connection.execute(SQL["rollback"])
            return _empty_log(connection)

    def open(self, *, upgrade: bool = True) -> None:
        """Connect, and migrate what is older. Raises OlderDatabase instead if it is not to be upgraded."""
        try:
            self._writer = connect_writer(self.path, upgrade=upgrade)
            self._reader = connect_reader(self.path)
        except sqlite3.Error as error:
            self.close()
            raise translate(error, "open", self.path) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The writer last: whoever closes last tidies up the log, which a reader cannot. Idempotent, never raises."""
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if reader is not None:
            reader.close()
        if writer is not None:
            try:
                if writer.in_transaction:
                    writer.execute(SQL["rollback"])
                writer.execute(SQL["checkpoint_and_truncate"])
            except sqlite3.Error:
                pass  # the log stays, and is read when the database is opened again
            writer.close()

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"Expected to reach the database '{self.path}', but it is not open. Open the store first.")


def _empty_log(connection: sqlite3.Connection) -> bool:
    (is_busy, *_) = connection.execute(SQL["checkpoint_and_truncate"]).fetchone()
    return not is_busy
