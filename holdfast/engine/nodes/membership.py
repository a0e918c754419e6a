"""This node among those that share the store: how it joins, what each heartbeat tells it, and how it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import codec
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.engine.clock import Clock, LoopClock, StoreClock, read_steady_clock
from holdfast.engine.living_nodes import LivingNodes
from holdfast.engine.nodes.heartbeat import (
    Heartbeat,
    HeartbeatSource,
    Lease,
    NodeAnnouncement,
    RenewedLease,
)
from holdfast.engine.nodes.heartbeat_thread import HeartbeatThread, HeartbeatThreadDeps
from holdfast.engine.nodes.name_conflicts import (
    LOCAL_TOKENS,
    describe_name_conflict,
    find_realm,
    must_stop,
    refuse_taken_name,
)
from holdfast.engine.nodes.roster import NodeDetails, Peers, read_details
from holdfast.engine.nodes.take_over import Orphan
from holdfast.engine.regress import Regress
from holdfast.errors import HoldfastError, NodeNameTaken, StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.nodes import HeartbeatReply, WakeReason
from holdfast.store.rows import InboxRow, NodeRow

if TYPE_CHECKING:
    from holdfast.engine.config import Config
    from holdfast.engine.nodes.take_over import EndedNodes, TakeOver
    from holdfast.store.contract import Store
    from holdfast.store.rows import Route

log = logging.getLogger("holdfast.engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipDeps:
    """What a node's membership works with."""

    store: Store
    clock: Clock
    config: Config
    node: str
    process: str
    """The token of this process, which tells it from all others that ever had the node's name."""
    living: LivingNodes
    """Kept up to date with each heartbeat."""
    take_over: TakeOver
    describe: Callable[[], NodeDetails]
    """What this node tells of itself with each heartbeat."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the background; closing the engine waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipCallbacks:
    """Whom a node's membership tells of what it learns."""

    on_heartbeat: Callable[[HeartbeatReply], None]
    """The store took a heartbeat, and answered with what there is to do."""
    on_went_back: Callable[[Regress], None]
    """The database is at an earlier state than it was. Called before `on_heartbeat` for the same heartbeat."""
    on_nodes_ended: Callable[[], None]
    """Other nodes have ended. Their orphans are being taken over already."""
    on_replaced: Callable[[HoldfastError], None]
    """Another process works under this node's name, and this one has to stop."""


class Membership:
    """One node's life among those that share its store: joining, heartbeats, leaving.

    On an exclusive store it only writes when it joins and when it leaves, so that the next owner can tell whether it left
    cleanly. On a shared store it sends heartbeats.
    """

    def __init__(self, deps: MembershipDeps, callbacks: MembershipCallbacks) -> None:
        self._store = deps.store
        self._clock = deps.clock
        self._node = deps.node
        self._take_over = deps.take_over
        self._describe = deps.describe
        self._spawn = deps.spawn
        self._on_heartbeat = callbacks.on_heartbeat
        self._on_went_back = callbacks.on_went_back
        self._on_nodes_ended = callbacks.on_nodes_ended
        self._on_replaced = callbacks.on_replaced
        self._interval: Micros = round(deps.config.heartbeat * SECOND)
        self._lease: Micros = round(deps.config.lease * SECOND)
        self._started_at: Instant = 0
        self._details = NodeDetails()
        self._may_have_unknown = False
        """Whether rows may name nodes that the store does not know: not looked for yet since the database went back."""
        self._heartbeat: HeartbeatSource | None = None
        self._has_joined = False
        self._works = False
        self._is_replaced = False
        self._token = deps.process
        self._living = deps.living
        self._announcement: NodeAnnouncement | None = None
        self._realm = find_realm()
        self.peers = Peers(deps.store, deps.node, deps.spawn)

    # --- joining ---

    async def join(self, list_routes: Callable[[], Collection[Route]], offers: Collection[Route]) -> EndedNodes:
        """Make this node visible to the others, and return which nodes have certainly ended. Raises StoreError.

        This node itself is among them: nothing runs here yet, so rows that name it were left by an earlier process.
        """
        if isinstance(self._clock, StoreClock):
            self._is_replaced = True
            await refuse_taken_name(self._store, self._node)
            self._is_replaced = False
        LOCAL_TOKENS.add(self._token)
        rows = await self._store.list_nodes()
        before = {row.node: row.has_left for row in rows}
        self._started_at = self._clock.now()
        earlier = [read_details(row).token for row in rows if row.node == self._node]
        self._living.join(earlier, is_exclusive=self._store.exclusive)
        if not before.get(self._node, True):
            self._living.note_lost(self._started_at)
        announcement = self._announcement = NodeAnnouncement(self._make_row, list_routes, offers)
        self._refresh()
        if self._store.exclusive:
            await self._store.beat(announcement.make_row(0), list_routes(), offers)
            return {self._node: False} | before
        lease = Lease(self._node, self._lease, announcement, self._read_steady())
        self._heartbeat = self._make_heartbeat(lease)
        await self._heartbeat.start()
        self._started_at = self._clock.now()
        self._has_joined = self._works = True
        self._refresh()
        self.peers.wake(WakeReason.WORK)  # so that they learn of this node before their next heartbeat
        return {node: has_left for node, has_left in before.items() if has_left} | {
            self._node: before.get(self._node, False)
        }

    async def find_left(self) -> EndedNodes:
        """The other nodes that left cleanly and are not removed yet. Raises StoreError."""
        return {row.node: True for row in await self._store.list_nodes() if row.has_left and row.node != self._node}

    def _read_steady(self) -> Callable[[], Micros]:
        return self._clock.steady if isinstance(self._clock, LoopClock) else lambda: read_steady_clock() // 1000

    def _make_heartbeat(self, lease: Lease) -> HeartbeatSource:
        """On a thread of its own where the store offers a connection for it; not with a clock that the caller gave."""
        store = self._store
        connection = store.make_heartbeat_connection() if isinstance(self._clock, StoreClock) else None
        if connection is None:
            return Heartbeat(store, lease, self._clock, self._interval, self._on_beat)
        deps = HeartbeatThreadDeps(
            connection=connection,
            reconnect=store.make_heartbeat_connection,
            lease=lease,
            interval=self._interval,
            timeout=self._lease // 2,
            on_beat=self._on_beat,
        )
        return HeartbeatThread(deps)

    # --- heartbeats ---

    @property
    def tasks(self) -> Collection[asyncio.Task[None]]:
        """The tasks in the engine's loop that send heartbeats."""
        return () if self._heartbeat is None else self._heartbeat.tasks

    def _make_row(self, beat: int = 0) -> NodeRow:
        details = msgspec.json.encode(msgspec.structs.replace(self._details, beat=beat))
        return NodeRow(self._node, self._clock.now(), self._started_at, details=details)

    def _refresh(self) -> None:
        """Renew what the next heartbeat tells of this node; another thread may send it."""
        self._details = msgspec.structs.replace(
            self._describe(),
            realm=self._realm,
            token=self._token,
            works=self._works,
        )

    def announce(self) -> None:
        """Announce what this node has, which has changed: with the next heartbeat, or now where there are none."""
        self._refresh()
        if self._store.exclusive and self._announcement is not None:
            self._spawn(self._send(self._announcement))

    async def _send(self, announcement: NodeAnnouncement) -> None:
        try:
            await self._store.beat(announcement.make_row(0), announcement.list_routes(), announcement.offer_routes)
        except StoreError as error:
            log.warning(
                "node %s could not announce its workflows, so `holdfast nodes` shows earlier ones: %s",
                self._node,
                error,
                extra=tag(LogEvent.NODE_NOT_ANNOUNCED, node=self._node),
            )

    def _on_beat(self, beat: RenewedLease) -> None:
        if isinstance(self._clock, StoreClock):
            self._clock.synchronise(beat.asked, beat.answered, beat.reply.now)
        self.peers.note(beat.reply)
        if not self._has_joined:
            return
        if beat.regress is None:
            self._look_for_name_conflict(beat.reply.before)
        else:
            self._may_have_unknown = True
            self._on_went_back(beat.regress)
        self._on_heartbeat(beat.reply)
        ended = self._take_over.find_ended(beat)
        alive = [row for row in beat.reply.nodes if row.node not in ended and not row.has_left and row.node != self._node]
        left = (read_details(row).token for row in beat.reply.nodes if row.has_left)
        had_guessed = self._living.update((read_details(row).token for row in alive), left, beat.reply.now)
        self._refresh()
        if ended or had_guessed:
            self._on_nodes_ended()
        # Living nodes are back in the list after a lease, also those that joined after the state to which it went back.
        if ended or (self._may_have_unknown and beat.is_steady):
            self._may_have_unknown = self._may_have_unknown and not beat.is_steady
            self._spawn(self._take_over.take_over_from(ended))

    def _look_for_name_conflict(self, row: NodeRow | None) -> None:
        """Stop, or report it, if the heartbeat replaced the row of another living process of this name."""
        if row is None or row.has_left or self._is_replaced:
            return
        details = read_details(row)
        if details.token in (self._token, ""):
            return
        error = NodeNameTaken(describe_name_conflict(self._node, details))
        if must_stop(self._make_row(), row):
            self._is_replaced = True
            self._on_replaced(error)
        else:
            log.error(
                "node %s goes on, and the other process of its name stops: %s",
                self._node,
                error,
                extra=tag(LogEvent.NODE_NAME_TAKEN, node=self._node),
            )

    # --- leaving ---

    def prepare_to_leave(self) -> None:
        """Announce with the next heartbeats that this node stops working: no process of its name has to stop for it."""
        self._works = False
        self._refresh()

    async def leave(self, unfinished: Sequence[ActivityTask]) -> None:
        """Leave cleanly, and hand over the activities that are unfinished: other nodes begin a new attempt at once.

        If the store is out of reach, other nodes take over when the lease has run out.
        """
        await self.abandon()
        try:
            has_successors = self.peers.has_any or self._is_replaced
            if unfinished and has_successors:
                now, orphans = self._clock.now(), dict.fromkeys(map(self._to_orphan, unfinished))
                await self._store.deliver([_to_inbox_row(one, now) for one in orphans])
            if not self._is_replaced:  # else the name belongs to another process
                await self._store.leave(self._node)
            await self._store.forget_processes([self._token])  # nothing is in flight here any more
            if has_successors:
                await self._store.wake(WakeReason.WORK)
        except StoreError as error:
            log.warning(
                "node %s could not leave cleanly, and other nodes take over when its lease has run out: %s",
                self._node,
                error,
                extra=tag(LogEvent.NODE_NOT_LEFT, node=self._node),
            )

    def _to_orphan(self, task: ActivityTask) -> Orphan:
        if task.is_offered:  # the execution's row does not name this node for it
            return Orphan(task.org, task.execution_id, self._node, True, task.event.number, task.attempt)
        return Orphan(task.org, task.execution_id, self._node, True)

    def give_up_lease(self, seconds: float) -> None:
        """The process is about to end, and its loop is stuck: others may take over at once, as from one that died.

        To be called from another thread. Takes at most that many seconds. The node does not count as having left cleanly:
        what ends processes again and again is found by that.
        """
        if self._heartbeat is not None and not self._is_replaced:
            self._heartbeat.give_up_lease(seconds)

    async def abandon(self) -> None:
        """Stop the heartbeats without leaving, as if the process had died."""
        self._has_joined = False
        LOCAL_TOKENS.discard(self._token)
        if self._heartbeat is not None:
            await self._heartbeat.stop()


def _to_inbox_row(orphan: Orphan, now: Instant) -> InboxRow:
    return InboxRow(orphan.org, orphan.execution_id, "", codec.encode(orphan.to_envelope()), at=now)
