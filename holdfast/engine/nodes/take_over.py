"""What nodes leave behind that are gone: found by one node at a time, and begun anew by whoever can.

The attempt of each such activity grows by one, so that a late result of a node that was only silent is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holdfast.core.envelopes import Redispatch
from holdfast.core.instants import SECOND, Micros
from holdfast.engine.batches.requests import Request
from holdfast.engine.nodes.roster import read_details
from holdfast.errors import HoldfastError, StoreError

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.nodes.heartbeat import Beat
    from holdfast.store.contract import NodeRow, Store

log = logging.getLogger("holdfast.engine")

LOCK: Final = "take-over"
PAGE: Final = 500


class Left(NamedTuple):
    """Something that a node had in hand when it went: what runs of an execution, or one activity that it had taken."""

    org: str
    execution_id: str
    node: str
    has_left: bool
    """Whether it said goodbye: then it is not to blame for anything."""
    number: int | None = None
    attempt: int = 0

    def to_envelope(self) -> Redispatch:
        """What the execution is told."""
        return Redispatch(node=self.node, has_left=self.has_left, number=self.number, attempt=self.attempt)

    def to_request(self) -> Request:
        """The same, for the next batch."""
        return Request(self.org, self.to_envelope(), execution_id=self.execution_id)


Gone: TypeAlias = Mapping[str, bool]
"""Nodes that are gone, and whether they said goodbye."""


def find_gone(beat: Beat, node: str, lease: Micros) -> Gone:
    """The nodes that said goodbye or whose lease ran out, as this node may judge.

    It may not call anybody dead who has not held its own lease for a whole period: after an outage of the database nobody
    robs everybody. A node that told of a longer lease has that one.
    """

    def is_gone(row: NodeRow) -> bool:
        silence = beat.pulse.now - row.seen_at
        if row.has_left or not beat.is_steady or silence <= lease:
            return row.has_left
        return silence > read_details(row).lease * SECOND

    return {row.node: row.has_left for row in beat.pulse.nodes if row.node != node and is_gone(row)}


async def find_left(store: Store, gone: Gone, alive: Collection[str] = ()) -> list[Left]:
    """What nodes had in hand that are gone, or that the store does not know; never what is in the hands of the living."""
    known = set(alive)

    async def look_around() -> None:
        if not store.exclusive:
            known.update({row.node for row in await store.list_nodes()}.difference(gone))

    await look_around()
    found: list[Left] = []
    after = ""
    while True:
        orphans = await store.list_orphans(known, PAGE, after)
        if orphans:
            await look_around()  # who joined meanwhile may be among those named, and is not to be robbed
        for row in orphans:
            names = {name for name in (row.node or "").split(",") if name} - known
            found.extend(Left(row.org, row.execution_id, name, gone.get(name, False)) for name in sorted(names))
        if len(orphans) < PAGE:
            break
        after = orphans[-1].execution_id
    return found + await _find_lost_offers(store, gone, known)


async def _find_lost_offers(store: Store, gone: Gone, known: set[str]) -> list[Left]:
    lost = await store.list_lost_offers(known, PAGE)
    if lost and not store.exclusive:
        known.update({row.node for row in await store.list_nodes()}.difference(gone))
    return [
        Left(row.org, row.execution_id, row.node, gone.get(row.node, False), row.number, row.attempt)
        for row in lost
        if row.node is not None and row.node not in known
    ]


class TakeOver:
    """Looks after the nodes that are gone until nothing is left of them, then forgets them."""

    def __init__(
        self, store: Store, submit: Callable[[Request], None], clock: Clock, node: str, lease: Micros, heartbeat: Micros
    ) -> None:
        self._store = store
        self._submit = submit
        self._clock = clock
        self._node = node
        self._lease = lease
        self._turn = 2 * heartbeat
        """For how long at most nobody else has a look: then the next one, if this node dies meanwhile."""
        self._asked: dict[Left, bool] = {}
        """What was fed in, and whether that is durable by now."""
        self._is_busy = False

    def judge(self, beat: Beat) -> Gone:
        """Who is gone."""
        gone = find_gone(beat, self._node, self._lease)
        if self._asked:
            alive = {row.node for row in beat.pulse.nodes}.difference(gone)
            # Of whoever came back, everything has to be asked again if it goes once more.
            self._asked = {one: is_done for one, is_done in self._asked.items() if one.node not in alive}
        return gone

    async def tend(self, gone: Gone) -> None:
        """Begin anew what these nodes left. Done with each heartbeat that shows them, by one node of all."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._tend(gone)
        except StoreError as error:
            log.warning("node %s could not take over from %s, and tries again: %s", self._node, _name(gone), error)
        finally:
            self._is_busy = False

    async def _tend(self, gone: Gone) -> None:
        now = self._clock.now()
        if not await self._store.take_lock(LOCK, self._node, now, now + self._turn):
            return  # another node is at it; if that one dies, this one has its turn
        left = await find_left(self._store, gone)
        new = [one for one in left if one not in self._asked]
        if new:
            log.warning("node %s takes over %d executions from %s", self._node, len(new), _name({one.node for one in new}))
        for one in new:
            self._ask(one)
        # What was passed on is durable: it waits for a node that can do it, and the one that is gone is not needed for that.
        done = set(gone).difference(one.node for one in left if not self._asked.get(one, False))
        if done:
            await self._store.remove_nodes(done)
            self._asked = {one: is_done for one, is_done in self._asked.items() if one.node not in done}
        if len(done) == len(gone):
            await self._store.give_lock(LOCK, self._node)

    def _ask(self, one: Left) -> None:
        self._asked[one] = False
        request = one.to_request()
        request.future = asyncio.get_running_loop().create_future()
        request.future.add_done_callback(partial(self._note_answer, one))
        self._submit(request)

    def _note_answer(self, one: Left, answer: asyncio.Future[object]) -> None:
        error = None if answer.cancelled() else answer.exception()
        if one not in self._asked:
            return
        if isinstance(error, StoreError) or answer.cancelled():
            del self._asked[one]  # nothing was stored: the next heartbeat finds it again
        else:
            # An execution that is closed by now refuses it, and needs nothing more.
            self._asked[one] = error is None or isinstance(error, HoldfastError)


def _name(nodes: Collection[str]) -> str:
    return ", ".join(sorted(nodes))
