"""Heartbeats, which renew a node's lease: a node that holds its own lease may judge that those of others have run out.

All times are the store's, as each heartbeat learns it.

Heartbeats also notice that the database went back to an earlier state, by a restore or by a failover to a replica that
lagged: a heartbeat finds the node's own row as an earlier heartbeat wrote it, though a later one was acknowledged; or finds
no row; or finds the server on another timeline. Numbers are compared, no times: clocks may go back by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.engine.clock import call_after
from holdfast.engine.nodes.roster import read_details
from holdfast.engine.regress import Regress
from holdfast.errors import StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.nodes import HeartbeatReply
from holdfast.store.rows import Route

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.store.nodes import HeartbeatConnection, Nodes
    from holdfast.store.rows import NodeRow

log = logging.getLogger("holdfast.engine")


class RenewedLease(msgspec.Struct, frozen=True, gc=False):
    """A heartbeat that the store accepted, with its answer."""

    reply: HeartbeatReply
    asked: Micros
    """When it was sent, by the monotonic clock of this machine."""
    answered: Micros
    """When its answer came, by the same clock."""
    is_steady: bool
    """Whether this node has renewed its lease without a break for as long as a lease lasts."""
    regress: Regress | None = None
    """By what this heartbeat noticed that the database went back, if it did."""


class NodeAnnouncement(msgspec.Struct):
    """What a node announces with each heartbeat."""

    make_row: Callable[[int], NodeRow]
    """Makes the node's row for the heartbeat of this number; may be called from another thread."""
    list_routes: Callable[[], Collection[Route]] = tuple
    """Gives the routes of the executions whose turns it takes, which may change; may be called from another thread."""
    offer_routes: Collection[Route] = ()
    """Which offered activities it takes."""


OnBeat = Callable[[RenewedLease], None]


class HeartbeatSource(Protocol):
    """Sends heartbeats until it is stopped, and calls back in the engine's loop for each."""

    @property
    def tasks(self) -> Collection[asyncio.Task[None]]:
        """The tasks in the engine's loop that send heartbeats."""
        ...

    async def start(self) -> None:
        """Send the first heartbeat, then one per interval. Raises StoreError if the first one fails."""
        ...

    async def stop(self) -> None:
        """Stop the heartbeats: none is under way on return. Idempotent."""
        ...

    def give_up_lease(self, seconds: float) -> None:
        """Let others take over at once, since the process is about to end. From another thread; for at most that long.

        Does nothing where that needs the engine's loop, which is stuck: then others take over when the lease has run out.
        """
        ...


class Lease:
    """This node's own lease, renewed by each heartbeat that the store accepts."""

    def __init__(self, node: str, length: Micros, announcement: NodeAnnouncement, steady: Callable[[], Micros]) -> None:
        self._node = node
        self._length = length
        self._announcement = announcement
        self._steady = steady
        self._renewed_at: Instant | None = None
        self._unbroken_since: Instant | None = None
        self._has_missed = False
        self._sent = 0
        """How many heartbeats were sent."""
        self._stored = 0
        """The number of the last heartbeat that the store acknowledged."""
        self._timeline: str | None = None
        """The timeline of the server at the last heartbeat that told it."""

    async def renew(self, nodes: Nodes) -> RenewedLease:
        """Send a heartbeat. Raises StoreError if the store did not accept it; call `miss` then."""
        asked, announcement = self._steady(), self._announcement
        self._sent += 1
        row = announcement.make_row(self._sent)
        reply = await nodes.beat(row, announcement.list_routes(), announcement.offer_routes)
        answered = self._steady()
        regress = self._find_regress(reply, read_details(row).token) if self._stored else None
        self._stored = self._sent
        self._timeline = reply.timeline or self._timeline
        if regress is not None:
            self._unbroken_since = None  # the heartbeats of all others are as old: nobody may be judged by them
        return RenewedLease(reply, asked, answered, self._note(reply.now), regress)

    def _find_regress(self, reply: HeartbeatReply, token: str) -> Regress | None:
        """By what a heartbeat that is not the first shows that the database went back, if it does."""
        before = reply.before
        if reply.timeline is not None and self._timeline not in (None, reply.timeline):
            return Regress.TIMELINE
        if self._renewed_at is None:
            return None
        if before is None:
            return Regress.OWN_ROW if reply.now - self._renewed_at < self._length else Regress.REMOVED
        details = read_details(before)
        if details.token == token:
            return Regress.OWN_ROW if details.beat < self._stored else None
        # Of another process of this name: one that lives has written it since, one from the past has not.
        return Regress.OWN_ROW if before.seen_at < self._renewed_at else None

    async def give_up(self, nodes: HeartbeatConnection) -> None:
        """Let the lease run out at once. Raises StoreError."""
        await nodes.expire(self._node)

    def miss(self, error: Exception) -> None:
        """Note that a heartbeat failed. Logged once, until one succeeds again."""
        self._unbroken_since = None
        if not self._has_missed:
            log.warning(
                "node %s cannot renew its lease, and keeps trying: %s",
                self._node,
                str(error) or repr(error),
                extra=tag(LogEvent.LEASE_NOT_RENEWED, node=self._node),
            )
        self._has_missed = True

    def _note(self, now: Instant) -> bool:
        silence = 0 if self._renewed_at is None else now - self._renewed_at
        if silence >= self._length:
            # It was frozen or cut off. Its activities go on: if other nodes took over, their results are refused.
            log.warning(
                "node %s sent no heartbeat for %.1f s and lost its lease; it goes on, and results of what others took over "
                "are refused",
                self._node,
                silence / SECOND,
                extra=tag(LogEvent.HEARTBEAT_LATE, node=self._node),
            )
            self._unbroken_since = None
        elif silence < 0:
            self._unbroken_since = None  # the store's clock was set back: what it tells of others says nothing for a while
        elif self._has_missed:
            log.warning(
                "node %s renews its lease again",
                self._node,
                extra=tag(LogEvent.LEASE_RENEWED_AGAIN, node=self._node),
            )
        self._has_missed = False
        self._renewed_at = now
        if self._unbroken_since is None:
            self._unbroken_since = now
        return now - self._unbroken_since >= self._length


class Heartbeat:
    """Sends heartbeats from the engine's loop by its clock: on stores without a connection for them, and in virtual time."""

    def __init__(self, nodes: Nodes, lease: Lease, clock: Clock, interval: Micros, on_beat: OnBeat) -> None:
        self._nodes = nodes
        self._lease = lease
        self._clock = clock
        self._interval = interval
        self._on_beat = on_beat
        self._alarm: Alarm | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Send the first heartbeat, then one per interval. Raises StoreError if the first one fails."""
        self._on_beat(await self._lease.renew(self._nodes))
        self._arm()

    async def stop(self) -> None:
        """Stop the heartbeats: none is under way on return. Idempotent."""
        if self._alarm is not None:
            self._alarm.cancel()
        under_way = list(self.tasks)
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)

    def give_up_lease(self, _seconds: float) -> None:
        """Nothing: the engine's loop would be needed for that."""

    def _arm(self) -> None:
        self._alarm = call_after(self._clock, self._interval, self._spawn)

    def _spawn(self) -> None:
        task = asyncio.get_running_loop().create_task(self._beat(), name="holdfast-heartbeat")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _beat(self) -> None:
        try:
            beat = await self._lease.renew(self._nodes)
        except StoreError as error:
            self._lease.miss(error)
        else:
            self._on_beat(beat)
        self._arm()
