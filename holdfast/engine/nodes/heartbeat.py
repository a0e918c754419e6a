"""Heartbeats, which are leases: who renews his own may work, and may say of others that they are gone.

What is said here about time is the store's, as each heartbeat hears it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.errors import StoreError
from holdfast.store.contract import Pulse, Route

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.store.contract import NodeRow, Nodes

log = logging.getLogger("holdfast.engine")


class Beat(msgspec.Struct, frozen=True, gc=False):
    """A heartbeat that the store took."""

    pulse: Pulse
    asked: Micros
    """When it was sent, by the steady clock of this machine."""
    answered: Micros
    is_steady: bool
    """Whether this node has renewed its lease without a break for as long as a lease lasts."""


class Card(msgspec.Struct):
    """What a node tells of itself with each heartbeat."""

    make_row: Callable[[], NodeRow]
    """May be called from another thread."""
    routes: Collection[Route] = ()
    """What it takes: turns of executions,"""
    offers: Collection[Route] = ()
    """and activities of others."""


OnBeat = Callable[[Beat], None]


class Pulsing(Protocol):
    """Beats until it is stopped, and tells the engine in its loop."""

    @property
    def tasks(self) -> Collection[asyncio.Task[None]]:
        """What runs in the engine's loop."""
        ...

    async def start(self) -> None:
        """Beat for the first time, then again and again. Raises StoreError if the first one fails."""
        ...

    async def stop(self) -> None:
        """No more heartbeats: none is under way on return. Idempotent."""
        ...


class Lease:
    """This node's own lease: renewed by each heartbeat that the store takes."""

    def __init__(self, node: str, length: Micros, card: Card, steady: Callable[[], Micros]) -> None:
        self._node = node
        self._length = length
        self._card = card
        self._steady = steady
        self._renewed_at: Instant | None = None
        self._unbroken_since: Instant | None = None
        self._has_missed = False

    async def renew(self, nodes: Nodes) -> Beat:
        """Send a heartbeat. Raises StoreError if it was not taken; tell `miss` then."""
        asked = self._steady()
        pulse = await nodes.beat(self._card.make_row(), self._card.routes, self._card.offers)
        return Beat(pulse, asked, self._steady(), self._note(pulse.now))

    def miss(self, error: Exception) -> None:
        """A heartbeat was not taken. Said once, until one is taken again."""
        self._unbroken_since = None
        if not self._has_missed:
            log.warning("node %s cannot renew its lease, and goes on trying: %s", self._node, str(error) or repr(error))
        self._has_missed = True

    def _note(self, now: Instant) -> bool:
        silence = 0 if self._renewed_at is None else now - self._renewed_at
        if silence >= self._length:
            # It stood still, or was cut off. What it runs goes on: if others took over, its results are refused.
            log.warning("node %s was silent for %.1f s and lost its lease; it goes on", self._node, silence / SECOND)
            self._unbroken_since = None
        elif self._has_missed:
            log.warning("node %s renews its lease again", self._node)
        self._has_missed = False
        self._renewed_at = now
        if self._unbroken_since is None:
            self._unbroken_since = now
        return now - self._unbroken_since >= self._length


class Heartbeat:
    """Heartbeats from the engine's loop, as its clock goes: where the store needs no other way, and in virtual time."""

    def __init__(self, nodes: Nodes, lease: Lease, clock: Clock, interval: Micros, on_beat: OnBeat) -> None:
        self._nodes = nodes
        self._lease = lease
        self._clock = clock
        self._interval = interval
        self._on_beat = on_beat
        self._alarm: Alarm | None = None
        self._is_stopped = False
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Beat for the first time, then again and again. Raises StoreError if the first one fails."""
        self._on_beat(await self._lease.renew(self._nodes))
        self._arm()

    async def stop(self) -> None:
        """No more heartbeats."""
        self._is_stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        under_way = list(self.tasks)
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)

    def _arm(self) -> None:
        self._alarm = self._clock.call_at(self._clock.now() + self._interval, self._spawn)

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
