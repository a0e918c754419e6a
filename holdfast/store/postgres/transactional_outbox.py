"""Envelopes that commit with a transaction of the user's: one INSERT on the user's own connection, whatever drives it.

The statement takes no lock that a batch could meet, and sees nothing of other tables: it works in every isolation level, and
however long the user's transaction stays open, nobody waits for it. Drivers are told by the modules that their classes are
of, and loaded by whoever made the connection, never from here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.errors import InvalidArguments, NotOurDatabase, StoreError, StoreUnavailable
from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.statements import statements_for
from holdfast.store.postgres.wakeups import name_channel
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.store.postgres.urls import DatabaseAddress

Enlist: TypeAlias = Callable[[Any, str, Sequence[Any]], Awaitable[None]]
"""Runs a statement, written with $1, $2 and so on, with its values on one kind of connection."""

_PLACEHOLDER: Final = re.compile(r"\$(\d+)")


async def enlist(connection: Any, address: DatabaseAddress, rows: Sequence[InboxRow]) -> None:
    """Put rows into the inbox by the connection's own transaction, and wake the nodes when it commits."""
    connection = unwrap_django(connection)
    run = _find_family(connection)
    statement = statements_for(address.schema)["enlist"]
    channel = name_channel(address.schema, WakeReason.WORK)
    for row in rows:
        values = (row.org, row.execution_id, row.workflow_id, row.body, row.attempts, row.route, row.at, channel)
        try:
            await run(connection, statement, values)
        except InvalidArguments:
            raise
        except Exception as error:
            raise _explain(error, address) from error


# --- one function per family of drivers ---


async def _by_asyncpg(connection: Any, statement: str, values: Sequence[Any]) -> None:
    await connection.fetch(statement, *values)


async def _by_psycopg_async(connection: Any, statement: str, values: Sequence[Any]) -> None:
    await connection.execute(_as_percents(statement), _name_values(values))


async def _by_psycopg(connection: Any, statement: str, values: Sequence[Any]) -> None:
    await _in_thread(lambda: connection.execute(_as_percents(statement), _name_values(values)))


async def _by_sqlalchemy_async(connection: Any, statement: str, values: Sequence[Any]) -> None:
    # A session is asked for its connection: by itself it would first flush what it holds, which is for its user to say.
    if _is_of(connection, "sqlalchemy", ("AsyncSession", "async_scoped_session")):
        connection = await connection.connection()
    _require_postgres(connection)
    await connection.execute(_as_text(statement), _name_values(values))


async def _by_sqlalchemy(connection: Any, statement: str, values: Sequence[Any]) -> None:
    if _is_of(connection, "sqlalchemy", ("scoped_session",)):
        connection = connection()  # that of this thread
    if _is_of(connection, "sqlalchemy", ("Session",)):
        connection = connection.connection()
    _require_postgres(connection)
    await _in_thread(lambda: connection.execute(_as_text(statement), _name_values(values)))


FAMILIES: Final[Mapping[tuple[str, str], Enlist]] = {
    ("asyncpg", "Connection"): _by_asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _by_asyncpg,
    ("psycopg", "AsyncConnection"): _by_psycopg_async,
    ("psycopg", "Connection"): _by_psycopg,
    ("sqlalchemy", "AsyncConnection"): _by_sqlalchemy_async,
    ("sqlalchemy", "AsyncSession"): _by_sqlalchemy_async,
    ("sqlalchemy", "async_scoped_session"): _by_sqlalchemy_async,
    ("sqlalchemy", "Connection"): _by_sqlalchemy,
    ("sqlalchemy", "Session"): _by_sqlalchemy,
    ("sqlalchemy", "scoped_session"): _by_sqlalchemy,
}
"""By the package and the name of a class, or of one that it inherits from."""


def _find_family(connection: Any) -> Enlist:
    for cls in type(connection).__mro__:
        family = FAMILIES.get((cls.__module__.partition(".")[0], cls.__name__))
        if family is not None:
            return family
    if _is_of(connection, "psycopg2", ("connection",)):
        raise InvalidArguments(
            "Expected connection=… to be driven by psycopg 3, but it is of psycopg2. Install psycopg 3 (`pip install "
            "psycopg`): Django and SQLAlchemy use it then."
        )
    raise InvalidArguments(
        "Expected connection=… to be a connection of asyncpg, psycopg 3 or Django, or a connection or session of "
        f"SQLAlchemy, but it is {type(connection).__module__}.{type(connection).__qualname__}. Pass the one in "
        "whose transaction this is to happen."
    )


# --- parts ---


def unwrap_django(connection: Any) -> Any:
    """The driver's connection of Django's own; any other as it is. Raises InvalidArguments if it cannot be used here.

    `django.db.connection` stands for the connection of whatever thread asks, so it is refused: `SyncClient` unwraps it in
    the thread that calls.
    """
    if _is_of(connection, "django", ("ConnectionProxy",)):
        raise InvalidArguments(
            "Expected connection=… to be one connection, but django.db.connection is another one in each thread. Pass "
            "connection.connection, taken in the thread of its transaction, or use a SyncClient there."
        )
    if not _is_of(connection, "django", ("BaseDatabaseWrapper",)):
        return connection
    if connection.vendor != "postgresql":
        raise InvalidArguments(
            f"Expected connection=… to lead to PostgreSQL, where the engine is, but it leads to {connection.vendor}. "
            "Pass a connection to the engine's own database."
        )
    if connection.connection is None or connection.autocommit:
        raise InvalidArguments(
            "Expected connection=… to be in a transaction, but Django has not begun one. Call this within "
            "`with transaction.atomic():`."
        )
    return connection.connection


def _is_of(connection: Any, package: str, names: Sequence[str]) -> bool:
    return any(cls.__module__.partition(".")[0] == package and cls.__name__ in names for cls in type(connection).__mro__)


def _name_values(values: Sequence[Any]) -> dict[str, Any]:
    return {f"p{number}": value for number, value in enumerate(values, 1)}


def _as_percents(statement: str) -> str:
    return _PLACEHOLDER.sub(r"%(p\1)s", statement.replace("%", "%%"))


def _as_text(statement: str) -> Any:
    import sqlalchemy  # noqa: PLC0415 - the user has loaded it

    return sqlalchemy.text(_PLACEHOLDER.sub(r":p\1", statement.replace(":", r"\:")))


def _require_postgres(connection: Any) -> None:
    name = connection.dialect.name
    if name != "postgresql":
        raise InvalidArguments(
            f"Expected connection=… to lead to PostgreSQL, where the engine is, but it leads to {name}. "
            "Pass a connection to the engine's own database."
        )


async def _in_thread(call: Callable[[], Any]) -> None:
    """A connection that blocks does so elsewhere. The call ends before its caller goes on, also if that is cancelled."""
    future = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


# --- what went wrong ---


def _explain(error: Exception, address: DatabaseAddress) -> StoreError:
    """What the driver raised, with what to do about it."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    state = _find_state(error)
    inbox = f"{address.schema}.inbox"
    begin = f"Expected to write to {inbox} by the connection that was given, but"
    if state in ("42P01", "3F000", "42703"):
        return NotOurDatabase(
            f"{begin} its database has no such table, or another one ({said}). Pass a connection to the engine's own "
            f"database, {address.shown}, and roll back its transaction."
        )
    if state == "42501":
        return StoreError(
            f"{begin} its role may not ({said}). GRANT USAGE ON SCHEMA {address.schema} and INSERT ON {inbox} to it."
        )
    if state == "25006":
        return StoreError(f"{begin} its transaction is read-only ({said}). Begin one that may write.")
    if state == "25P02":
        return StoreError(f"{begin} its transaction has failed before ({said}). Roll it back, and do all of it again.")
    if state is None or state[:2] in ("08", "53", "57"):
        return StoreUnavailable(f"{begin} {said}. Nothing was stored; roll back, and try again on a sound connection.")
    return StoreError(f"{begin} {said}. Roll back its transaction, and try again.")


def _find_state(error: BaseException | None) -> str | None:
    """The SQLSTATE that an error carries, or one that it was made of."""
    seen = 0
    while error is not None and seen < 5:
        state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if isinstance(state, str):
            return state
        error, seen = getattr(error, "orig", None) or error.__cause__, seen + 1
    return None
