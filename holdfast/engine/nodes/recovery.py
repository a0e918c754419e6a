"""Recovery: what was in flight when a process ended goes on. Loads what is due, not everything."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.core import codec
from holdfast.core.failures import PROCESS_LOST
from holdfast.engine.nodes.take_over import Gone, find_left
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.views import RecoveryReport
from holdfast.errors import CorruptStore
from holdfast.store.contract import ExecutionRow

if TYPE_CHECKING:
    from holdfast.engine.batches.pump import Pump
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")
PAGE = 500


class Recovery:
    """Finds orphans and feeds them in again."""

    def __init__(self, store: Store, pump: Pump, routes: Routes) -> None:
        self._store = store
        self._pump = pump
        self._routes = routes

    async def recover(self, gone: Gone, alive: Collection[str] = ()) -> RecoveryReport:
        """Take over what nodes left that are gone, try blocked executions again, and say how much there is."""
        left = await find_left(self._store, gone, alive)
        for one in left:
            self._pump.submit(one.to_request())
        taken_over = len({one.execution_id for one in left})
        blocked = await self.retry_all_blocked()
        counts = await self._store.count()
        self._pump.look()
        return RecoveryReport(
            resumed=taken_over,
            waiting=counts.executions.get("suspended", 0),
            timers=counts.timers,
            taken_over=taken_over,
            blocked=blocked,
            inbox=counts.inbox,
        )

    async def retry_all_blocked(self) -> int:
        """Try blocked executions again that other code blocked, or code without a version; how many there are."""
        found, after = 0, ""
        while True:
            rows = await self._store.list_blocked(PAGE, after)
            for row in rows:
                try:
                    if self._may_retry(row):
                        await self.retry_blocked(row)
                except CorruptStore:
                    log.exception("blocked execution %s cannot be tried again", row.execution_id)
            found += len(rows)
            if len(rows) < PAGE:
                return found
            after = rows[-1].execution_id

    def _may_retry(self, row: ExecutionRow) -> bool:
        """Whether the code that is here may fit better than that which blocked it."""
        version = self._routes.version_of(row.workflow)
        if version is None or not self._routes.may_take(row.route):
            return False
        details = codec.decode_details(row.details)
        if details.blocked_version:
            return details.blocked_version != version
        # Code without a version may have been mended. If it ended its process, somebody has to say so.
        return details.last_error is None or details.last_error.type != PROCESS_LOST

    async def retry_blocked(self, row: ExecutionRow) -> bool:
        """Let a blocked execution take turns again; False if it is not blocked any more."""
        execution = from_row(row)
        execution.unblock()
        execution.state_version += 1
        if not await self._store.set_status(row.org, row.execution_id, row.state_version, to_row(execution)):
            return False
        self._pump.skip.discard(row.execution_id)
        self._pump.look()
        return True
