"""The verbs about deployed processes, decisions and forms."""

from __future__ import annotations

from typing import Protocol

from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.deployment_views import DefinitionInfo, DefinitionList, Deployment
from holdfast.engine.processes.source_files import Files


class DeploymentVerbs(Protocol):
    """Deploys files, takes back what is in them, and tells what is deployed."""

    async def deploy(self, files: Files, *, org: str = DEFAULT_ORG) -> Deployment:
        """Deploy BPMN processes, DMN decisions and forms: a path, several, or a dictionary from file names to content.

        All or nothing: everything is checked first. Unchanged content makes no new version. When it returns, every start on
        every node gets the new version; executions keep theirs. Message, signal and timer start events hold from then on.
        Raises InvalidProcess, which lists all problems with file, line, element and remedy; DeploymentRefused if a code
        workflow has the id of a process, or a message would start two; InvalidArguments if a file cannot be read.
        """
        ...

    async def undeploy(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing any more, or one version of it; its executions go on.

        It is removed with its last execution. Returns False if nothing was to be done. Raises UnknownDefinition.
        """
        ...

    async def disable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a definition start nothing until it is enabled; its executions go on. Its start timers end.

        It stays the newest version. Returns False if it is disabled already. Raises UnknownDefinition.
        """
        ...

    async def enable(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bool:
        """Let a disabled definition start executions again; its start timers count from now on.

        Dates that have passed do not fire. Returns False if it is enabled already. Raises UnknownDefinition.
        """
        ...

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
        """The deployed processes, decisions and forms of an org, by kind and id; `cursor` of the list leads on.

        Of each the newest version that is not undeployed, or with `all_versions` all of them, the newest first.
        """
        ...

    async def definition(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> DefinitionInfo:
        """One version of a definition in any state, or the newest that is not undeployed. Raises UnknownDefinition."""
        ...

    async def definition_xml(
        self, definition_id: str, *, version: int | None = None, kind: str = "bpmn", org: str = DEFAULT_ORG
    ) -> bytes:
        """The file that a version of a definition came with, byte for byte. Raises UnknownDefinition."""
        ...
