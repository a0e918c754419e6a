"""Several engines on one database, in real time: as nodes that share memory, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.engine.engine import Engine
from holdfast.store.contract import Store
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.rows import ExecutionRow
from tests.engine import hooks

HEARTBEAT: Final = 0.2
LEASE: Final = 30.0
"""Seconds: nobody is taken for dead, however busy the machine is."""
MORTAL: Final[Mapping[str, float]] = {"lease": 3.0}
"""For all nodes of a test that waits until one of them is taken for dead."""


class Cluster:
    """Engines by the names of their nodes. `url` is that of a PostgreSQL, or None for memory."""

    def __init__(self, url: str | None) -> None:
        self.url = url
        self.engines: dict[str, Engine] = {}
        self._database = MemoryDatabase()

    async def open(self, node: str, *definitions: Workflow[..., Any] | Activity[..., Any], **options: Any) -> Engine:
        """An engine of that name that has these workflows and activities."""
        chosen: dict[str, Any] = {"heartbeat": HEARTBEAT, "lease": LEASE, "shutdown_grace": 0.05} | options
        engine = Engine(
            self.url or MemoryStore(self._database, node=node),
            workflows=[one for one in definitions if isinstance(one, Workflow)],
            activities=[one for one in definitions if isinstance(one, Activity)],
            node=node,
            **chosen,
        )
        self.engines[node] = engine
        await engine.open()
        return engine

    async def kill(self, node: str) -> None:
        """Let a node end as a killed process does: nobody is told, and what is not committed never was."""
        await hooks.crash(self.engines.pop(node))

    async def shut_down(self, node: str) -> None:
        """Let a node end in good order."""
        await self.engines.pop(node).shutdown()

    async def find_row(self, target: str) -> ExecutionRow:
        """The row of an execution."""
        return await hooks.find_row(next(iter(self.engines.values())), target)

    @property
    def store(self) -> Store:
        """The database, by the eyes of one of the nodes."""
        return next(iter(self.engines.values())).store

    async def close(self) -> None:
        """The test is over: what it left must be whole."""
        try:
            if self.engines:
                assert await self.store.check() == []
        finally:
            for engine in self.engines.values():
                await engine.shutdown()
