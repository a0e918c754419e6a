"""Deployed definitions of the store in memory: a lock on the settings number excludes other deployments and pauses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.errors import StoreError
from holdfast.store.attributes import is_process
from holdfast.store.definitions import (
    CatalogChanges,
    DefinitionFilter,
    DefinitionKind,
    DefinitionRow,
    DefinitionState,
    DeploymentWrite,
    ResourceRow,
    has_place_behind,
    matches,
)
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import OrgKey, Tables
from holdfast.store.publications import StartSubscriptionRow


class MemoryDefinitions:
    """Deployed definitions and their content, outside of batches."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _tables(self) -> Tables:
        await self._connection.reach(Point.READ)
        return self._connection.database.tables

    async def deploy(self, write: DeploymentWrite, expected: int) -> int | None:
        """Write a deployment or a change of states; see `Definitions.deploy`."""
        session = Session(self._connection)
        with session.statement():
            await session.wait_until(partial(session.locks.try_key, session, ("settings",)))
            tables = self._connection.database.tables
            if tables.settings[0] != expected:
                session.give_up()
                return None
            number = max(expected + 1, write.at)
            _write_definitions(session, tables, write, number)
            session.changes.deployed_starts = _change_starts(tables.starts.get("", []), write)
            await _change_schedules(session, tables, write)
        await session.finish(Point.UPDATE, Point.UPDATED)
        return number

    async def read_changed(self, after: int, limit: int = 1000) -> CatalogChanges:
        """What came or changed since a number; see `Definitions.read_changed`."""
        tables = await self._tables()
        number = tables.settings[0]
        found = sorted((row for row in tables.definitions.values() if row.changed > after), key=_place_of_change)
        if number < after or len(found) > limit or (limit == 0 and number != after):
            return CatalogChanges(number, (), is_whole=False)
        return CatalogChanges(number, found)

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
        definitions = (await self._tables()).definitions
        if version is not None:
            return definitions.get((org, kind, definition_id, version))
        found = [
            row
            for row in definitions.values()
            if (row.org, row.kind, row.definition_id) == (org, kind, definition_id)
            and row.state != DefinitionState.UNDEPLOYED
            and version_tag in (None, row.version_tag)
            and deployment in (None, row.deployment)
        ]
        return max(found, key=lambda row: row.version, default=None)

    async def search(self, query: DefinitionFilter) -> list[DefinitionRow]:
        """The definitions that a filter selects, by kind and id, of each the newest version first."""
        definitions = (await self._tables()).definitions
        latest = _find_latest(definitions.values())
        found = [
            row
            for row in definitions.values()
            if matches(row, query)
            and has_place_behind(row, query.after)
            and (not query.is_latest_only or latest.get((row.org, row.kind, row.definition_id)) == row.version)
        ]
        return sorted(found, key=lambda row: (row.kind, row.definition_id, -row.version))[: query.limit]

    async def read_resource(self, org: str, digest: str) -> ResourceRow | None:
        """The content of a deployed file; None if the org has none with this digest."""
        return (await self._tables()).resources.get((org, digest))


def _place_of_change(row: DefinitionRow) -> tuple[int, str, str, str, int]:
    return (row.changed, row.org, *row.key)


def _find_latest(rows: Iterable[DefinitionRow]) -> dict[tuple[str, str, str], int]:
    """The newest version of each definition that is not undeployed."""
    latest: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if row.state != DefinitionState.UNDEPLOYED:
            key = (row.org, row.kind, row.definition_id)
            latest[key] = max(row.version, latest.get(key, 0))
    return latest


def _write_definitions(session: Session, tables: Tables, write: DeploymentWrite, number: int) -> None:
    for resource in write.resources:
        if (resource.org, resource.digest) not in tables.resources:
            session.changes.resources[resource.org, resource.digest] = resource
    for row in write.definitions:
        if (row.org, *row.key) in tables.definitions:
            raise StoreError(
                f"Expected version {row.version} of definition '{row.definition_id}' to be new, but it is there. "
                "Read what is deployed, then deploy again."
            )
        session.changes.definitions[row.org, *row.key] = replace(row, updated_at=write.at, changed=number)
    for change in write.states:
        key: OrgKey = (write.org, *change.key)
        stored = session.changes.definitions.get(key) or tables.definitions.get(key)
        if stored is not None:
            changed = replace(stored, state=change.state, updated_at=write.at, changed=number)
            session.changes.definitions[key] = changed
    session.changes.settings = write.at


def _change_starts(stored: Iterable[StartSubscriptionRow], write: DeploymentWrite) -> list[StartSubscriptionRow]:
    kept = [row for row in stored if row.org != write.org or row.workflow not in write.ended_starts]
    return list({_key_of_start(row): row for row in (*kept, *write.starts)}.values())


def _key_of_start(row: StartSubscriptionRow) -> tuple[str, ...]:
    return (row.kind, row.name, row.org, row.workflow, row.queue, row.version)


async def _change_schedules(session: Session, tables: Tables, write: DeploymentWrite) -> None:
    """Whoever fires one of these schedules goes first."""
    new = {row.key: row for row in write.schedules}
    for key in sorted({*((write.org, one) for one in write.ended_schedules), *new}):
        await session.wait_until(partial(session.locks.try_key, session, ("schedule", *key)))
        stored, row = tables.schedules.get(key), new.get(key)
        if row is not None and stored is not None and key[1] not in write.ended_schedules:
            row = replace(row, version=max(stored.version + 1, row.version))
        session.changes.schedules[key] = row


def purge_definitions(session: Session, tables: Tables, before: Instant) -> None:
    """Remove what was undeployed before then and no execution needs, with the resources that nothing else names."""
    old = [
        key
        for key, row in tables.definitions.items()
        if row.state == DefinitionState.UNDEPLOYED and row.updated_at < before and not _is_needed(session, tables, row)
    ]
    if not old or not session.locks.try_key(session, ("settings",)):
        return
    session.changes.definitions.update(dict.fromkeys(old))
    named = {(row.org, row.digest) for key, row in tables.definitions.items() if key not in old}
    gone = {(tables.definitions[key].org, tables.definitions[key].digest) for key in old} - named
    session.changes.resources.update(dict.fromkeys(gone))


def _is_needed(session: Session, tables: Tables, definition: DefinitionRow) -> bool:
    """Whether an execution is one of it, or of a process of the same deployment, which may be bound to it."""
    place = definition.org, definition.deployment
    return any(_is_used(session, tables, row) for row in tables.definitions.values() if (row.org, row.deployment) == place)


def _is_used(session: Session, tables: Tables, definition: DefinitionRow) -> bool:
    place = (definition.org, definition.definition_id, str(definition.version))
    return definition.kind == DefinitionKind.BPMN and any(
        (row.org, row.workflow, row.code_version) == place
        and row.execution_id not in session.changes.purged
        and is_process(row.details)
        for row in tables.executions.values()
    )
