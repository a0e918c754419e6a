"""The verbs of operators: lists and counts of executions, backlogs, nodes, dead letters."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from typing import Protocol, Unpack

from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.views import DeadLetter


class OperationVerbs(Protocol):
    """Lists executions, backlogs, nodes and dead letters."""

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first; `cursor` of the list leads to the next page."""
        ...

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`; up to 10,000 of them."""
        ...

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue. Counts end at 10,000."""
        ...

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name. A client is none."""
        ...

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        ...

    async def requeue_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Put dead letters back into their inboxes. Returns how many of the ids there were."""
        ...

    async def discard_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Delete dead letters. Returns how many of the ids there were."""
        ...
