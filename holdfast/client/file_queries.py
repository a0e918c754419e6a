"""Questions to a SQLite file that nobody owns: it is read, and nothing else."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Unpack

from holdfast.client.direct import DirectVerbs, make_silence
from holdfast.client.file_definitions import FileDefinitions
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.engine.incident_views import IncidentList
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.requests import AnyRequest, Handled
from holdfast.engine.results import Ending
from holdfast.engine.stale_views import StaleList
from holdfast.engine.task_views import TaskEvent, TaskInfo, TaskList
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.human_tasks import TaskConditions
from holdfast.engine.use_cases.incidents import IncidentConditions
from holdfast.engine.use_cases.pausing import list_pauses
from holdfast.engine.use_cases.publications import PendingEvent
from holdfast.engine.use_cases.queries import Queries
from holdfast.engine.use_cases.schedule_views import ScheduleInfo
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.stale_work import check_options, list_stale
from holdfast.engine.use_cases.variables import read_variables
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, Pause
from holdfast.errors import AnswerTimedOut
from holdfast.store.contract import Store
from holdfast.store.rows import RequestKeyId
from holdfast.store.sqlite.files import SqliteFile

WATCH_PAUSE: Final = 0.5
"""Seconds between two looks at an execution that is watched, while nobody owns the file."""


class FileQueries(FileDefinitions):
    """The reading verbs on a file. What waits in an inbox to become an execution is not one yet."""

    def __init__(self, path: Path, codec: PayloadCodec | None = None) -> None:
        self._file = SqliteFile(path)
        reader = _Reader(self._file, codec=codec)
        self._queries, self._tasks, self._publications = reader._queries, reader._human_tasks, reader._publications
        self._schedules, self._clock = reader._schedules, reader.clock
        self._incidents = reader._incident_queries
        super().__init__(self._file, reader._deployments)

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

    async def query(self, target: str, name: str, *_args: Any, org: str = DEFAULT_ORG, **_options: Any) -> Any:
        """Nobody is there who has the code. Raises NobodyAnswers, or ExecutionNotFound."""
        await self.query_status(target, org=org)
        raise make_silence(f"query '{name}'")

    async def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status, after a pause if it is the one that was seen: nobody owns the file, but somebody may soon."""
        info = await self.query_status(target, org=org)
        if info.state_version == seen and (seen_pauses is None or list(seen_pauses) == [str(one) for one in info.pauses]):
            seconds = WATCH_PAUSE if timeout is None else to_micros(timeout, "the timeout") / SECOND
            await asyncio.sleep(min(WATCH_PAUSE, seconds))
            if seconds < WATCH_PAUSE:
                raise AnswerTimedOut(f"Expected execution '{target}' to change, but nobody owns the file. Start an engine.")
        return info

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

    async def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused."""
        await self._file.open()
        return await list_pauses(self._file, org)

    async def stale(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """List the human tasks, then the executions, that nobody has touched for `older_than`."""
        options = check_options(older_than, org, limit, cursor)
        await self._file.open()
        return await list_stale(self._file, options, self._clock.now())

    async def variables(
        self, target: str, *, scope: str | None = None, org: str = DEFAULT_ORG, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """Nobody is there who runs the process. Raises NobodyAnswers, or ExecutionNotFound."""
        return await read_variables(self, target, scope, org, timeout)

    async def incidents(
        self, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None, **conditions: str | None
    ) -> IncidentList:
        """List the open incidents for which all conditions hold."""
        await self._file.open()
        return await self._incidents.list(IncidentConditions(org=org, **conditions), limit, cursor)

    async def count_incidents(self, *, org: str = DEFAULT_ORG, **conditions: str | None) -> int:
        """Count the open incidents under the conditions of `incidents`."""
        await self._file.open()
        return await self._incidents.count(IncidentConditions(org=org, **conditions))

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that worked on the file: nobody does now."""
        await self._file.open()
        return await self._queries.nodes()

    async def tasks(self, **conditions: Unpack[TaskConditions]) -> TaskList:
        """List the human tasks for which all conditions hold."""
        await self._file.open()
        return await self._tasks.search(conditions)

    async def task(self, task_id: str, *, org: str = DEFAULT_ORG) -> TaskInfo:
        """A human task with what the person is shown, and its form. Raises TaskNotFound."""
        await self._file.open()
        return await self._tasks.find(org, task_id)

    async def is_answered(self, key: RequestKeyId) -> bool:
        """Whether the answer to a request is kept under its key."""
        await self._file.open()
        found = await self._file.read_requests([key], self._clock.now())
        return key in found and found[key].answer is not None

    async def task_events(self, task_id: str, *, org: str = DEFAULT_ORG) -> builtins.list[TaskEvent]:
        """What happened to a human task, in order. Raises TaskNotFound."""
        await self._file.open()
        return await self._tasks.list_events(org, task_id)

    async def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type that are kept, in the order of sending."""
        await self._file.open()
        return await self._publications.list_pending(org, event, limit, after)

    async def describe_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG) -> ScheduleInfo:
        """Describe a schedule, with its next five fire times and its recent runs. Raises ScheduleNotFound."""
        await self._file.open()
        return await self._schedules.describe(org, schedule_id)

    async def schedules(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: str = "") -> builtins.list[ScheduleInfo]:
        """List the schedules of an org behind the id `after`, in the order of their ids."""
        await self._file.open()
        return await self._schedules.list(org, limit, after)

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
