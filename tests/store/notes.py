"""A table of a user's own beside those of the store, by whatever connection the store's driver has."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar

from holdfast.store.contract import Store, UserFunction
from holdfast.store.memory.user_transactions import MemoryConnection
from holdfast.store.once import Once
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import InboxRow

T = TypeVar("T")
Put: TypeAlias = Callable[[InboxRow], None]


async def transact(store: Store, work: UserFunction[T], once: Once | None = None) -> T:
    """Work as its store's driver likes it: plain, or async where the driver is."""
    if not isinstance(store, PostgresStore):
        return await store.transact(work, once)

    async def run(connection: Any, put: Put) -> T:
        result = work(connection, put)
        done: T = await result if isawaitable(result) else result
        return done

    return await store.transact(run, once)


class Notes:
    """Names and values in a table."""

    def __init__(self, table: str) -> None:
        self._table = table

    def write(self, connection: Any, name: str, value: str) -> Awaitable[None] | None:
        """Keep a note. To be awaited where the driver is async."""
        if isinstance(connection, MemoryConnection):
            connection.values.setdefault(self._table, {})[name] = value
            return None
        if isinstance(connection, sqlite3.Connection):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} (name text PRIMARY KEY, value text)")
            connection.execute(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", (name, value))
            return None
        return self._write(connection, name, value)

    async def _write(self, connection: Any, name: str, value: str) -> None:
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} (name text PRIMARY KEY, value text)")
        await connection.execute(
            f"INSERT INTO {self._table} VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value
        )

    async def read(self, store: Store) -> dict[str, str]:
        """Every note that is committed."""
        return await transact(store, self._read)

    def _read(self, connection: Any, _put: Put) -> dict[str, str] | Awaitable[dict[str, str]]:
        if isinstance(connection, MemoryConnection):
            return dict(connection.values[self._table])
        select = f"SELECT name, value FROM {self._table}"
        if isinstance(connection, sqlite3.Connection):
            return dict(connection.execute(select).fetchall())
        return self._fetch(connection, select)

    async def _fetch(self, connection: Any, select: str) -> dict[str, str]:
        return {row[0]: row[1] for row in await connection.fetch(select)}
