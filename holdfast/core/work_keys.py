"""What an activity is asked to do, as a short text: so that one key, or one result, never stands for two different works.

The number of a command names an activity for good, as long as history only grows. If the database goes back (a failover to a
replica that lags, a backup), the same number may be given to another activity when history takes another path. A digest of
what is asked tells the two apart. It is made from the recorded event, so it is the same for every attempt, on every node and
after every replay. Executions that began before the behaviour `WORK_KEYS` keep the keys that they had: a retry under a new
key would be done again by a service that knows the old one.
"""

from __future__ import annotations

import hashlib
from typing import Final

from holdfast.core.events import ActivityScheduled

DIGEST_BYTES: Final = 8


def digest_work(event: ActivityScheduled) -> str:
    """A digest of the activity's name and of its arguments as they were recorded."""
    given = event.input
    work = hashlib.blake2b(f"{event.name}\0{given.encoding}\0{given.key}\0".encode(), digest_size=DIGEST_BYTES)
    work.update(given.data)
    return work.hexdigest()


def make_idempotency_key(execution_id: str, number: int, work: str) -> str:
    """The key of an activity: the same for all its attempts, and another one for every other work."""
    return f"{execution_id}/{number}/{work}" if work else f"{execution_id}/{number}"
