"""This node among those that share the store: how it joins, what it hears with each heartbeat, and how it leaves."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import codec
from holdfast.core.effects import ActivityTask
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.engine.batches.care import Ends
from holdfast.engine.clock import Clock, StoreClock
from holdfast.engine.nodes.heartbeat import Beat, Card, Heartbeat, Lease, Pulsing
from holdfast.engine.nodes.heartbeat_thread import HeartbeatThread
from holdfast.engine.nodes.namesakes import LIVING, describe, find_realm, gives_way, refuse_namesake
from holdfast.engine.nodes.roster import NodeDetails, Peers, read_details
from holdfast.engine.nodes.take_over import Left, TakeOver
from holdfast.errors import HoldfastError, NodeNameTaken, StoreError
from holdfast.store.contract import InboxRow, NodeRow, Pulse, Wake

if TYPE_CHECKING:
    from holdfast.engine.batches.requests import Request
    from holdfast.engine.config import Config
    from holdfast.engine.nodes.take_over import Gone
    from holdfast.store.contract import Route, Store

log = logging.getLogger("holdfast.engine")


class Membership:
    """One node's life on a store.

    On a store of its own it says when it comes and when it goes, so that it can be told whether it ended in good order. On
    a shared one it has a heartbeat: `on_pulse` is told what each of them heard. `on_chain` is told when nodes ended one
    after the other without a goodbye, `on_replaced` when this one has to stop because another process has its name.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: Config,
        node: str,
        *,
        describe: Callable[[], NodeDetails],
        submit: Callable[[Request], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        on_pulse: Callable[[Pulse], None],
        on_gone: Callable[[], None],
        on_chain: Callable[[], None],
        on_replaced: Callable[[HoldfastError], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._describe = describe
        self._spawn = spawn
        self._on_pulse = on_pulse
        self._on_gone = on_gone
        self._on_chain = on_chain
        self._on_replaced = on_replaced
        self._interval: Micros = round(config.heartbeat * SECOND)
        self._lease: Micros = round(config.lease * SECOND)
        self._started_at: Instant = 0
        self._details = b"{}"
        self._heartbeat: Pulsing | None = None
        self._take_over = TakeOver(store, submit, clock, node, self._lease, self._interval)
        self._has_joined = False
        self._works = False
        self._is_replaced = False
        self._token = secrets.token_hex(8)
        self._realm = find_realm()
        self.peers = Peers(store, node, spawn)
        self._ends = Ends()

    # --- coming ---

    async def join(self, routes: Collection[Route], offers: Collection[Route]) -> Gone:
        """Be seen from now on; who is gone for certain, and whether they said goodbye. Raises StoreError.

        That is also this node itself: nothing runs here yet, so what names it was left by an earlier process of its name.
        """
        if isinstance(self._clock, StoreClock):
            self._is_replaced = True
            await refuse_namesake(self._store, self._node)
            self._is_replaced = False
        LIVING.add(self._token)
        rows = await self._store.list_nodes()
        before = {row.node: row.has_left for row in rows}
        self._started_at = self._clock.now()
        self._note_ends(row for row in rows if not row.has_left and (self._store.exclusive or row.node == self._node))
        self._refresh()
        if self._store.exclusive:
            await self._store.beat(self._make_row(), routes, offers)
            return {self._node: False} | before
        lease = Lease(self._node, self._lease, Card(self._make_row, routes, offers), self._read_steady())
        self._heartbeat = self._make_heartbeat(lease)
        await self._heartbeat.start()
        self._started_at = self._clock.now()
        self._has_joined = self._works = True
        self._refresh()
        self.peers.wake(Wake.WORK)  # so that they know of this node before their next heartbeat
        return {node: has_left for node, has_left in before.items() if has_left} | {
            self._node: before.get(self._node, False)
        }

    async def forget(self, gone: Gone) -> None:
        """What these left is taken care of. On a shared store somebody makes sure of that first."""
        old = [node for node in gone if node != self._node]
        if old and self._store.exclusive:
            await self._store.remove_nodes(old)

    async def find_gone(self) -> Gone:
        """Who said goodbye."""
        return {row.node: True for row in await self._store.list_nodes() if row.has_left and row.node != self._node}

    def _read_steady(self) -> Callable[[], Micros]:
        return self._clock.steady if isinstance(self._clock, StoreClock) else lambda: time.monotonic_ns() // 1000

    def _make_heartbeat(self, lease: Lease) -> Pulsing:
        """On a thread of its own where the store has a line for it; not with a clock that somebody gave."""
        store = self._store
        line = store.make_own_line() if isinstance(self._clock, StoreClock) else None
        if line is None:
            return Heartbeat(store, lease, self._clock, self._interval, self._on_beat)
        return HeartbeatThread(line, store.make_own_line, lease, self._interval, self._lease // 2, self._on_beat)

    # --- being there ---

    @property
    def tasks(self) -> Collection[asyncio.Task[None]]:
        """What runs in the engine's loop because of heartbeats."""
        return () if self._heartbeat is None else self._heartbeat.tasks

    def _make_row(self) -> NodeRow:
        return NodeRow(self._node, self._clock.now(), self._started_at, details=self._details)

    def _refresh(self) -> None:
        """What is told with the next heartbeat, which may be sent by another thread."""
        details = msgspec.structs.replace(
            self._describe(),
            realm=self._realm,
            token=self._token,
            works=self._works,
            ended=self._ends.tell(self._clock.now()),
        )
        self._details = msgspec.json.encode(details)

    def _note_ends(self, rows: Iterable[NodeRow]) -> None:
        if self._ends.note(rows, self._clock.now()):
            self._on_chain()

    def _on_beat(self, beat: Beat) -> None:
        if isinstance(self._clock, StoreClock):
            self._clock.hear(beat.asked, beat.answered, beat.pulse.now)
        self.peers.note(beat.pulse)
        if not self._has_joined:
            return
        self._look_for_namesake(beat.pulse.before)
        self._on_pulse(beat.pulse)
        gone = self._take_over.judge(beat)
        self._note_ends(row for row in beat.pulse.nodes if not gone.get(row.node, True))
        self._refresh()
        if gone:
            self._on_gone()
            self._spawn(self._take_over.tend(gone))

    def _look_for_namesake(self, row: NodeRow | None) -> None:
        """Those that began at the same moment find each other here."""
        if row is None or row.has_left or self._is_replaced:
            return
        details = read_details(row)
        if details.token in (self._token, ""):
            return
        error = NodeNameTaken(describe(self._node, details))
        if gives_way(self._make_row(), row):
            self._is_replaced = True
            self._on_replaced(error)
        else:
            log.error("%s The other gives way.", error)

    # --- going ---

    def prepare_to_leave(self) -> None:
        """Tell with the next heartbeats that nobody has to give way to this node."""
        self._works = False
        self._refresh()

    async def leave(self, in_hand: Sequence[ActivityTask]) -> None:
        """Say goodbye, and hand over the activities that are still in hand: others begin them anew at once.

        If the store cannot be reached they find out when the lease has run out.
        """
        await self.abandon()
        try:
            has_heirs = self.peers.has_any or self._is_replaced
            if in_hand and has_heirs:
                await self._store.deliver([_hand_over(one) for one in dict.fromkeys(map(self._to_left, in_hand))])
            if not self._is_replaced:  # else it is the other's name
                await self._store.leave(self._node)
            if has_heirs:
                await self._store.wake(Wake.WORK)
        except StoreError as error:
            log.warning("node %s could not say goodbye: %s", self._node, error)

    def _to_left(self, task: ActivityTask) -> Left:
        if task.is_offered:  # it was offered, and is no part of what runs where the execution's turns are taken
            return Left(task.org, task.execution_id, self._node, True, task.event.number, task.attempt)
        return Left(task.org, task.execution_id, self._node, True)

    async def abandon(self) -> None:
        """No more heartbeats, and no word about it."""
        self._has_joined = False
        LIVING.discard(self._token)
        if self._heartbeat is not None:
            await self._heartbeat.stop()


def _hand_over(left: Left) -> InboxRow:
    return InboxRow(left.org, left.execution_id, "", codec.encode(left.to_envelope()))
