"""Who is alive, by the server's clock, and who does what only one may do at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from holdfast.core.instants import Instant
from holdfast.store.nodes import HeartbeatReply
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.drivers import Connection
from holdfast.store.rows import NodeRow, Route

if TYPE_CHECKING:
    from holdfast.store.postgres.urls import DatabaseAddress

log = logging.getLogger("holdfast.store")


class PostgresNodes:
    """Heartbeats and locks. `seen_at` is the server's time, whatever a node says; or that of `clock`, if there is one."""

    def __init__(self, connections: Connections, clock: Callable[[], Instant] | None = None) -> None:
        self._connections = connections
        self._clock = clock

    async def _fetch(self, name: str, *values: Any) -> list[Any]:
        return await self._connections.fetch("keep the list of nodes in", name, *values)

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        at = None if self._clock is None else self._clock()
        rows = await self._fetch("beat", node.node, node.started_at, node.details, ["", *routes], ["", *offers], at)
        now, next_due, has_inbox, has_offers, settings, has_publications, has_questions, next_schedule, *columns = rows[0]
        stored = [NodeRow(*values) for values in zip(*columns, strict=True)] if columns[0] is not None else []
        before = next((row for row in stored if row.node == node.node), None)
        own = NodeRow(node.node, now, node.started_at, details=node.details)
        nodes = sorted([own, *(row for row in stored if row is not before)], key=lambda one: one.node)
        return HeartbeatReply(
            now,
            nodes,
            next_due,
            has_inbox,
            has_offers,
            before,
            settings,
            has_publications,
            has_questions,
            next_schedule,
        )

    async def read_time(self) -> Instant:
        """The server's time, or that of `clock`; see `TimeKeeper`."""
        return int((await self._fetch("read_time"))[0][0]) if self._clock is None else self._clock()

    async def list_nodes(self) -> list[NodeRow]:
        return [NodeRow(*row) for row in await self._fetch("list_nodes")]

    async def leave(self, node: str) -> None:
        await self._fetch("leave", node)

    async def remove_nodes(self, nodes: Collection[str]) -> None:
        await self._fetch("remove_nodes", list(nodes))

    async def forget_processes(self, processes: Collection[str]) -> None:
        await self._fetch("forget_processes", list(processes))

    async def take_lock(self, name: str, node: str, now: Instant, until: Instant) -> bool:
        return bool(await self._fetch("take_lock", name, node, now, until))

    async def release_lock(self, name: str, node: str) -> None:
        await self._fetch("release_lock", name, node)


class PostgresHeartbeatConnection(PostgresNodes):
    """Heartbeats and locks over a connection of its own, for a thread with a loop of its own."""

    def __init__(self, address: DatabaseAddress, clock: Callable[[], Instant] | None = None) -> None:
        super().__init__(Connections(address, 1), clock)
        self._told_timeline: Connection | None = None
        """The connection whose timeline is known: behind it is the same server for as long as it lasts."""
        self._has_timeline = True
        """Whether the server tells its timeline."""

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        timeline = await self._find_timeline() if self._has_timeline else None
        reply = await super().beat(node, routes, offers)
        return reply if timeline is None else msgspec.structs.replace(reply, timeline=timeline)

    async def _find_timeline(self) -> str | None:
        """The server's timeline, by which a promoted replica is known; asked once per connection, not where it is refused.

        A pooler keeps its connections to us when the server behind it is replaced, so it is asked each time.
        """
        async with self._connections.use("ask for the timeline of") as connection:
            if connection is self._told_timeline and not self._connections.address.is_pooled:
                return None
            try:
                async with connection.transaction(isolation="read_committed"):  # for poolers: see `Connections.fetch`
                    timeline: str = await connection.fetchval(self._connections.sql["find_timeline"])
            except asyncpg.PostgresError as error:
                if connection.is_closed():
                    raise
                log.debug("the server does not tell its timeline, and is not asked again: %s", error)
                self._has_timeline = False
                return None
            self._told_timeline = connection
            return timeline

    async def expire(self, node: str) -> None:
        await self._fetch("expire", node)

    async def close(self) -> None:
        await self._connections.close()
