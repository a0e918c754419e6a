"""What can be asked of executions, nodes and dead letters. Nothing here changes anything."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.engine.encoded_store import show_encoded
from holdfast.engine.nodes.roster import NodeInfo, list_nodes
from holdfast.engine.results import Ending, find_following, read_closing
from holdfast.engine.rows import to_turns
from holdfast.engine.use_cases.backlogs import QueueBacklog, read_backlog
from holdfast.engine.use_cases.dead_letters import check_page
from holdfast.engine.use_cases.inboxes import add_inbox, may_be_stuck
from holdfast.engine.use_cases.missing_definitions import find_missing
from holdfast.engine.use_cases.pausing import add_pauses
from holdfast.engine.use_cases.pending_work import ThisNode, add_pending
from holdfast.engine.use_cases.searching import (
    ExecutionCounts,
    ExecutionList,
    PageOptions,
    SearchConditions,
    make_count_filter,
    make_counts,
    make_list,
    make_page_filter,
)
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, add_unheard, to_dead_letter, to_info

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow


class Queries:
    """Answers questions from the store, and from what this node knows beside it."""

    def __init__(
        self,
        store: Store,
        delivery: Delivery,
        clock: Clock,
        here: ThisNode,
        searchable: frozenset[str] | None = None,
    ) -> None:
        """`searchable` are the keys of states by which can be searched; None: all, or it is not known."""
        self._store = store
        self._shown = show_encoded(store)
        self._delivery = delivery
        self._clock = clock
        self._here = here
        self._searchable = searchable

    async def status(self, org: str, target: str) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        row = await self._delivery.find_or_raise(org, target, "query")
        [info] = await self._to_infos([row])
        info = await add_pending(self._shown, info, row, self._clock.now(), self._here)
        info = await add_pauses(self._store, info)
        info = add_unheard(info, self._here.node, self._here.runner.begun.find_unheard(info.execution_id))
        return await add_inbox(self._shown, info) if may_be_stuck(info) else info

    async def ending(self, org: str, target: str) -> Ending | None:
        """How an execution ended, or the last run of its chain; None while that is open. Raises ExecutionNotFound."""
        while True:
            row = await self._delivery.find_or_raise(org, target, "query")
            if row.closed_at is None:
                return None
            closing = await read_closing(self._store, row.execution_id)
            if (following := find_following(closing)) is None:
                return Ending(closing, row.workflow_id, row.execution_id)
            target = following

    async def history(self, org: str, target: str) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        row = await self._delivery.find_or_raise(org, target, "read the history of")
        return History(to_turns(await self._shown.load_history(row.execution_id)), row.execution_id, row.org)

    async def list(self, options: PageOptions) -> ExecutionList:
        """Executions that fit, newest first. Raises InvalidArguments."""
        query = make_page_filter(options, self._searchable)
        page = await self._shown.search_executions(query)
        return make_list(await self._to_infos(page.rows), page, query)

    async def count(self, conditions: SearchConditions) -> ExecutionCounts:
        """How many executions fit, by status, up to 10,000. Raises InvalidArguments."""
        return make_counts(await self._store.count_executions(make_count_filter(conditions, self._searchable)))

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue."""
        return await read_backlog(self._store, self._clock.now())

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store, or did so until recently, sorted by name."""
        return await list_nodes(self._store, self._clock.now(), self._here.node)

    async def dead_letters(self, org: str, limit: int, after: int) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        check_page(org, limit, after)
        return [to_dead_letter(row) for row in await self._shown.list_dead_letters(org, limit, after)]

    async def _to_infos(self, rows: Sequence[ExecutionRow]) -> builtins.list[ExecutionInfo]:
        missing = await find_missing(self._store, self._here.routes, self._here.node, self._clock.now(), rows)
        return [to_info(row, missing.get(row.execution_id)) for row in rows]
