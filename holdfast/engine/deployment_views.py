"""Deployments and deployed definitions as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from holdfast.core.instants import to_datetime
from holdfast.core.shown_values import ShownPage, ShownValue
from holdfast.engine.processes.known_definitions import read_details
from holdfast.store.definitions import DefinitionRow

Kind = Literal["bpmn", "dmn", "form"]
State = Literal["active", "disabled", "undeployed"]


class DeployedDefinition(ShownValue, frozen=True, kw_only=True):
    """A process, decision or form of a deployment."""

    kind: Kind
    id: str
    """The process id, decision id or form id."""
    version: int
    is_new: bool
    """Whether this deployment made the version; else the content is that of a version that was there."""
    name: str = ""
    version_tag: str = ""
    file: str = ""

    def __str__(self) -> str:
        tag = f" ({self.version_tag})" if self.version_tag else ""
        return f"{self.kind} {self.id} version {self.version}{tag}{'' if self.is_new else ', unchanged'}"


class Deployment(ShownValue, frozen=True, kw_only=True):
    """What came of deploying files: one version of each definition in them, new or found."""

    id: str
    """Tells it from other deployments; if nothing was new, that of the first of the versions that were found."""
    org: str
    definitions: tuple[DeployedDefinition, ...]
    notices: tuple[str, ...] = ()
    """What is handled in another way than written in the files; each with its place."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.definitions))


class DefinitionInfo(ShownValue, frozen=True, kw_only=True):
    """One version of a deployed process, decision or form."""

    org: str
    kind: Kind
    id: str
    version: int
    name: str
    version_tag: str
    state: State
    """Only what is active starts something new; what is undeployed is there for its executions."""
    deployment: str
    deployed_at: datetime
    file: str
    starts: tuple[str, ...] = ()
    """Of a process: what starts it beside calls, as `message 'order'`, `signal 'go'` and `timer R/PT1H`."""

    def __str__(self) -> str:
        tag = f" ({self.version_tag})" if self.version_tag else ""
        return f"{self.kind} {self.id} version {self.version}{tag}, {self.state}"


class DefinitionList(ShownPage[DefinitionInfo]):
    """A page of deployed definitions. `cursor` leads to the next page; it is None if that was all."""

    items_name = "definitions"


def show_definition(row: DefinitionRow) -> DefinitionInfo:
    """A stored version as it is shown."""
    details = read_details(row)
    words = {"message": "message", "broadcast": "signal"}
    starts = [f"{words.get(one.kind, one.kind)} '{one.name}'" for one in details.starts]
    return DefinitionInfo(
        org=row.org,
        kind=row.kind,  # type: ignore[arg-type]  # the store keeps it as a text
        id=row.definition_id,
        version=row.version,
        name=row.name,
        version_tag=row.version_tag,
        state=row.state,  # type: ignore[arg-type]
        deployment=row.deployment,
        deployed_at=to_datetime(row.deployed_at),
        file=details.file,
        starts=(*starts, *(f"timer {one.text}" for one in details.timers)),
    )
