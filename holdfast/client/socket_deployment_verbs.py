"""The verbs about deployed definitions over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

from holdfast.client.socket_calls import SocketCalls
from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.deployment_views import DefinitionInfo, DefinitionList, Deployment
from holdfast.engine.processes.source_files import Files, collect_files, to_text
from holdfast.engine.serving.messages import DefinitionPage


class SocketDeploymentVerbs(SocketCalls):
    """Takes calls about deployed definitions to the owner of a database. Files are read here, and travel as texts."""

    async def deploy(self, files: Files, *, org: str = DEFAULT_ORG) -> Deployment:
        """Deploy BPMN processes, DMN decisions and forms, all of them or none."""
        texts = {one.name: to_text(one) for one in collect_files(files)}
        return await self._call("deploy", Deployment, [texts], {"org": org})

    async def undeploy(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing any more, or one version of it."""
        return await self._call("undeploy", bool, [definition_id], {"version": version, "kind": kind, "org": org})

    async def disable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing until it is enabled."""
        return await self._call("disable", bool, [definition_id], {"version": version, "kind": kind, "org": org})

    async def enable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a disabled definition start executions again."""
        return await self._call("enable", bool, [definition_id], {"version": version, "kind": kind, "org": org})

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
        named = {
            "definition_id": definition_id,
            "kind": kind,
            "state": state,
            "all_versions": all_versions,
            "org": org,
            "limit": limit,
            "cursor": cursor,
        }
        page = await self._call("definitions", DefinitionPage, [], named)
        found = DefinitionList(page.definitions)
        found.cursor = page.cursor
        return found

    async def definition(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> DefinitionInfo:
        """One version of a definition, or the newest that is not undeployed."""
        named = {"version": version, "kind": kind, "org": org}
        return await self._call("definition", DefinitionInfo, [definition_id], named)

    async def definition_xml(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bytes:
        """The file that a version of a definition came with, byte for byte."""
        named = {"version": version, "kind": kind, "org": org}
        return await self._call("definition_xml", bytes, [definition_id], named)
