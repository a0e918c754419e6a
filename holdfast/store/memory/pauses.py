"""Pauses of workflows and queues, and the number that stands for them: see `holdfast.store.pauses`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.core.instants import Instant
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Tables
from holdfast.store.pauses import PauseRow, Settings


def read_settings(tables: Tables) -> Settings:
    """All pauses, sorted, with their number."""
    return Settings(tables.settings[0], [tables.pauses[key] for key in sorted(tables.pauses)])


def make_change(
    database: MemoryDatabase, org: str, kind: str, name: str, at: Instant, pause: PauseRow | None
) -> Callable[[Session], Awaitable[int]]:
    """The work of a transaction that puts a pause, or ends one; it answers 1 if that changes something."""
    key = (org, kind, name)

    async def work(session: Session) -> int:
        await session.wait_until(partial(session.locks.try_key, session, ("settings",)))
        if (key in database.tables.pauses) == (pause is not None):
            return 0
        session.changes.pauses[key] = pause
        session.changes.settings = at
        return 1

    return work


async def wait_for_writers(database: MemoryDatabase) -> None:
    """Wait until those transactions have ended that are under way: they may not have seen a new number."""
    writers = database.list_transactions()
    while writers.intersection(database.list_transactions()):
        await database.locks.wait()
