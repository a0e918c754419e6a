"""Deployed definitions in a SQLite file. There is one writer: whoever deploys is alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import astuple, replace

from holdfast.core.instants import Instant
from holdfast.store.definitions import CatalogChanges, DefinitionFilter, DefinitionRow, DeploymentWrite, ResourceRow
from holdfast.store.publication_columns import from_start_row
from holdfast.store.sqlite.pauses import raise_number, read_number
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import Changes, WriterCache

T = TypeVar("T")

PURGED_AT_ONCE: Final = 1_000
"""So many definitions, at most, are removed within one transaction."""


class ReadAtOnce(Protocol):
    """Runs a query that takes microseconds, in the loop's thread."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> T: ...


class Read(Protocol):
    """Runs a query beside the loop."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


class Write(Protocol):
    """Runs work in a transaction of its own."""

    async def __call__(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T: ...


class SqliteDefinitions:
    """Deployed definitions and their content, outside of batches."""

    def __init__(self, read_at_once: ReadAtOnce, read: Read, write: Write, writer_cache: WriterCache) -> None:
        self._read_at_once = read_at_once
        self._read = read
        self._write = write
        self._writer_cache = writer_cache

    async def deploy(self, write: DeploymentWrite, expected: int) -> int | None:
        """Write a deployment or a change of states; see `Definitions.deploy`."""

        def work(connection: sqlite3.Connection, changes: Changes) -> int | None:
            if read_number(connection, self._writer_cache) != expected:
                return None
            number = raise_number(connection, self._writer_cache, changes, write.at)
            _write(connection, write, number)
            return number

        return await self._write("deploy to", work)

    async def read_changed(self, after: int, limit: int = 1000) -> CatalogChanges:
        """What came or changed since a number; see `Definitions.read_changed`."""
        return self._read_at_once(lambda db: _read_changed(db, after, limit))

    async def find(
        self,
        org: str,
        kind: str,
        definition_id: str,
        *,
        version: int | None = None,
        version_tag: str | None = None,
        deployment: str | None = None,
    ) -> DefinitionRow | None:
        """A version by its number, or the newest that is not undeployed; see `Definitions.find`."""
        if version is not None:
            place = (org, str(kind), definition_id, version)
            return self._read_at_once(lambda db: _read_one(db, SQL["find_definition_version"], place))
        values = {
            "org": org,
            "kind": str(kind),
            "definition_id": definition_id,
            "version_tag": version_tag,
            "deployment": deployment,
        }
        return self._read_at_once(lambda db: _read_one(db, SQL["find_definition"], values))

    async def search(self, query: DefinitionFilter) -> list[DefinitionRow]:
        """The definitions that a filter selects, by kind and id, of each the newest version first."""
        statement, values = prepare_list(query)
        return [DefinitionRow(*row) for row in await self._read(lambda db: db.execute(statement, values).fetchall())]

    async def read_resource(self, org: str, digest: str) -> ResourceRow | None:
        """The content of a deployed file; None if the org has none with this digest."""
        found = await self._read(lambda db: db.execute(SQL["read_resource"], (org, digest)).fetchone())
        return None if found is None else ResourceRow(*found)


def _write(connection: sqlite3.Connection, write: DeploymentWrite, number: int) -> None:
    connection.executemany(SQL["put_resources"], map(astuple, write.resources))
    new = (replace(row, updated_at=write.at, changed=number) for row in write.definitions)
    connection.executemany(SQL["put_definitions"], map(astuple, new))
    for change in write.states:
        values = {
            "state": str(change.state),
            "at": write.at,
            "changed": number,
            "org": write.org,
            "kind": str(change.kind),
            "definition_id": change.definition_id,
            "version": change.version,
        }
        connection.execute(SQL["change_definitions"], values)
    connection.executemany(SQL["end_deployed_starts"], [(write.org, workflow) for workflow in write.ended_starts])
    connection.executemany(SQL["put_starts"], map(from_start_row, write.starts))
    connection.executemany(SQL["end_schedules"], [(write.org, one) for one in write.ended_schedules])
    connection.executemany(SQL["put_schedules"], map(astuple, write.schedules))


def _read_changed(connection: sqlite3.Connection, after: int, limit: int) -> CatalogChanges:
    """The number is read first: a change in between is told now, and once more by the next call."""
    (number,) = connection.execute(SQL["read_settings"]).fetchone()
    if number < after or (limit == 0 and number != after):
        return CatalogChanges(number, (), is_whole=False)
    found = connection.execute(SQL["read_changed_definitions"], (after, limit + 1)).fetchall()
    if len(found) > limit:
        return CatalogChanges(number, (), is_whole=False)
    return CatalogChanges(number, [DefinitionRow(*row) for row in found])


def _read_one(connection: sqlite3.Connection, statement: str, values: Any) -> DefinitionRow | None:
    found = connection.execute(statement, values).fetchone()
    return None if found is None else DefinitionRow(*found)


def prepare_list(query: DefinitionFilter) -> tuple[str, dict[str, Any]]:
    """The statement of a list, and what it takes: the narrowest condition leads."""
    if query.digest is not None:
        statement = SQL["list_definitions_of_resource"]
    elif query.deployment is not None:
        statement = SQL["list_definitions_of_deployment"]
    elif query.kind is not None and query.definition_id is not None:
        statement = SQL["list_definition_versions"]
    else:
        statement = SQL["list_definitions"]
    kind, definition_id, version = query.after or ("", "", 0)
    return statement, {
        "org": query.org,
        "kind": None if query.kind is None else str(query.kind),
        "definition_id": query.definition_id,
        "deployment": query.deployment,
        "digest": query.digest,
        "states": as_json([str(one) for one in query.states]) if query.states else None,
        "is_latest_only": int(query.is_latest_only),
        "after_kind": str(kind),
        "after_id": definition_id,
        "after_version": version,
        "limit": query.limit,
    }


def purge_definitions(connection: sqlite3.Connection, _changes: Changes, before: Instant) -> int:
    """Remove what was undeployed before then and has no execution left, with its resources; how many definitions."""
    gone = connection.execute(SQL["purge_definitions"], (before, PURGED_AT_ONCE)).fetchall()
    resources = [{"org": org, "digest": digest} for org, digest in dict.fromkeys(gone)]
    connection.executemany(SQL["purge_resources"], resources)
    return len(gone)
