"""Fixtures for tests in every folder."""

from tests.postgres.fixtures import own_postgres, postgres_server, postgres_url, redis_server, redis_url

__all__ = ["own_postgres", "postgres_server", "postgres_url", "redis_server", "redis_url"]
