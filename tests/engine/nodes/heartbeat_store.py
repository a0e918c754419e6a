"""A shared store in memory that gives heartbeats a line of their own, so that threads can be tested without a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection

import msgspec

from holdfast.core.instants import Instant
from holdfast.errors import StoreUnavailable
from holdfast.store.memory import heartbeats, in_flight
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.nodes import HeartbeatConnection, HeartbeatReply
from holdfast.store.rows import NodeRow, Route


class Line:
    """One line, which fails or stands still as its store says."""

    def __init__(self, store: LineStore) -> None:
        self._store = store
        self._tables = store.database.tables
        self.is_closed = False

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        store = self._store
        store.threads.add(threading.current_thread().name)
        store.asked += 1
        while store.stands_still():
            await asyncio.sleep(0.001)
        if store.fails():
            raise StoreUnavailable("Expected to reach the database, but it is away. Try again.")
        store.beats += 1
        return heartbeats.beat(self._tables, node, routes, offers)

    async def list_nodes(self) -> list[NodeRow]:
        return heartbeats.list_nodes(self._tables)

    async def leave(self, node: str) -> None:
        heartbeats.leave(self._tables, node)

    async def remove_nodes(self, nodes: Collection[str]) -> None:
        heartbeats.remove_nodes(self._tables, nodes)

    async def forget_processes(self, processes: Collection[str]) -> None:
        in_flight.forget(self._tables, processes)

    async def take_lock(self, name: str, node: str, now: Instant, until: Instant) -> bool:
        return heartbeats.take_lock(self._tables, name, node, now, until)

    async def release_lock(self, name: str, node: str) -> None:
        heartbeats.release_lock(self._tables, name, node)

    async def expire(self, node: str) -> None:
        nodes = self._tables.nodes
        nodes[node] = msgspec.structs.replace(nodes[node], seen_at=0)

    async def close(self) -> None:
        self.is_closed = True


class LineStore(MemoryStore):
    """The store of one node."""

    def __init__(self, database: MemoryDatabase, node: str) -> None:
        super().__init__(database, node=node)
        self.fails: Callable[[], bool] = lambda: False
        self.stands_still: Callable[[], bool] = lambda: False
        self.threads: set[str] = set()
        """Where heartbeats came from."""
        self.asked = 0
        self.beats = 0
        """How many of them were taken."""
        self.lines: list[Line] = []

    def make_heartbeat_connection(self) -> HeartbeatConnection | None:
        line = Line(self)
        self.lines.append(line)
        return line
