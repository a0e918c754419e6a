"""PostgreSQL alone: two stores on one schema, and somebody who watches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias

import pytest

from holdfast.store.postgres.store import PostgresStore
from tests.postgres.proxy import Proxy
from tests.store.postgres.watching import Watch

OpenStore: TypeAlias = Callable[..., Awaitable[PostgresStore]]


@pytest.fixture
async def make_store(postgres_url: str) -> AsyncIterator[OpenStore]:
    """Opens stores: on the test's own schema, or where a URL says."""
    stores: list[PostgresStore] = []

    async def make_store(url: str = postgres_url) -> PostgresStore:
        store = PostgresStore.from_url(url)
        stores.append(store)
        await store.open()
        return store

    yield make_store
    for store in stores:
        await store.close()


@pytest.fixture
async def left(make_store: OpenStore) -> PostgresStore:
    """One node of two."""
    return await make_store()


@pytest.fixture
async def right(make_store: OpenStore) -> PostgresStore:
    """The other."""
    return await make_store()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    """A way to the test's schema on which messages can be stopped."""
    with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture
async def slow(proxy: Proxy, make_store: OpenStore) -> PostgresStore:
    """A node that can be stopped between any two of its statements: it goes by the proxy."""
    return await make_store(proxy.url)


@pytest.fixture
async def watch(postgres_url: str) -> AsyncIterator[Watch]:
    """Sees the schema as it is committed."""
    watch = await Watch.open(postgres_url)
    yield watch
    await watch.close()
