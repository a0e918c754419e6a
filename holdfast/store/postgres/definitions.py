"""Deployed definitions in PostgreSQL: whoever deploys holds the row of the settings number, for which others wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple, replace

from holdfast.core.instants import Instant
from holdfast.store.definitions import CatalogChanges, DefinitionFilter, DefinitionRow, DeploymentWrite, ResourceRow
from holdfast.store.publication_columns import from_start_row

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

Write = Callable[[str, Callable[["Connection"], Awaitable[Any]]], Awaitable[Any]]

PURGED_AT_ONCE: Final = 1_000
"""So many definitions, at most, are removed within one transaction."""


class PostgresDefinitions:
    """Deployed definitions and their content. `write` runs work in a transaction of its own."""

    def __init__(self, connections: Connections, write: Write) -> None:
        self._connections = connections
        self._write = write

    async def deploy(self, write: DeploymentWrite, expected: int) -> int | None:
        """Write a deployment or a change of states; see `Definitions.deploy`."""

        async def work(connection: Connection) -> int | None:
            taken = await connection.fetch(self._connections.sql["take_settings"], expected, write.at)
            if not taken:
                return None
            await self._put(connection, write, taken[0][0])
            return int(taken[0][0])

        number: int | None = await self._write("deploy to", work)
        return number

    async def _put(self, connection: Connection, write: DeploymentWrite, number: int) -> None:
        sql, org = self._connections.sql, write.org
        if write.resources:
            contents = {row.digest: row for row in reversed(write.resources)}  # the first of several with one content
            await connection.fetch(sql["put_resources"], *zip(*map(astuple, contents.values()), strict=True))
        if write.definitions:
            rows = [astuple(replace(row, updated_at=write.at, changed=number)) for row in write.definitions]
            await connection.fetch(sql["put_definitions"], *zip(*rows, strict=True))
        if write.states:
            changes = {one.key: (*one.key, one.state) for one in write.states}  # the last of several counts
            columns = zip(*changes.values(), strict=True)
            await connection.fetch(sql["change_definitions"], org, *columns, write.at, number)
        if write.ended_starts:
            await connection.fetch(sql["end_deployed_starts"], org, list(write.ended_starts))
        if write.starts:
            await connection.fetch(sql["put_starts"], *zip(*map(from_start_row, write.starts), strict=True))
        if write.ended_schedules:
            await connection.fetch(sql["end_schedules"], org, sorted(write.ended_schedules))
        if write.schedules:
            schedules = {row.key: astuple(row) for row in write.schedules}
            await connection.fetch(sql["put_schedules"], *zip(*schedules.values(), strict=True))

    async def read_changed(self, after: int, limit: int = 1000) -> CatalogChanges:
        """What came or changed since a number, which is read first; see `Definitions.read_changed`."""
        number = int(await self._connections.fetch_value("read definitions in", "read_settings"))
        if number < after or (limit == 0 and number != after):
            return CatalogChanges(number, (), is_whole=False)
        rows = await self._connections.fetch("read definitions in", "read_changed_definitions", after, limit + 1)
        if len(rows) > limit:
            return CatalogChanges(number, (), is_whole=False)
        return CatalogChanges(number, [DefinitionRow(*row) for row in rows])

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
        fetch, doing = self._connections.fetch, "read definitions in"
        if version is not None:
            rows = await fetch(doing, "find_definition_version", org, kind, definition_id, version)
        else:
            rows = await fetch(doing, "find_definition", org, kind, definition_id, version_tag, deployment)
        return DefinitionRow(*rows[0]) if rows else None

    async def search(self, query: DefinitionFilter) -> list[DefinitionRow]:
        """The definitions that a filter selects, by kind and id, of each the newest version first."""
        name, values = prepare_list(query)
        return [DefinitionRow(*row) for row in await self._connections.fetch("read definitions in", name, *values)]

    async def read_resource(self, org: str, digest: str) -> ResourceRow | None:
        """The content of a deployed file; None if the org has none with this digest."""
        rows = await self._connections.fetch("read definitions in", "read_resource", org, digest)
        return ResourceRow(*rows[0]) if rows else None

    async def purge(self, before: Instant) -> int:
        """Remove what was undeployed before then and has no execution left, with its resources; how many definitions.

        The settings number is held from before anything is looked at: so nobody deploys the same content meanwhile. Nothing
        is done if somebody deploys at this moment.
        """
        sql = self._connections.sql
        if not await self._connections.fetch_value("purge definitions in", "has_undeployed", before):
            return 0

        async def work(connection: Connection) -> int:
            if not await connection.fetch(sql["hold_settings"]):
                return 0
            gone = await connection.fetch(sql["purge_definitions"], before, PURGED_AT_ONCE)
            if gone:
                named = {(org, digest) for org, digest in gone}
                await connection.fetch(sql["purge_resources"], *zip(*named, strict=True))
            return len(gone)

        removed: int = await self._write("purge definitions in", work)
        return removed


def prepare_list(query: DefinitionFilter) -> tuple[str, tuple[Any, ...]]:
    """The name of a list's statement, and what it takes: the narrowest condition leads."""
    if query.digest is not None:
        name = "list_definitions_of_resource"
    elif query.deployment is not None:
        name = "list_definitions_of_deployment"
    elif query.kind is not None and query.definition_id is not None:
        name = "list_definition_versions"
    else:
        name = "list_definitions"
    return name, (
        query.org,
        query.kind,
        query.definition_id,
        query.deployment,
        query.digest,
        list(query.states) or None,
        query.is_latest_only,
        *(query.after or ("", "", 0)),
        query.limit,
    )
