"""Questions to a SQLite file that nobody owns: it is read, and nothing else."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any, Unpack

from holdfast.client.direct import DirectVerbs
from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.requests import AnyRequest, Handled
from holdfast.engine.results import Ending
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.queries import Queries
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.views import DeadLetter, ExecutionInfo, History
from holdfast.store.contract import Store
from holdfast.store.sqlite.files import SqliteFile


class FileQueries:
    """The reading verbs on a file. What waits in an inbox to become an execution is not one yet."""

    def __init__(self, path: Path, codec: PayloadCodec | None = None) -> None:
        self._file = SqliteFile(path)
        self._queries = make_queries(self._file, codec)

    async def find_ending(self, target: str, *, org: str = DEFAULT_ORG) -> Ending | None:
        """How an execution ended; None while it is open. Raises ExecutionNotFound."""
        await self._file.open()
        return await self._queries.ending(org, target)

    async def find_last_run(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution or, once it was continued or retried, of the newest run of its chain."""
        info = await self.query_status(target, org=org)
        return info if info.closed_at is None else await self.query_status(info.workflow_id, org=org)

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        await self._file.open()
        return await self._queries.status(org, target)

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open."""
        ending = await self.find_ending(target, org=org)
        return None if ending is None else ending.to_value()

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        await self._file.open()
        return await self._queries.history(org, target)

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first."""
        await self._file.open()
        return await self._queries.list(options)

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`."""
        await self._file.open()
        return await self._queries.count(conditions)

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue."""
        await self._file.open()
        return await self._queries.backlog()

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that worked on the file: nobody does now."""
        await self._file.open()
        return await self._queries.nodes()

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        await self._file.open()
        return await self._queries.dead_letters(org, limit, after)


def make_queries(store: Store, codec: PayloadCodec | None = None) -> Queries:
    """Questions to an open store, by somebody who is no node of it, takes no calls and changes nothing."""
    return _Reader(store, codec=codec)._queries


class _Reader(DirectVerbs):
    """Verbs that are never opened: only what they ask with is used."""

    def _submit(self, request: AnyRequest) -> None:
        """Nothing is looked up in inboxes: that would take a batch."""
        request.resolve(Handled())
