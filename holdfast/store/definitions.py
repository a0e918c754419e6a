"""What stores promise about deployed definitions: processes, decisions and forms, each with its versions.

Theory of operation
-------------------
A definition is a row per version; of a version only the state changes. Its content is a resource, kept once for each org by
its digest. A deployment is written by one transaction: resources, versions, changes of states, and the start subscriptions
and start timers that follow from them. The engine decides what to write from what it has read, and names the number as of
which it has read it; if that is outdated, nothing is written, and the engine reads again. So two deployments never give the
same version to different content.

The number is the settings number, see `holdfast.store.pauses`: whoever deploys, undeploys, enables or disables raises it by
the same commit. A batch that has taken turns by an earlier number loses them, reads the pauses and what `read_changed`
tells, and takes them again. So a start that is made after `deploy` has returned gets the new version on every node, and
nothing is asked for in each batch. Who is about to refuse a start, since it does not know the definition, has no turn to
lose: it must ask `read_changed` first.

A definition that is undeployed starts nothing any more, and is there for its executions. It goes when `Store.purge` has
removed the last of them, and its resource goes with the last definition that names it. Which executions a version of a
process has is found by an attribute of theirs, see `holdfast.store.attributes`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from holdfast.core.instants import Instant
from holdfast.store.publications import StartSubscriptionRow
from holdfast.store.schedules import ScheduleRow


class DefinitionKind(StrEnum):
    """What a definition is, and its resource contains."""

    BPMN = "bpmn"
    """A process; its id is the process id. A resource may hold several."""
    DMN = "dmn"
    """A decision; its id is the decision id. A resource may hold several."""
    FORM = "form"


class DefinitionState(StrEnum):
    """Whether a version of a definition may be used for something new."""

    ACTIVE = "active"
    DISABLED = "disabled"
    """It starts nothing until it is enabled again. It stays the latest version."""
    UNDEPLOYED = "undeployed"
    """It starts nothing any more, and no longer counts as the latest version."""


DefinitionKey: TypeAlias = tuple[str, str, int]
"""(kind, definition id, version) within an org."""


class ResourceRow(msgspec.Struct, frozen=True, gc=False):
    """The content of a deployed file. Never changes; the same content deployed again keeps the first name."""

    org: str
    digest: str
    """SHA-256 of the content, in hexadecimal: of all of `data`."""
    name: str
    kind: str
    data: bytes


class DefinitionRow(msgspec.Struct, frozen=True, gc=False):
    """A version of a definition. Only `state`, `updated_at` and `changed` change."""

    org: str
    kind: str
    definition_id: str
    """The process id, decision id or form id: of no more than 255 bytes."""
    version: int
    """1 for the first; an execution names it as its code version."""
    digest: str
    """The digest of its resource."""
    deployment: str
    """The id of the deployment by which it came."""
    deployed_at: Instant
    state: str = DefinitionState.ACTIVE.value
    name: str = ""
    """What people call it; empty: it has no name."""
    version_tag: str = ""
    """Empty: it has none."""
    updated_at: Instant = 0
    """When its state changed last; the store sets it."""
    changed: int = 0
    """The settings number since which it is as it is; given by the store."""
    details: bytes = b"{}"
    """JSON of which the store reads nothing."""

    @property
    def key(self) -> DefinitionKey:
        """Its kind, id and version, by which it is found within its org."""
        return self.kind, self.definition_id, self.version


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """The state that a version of a definition has from now on."""

    kind: str
    definition_id: str
    version: int
    state: str

    @property
    def key(self) -> DefinitionKey:
        """Its kind, id and version, by which it is found within its org."""
        return self.kind, self.definition_id, self.version


class DeploymentWrite(msgspec.Struct, frozen=True, gc=False):
    """Everything that a deployment, or a change of states, writes in one org: all of it, or nothing."""

    org: str
    at: Instant
    resources: Sequence[ResourceRow] = ()
    """The content of all `definitions`, also if it is known to be there: what is there stays."""
    definitions: Sequence[DefinitionRow] = ()
    """New versions."""
    states: Sequence[StateChange] = ()
    """What becomes of versions that are there; one that is not there is left out."""
    ended_starts: Collection[str] = ()
    """Workflows (process ids) whose start subscriptions by deployments end, before those of `starts` begin."""
    starts: Sequence[StartSubscriptionRow] = ()
    """Start subscriptions of the org's own: with its org, and without a node."""
    ended_schedules: Collection[str] = ()
    """Ids of schedules that end, whatever their version, before those of `schedules` begin."""
    schedules: Sequence[ScheduleRow] = ()
    """Schedules that begin. One that is there under such an id is replaced, and its version grows."""


class CatalogChanges(msgspec.Struct, frozen=True, gc=False):
    """What has changed in the definitions of all orgs since a number."""

    number: int
    """The present settings number."""
    definitions: Sequence[DefinitionRow] = ()
    """Versions that came or changed their state since, by the number of their change; later changes may be among them."""
    is_whole: bool = True
    """Whether these are all. If not, everything that is known of definitions must be read again when it is needed."""


class DefinitionFilter(msgspec.Struct, frozen=True, gc=False):
    """Which definitions of an org to list: by kind and id, of each the newest version first."""

    org: str
    kind: str | None = None
    definition_id: str | None = None
    deployment: str | None = None
    digest: str | None = None
    states: Collection[str] = ()
    """Empty: whatever their state."""
    is_latest_only: bool = False
    """Only the newest version of each that is not undeployed; the other conditions are asked of that one."""
    after: DefinitionKey | None = None
    """The last of the page before."""
    limit: int = 100


class Definitions(Protocol):
    """Deployed definitions and their content, outside of batches. Each call is a transaction of its own."""

    async def deploy(self, write: DeploymentWrite, expected: int) -> int | None:
        """Write a deployment or a change of states, and raise the settings number: to the number returned. Atomic.

        None if the settings number is not `expected`: then nothing was written, and what was read is outdated. Durable on
        return. May raise OutcomeUnknown: a look at what is there tells what became of it.
        """
        ...

    async def read_changed(self, after: int, limit: int = 1000) -> CatalogChanges:
        """The versions of all orgs that came or changed their state since a settings number, and the present number.

        If the present number is smaller than `after`, the database went back to an earlier state: nothing is told then,
        and `is_whole` is False. With a `limit` of 0 the number alone is read, and `is_whole` is False unless it is `after`.
        """
        ...

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
        """A version by its number, whatever its state; else the newest that is not undeployed, perhaps a disabled one.

        With `version_tag` or `deployment`, the newest of those that have this tag, or came by this deployment.
        """
        ...

    async def search(self, query: DefinitionFilter) -> list[DefinitionRow]:
        """The definitions that a filter selects, by kind and id, of each the newest version first."""
        ...

    async def read_resource(self, org: str, digest: str) -> ResourceRow | None:
        """The content of a deployed file; None if the org has none with this digest."""
        ...


def matches(row: DefinitionRow, query: DefinitionFilter) -> bool:
    """Whether a filter selects a definition, whatever the page, and whether or not it is the latest."""
    return (
        row.org == query.org
        and query.kind in (None, row.kind)
        and query.definition_id in (None, row.definition_id)
        and query.deployment in (None, row.deployment)
        and query.digest in (None, row.digest)
        and (not query.states or row.state in query.states)
    )


def has_place_behind(row: DefinitionRow, after: DefinitionKey | None) -> bool:
    """Whether a definition comes behind another in lists."""
    if after is None:
        return True
    kind, definition_id, version = after
    return (row.kind, row.definition_id, -row.version) > (kind, definition_id, -version)
