"""Fixtures for tests in every folder, and how far property tests look.

A run of the suite tries the same examples each time. `HYPOTHESIS_PROFILE=explore make test` looks for others.
"""

import os
import signal
from typing import Any, Final

from hypothesis import HealthCheck, settings

from tests.postgres.fixtures import own_postgres, postgres_server, postgres_url, redis_server, redis_url

__all__ = ["own_postgres", "postgres_server", "postgres_url", "redis_server", "redis_url"]

# How long examples take says more about the machine than about them.
PATIENT: Final[dict[str, Any]] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **PATIENT)
settings.register_profile("explore", **PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# What begins in the background of a shell ignores Ctrl-C, and so does what it starts: some tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
