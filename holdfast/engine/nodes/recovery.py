"""Recovery, when an engine opens or is asked: takes over from ended nodes, and tries blocked executions again.

It loads no execution: what is fed in here is loaded when its turn comes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from holdfast.core.failures import PROCESS_LOST
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.views import RecoveryReport
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.log_events import LogEvent, tag_execution
from holdfast.store.rows import ExecutionRow

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.nodes.take_over import EndedNodes, TakeOver
    from holdfast.engine.routes import Routes
    from holdfast.engine.turns.pump import Pump
    from holdfast.store.contract import Store
    from holdfast.store.once import KeyedCall

log = logging.getLogger("holdfast.engine")
PAGE = 500


class Recovery:
    """Recovers what other processes left, and reports how much there is."""

    def __init__(
        self,
        store: Store,
        pump: Pump,
        routes: Routes,
        take_over: TakeOver,
        clock: Clock,
        on_retried: Callable[[], None],
    ) -> None:
        self._store = store
        self._pump = pump
        self._routes = routes
        self._take_over = take_over
        self._clock = clock
        self._on_retried = on_retried

    async def recover(self, ended: EndedNodes, alive: Collection[str] = ()) -> RecoveryReport:
        """Take over from ended nodes, try blocked executions again, and report how much there is. Raises StoreError."""
        recovered = await self._take_over.recover(ended, alive)
        blocked = await self.retry_all_blocked()
        counts = await self._store.count()
        self._pump.look()
        return RecoveryReport(
            resumed=recovered.resumed,
            waiting=counts.executions.get("suspended", 0),
            timers=counts.timers,
            taken_over=recovered.taken_over,
            blocked=blocked,
            inbox=counts.inbox,
        )

    async def retry_all_blocked(self) -> int:
        """Unblock executions that another version of the code blocked, or code without a version; how many are blocked."""
        found, after = 0, ""
        while True:
            rows = await self._store.list_blocked(PAGE, after)
            for row in rows:
                try:
                    if self._may_retry(row):
                        await self._unblock(row)
                except (CorruptStore, NewerFormat):
                    log.exception(
                        "blocked execution %s cannot be read, and stays blocked",
                        row.execution_id,
                        extra=tag_execution(LogEvent.BLOCKED_NOT_READ, row),
                    )
            found += len(rows)
            if len(rows) < PAGE:
                return found
            after = rows[-1].execution_id

    def _may_retry(self, row: ExecutionRow) -> bool:
        """Whether this node's code may succeed where the code failed that blocked the execution."""
        execution = from_row(row)
        version = self._routes.version_for(execution)
        if version is None or not self._routes.may_take(row.route):
            return False
        details = execution.details
        if details.blocked_version:
            return details.blocked_version != version
        # Code without a version may have been fixed. An execution that ended its process waits for retry_blocked.
        return details.last_error is None or details.last_error.type != PROCESS_LOST

    async def retry_blocked(self, row: ExecutionRow, call: KeyedCall | None = None) -> bool:
        """Unblock an execution, so that it takes turns again; False if it is not blocked, or was changed meanwhile.

        With a key, a repeated call gets the first answer. Raises CorruptStore.
        """
        if row.status != Status.BLOCKED:
            return call is not None and await self._store.remember(call, answer=0) == 1
        is_retried = await self._unblock(row, call)
        if is_retried:  # nodes that look at it no more are told
            self._on_retried()
        return is_retried

    async def _unblock(self, row: ExecutionRow, call: KeyedCall | None = None) -> bool:
        execution = from_row(row)
        execution.unblock(self._clock.now())
        execution.state_version += 1
        if not await self._store.set_status(row.org, row.execution_id, row.state_version, to_row(execution), call):
            return False
        self._pump.unskip([row.execution_id])
        return True
