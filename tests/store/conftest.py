"""Every store under one suite. A new store joins by its line in BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

import pytest

from holdfast.store.contract import Store
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.sqlite.store import SqliteStore


class Backend(Protocol):
    """A database of its own for one test."""

    async def connect(self, node: str = "a") -> Store:
        """An open store on it."""
        ...

    async def close(self) -> None:
        """The test is over."""
        ...


class MemoryBackend:
    """Nodes that share a database in memory."""

    is_exclusive = False

    def __init__(self, _folder: Path) -> None:
        self._database = MemoryDatabase()
        self._stores: list[Store] = []

    async def connect(self, node: str = "a") -> Store:
        store = MemoryStore(self._database, node=node, exclusive=self.is_exclusive)
        await store.open()
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        assert self._database.locks.count() == 0


class ExclusiveMemoryBackend(MemoryBackend):
    """One node that has its memory to itself."""

    is_exclusive = True


class SqliteBackend:
    """One process and its file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "holdfast.db"
        self._stores: list[Store] = []

    async def connect(self, node: str = "a") -> Store:
        store = SqliteStore(self._path)
        await store.open()
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


BACKENDS: Final[Mapping[str, Callable[[Path], Backend]]] = {
    "memory": MemoryBackend,
    "memory-exclusive": ExclusiveMemoryBackend,
    "sqlite": SqliteBackend,
}
SHARED: Final = ("memory",)
"""The stores on which several nodes work at once."""


@pytest.fixture(params=BACKENDS)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Each database in turn."""
    backend = BACKENDS[request.param](tmp_path)
    yield backend
    await backend.close()


@pytest.fixture
async def store(backend: Backend) -> Store:
    """Each store in turn, open and empty."""
    return await backend.connect()


@pytest.fixture(params=SHARED)
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Each database that several nodes can share."""
    backend = BACKENDS[request.param](tmp_path)
    yield backend
    await backend.close()


@pytest.fixture
async def left(shared: Backend) -> Store:
    """One node of two."""
    return await shared.connect("left")


@pytest.fixture
async def right(shared: Backend) -> Store:
    """The other."""
    return await shared.connect("right")
