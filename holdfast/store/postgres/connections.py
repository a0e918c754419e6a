"""Connections to the server: made when they are needed, used by one at a time, thrown away when anything is wrong with them.

The driver's own pool asks the server to reset a connection each time it is given back; ours are all set up alike and never
need it. A connection that failed, or whose user was cancelled, never comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from holdfast.errors import StoreUnavailable
from holdfast.store.postgres.drivers import Connection, DriverConnection
from holdfast.store.postgres.failures import DRIVER_ERRORS, translate
from holdfast.store.postgres.statements import statements_for

if TYPE_CHECKING:
    from holdfast.store.postgres.urls import DatabaseAddress

CONNECT_TIMEOUT: Final = 10.0
COMMAND_TIMEOUT: Final = 60.0
"""Seconds after which a server that does not answer counts as lost."""

BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""What is read after a lock must be as new as the lock, whatever a database or a role has for its default."""

_SETTINGS: Final[Mapping[str, str]] = {
    "default_transaction_isolation": "read committed",
    # A frozen node frees its locks before others have waited for them too long; nobody waits for a lock for long.
    "lock_timeout": "3s",
    "statement_timeout": "45s",
    "idle_in_transaction_session_timeout": "8s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "4",
    "jit": "off",
}
_WALKING: Final[Mapping[str, str]] = {
    # Every statement of a batch walks along a list of ids by an index. The planner must not think otherwise because a table
    # was empty when it looked.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",  # it loses the order of the index, and with it the first rows without reading the others
}
BATCH_SETTINGS: Final[Mapping[str, str]] = {
    **_SETTINGS,
    **_WALKING,
    # Whoever ends executions by it settles what is kept for them: the trigger for older nodes need not look.
    "holdfast_node.settles_kept": "on",
}
MARK_SETTINGS: Final[Mapping[str, str]] = {
    **_SETTINGS,
    "synchronous_commit": "off",  # an in-flight mark outlives its process; the server's disk need not be waited for
    "enable_nestloop": "off",  # two lists of ids are compared by a hash, however short they were at first
}
HOLDING: Final[Mapping[str, str]] = {
    # For a transaction that may hold executions. A node that stands still between two messages about one statement does not
    # count as idle, and a statement does not run meanwhile: nothing but this frees what it holds.
    "transaction_timeout": "10s",
}
_FIRST_WITH_HOLDING: Final = 17
"""The version of the server that knows of it."""
_BEGIN_HOLDING: Final = "; ".join([BEGIN, *(f"SET LOCAL {name} = '{value}'" for name, value in HOLDING.items())])


class Connections:
    """A bounded number of connections of one kind."""

    connection_class: type[Connection] = DriverConnection

    def __init__(self, address: DatabaseAddress, most: int, settings: Mapping[str, str] = BATCH_SETTINGS) -> None:
        self.address = address
        self.sql = statements_for(address.schema)
        self._settings = settings
        self._free: list[Connection] = []
        self._in_use: set[Connection] = set()
        self._semaphore = asyncio.Semaphore(most)
        self._is_open = True

    async def connect(self, *, name: str = "holdfast", **settings: str) -> Connection:
        """A new connection, which is the caller's. Raises StoreUnavailable."""
        wanted = {} if self.address.is_pooled else {**self._settings, **settings}
        try:
            connection: Connection = await asyncpg.connect(
                self.address.dsn,
                timeout=CONNECT_TIMEOUT,
                command_timeout=COMMAND_TIMEOUT,
                statement_cache_size=0 if self.address.is_pooled else 200,
                connection_class=self.connection_class,
                max_cached_statement_lifetime=0,  # to ask for them anew, in the middle of a transaction, would be no use
                server_settings={"application_name": name, **wanted},
            )
        except DRIVER_ERRORS as error:
            raise translate(error, "connect to", self.address.shown) from error
        except ValueError as error:
            raise StoreUnavailable(f"Expected to connect to {self.address.shown}, but {error}. Correct the URL.") from error
        return connection

    async def take(self) -> Connection:
        """A connection for as long as the caller wants: it must be given back. Waits if all are in use."""
        await self._semaphore.acquire()
        try:
            connection = await self._find()
        except BaseException:
            self._semaphore.release()
            raise
        self._in_use.add(connection)
        return connection

    async def _find(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        if not self._is_open:
            raise StoreUnavailable(f"Expected to reach {self.address.shown}, but the store is closed. Open it first.")
        return await self.connect()

    def give_back(self, connection: Connection, *, is_sound: bool) -> None:
        """The end of its use; an unsound one is cut at once, and with it whatever it had begun."""
        self._in_use.discard(connection)
        if is_sound and self._is_open and not connection.is_closed() and not connection.is_in_transaction():
            self._free.append(connection)
        else:
            connection.terminate()
        self._semaphore.release()

    @asynccontextmanager
    async def use(self, doing: str) -> AsyncIterator[Connection]:
        """A connection for a few statements. What the driver raises becomes an error of ours."""
        connection = await self.take()
        is_sound = False
        try:
            yield connection
            is_sound = True
        except DRIVER_ERRORS as error:
            raise translate(error, doing, self.address.shown) from error
        finally:
            self.give_back(connection, is_sound=is_sound)

    async def fetch(self, doing: str, name: str, *values: Any) -> list[Any]:
        """The rows of one statement, which is a transaction of its own."""
        return await self.fetch_statement(doing, self.sql[name], *values)

    async def fetch_statement(self, doing: str, statement: str, *values: Any) -> list[Any]:
        """As `fetch`, for a statement that is made for a question."""
        async with self.use(doing) as connection:
            if not self.address.is_pooled:
                return await connection.fetch(statement, *values)
            # A pooler may give each statement another server connection, unless they are in one transaction.
            async with connection.transaction(isolation="read_committed"):
                await self.set_up(connection)
                return await connection.fetch(statement, *values)

    async def fetch_value(self, doing: str, name: str, *values: Any) -> Any:
        """The first column of the first row, if there is one."""
        rows = await self.fetch(doing, name, *values)
        return rows[0][0] if rows else None

    async def begin(self, connection: Connection) -> None:
        """Begin a transaction that may hold executions, with limits for how long it may."""
        has_limit = connection.get_server_version().major >= _FIRST_WITH_HOLDING
        await connection.execute(_BEGIN_HOLDING if has_limit else BEGIN)
        await self.set_up(connection)

    async def set_up(self, connection: Connection) -> None:
        """At the begin of a transaction behind a pooler: what a connection of our own has from the start."""
        if self.address.is_pooled:
            await connection.fetch(self.sql["set_for_transaction"], list(self._settings), list(self._settings.values()))

    async def close(self) -> None:
        """Let go of all of them. One that is in use is cut: the server rolls back what it had begun."""
        self._is_open = False
        for connection in list(self._in_use):
            connection.terminate()
        while self._free:
            connection = self._free.pop()
            try:
                await connection.close(timeout=1.0)
            except DRIVER_ERRORS:
                connection.terminate()

    def abandon(self) -> None:
        """Let go at once, as the end of the process would."""
        self._is_open = False
        for connection in [*self._in_use, *self._free]:
            connection.terminate()
        self._free.clear()
