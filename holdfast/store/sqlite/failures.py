"""What SQLite and the file system report, in our own words."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holdfast.errors import CorruptStore, NotOurDatabase, StoreError, StoreFault, StoreUnavailable

_RETRY: Final = "Try again; if it goes on, run `holdfast check`"

_MEANINGS: Final[Mapping[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_READONLY: (
        StoreUnavailable,
        "Give this user the right to write to the file and its folder, or name another file",
    ),
    sqlite3.SQLITE_PERM: (StoreUnavailable, "Give this user the right to write to the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "See that the folder exists and that this user may write to it"),
    sqlite3.SQLITE_FULL: (StoreUnavailable, "Nothing was written. Make room on the disk, then go on"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "Look at the disk and its free space; what is committed is safe"),
    sqlite3.SQLITE_BUSY: (StoreUnavailable, "Another program has the file open and is writing to it: end that program"),
    sqlite3.SQLITE_LOCKED: (StoreUnavailable, _RETRY),
    sqlite3.SQLITE_NOMEM: (StoreUnavailable, "Give the process more memory"),
    sqlite3.SQLITE_CORRUPT: (CorruptStore, "Run `holdfast check` to see what is damaged, or restore a copy"),
    sqlite3.SQLITE_NOTADB: (NotOurDatabase, "Name another file; this one was left as it is"),
}

SHORTAGES: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM})
"""Codes of what a smaller write may not meet."""

_ERRNO_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOENT: "Create the folder first, or correct the path",
    errno.ENOTDIR: "Correct the path: a part of it is a file",
    errno.EACCES: "Give this user the right to write to the file and its folder, or name another file",
    errno.EPERM: "Give this user the right to write to the file and its folder, or name another file",
    errno.EROFS: "Name a file on a disk that can be written to",
    errno.ENOSPC: "Make room on the disk",
    errno.ENOLCK: "Name a file on a local disk: this one's has no locks",
    errno.EOPNOTSUPP: "Name a file on a local disk: this one's has no locks",
}

CERTAINLY_NOT_COMMITTED: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY})
"""Codes with which a COMMIT fails before its last page is written; after any other it may yet be found in the log."""


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 if the driver itself complains."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_database_error(error: sqlite3.Error) -> bool:
    """Whether the database is to blame, rather than the statement."""
    return primary_code(error) in _MEANINGS


def translate(error: sqlite3.Error, doing: str, path: Path) -> StoreError:
    """The StoreError for an error of SQLite."""
    code = primary_code(error)
    kind, remedy = _MEANINGS.get(code, (StoreError, _RETRY))
    message = f"Expected to {doing} '{path}', but SQLite says: {error}. {remedy}."
    return StoreUnavailable(message, fault=StoreFault.SHORTAGE) if code in SHORTAGES else kind(message)


def translate_os(error: OSError, doing: str, path: Path) -> StoreUnavailable:
    """The StoreUnavailable for an error of the file system."""
    remedy = _ERRNO_REMEDIES.get(error.errno or 0, "Look at the disk and its free space")
    reason = (error.strerror or str(error)).lower()
    message = f"Expected to {doing} '{path}', but the system says: {reason}. {remedy}."
    return StoreUnavailable(message, fault=StoreFault.SHORTAGE)
