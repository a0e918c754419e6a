"""The fixtures for tests on PostgreSQL, there in every folder of tests.

- `postgres_url`: the URL of an empty place for one test, for a store or an engine:
  `postgresql://holdfast@127.0.0.1:PORT/postgres?schema=hf_…`. The schema does not exist yet; it is dropped afterwards.
  To look into it: `with tests.postgres.access.connect(postgres_url) as connection: ...` (psycopg, not async).
- `postgres_server`: the URL of the server that these tests share. It is started with the first test that asks for it,
  one for each test process, with full durability. `HOLDFAST_TEST_POSTGRES` names another to use instead.
- `own_postgres`: a server for this test alone, which it may stop, kill and start again (0.1 s). For other settings see
  `tests.postgres.server.PostgresServer`.
- `redis_url`: an empty Redis for one test, on a server that the tests of this process share (`HOLDFAST_TEST_REDIS` names
  another). One that a test may stop: `tests.postgres.redis_server.RedisServer`.

What they need is imported when they are used: most test runs do without.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.postgres.server import PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server shared by the tests of this process."""
    from tests.postgres.server import PostgresServer

    given = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if given:
        yield given
        return
    with PostgresServer() as server:
        yield server.url()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A schema of its own for one test, as the URL of a store."""
    from tests.postgres.access import drop_schema, with_schema

    schema = f"hf_{uuid.uuid4().hex[:16]}"
    yield with_schema(postgres_server, schema)
    drop_schema(postgres_server, schema)


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A running server for one test alone, whatever server the others use."""
    from tests.postgres.server import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a Redis shared by the tests of this process."""
    from tests.postgres.redis_server import RedisServer

    given = os.environ.get("HOLDFAST_TEST_REDIS")
    if given:
        yield given
        return
    with RedisServer() as server:
        yield server.url


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    """A Redis that is empty at the start of a test, and emptied after it."""
    import redis

    with redis.from_url(redis_server) as client:
        client.flushdb()
        yield redis_server
        client.flushdb()
