"""User transactions: a user's function runs in a transaction of the store.

It gets a connection for itself, while no other transaction is under way: whatever it does to that, ours stay as they are.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, Final, TypeVar

from holdfast.errors import InvalidArguments, StoreError
from holdfast.store.contract import UserFunction
from holdfast.store.once import Once, done_before, not_wanted
from holdfast.store.rows import InboxRow
from holdfast.store.sqlite.failures import is_database_error, translate
from holdfast.store.sqlite.opening import read_schema
from holdfast.store.sqlite.queues import put_inbox, put_requests
from holdfast.store.sqlite.reads import find_execution, load_history
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.transaction import SqliteTransaction
from holdfast.store.sqlite.writer import Writer
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence

T = TypeVar("T")

OUR_TABLES: Final = frozenset(re.findall(r"^CREATE TABLE (\w+)", read_schema(), re.MULTILINE))

_CHANGES_TABLE: Final[Mapping[int, int]] = {
    sqlite3.SQLITE_INSERT: 0,
    sqlite3.SQLITE_UPDATE: 0,
    sqlite3.SQLITE_DELETE: 0,
    sqlite3.SQLITE_DROP_TABLE: 0,
    sqlite3.SQLITE_ALTER_TABLE: 1,
    sqlite3.SQLITE_CREATE_INDEX: 1,
    sqlite3.SQLITE_DROP_INDEX: 1,
    sqlite3.SQLITE_CREATE_TRIGGER: 1,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: 1,
    sqlite3.SQLITE_CREATE_TEMP_TABLE: 0,
    sqlite3.SQLITE_CREATE_TEMP_VIEW: 0,
}
"""What changes a table, or hides it, and which of its two names is the table's."""
_OF_THE_WHOLE_FILE: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
}
_HARMLESS_PRAGMAS: Final = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
)


class StatementAuthorizer:
    """Looks at each statement before it runs, and remembers why it refused the last one that it did."""

    def __init__(self) -> None:
        self.refusal: str | None = None

    def __call__(self, action: int, first: str | None, second: str | None, _database: str | None, _by: str | None) -> int:
        refusal = self._find_refusal(action, first or "", second or "")
        if refusal is None:
            return sqlite3.SQLITE_OK
        self.refusal = refusal
        return sqlite3.SQLITE_DENY

    def _find_refusal(self, action: int, first: str, second: str) -> str | None:
        if action == sqlite3.SQLITE_TRANSACTION:
            return (
                f"Expected the work to stay within its transaction, but it says {first}. Return to commit, raise to roll "
                "back, and run statements one at a time: executescript() and `with connection` commit by themselves."
            )
        if action in _OF_THE_WHOLE_FILE:
            return (
                f"Expected the work to read and write tables of this database, but it says {_OF_THE_WHOLE_FILE[action]}. "
                "Leave that to a program that runs while Holdfast does not."
            )
        if action == sqlite3.SQLITE_PRAGMA and first.lower() not in _HARMLESS_PRAGMAS:
            return (
                f"Expected the work to leave the settings of the connection alone, but it says PRAGMA {first}. Leave it out."
            )
        table = (first, second)[_CHANGES_TABLE[action]].lower() if action in _CHANGES_TABLE else ""
        if table in OUR_TABLES:
            return (
                f"Expected the work to change tables of its own, but '{table}' is one of Holdfast's. "
                "Use another name for yours, and start, signal or cancel by the engine's methods."
            )
        return None


async def transact(writer: Writer, work: UserFunction[T], once: Once | None) -> T:
    """Do the work, then put its envelopes, then commit."""
    if iscoroutinefunction(work):
        raise _waits(work)
    connection = await writer.enter_with_user_connection()
    transaction = SqliteTransaction(writer, connection)
    rows: list[InboxRow] = []
    try:
        if once is not None:
            _require_new(connection, once)
        result = _do(connection, work, rows)
        if once is not None:
            _require_wanted(connection, once)
    except BaseException as error:
        await transaction.rollback()
        if isinstance(error, sqlite3.Error) and is_database_error(error):
            raise translate(error, "run a user's transaction in", writer.connections.path) from error
        raise
    transaction.run("put envelopes into", lambda db, changes: _put(db, changes, rows, once))
    await transaction.commit()
    return result


def _do(connection: sqlite3.Connection, work: UserFunction[T], rows: list[InboxRow]) -> T:
    guard, is_over = StatementAuthorizer(), False

    def put(row: InboxRow) -> None:
        if is_over:
            raise StoreError("Expected to put an envelope while the work is being done, but it has ended. Put it earlier.")
        rows.append(row)

    connection.isolation_level = "IMMEDIATE"  # what comes after a statement's own rollback would begin anew: that is refused
    connection.set_authorizer(guard)
    try:
        result = work(connection, put)
        if isawaitable(result):
            if iscoroutine(result):
                result.close()
            raise _waits(work)
    except sqlite3.DatabaseError as error:
        if guard.refusal is not None and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_AUTH:
            raise InvalidArguments(guard.refusal) from error
        raise
    finally:
        is_over = True
    _require_open(connection)
    connection.set_authorizer(None)
    connection.row_factory = None
    connection.text_factory = str
    return result


def _put(connection: sqlite3.Connection, changes: Changes, rows: list[InboxRow], once: Once | None) -> None:
    put_inbox(connection, changes, rows)
    if once is not None:
        put_requests(connection, [once.request])
        changes.evidence = CommitEvidence("has_request", _key_of(once), True)


def _require_new(connection: sqlite3.Connection, once: Once) -> None:
    (is_done,) = connection.execute(SQL["has_request"], _key_of(once)).fetchone()
    if is_done:
        raise done_before(once)


def _require_wanted(connection: sqlite3.Connection, once: Once) -> None:
    """Nobody else writes meanwhile, so what is read now holds until the commit."""
    request = once.request
    row = find_execution(connection, request.org, request.execution_id)
    is_open = row is not None and row.closed_at is None
    if not is_open or not once.is_wanted(load_history(connection, request.execution_id, once.after, None)):
        raise not_wanted(once)


def _key_of(once: Once) -> tuple[str, str, str]:
    return once.request.org, once.request.kind, once.request.key


def _require_open(connection: sqlite3.Connection) -> None:
    try:
        is_open = connection.in_transaction
    except sqlite3.ProgrammingError:
        is_open = False
    if not is_open:
        raise InvalidArguments(
            "Expected the work to leave its transaction open, but it closed the connection, or one of its statements "
            "rolled back by itself (OR ROLLBACK). Return to commit, raise to roll back."
        )


def _waits(work: Any) -> InvalidArguments:
    name = getattr(work, "__qualname__", type(work).__name__)
    return InvalidArguments(
        f"Expected work that does not wait for anything, but '{name}' is asynchronous: an SQLite database has one writer, "
        "and everybody would wait with it. Write it with 'def', and do what takes time before."
    )
