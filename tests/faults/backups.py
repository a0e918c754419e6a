"""Backups of a schema's tables, which are put back while nodes run."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs, urlsplit

from psycopg import sql
from psycopg.errors import DeadlockDetected

from tests.postgres.access import connect

MOST_TRIES: Final = 20


class TableBackup:
    """The tables of one schema as they were at one moment; `restore` puts them back under living nodes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._schema = parse_qs(urlsplit(url).query)["schema"][-1]
        self._kept = f"{self._schema}_kept"
        with connect(self._url) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._kept)))
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [self._schema]).fetchall()
            self._tables = sorted(name for (name,) in found)
            for name in self._tables:
                kept, table = sql.Identifier(self._kept, name), sql.Identifier(self._schema, name)
                connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(kept, table))

    def restore(self) -> None:
        """Put everything back, in one transaction; again if it and a node waited for each other's locks."""
        for _ in range(MOST_TRIES):
            try:
                return self._restore()
            except DeadlockDetected:
                continue
        raise AssertionError(f"the tables could not be had in {MOST_TRIES} tries")

    def _restore(self) -> None:
        with connect(self._url) as connection, connection.transaction():
            tables = [sql.Identifier(self._schema, name) for name in self._tables]
            connection.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(tables)))
            for name in self._tables:
                kept, table = sql.Identifier(self._kept, name), sql.Identifier(self._schema, name)
                connection.execute(sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE TABLE {}").format(table, kept))

    def drop(self) -> None:
        """Remove the backup itself."""
        with connect(self._url) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self._kept)))
