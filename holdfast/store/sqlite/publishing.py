"""The part of a batch's transaction that publishes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from holdfast.core.instants import Instant
from holdfast.store.publications import (
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    SpreadHead,
    StartSubscriptionRow,
)
from holdfast.store.sqlite import publications
from holdfast.store.sqlite.writer_cache import Changes

T = TypeVar("T")


class SqlitePublishing:
    """What `Publishing` promises, by the statements of the transaction."""

    def run(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T:
        """Do some work within the transaction, which is rolled back by whatever is raised."""
        raise NotImplementedError

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        return self.run("read", lambda db, _: publications.read_starts(db, names, org))

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        return self.run("read", lambda db, _: publications.read_outbox(db, limit, skip))

    async def drop_publications(self, ids: Sequence[int]) -> None:
        self.run("publish in", lambda db, changes: publications.drop_publications(db, changes, ids))

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        return self.run("publish in", lambda db, changes: publications.publish(db, changes, items, now))

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        return self.run("read", lambda db, _: publications.read_kept_messages(db, ids))

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        return self.run("read", lambda db, _: publications.read_unstarted(db, names, now, limit, after))

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        return self.run("read", lambda db, _: publications.find_spread(db, skip))

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        return self.run("publish in", lambda db, changes: publications.spread(db, changes, limit, now, skip))
