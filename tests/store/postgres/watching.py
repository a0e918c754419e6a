"""An eye on a test's schema from outside the store: plain statements, and who waits for a lock."""

from __future__ import annotations

from typing import Any, TypeAlias

import asyncpg

from holdfast.store.postgres.urls import DatabaseAddress, parse_url
from tests.eventually import eventually

Plain: TypeAlias = "asyncpg.Connection[Any]"


class Watch:
    """A connection in autocommit, whose search path is the test's schema."""

    def __init__(self, address: DatabaseAddress, connection: Plain) -> None:
        self.address = address
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> Watch:
        address = parse_url(url)
        return cls(address, await connect(address))

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(query, *values)]

    async def value(self, query: str, *values: Any) -> Any:
        return await self.connection.fetchval(query, *values)

    async def count_waiting(self) -> int:
        """How many sessions wait for a lock while they work in the schema."""
        return int(
            await self.value(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0",
                self.address.schema,
            )
        )

    async def until_waiting(self, count: int = 1) -> None:
        """Return when so many sessions wait for a lock."""

        async def is_so() -> bool:
            return await self.count_waiting() == count

        await eventually(is_so, f"{count} sessions to wait for a lock")

    async def list_locks(self, process: int) -> set[tuple[str, str | None, str]]:
        """What a session holds: (kind, table, mode)."""
        rows = await self.fetch(
            "SELECT DISTINCT locktype, relation::regclass::text, mode FROM pg_locks WHERE pid = $1 AND granted "
            "AND locktype <> 'virtualxid'",
            process,
        )
        return {(kind, table, mode) for kind, table, mode in rows}

    async def close(self) -> None:
        await self.connection.close()


async def connect(address: DatabaseAddress) -> Plain:
    """A plain connection; it is the caller's."""
    return await asyncpg.connect(address.dsn, server_settings={"search_path": f'"{address.schema}"'})
