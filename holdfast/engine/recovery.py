"""Recovery: what was in flight when a process ended goes on. Loads what is due, not everything.

Also the watch over other nodes on a shared store: a node whose lease ran out has its activities taken over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from holdfast.core.envelopes import Redispatch
from holdfast.core.instants import SECOND, Instant
from holdfast.engine.requests import Request
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.views import RecoveryReport
from holdfast.errors import CorruptStore, StoreError
from holdfast.store.contract import ExecutionRow, NodeRow

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.config import Config
    from holdfast.engine.pump import Pump
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")
PAGE = 500


class Recovery:
    """Finds orphans and feeds them in again."""

    def __init__(self, store: Store, pump: Pump, clock: Clock, node: str) -> None:
        self._store = store
        self._pump = pump
        self._clock = clock
        self._node = node

    async def recover(self, alive: Collection[str]) -> RecoveryReport:
        """Take over what dead nodes left, try blocked executions again, and say how much there is."""
        taken_over = await self.take_over(alive)
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

    async def take_over(self, alive: Collection[str]) -> int:
        """Give every activity of a dead node a new attempt; how many executions that concerns."""
        found, after = 0, ""
        while True:
            orphans = await self._store.list_orphans(alive, PAGE, after)
            for row in orphans:
                self.redispatch(row, alive)
            found += len(orphans)
            if len(orphans) < PAGE:
                return found
            after = orphans[-1].execution_id

    def redispatch(self, row: ExecutionRow, alive: Collection[str]) -> None:
        """Feed in that the dead ones among an execution's nodes are gone."""
        for node in (row.node or "").split(","):
            if node and node not in alive:
                self._pump.submit(Request(row.org, Redispatch(node=node), execution_id=row.execution_id))

    async def retry_all_blocked(self) -> int:
        """Try every blocked execution again: the code may have been mended since."""
        found, after = 0, ""
        while True:
            rows = await self._store.list_blocked(PAGE, after)
            for row in rows:
                try:
                    await self.retry_blocked(row)
                except CorruptStore:
                    log.exception("blocked execution %s cannot be tried again", row.execution_id)
            found += len(rows)
            if len(rows) < PAGE:
                return found
            after = rows[-1].execution_id

    async def retry_blocked(self, row: ExecutionRow) -> bool:
        """Let a blocked execution take turns again; False if it is not blocked any more."""
        execution = from_row(row)
        execution.unblock()
        execution.state_version += 1
        if not await self._store.set_status(row.org, row.execution_id, row.state_version, to_row(execution)):
            return False
        self._pump.skip.discard(row.execution_id)
        self.redispatch(row, [self._node])
        self._pump.look()
        return True


class Heartbeat:
    """This node's lease on a shared store, and the watch over the others'."""

    def __init__(
        self, store: Store, recovery: Recovery, clock: Clock, config: Config, node: str, on_beat: Callable[[], None]
    ) -> None:
        self._store = store
        self._recovery = recovery
        self._clock = clock
        self._interval = round(config.heartbeat * SECOND)
        self._lease = round(config.lease * SECOND)
        self._node = node
        self._on_beat = on_beat
        self._started = clock.now()
        self._steady_since: Instant | None = None
        self._alarm: Alarm | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def beat(self) -> None:
        """Renew the lease; then see who did not."""
        now = self._clock.now()
        try:
            await self._store.beat(NodeRow(self._node, now, self._started))
            if self._steady_since is None:
                self._steady_since = now
            self._on_beat()
            # Only who held its own lease without a break for a whole period may call others dead: after an outage of the
            # database nobody robs everybody.
            if now - self._steady_since >= self._lease:
                alive = [one.node for one in await self._store.list_nodes() if now - one.seen_at < self._lease]
                await self._recovery.take_over(alive)
        except StoreError as error:
            self._steady_since = None
            log.warning("node %s could not renew its lease: %s", self._node, error)
        if not self._stopped:
            self._alarm = self._clock.call_at(self._clock.now() + self._interval, self._spawn)

    def _spawn(self) -> None:
        task = asyncio.get_running_loop().create_task(self.beat(), name="holdfast-heartbeat")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def stop(self, *, leave: bool) -> None:
        """No more heartbeats."""
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self.tasks):
            task.cancel()
        if leave:
            await self._store.leave(self._node)
