"""Activities that the node which took the turn could not run itself: this node takes what it can, and hands the outcomes in.

Nothing is asked for without a reason: a wake-up or a heartbeat that tells of offers, or a place that became free while there
may be more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import ActivityRaised, Redispatch
from holdfast.core.failures import describe_exception
from holdfast.engine.activities.limits import Rate, Room, Slots, is_suspect
from holdfast.engine.activities.unwanted import Key, Unwanted, key_of
from holdfast.engine.batches.requests import Request
from holdfast.engine.routes import Routes, make_route
from holdfast.errors import CorruptStore, StoreError

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask
    from holdfast.core.events import ActivityScheduled
    from holdfast.core.placing import MayKeep
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.delivery import Delivery
    from holdfast.engine.registry import Registry
    from holdfast.store.contract import ActivityRow, Pulse, Route, Store

log = logging.getLogger("holdfast.engine")

PAGE = 500


class Group:
    """Activities that share all their bounds, and are taken together."""

    def __init__(self, bounds: Sequence[Slots | Rate]) -> None:
        self._bounds = bounds
        self.routes: set[Route] = set()
        self.may_have_more = True

    def find_room(self) -> int:
        """How many may be taken now."""
        return min(bound.room for bound in self._bounds)


class Offers:
    """What this node takes of the activities that are offered."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        routes: Routes,
        runner: ActivityRunner,
        delivery: Delivery,
        *,
        node: str,
        submit: Callable[[Request], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._store = store
        self._activities = registry.activities
        self._routes = routes
        self._runner = runner
        self._delivery = delivery
        self._node = node
        self._submit = submit
        self._spawn = spawn
        self._groups = _make_groups(routes, runner, registry)
        self._is_taking = False
        self._is_closed = False
        self._is_doubtful = False
        """Whether something may have been taken of which the answer was lost."""
        self._passing: list[Request] = []
        self._unwanted = Unwanted(store, runner, node)
        self._waited: set[Key] = set()
        runner.pass_on = self._pass_on

    # --- offering ---

    def make_room(self) -> MayKeep | None:
        """For a batch: which activities this node keeps; None: all of them."""
        routes = self._routes
        if routes.takes_all:
            return None
        if self._store.exclusive:
            return routes.may_run
        if self._is_closed:
            return lambda _event: False  # this node is leaving: others begin what follows
        room = Room(self._runner.admission)

        def may_keep(event: ActivityScheduled) -> bool:
            return routes.may_run(event) and room.take(self._activities[event.name], event.options.queue)

        return may_keep

    # --- taking ---

    def look(self) -> None:
        """Somebody may have offered something."""
        for group in self._groups:
            group.may_have_more = True
        self._runner.on_room = self._on_room
        self._on_room()

    def close(self) -> None:
        """Take nothing more."""
        self._is_closed = True

    def _on_room(self) -> None:
        if not self._is_taking and not self._is_closed and any(map(_is_worth_a_look, self._groups)):
            self._is_taking = True
            self._spawn(self._take())

    async def _take(self) -> None:
        try:
            while not self._is_closed and (groups := [group for group in self._groups if _is_worth_a_look(group)]):
                for group in groups:
                    await self._take_from(group)
        except StoreError as error:
            self._is_doubtful = True
            log.warning("node %s could not take activities, and tries again with its next heartbeat: %s", self._node, error)
        finally:
            self._is_taking = False
            if not any(group.may_have_more for group in self._groups):
                self._runner.on_room = None

    async def _take_from(self, group: Group) -> None:
        limit = group.find_room()  # once more: those before it may have filled the places
        if limit <= 0 or self._is_closed:
            return
        group.may_have_more = False  # what is offered from now on is told of
        rows = await self._store.take_offers(self._node, group.routes, limit)
        if len(rows) == limit:
            group.may_have_more = True
        for row in rows:
            self._begin(row)

    def _begin(self, row: ActivityRow) -> None:
        try:
            task = codec.decode_task(row.body)
        except CorruptStore as error:
            failure = msgspec.structs.replace(describe_exception(error), non_retryable=True)
            raised = ActivityRaised(number=row.number, attempt=row.attempt, failure=failure)
            self._submit(Request(row.org, raised, execution_id=row.execution_id))
            return
        self._runner.start(task)

    # --- handing in ---

    def _pass_on(self, task: ActivityTask, request: Request) -> None:
        """An outcome goes to whoever takes the turns of its execution: into the next batch, or into the inbox."""
        if self._routes.may_take(task.route):
            self._submit(request)
            return
        self._passing.append(request)
        if len(self._passing) == 1:
            self._spawn(self._deliver())

    async def _deliver(self) -> None:
        passing, self._passing = self._passing, []
        await self._delivery.deliver_elsewhere([(request, request.execution_id) for request in passing])

    # --- with each heartbeat ---

    def on_beat(self, pulse: Pulse) -> None:
        """Hear of offers that a lost wake-up did not tell of; and see whether what was taken is still wanted."""
        if pulse.has_offers:
            self.look()
        taken = [task for task in self._runner.tasks if task.is_offered]
        if taken:
            self._spawn(self._stop_withdrawn(taken))
        others = [row.node for row in pulse.nodes if row.node != self._node]
        if others:
            self._hand_back()
        old = self._unwanted.find_old()
        if old and others:
            self._spawn(self._unwanted.stop(old))
        if self._is_doubtful:
            self._is_doubtful = False
            self._spawn(self._give_back(others))

    async def _stop_withdrawn(self, taken: Iterable[ActivityTask]) -> None:
        keys = [key_of(task) for task in taken]
        try:
            withdrawn = await self._store.find_withdrawn(self._node, keys)
        except StoreError:
            return  # the next heartbeat asks again
        for execution_id, number, attempt in sorted(withdrawn):
            self._runner.stop(execution_id, number, attempt)

    def _hand_back(self) -> None:
        """What has waited for a place here since the last heartbeat goes to whoever has one: it might wait for long."""
        waiting = {key_of(task): task for task in self._runner.admission.waiting if not is_suspect(task)}
        for key, task in waiting.items():
            if key in self._waited and self._runner.admission.withdraw(*key):
                again = Redispatch(node=self._node, has_left=True, number=task.event.number, attempt=task.attempt)
                self._submit(Request(task.org, again, execution_id=task.execution_id))
        self._waited = set(waiting)

    async def _give_back(self, others: Sequence[str]) -> None:
        """What this node took without hearing of it begins anew."""
        try:
            rows = await self._store.list_lost_offers(others, PAGE)
        except StoreError:
            self._is_doubtful = True
            return
        held = {(task.execution_id, task.event.number) for task in self._runner.tasks}
        for row in rows:
            if row.node == self._node and (row.execution_id, row.number) not in held:
                again = Redispatch(node=self._node, has_left=True, number=row.number, attempt=row.attempt)
                self._submit(Request(row.org, again, execution_id=row.execution_id))


def _is_worth_a_look(group: Group) -> bool:
    return group.may_have_more and group.find_room() > 0


def _make_groups(routes: Routes, runner: ActivityRunner, registry: Registry) -> list[Group]:
    groups: dict[tuple[int, ...], Group] = {}
    for activity in registry.activities.values():
        for queue in sorted(routes.queues):
            bounds = runner.admission.bounds_of(activity, queue)
            group = groups.setdefault(tuple(map(id, bounds)), Group(bounds))
            group.routes.add(make_route(queue, activity.name))
    return list(groups.values())
