"""From a path to connections on a database of ours at the present schema; or an error, and the file as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias

from holdfast.errors import CorruptStore, DatabaseNotFound, NewerDatabase, NotOurDatabase, OlderDatabase, StoreUnavailable
from holdfast.store.sqlite.failures import translate_os
from holdfast.store.sqlite.log_files import LogFile
from holdfast.store.sqlite.statements import SQL

APPLICATION_ID: Final = 0x686F6C64
OLDEST_SQLITE: Final = (3, 37, 0)
"""The oldest version of SQLite that is supported: the first with STRICT tables."""

_HEADER: Final = b"SQLite format 3\0"
_FOLDER: Final = files("holdfast.store.sqlite")


Migration: TypeAlias = tuple[int, str]
"""The number of a migration, and its script."""


def list_migrations() -> list[Migration]:
    """The migrations in the order of their numbers."""
    found = [file for file in _FOLDER.joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.split("_")[0]), file.read_text("utf-8")) for file in found)


def read_schema() -> str:
    """The script that makes a whole new database."""
    return _FOLDER.joinpath("schema.sql").read_text("utf-8")


# --- the file -------------------------------------------------------------------------------------------------------------


def prepare_file(path: Path) -> None:
    """See that there is a database of ours at `path`; whatever else is there stays untouched.

    To be called by its owner, and before any connection is made: closing a file drops the locks that SQLite has on it.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnavailable(
            f"Expected SQLite {'.'.join(map(str, OLDEST_SQLITE))} or newer, but Python was built with "
            f"{sqlite3.sqlite_version}. Use a newer Python."
        )
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        head = b""
    except IsADirectoryError as error:
        raise NotOurDatabase(
            f"Expected '{path}' to be a Holdfast database, but it is a folder. Name a file in it."
        ) from error
    except OSError as error:
        raise translate_os(error, "read the database", path) from error
    if not head:
        _refuse_lone_log(path)
        _create(path)
    elif not head.startswith(_HEADER):
        raise _not_ours(path, "no SQLite database at all")
    elif int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise _not_ours(path, "an SQLite database of another application")


def require_file(path: Path) -> None:
    """See that there is something at `path`. Raises DatabaseNotFound."""
    if not path.exists():
        raise DatabaseNotFound(
            f"Expected a database at '{path}', but there is none. Check the path; the first engine makes it."
        )
    if path.is_file() and not path.stat().st_size:
        raise DatabaseNotFound(f"Expected a database at '{path}', but the file is empty. Check the path.")


def _not_ours(path: Path, what: str) -> NotOurDatabase:
    return NotOurDatabase(
        f"Expected '{path}' to be a Holdfast database, but it is {what}. Name another file; this one was left as it is."
    )


def _refuse_lone_log(path: Path) -> None:
    """A log without its database: SQLite would add what it holds to the new one."""
    log_file = LogFile(path)
    if log_file.read_size():
        raise CorruptStore(
            f"Expected to create the database '{path}', but the log '{log_file.path.name}' of an earlier one is there, "
            "which did not end cleanly. Put that one back; or remove the log, with all that it holds."
        )


def _create(path: Path) -> None:
    """Make it aside and move it into place, so that nobody ever finds half a database."""
    new = path.with_name(path.name + ".new")
    try:
        for leftover in ("", "-journal", "-wal", "-shm"):
            new.with_name(new.name + leftover).unlink(missing_ok=True)
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            connection.executescript(f"{SQL['begin']};{read_schema()}{SQL['commit']};")
            connection.execute(SQL["use_write_ahead_log"])
        finally:
            connection.close()
        if path.exists():
            shutil.copymode(path, new)
        new.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise translate_os(error, "create the database", path) from error


def _sync_folder(folder: Path) -> None:
    """A new name is safe when its folder is; systems that cannot sync a folder do it by themselves."""
    if hasattr(os, "O_DIRECTORY"):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


# --- connections ----------------------------------------------------------------------------------------------------------


def connect_writer(path: Path, migrations: Sequence[Migration] | None = None, *, upgrade: bool = True) -> sqlite3.Connection:
    """The one connection that writes. Any thread may use it, one at a time. Migrates what is older, or refuses it."""
    connection = _connect(path, "rw", "writer_settings")
    try:
        _require_log(connection, path)
        _migrate(connection, path, list_migrations() if migrations is None else migrations, upgrade=upgrade)
        _require_rights(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed, and cannot write."""
    return _connect(path, "ro", "reader_settings")


def connect_unchanging(path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody writes to, in a folder to which nothing can be written: no lock, no log."""
    return _connect(path, "ro&immutable=1", "reader_settings")


def connect_user(path: Path) -> sqlite3.Connection:
    """A connection for a user's own statements, as durable as the writer's."""
    return _connect(path, "rw", "writer_settings")


def connect_checkpointer(path: Path) -> sqlite3.Connection:
    """A connection that moves what the log holds into the file, and does nothing else."""
    return _connect(path, "rw", "checkpointer_settings")


def _connect(path: Path, mode: str, settings: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,  # no transaction but those that we begin
        cached_statements=512,
        check_same_thread=False,
    )
    try:
        connection.executescript(SQL[settings])
    except BaseException:
        connection.close()
        raise
    return connection


def _require_log(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute(SQL["use_write_ahead_log"]).fetchone()
    if mode != "wal":
        raise StoreUnavailable(
            f"Expected to write '{path}' ahead to a log, but SQLite can only use '{mode}' there. "
            "Name a file on a local disk, not on a network drive."
        )


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration], *, upgrade: bool) -> None:
    """Bring the schema up to date, each step whole or not at all."""
    (version,) = connection.execute(SQL["read_schema_version"]).fetchone()
    newest = migrations[-1][0]
    if version > newest:
        raise NewerDatabase(
            f"Expected '{path}' to have schema {newest} or older, but it has schema {version}: a newer Holdfast wrote it. "
            "Use that version, or restore the copy from before the upgrade."
        )
    if version < newest and not upgrade:
        raise OlderDatabase(
            f"Expected '{path}' to have schema {newest}, but it has schema {version}: an older Holdfast wrote it. "
            "Open it once with an engine of this version, which brings it up to date."
        )
    for number, script in migrations:
        if number > version:
            try:
                connection.executescript(f"{SQL['begin']};{script}{SQL['commit']};")
            except BaseException:
                if connection.in_transaction:
                    connection.execute(SQL["rollback"])
                raise


def _require_rights(connection: sqlite3.Connection) -> None:
    """Write something: on a file without the right to write, SQLite opens and begins transactions as if all were well."""
    connection.execute(SQL["begin"])
    try:
        connection.execute(SQL["remove_nodes"], ("[]",))
    finally:
        if connection.in_transaction:
            connection.execute(SQL["rollback"])
