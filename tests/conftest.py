"""Fixtures for tests in every folder, and how far property tests look.

A run of the suite tries the same examples each time. `HYPOTHESIS_PROFILE=explore make test` looks for others.
"""

import os

from hypothesis import settings

from tests.postgres.fixtures import own_postgres, postgres_server, postgres_url, redis_server, redis_url

__all__ = ["own_postgres", "postgres_server", "postgres_url", "redis_server", "redis_url"]

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
