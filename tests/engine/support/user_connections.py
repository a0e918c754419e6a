"""Users' own connections to PostgreSQL, by every driver that may start and signal: what they do is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool


class User:
    """A transaction of a user's that has begun. `connection` is what the engine gets."""

    def __init__(
        self,
        connection: Any,
        run: Callable[[str], Awaitable[Any]],
        commit: Callable[[], Awaitable[Any]],
        rollback: Callable[[], Awaitable[Any]],
    ) -> None:
        self.connection = connection
        self.run = run
        self.commit = commit
        self.rollback = rollback


Way: TypeAlias = Callable[[str], AbstractAsyncContextManager[User]]
"""Begins a transaction at a URL."""


def plain(url: str, driver: str = "") -> str:
    """The URL of a store as drivers take it."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items() if name != "schema"}
    scheme = f"postgresql+{driver}" if driver else "postgresql"
    return urlunsplit(parts._replace(scheme=scheme, query=urlencode(query)))


def schema_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["schema"][0]


def _later(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A plain function as one that is awaited."""

    async def run(*args: Any) -> Any:
        return call(*args)

    return run


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[User]:
    connection = await asyncpg.connect(plain(url))
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield User(connection, connection.execute, transaction.commit, transaction.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[User]:
    async with asyncpg.create_pool(plain(url), min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield User(connection, connection.execute, transaction.commit, transaction.rollback)


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[User]:
    connection = await psycopg.AsyncConnection.connect(plain(url))
    try:
        yield User(connection, connection.execute, connection.commit, connection.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[User]:
    with psycopg.connect(plain(url)) as connection:
        yield User(connection, _later(connection.execute), _later(connection.commit), _later(connection.rollback))


def by_alchemy_connection(driver: str) -> Way:
    @asynccontextmanager
    async def begin(url: str) -> AsyncIterator[User]:
        engine = create_async_engine(plain(url, driver), poolclass=NullPool)
        async with engine.connect() as connection:

            async def run(sql: str) -> None:
                await connection.execute(sqlalchemy.text(sql))

            yield User(connection, run, connection.commit, connection.rollback)
        await engine.dispose()

    return begin


def by_alchemy_session(driver: str, *, is_scoped: bool = False) -> Way:
    @asynccontextmanager
    async def begin(url: str) -> AsyncIterator[User]:
        engine = create_async_engine(plain(url, driver), poolclass=NullPool)
        maker = async_sessionmaker(engine)
        session: AsyncSession | async_scoped_session[AsyncSession] = (
            async_scoped_session(maker, scopefunc=lambda: "test") if is_scoped else maker()
        )

        async def run(sql: str) -> None:
            await session.execute(sqlalchemy.text(sql))

        yield User(session, run, session.commit, session.rollback)
        await session.close()
        await engine.dispose()

    return begin


@asynccontextmanager
async def by_plain_alchemy_connection(url: str) -> AsyncIterator[User]:
    engine = sqlalchemy.create_engine(plain(url, "psycopg"), poolclass=NullPool)
    with engine.connect() as connection:

        def run(sql: str) -> None:
            connection.execute(sqlalchemy.text(sql))

        yield User(connection, _later(run), _later(connection.commit), _later(connection.rollback))
    engine.dispose()


def by_plain_alchemy_session(*, is_scoped: bool = False) -> Way:
    @asynccontextmanager
    async def begin(url: str) -> AsyncIterator[User]:
        engine = sqlalchemy.create_engine(plain(url, "psycopg"), poolclass=NullPool)
        maker = sessionmaker(engine)
        session: Session | scoped_session[Session] = scoped_session(maker) if is_scoped else maker()

        def run(sql: str) -> None:
            session.execute(sqlalchemy.text(sql))

        yield User(session, _later(run), _later(session.commit), _later(session.rollback))
        session.close()
        engine.dispose()

    return begin


WAYS: Final[Mapping[str, Way]] = {
    "asyncpg": by_asyncpg,
    "asyncpg pool": by_asyncpg_pool,
    "psycopg async": by_psycopg_async,
    "psycopg": by_psycopg,
    "sqlalchemy asyncpg connection": by_alchemy_connection("asyncpg"),
    "sqlalchemy asyncpg session": by_alchemy_session("asyncpg"),
    "sqlalchemy asyncpg scoped session": by_alchemy_session("asyncpg", is_scoped=True),
    "sqlalchemy psycopg async connection": by_alchemy_connection("psycopg"),
    "sqlalchemy psycopg async session": by_alchemy_session("psycopg"),
    "sqlalchemy psycopg connection": by_plain_alchemy_connection,
    "sqlalchemy psycopg session": by_plain_alchemy_session(),
    "sqlalchemy psycopg scoped session": by_plain_alchemy_session(is_scoped=True),
}
