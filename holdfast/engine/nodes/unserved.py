"""Warns of work that no living node takes: an activity that none offers, a workflow that none has, or not on that queue.

Nothing is polled. A node looks when it opens, and a while (`PAUSE`) after something happened by which such work may have
come about: a commit of its own or a wake-up by another node told of new work, a node ended. On a shared store it looks with
a heartbeat, and tells what it found twice with a pause between: nodes that are being replaced need some time. What it has
told it looks at no more, until something happens again.

Two kinds of locks. One node at a time looks, and not sooner than half a pause after another has: so however many nodes there
are, the database is not asked more often. And whoever tells of something takes a lock for that, for `TOLD_FOR`: so one node
tells for all. Neither is needed for correctness.

An exclusive store has no heartbeats, and nobody else can come who takes the work: its owner looks at once when it opens and
when it offers an activity, but not again within a pause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.routes import split_route
from holdfast.engine.nodes.roster import NodeDetails, NodeState, read_details, to_node_info
from holdfast.errors import StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.rows import Waiting

if TYPE_CHECKING:
    from holdfast.core.routes import RouteParts
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store
    from holdfast.store.rows import BacklogRow, Route

_engine_log: Final = logging.getLogger("holdfast.engine")
_activity_log: Final = logging.getLogger("holdfast.activities")

PAUSE: Final[Micros] = 60 * SECOND
"""How long after a reason to look a node looks, and how long something waits at least before it is told."""
TOLD_FOR: Final[Micros] = 60 * 60 * SECOND
"""How long no node tells of the same. Who looks later, because something happened, tells again."""
LOCK: Final = "unserved"
"""The lock of who looks; followed by a colon, the kind and the route, of who has told."""
MOST_COUNTED: Final = 10_000
"""How much work of each kind a look goes through."""


@dataclass(frozen=True, slots=True)
class UnservedWork:
    """Work of one kind that no living node takes."""

    route: Route
    is_activity: bool
    orgs: frozenset[str]
    count: int

    @property
    def lock(self) -> str:
        """The name of the lock of who has told of it."""
        return f"{LOCK}:{'activity' if self.is_activity else 'workflow'}:{self.route}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedWatchDeps:
    """What a node's watch for unserved work needs."""

    store: Store
    clock: Clock
    node: str
    describe: Callable[[], NodeDetails]
    """What this node announces of itself."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the background; closing the engine waits for it."""


class UnservedWatch:
    """Looks for work that no living node takes, and logs each kind of it once."""

    def __init__(self, deps: UnservedWatchDeps, pause: Micros = PAUSE) -> None:
        self._store = deps.store
        self._clock = deps.clock
        self._node = deps.node
        self._describe = deps.describe
        self._spawn = deps.spawn
        self._pause = pause
        self._look_at: Instant | None = None
        """When to look; None while there is no reason to."""
        self._is_looking = False
        self._found: dict[str, Instant] = {}
        """Unserved work, by the names of its locks, and since when this node knows of it."""
        self._told: dict[str, Instant] = {}
        """What of it was told, by this node or another, and when this node knew that."""

    def note(self) -> None:
        """Note that there may be work now which no node takes: a heartbeat that comes late enough looks for it."""
        if self._look_at is None:
            self._look_at = self._clock.now() + self._pause

    async def look_when_opened(self) -> None:
        """Look at once what is there already; on a shared store a later look tells of it."""
        await self._look(is_opening=True)

    def note_offers(self) -> None:
        """Note that this node has offered an activity to others."""
        if not self._store.exclusive:
            self.note()
        elif self._is_due():
            self._look_at = self._clock.now() + self._pause
            self._spawn(self._look())

    def on_heartbeat(self) -> None:
        """Look if there is a reason, and it is time to."""
        if self._look_at is not None and not self._is_looking and self._is_due():
            self._look_at = None
            self._spawn(self._look())

    def _is_due(self) -> bool:
        ahead = 0 if self._look_at is None else self._look_at - self._clock.now()
        return ahead <= 0 or ahead > self._pause  # or the clock was set back

    async def _look(self, *, is_opening: bool = False) -> None:
        self._is_looking, may_rest = True, False
        try:
            if self._store.exclusive or is_opening:
                may_rest = await self._find_and_tell()
            else:
                may_rest = await self._take_turn()
        except StoreError:
            pass  # the next look tells
        finally:
            self._is_looking = False
        if not may_rest and not self._store.exclusive:
            self.note()

    async def _take_turn(self) -> bool:
        """Look if it is this node's turn to; whether there is no reason to look again."""
        store, now = self._store, self._clock.now()
        if not await store.take_lock(LOCK, self._node, now, now + 2 * self._pause):
            return False
        may_rest = await self._find_and_tell()
        if may_rest:
            await store.take_lock(LOCK, self._node, now, now + self._pause // 2)
        return may_rest

    async def _find_and_tell(self) -> bool:
        """Tell what is to be told; whether that is all there is."""
        store, now = self._store, self._clock.now()
        found = {one.lock: one for one in await self._find(now)}
        for name in sorted(self._told.keys() - found.keys()):
            del self._told[name]
            await self._release(name)
        self._told = {name: at for name, at in self._told.items() if now - at < TOLD_FOR}
        self._found = {name: self._found.get(name, now) for name in found}
        for name, since in self._found.items():
            if name not in self._told and (store.exclusive or now - since >= self._pause):
                if store.exclusive or await store.take_lock(name, self._node, now, now + TOLD_FOR):
                    log_unserved(found[name], self._node)
                self._told[name] = now
        return self._told.keys() >= found.keys()

    async def _release(self, name: str) -> None:
        if not self._store.exclusive:
            await self._store.release_lock(name, self._node)

    async def _find(self, now: Instant) -> list[UnservedWork]:
        store = self._store
        rows = [row for row in await store.read_backlog(now, MOST_COUNTED) if row.what is not Waiting.OPEN and row.route]
        if not rows:
            return []
        living = [self._describe()]
        if not store.exclusive:
            nodes = await store.list_nodes()
            others = (row for row in nodes if row.node != self._node)
            living += [
                read_details(row) for row in others if to_node_info(row, now, has_ended=False).state is NodeState.ALIVE
            ]
        return find_unserved(rows, living)


def find_unserved(rows: Sequence[BacklogRow], living: Sequence[NodeDetails]) -> list[UnservedWork]:
    """The work in a backlog that none of these nodes takes, by what they announce."""
    groups: dict[tuple[Route, bool], list[BacklogRow]] = {}
    for row in rows:
        groups.setdefault((row.route, row.what is Waiting.OFFERED), []).append(row)
    found: list[UnservedWork] = []
    for (route, is_activity), group in groups.items():
        parts = split_route(route)
        if not any(_serves(node, parts, is_activity=is_activity) for node in living):
            orgs = frozenset(row.org for row in group)
            found.append(UnservedWork(route, is_activity, orgs, sum(row.count for row in group)))
    return found


def _serves(node: NodeDetails, parts: RouteParts, *, is_activity: bool) -> bool:
    if node.queues and parts.queue not in node.queues:
        return False
    if is_activity:
        return parts.name in node.activities
    if parts.name in node.interprets:
        return True
    versions = node.versions.get(parts.name)  # None: it is older than the announcement of versions
    return parts.name in node.workflows and (parts.version is None or versions is None or parts.version in versions)


def log_unserved(work: UnservedWork, node: str) -> None:
    """Tell people of work that no living node takes."""
    parts = split_route(work.route)
    org = next(iter(work.orgs)) if len(work.orgs) == 1 else None
    if work.is_activity:
        _activity_log.warning(
            "no living node has activity '%s' and serves queue '%s', and it was asked for (%d times). Start a node that "
            "has it; `holdfast nodes` lists what is there",
            parts.name,
            parts.queue,
            work.count,
            extra=tag(LogEvent.ACTIVITY_NOT_OFFERED, org=org, queue=parts.queue, activity=parts.name, node=node),
        )
        return
    version = "" if parts.version is None else f" in version '{parts.version}'"
    _engine_log.warning(
        "no living node has workflow '%s'%s and serves queue '%s': %d envelopes and due timers wait. Start a node that has "
        "it; `holdfast nodes` lists what is there",
        parts.name,
        version,
        parts.queue,
        work.count,
        extra=tag(LogEvent.WORKFLOW_NOT_OFFERED, org=org, queue=parts.queue, workflow=parts.name, node=node),
    )
