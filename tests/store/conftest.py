"""Every store under one suite. A new store joins by its line in BACKENDS."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pytest

from holdfast.store.contract import Store
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite.store import SqliteStore
from tests.postgres.access import drop_schema, with_schema


@dataclass(frozen=True)
class Place:
    """Where a test may have a database: in a folder of its own, or in a schema of its own on a server."""

    folder: Path
    find_server: Callable[[], str]
    """The URL of the PostgreSQL server, which is started with the first call."""


class Backend(Protocol):
    """A database of its own for one test."""

    table: str
    """What a table of the user's own may be called in it."""

    async def connect(self, node: str = "a") -> Store:
        """An open store on it."""
        ...

    async def close(self) -> None:
        """The test is over."""
        ...


class MemoryBackend:
    """Nodes that share a database in memory."""

    is_exclusive = False
    table = "notes"

    def __init__(self, _place: Place) -> None:
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

    table = "notes"

    def __init__(self, place: Place) -> None:
        self._path = place.folder / "holdfast.db"
        self._stores: list[Store] = []

    async def connect(self, node: str = "a") -> Store:
        store = SqliteStore(self._path)
        await store.open()
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


class PostgresBackend:
    """Nodes that share a schema on a real server."""

    def __init__(self, place: Place) -> None:
        self._server = place.find_server()
        self._schema = f"hf_{uuid.uuid4().hex[:16]}"
        self.table = f"{self._schema}.notes"
        self._stores: list[Store] = []

    async def connect(self, node: str = "a") -> Store:
        store = PostgresStore.from_url(with_schema(self._server, self._schema))
        await store.open()
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        drop_schema(self._server, self._schema)


BACKENDS: Final[Mapping[str, Callable[[Place], Backend]]] = {
    "memory": MemoryBackend,
    "memory-exclusive": ExclusiveMemoryBackend,
    "sqlite": SqliteBackend,
    "postgres": PostgresBackend,
}
SHARED: Final = ("memory", "postgres")
"""The stores on which several nodes work at once."""


@pytest.fixture(scope="session")
def find_server(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Starts a server only when somebody asks for it."""
    return lambda: str(request.getfixturevalue("postgres_server"))


@pytest.fixture
def place(tmp_path: Path, find_server: Callable[[], str]) -> Place:
    """For one test."""
    return Place(tmp_path, find_server)


@pytest.fixture(params=BACKENDS)
async def backend(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Backend]:
    """Each database in turn."""
    backend = BACKENDS[request.param](place)
    yield backend
    await backend.close()


@pytest.fixture
async def store(backend: Backend) -> Store:
    """Each store in turn, open and empty."""
    return await backend.connect()


@pytest.fixture(params=SHARED)
async def shared(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Backend]:
    """Each database that several nodes can share."""
    backend = BACKENDS[request.param](place)
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
