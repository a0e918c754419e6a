"""Offers: activities that the node which took the turn could not run itself. This node offers its own, and takes others'.

The store is asked for offers only for a reason: a wake-up or a heartbeat that tells of some, or a slot that became free
while there may be more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import ActivityRaised, Redispatch
from holdfast.core.failures import describe_exception
from holdfast.core.instants import SECOND, Instant
from holdfast.core.options import Cancellation
from holdfast.engine.activities.limits import FreeSlots, RateLimit, SlotLimit, is_suspect
from holdfast.engine.activities.stale_attempts import AttemptKey, StaleAttempts, find_present, key_of
from holdfast.engine.payload_codecs import check_decoded
from holdfast.engine.requests import Request
from holdfast.engine.routes import Routes, make_route
from holdfast.errors import CorruptStore, NewerFormat, StoreError
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask
    from holdfast.core.events import ActivityScheduled
    from holdfast.core.placing import MayKeep
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store
    from holdfast.store.nodes import HeartbeatReply
    from holdfast.store.rows import ActivityRow, Route

log = logging.getLogger("holdfast.engine")

PAGE = 500
LEFT_FOR: Final = 30 * SECOND
"""How long this node leaves a route to others on which it met an offer that only a newer Holdfast can read."""


class OfferGroup:
    """Routes of activities that share all their limits, so that their offers are taken together."""

    def __init__(self, limits: Sequence[SlotLimit | RateLimit]) -> None:
        self._limits = limits
        self.routes: set[Route] = set()
        self.may_have_more = True
        """Whether the store may hold offers of these routes."""

    def count_free(self) -> int:
        """How many offers this node may take now."""
        return min(limit.room for limit in self._limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferTakerDeps:
    """What a node's offer taker works with."""

    store: Store
    catalog: Catalog
    routes: Routes
    runner: ActivityRunner
    clock: Clock
    node: str
    submit: Callable[[Request], None]
    """Puts a request into the next batch."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the background; closing the engine waits for it."""


class OfferTaker:
    """Takes the offered activities that this node can run, and decides which of its own it offers to others."""

    def __init__(self, deps: OfferTakerDeps) -> None:
        self._store = deps.store
        self._activities = deps.catalog.activities
        self._routes = deps.routes
        self._runner = deps.runner
        self._node = deps.node
        self._submit = deps.submit
        self._spawn = deps.spawn
        self._groups = _make_groups(deps.routes, deps.runner, deps.catalog)
        self._clock = deps.clock
        self._left_routes: dict[Route, Instant] = {}
        """Routes on which a newer Holdfast offers what this one cannot read, and until when they are left to others."""
        self._may_have_more = False
        """Whether any group may have more offers: only then does a free slot matter."""
        self._is_taking = False
        self._is_closed = False
        self._is_doubtful = False
        """Whether this node may have taken offers without knowing it, since the store's answer was lost."""
        self._went_back = False
        """Whether that is because the database went back: then it may have run them before."""
        self._stale = StaleAttempts(deps.store, deps.runner, deps.node)
        self._queued_before: set[AttemptKey] = set()
        """Activities that waited for a slot at the last heartbeat."""

    # --- offering activities of this node ---

    def make_may_keep(self) -> MayKeep:
        """A predicate for one batch: which of its activities this node runs itself."""
        routes = self._routes
        if self._store.exclusive:
            return routes.may_run
        if self._is_closed:
            return lambda _event: False  # this node is leaving: others run what comes now
        free = FreeSlots(self._runner.slots)

        def may_keep(event: ActivityScheduled) -> bool:
            return routes.may_run(event) and free.take(self._activities[event.name], event.options.queue)

        return may_keep

    # --- taking offers ---

    def look(self) -> None:
        """Look for offers: another node may have made some."""
        for group in self._groups:
            group.may_have_more = True
        self._may_have_more = bool(self._groups)
        self.on_slot_freed()

    def close(self) -> None:
        """Take no more offers from the store, and offer every new activity of this node to others."""
        self._is_closed = True

    def on_slot_freed(self) -> None:
        """Take more offers if there may be some and this node has free slots."""
        if not self._may_have_more or self._is_taking or self._is_closed:
            return
        if any(map(_may_take_from, self._groups)):
            self._is_taking = True
            self._spawn(self._take())

    async def _take(self) -> None:
        try:
            while not self._is_closed and (groups := [group for group in self._groups if _may_take_from(group)]):
                for group in groups:
                    await self._take_from(group)
        except StoreError as error:
            self._is_doubtful = True
            log.warning(
                "node %s could not take offers, and tries again with its next heartbeat: %s",
                self._node,
                error,
                extra=tag(LogEvent.OFFERS_NOT_TAKEN, node=self._node),
            )
        finally:
            self._is_taking = False
            self._may_have_more = any(group.may_have_more for group in self._groups)

    async def _take_from(self, group: OfferGroup) -> None:
        limit = group.count_free()  # again: the groups before it may have filled the slots
        if limit <= 0 or self._is_closed:
            return
        group.may_have_more = False  # of offers made from now on a wake-up tells
        routes = group.routes.difference(self._left_routes) if self._left_routes else group.routes
        if exhausted := self._runner.slots.exhausted:  # with the next heartbeat it looks again
            routes = routes.difference(make_route(queue, name) for queue in self._routes.queues for name in exhausted)
        rows = await self._store.take_offers(self._node, routes, limit) if routes else []
        if len(rows) == limit:
            group.may_have_more = True
        checks = [check for row in rows if (check := self._begin(row)) is not None]
        if checks:
            await asyncio.gather(*checks)  # before more is taken: until they start, they do not count against the limits

    def _begin(self, row: ActivityRow) -> Coroutine[Any, Any, None] | None:
        """Start what was taken. Returns what has to be awaited, if it has to be found out whether it was cancelled."""
        try:
            task = codec.decode_task(row.body)
            check_decoded(row.body, task)
        except CorruptStore as error:
            failure = msgspec.structs.replace(describe_exception(error), non_retryable=True)
            raised = ActivityRaised(number=row.number, attempt=row.attempt, failure=failure)
            self._submit(Request(row.org, raised, execution_id=row.execution_id))
            return None
        except NewerFormat as error:
            self._leave_to_newer(row, error)
            return None
        if task.event.options.cancellation is Cancellation.WAIT:
            return self._start_unless_cancelled(task)
        self._runner.start(task)
        return None

    async def _start_unless_cancelled(self, task: ActivityTask) -> None:
        """Start an attempt, or report its end at once if it was cancelled while it was on offer."""
        try:
            if await self._stale.is_cancelled(task):
                task = msgspec.structs.replace(task, is_cancelled=True)
        except StoreError:
            pass  # a heartbeat finds it out
        self._runner.start(task)

    def _leave_to_newer(self, row: ActivityRow, error: NewerFormat) -> None:
        """Hand back an offer that only a newer Holdfast can read, and take no more from its route for a while.

        Else this node would take it again, and again, before a newer one does.
        """
        if row.route not in self._left_routes:
            log.warning(
                "offers by route '%s' (activity %d of execution %s) are left to other nodes for %d s: %s",
                row.route,
                row.number,
                row.execution_id,
                LEFT_FOR // SECOND,
                error,
                extra=tag(LogEvent.OFFER_NOT_READ, org=row.org, execution_id=row.execution_id, attempt=row.attempt),
            )
        self._left_routes[row.route] = self._clock.now() + LEFT_FOR
        self._hand_back(row.org, (row.execution_id, row.number, row.attempt))

    def note_went_back(self) -> None:
        """Look for offers anew, and for those that rows say this node took: the database is at an earlier state."""
        self._is_doubtful = self._went_back = True
        self.look()

    # --- with each heartbeat ---

    def on_heartbeat(self, reply: HeartbeatReply) -> None:
        """Look for offers of which a wake-up was lost, and stop attempts that no execution waits for any more."""
        if self._left_routes:
            now = self._clock.now()
            self._left_routes = {
                route: until for route, until in self._left_routes.items() if now < until <= now + 2 * LEFT_FOR
            }
        if reply.has_offers:
            self.look()
        taken = [task for task in self._runner.tasks if task.is_offered]
        if taken:
            self._spawn(self._stop_withdrawn(taken))
        others = [row.node for row in reply.nodes if row.node != self._node]
        if others:
            self._hand_back_queued()
        long_running = self._stale.find_long_running()
        if long_running and others:
            self._spawn(self._stale.stop(long_running))
        if self._is_doubtful and not self._is_taking:
            self._is_doubtful = False
            self._spawn(self._hand_back_unknown(others))

    async def _stop_withdrawn(self, taken: Iterable[ActivityTask]) -> None:
        keys = [key_of(task) for task in taken]
        try:
            withdrawn = await self._store.find_withdrawn(self._node, keys)
        except StoreError:
            return  # the next heartbeat asks again
        for execution_id, number, attempt in sorted(withdrawn):
            self._runner.stop(execution_id, number, attempt)

    def _hand_back_queued(self) -> None:
        """Hand back activities that have waited for a slot since the last heartbeat: other nodes may have one."""
        waiting = {key_of(task): task for task in self._runner.slots.queued if not is_suspect(task)}
        for key, task in waiting.items():
            if key in self._queued_before and self._runner.slots.withdraw(*key):
                self._hand_back(task.org, key)
        self._queued_before = set(waiting)

    async def _hand_back_unknown(self, others: Sequence[str]) -> None:
        """Hand back offers that this node took without knowing it, since the store's answer was lost."""
        try:
            rows = await self._store.list_lost_offers(others, PAGE)
        except StoreError:
            self._is_doubtful = True
            return
        if self._is_taking:
            self._is_doubtful = True  # rows may name this node for what it is about to begin
            return
        may_have_begun, self._went_back = self._went_back, False
        present = find_present(self._runner)
        for row in rows:
            if row.node == self._node and (row.execution_id, row.number, row.attempt) not in present:
                self._hand_back(row.org, (row.execution_id, row.number, row.attempt), may_have_begun=may_have_begun)

    def _hand_back(self, org: str, key: AttemptKey, *, may_have_begun: bool = False) -> None:
        """Give an activity that this node does not run a new attempt, which any node that can may take."""
        execution_id, number, attempt = key
        envelope = Redispatch(node=self._node, has_left=True, number=number, attempt=attempt, may_have_begun=may_have_begun)
        self._submit(Request(org, envelope, execution_id=execution_id))


def _may_take_from(group: OfferGroup) -> bool:
    return group.may_have_more and group.count_free() > 0


def _make_groups(routes: Routes, runner: ActivityRunner, catalog: Catalog) -> list[OfferGroup]:
    groups: dict[tuple[int, ...], OfferGroup] = {}
    for activity in catalog.activities.values():
        for queue in sorted(routes.queues):
            limits = runner.slots.limits_of(activity, queue)
            group = groups.setdefault(tuple(map(id, limits)), OfferGroup(limits))
            group.routes.add(make_route(queue, activity.name))
    return list(groups.values())
