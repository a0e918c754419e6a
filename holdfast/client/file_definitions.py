"""What is deployed in a SQLite file that nobody owns, read from the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.deployment_views import DefinitionInfo, DefinitionList

if TYPE_CHECKING:
    from holdfast.engine.use_cases.deployments import Deployments
    from holdfast.store.sqlite.files import SqliteFile


class FileDefinitions:
    """The reading verbs about deployed definitions, on a file."""

    def __init__(self, file: SqliteFile, deployments: Deployments) -> None:
        self._definitions_file = file
        self._deployments = deployments

    async def definitions(
        self,
        *,
        definition_id: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        all_versions: bool = False,
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> DefinitionList:
        """The deployed processes, decisions and forms of an org, by kind and id."""
        await self._definitions_file.open()
        return await self._deployments.list(
            org,
            definition_id=definition_id,
            kind=kind,
            state=state,
            all_versions=all_versions,
            limit=limit,
            cursor=cursor,
        )

    async def definition(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> DefinitionInfo:
        """One version of a definition, or the newest that is not undeployed. Raises UnknownDefinition."""
        await self._definitions_file.open()
        return await self._deployments.find(org, definition_id, kind, version)

    async def definition_xml(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bytes:
        """The file that a version of a definition came with, byte for byte. Raises UnknownDefinition."""
        await self._definitions_file.open()
        return await self._deployments.read_content(org, definition_id, kind, version)
