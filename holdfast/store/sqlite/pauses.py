"""Pauses of workflows and queues, and the number that stands for them: see `holdfast.store.pauses`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from holdfast.core.instants import Instant
from holdfast.store.pauses import PauseRow, Settings
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence, WriterCache


def read_number(connection: sqlite3.Connection, writer_cache: WriterCache) -> int:
    """The settings number, which only this process changes."""
    if writer_cache.settings is None:
        (writer_cache.settings,) = connection.execute(SQL["read_settings"]).fetchone()
    return int(writer_cache.settings or 0)


def read_settings(connection: sqlite3.Connection) -> Settings:
    """All pauses with their number, which is read first: a change in between is noticed by the next look at the number."""
    (number,) = connection.execute(SQL["read_settings"]).fetchone()
    return Settings(number, [PauseRow(*row) for row in connection.execute(SQL["read_pauses"])])


def make_put(writer_cache: WriterCache, row: PauseRow) -> Callable[[sqlite3.Connection, Changes], int]:
    """The work of a transaction that pauses something; it answers 1 if that is new."""

    def work(connection: sqlite3.Connection, changes: Changes) -> int:
        values = (row.org, row.kind, row.name, row.at, row.by, row.reason)
        put = connection.execute(SQL["put_pause"], values).rowcount
        if put:
            raise_number(connection, writer_cache, changes, row.at)
        return put

    return work


def make_end(
    writer_cache: WriterCache, org: str, kind: str, name: str, at: Instant
) -> Callable[[sqlite3.Connection, Changes], int]:
    """The work of a transaction that ends a pause; it answers 1 if there was one."""

    def work(connection: sqlite3.Connection, changes: Changes) -> int:
        values = {"org": org, "kind": kind, "name": name, "at": at}
        ended = connection.execute(SQL["end_pause"], values).rowcount
        if ended:
            raise_number(connection, writer_cache, changes, at)
        return ended

    return work


def raise_number(connection: sqlite3.Connection, writer_cache: WriterCache, changes: Changes, at: Instant) -> int:
    """Raise the settings number, to the time of the change if that is greater; the new one."""
    connection.execute(SQL["raise_settings"], (at,))
    (number,) = connection.execute(SQL["read_settings"]).fetchone()
    writer_cache.settings = None  # whatever becomes of this transaction
    changes.evidence = CommitEvidence("has_settings", (number,), True)
    return int(number)
