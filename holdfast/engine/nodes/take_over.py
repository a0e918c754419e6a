"""Take-over: what a node had in hand when it ended is found, and begun anew by whoever can.

Theory of operation
-------------------

Every open execution whose activities run in some node's memory names that node in its row, and so does every offered
activity that a node has taken. A node ends in one of two ways: it leaves cleanly (`has_left` in its row, and envelopes for
what it had in hand), or it dies, which others can only conclude from a lease that ran out. An *orphan* is a row that names
a node which has ended, or which the store does not know. `TakeOver` is the one place that finds orphans and feeds them in.
It is called when an engine opens and by `Engine.recover` (`recover`), and with each heartbeat that shows ended nodes
(`take_over_from`).

Who may call whom dead (`find_ended`). That a node left cleanly, anyone may believe. That a lease ran out is for a node to
judge which has renewed its own lease without a break for a whole lease: after an outage of the database all leases look
expired, and nobody may take from everybody. So they do when the store's clock was set forward. If it was set back, the last
heartbeats from before are in the future: a node that sends no other one for a lease, by the steady clock, has ended. An
opening node therefore judges nobody, except earlier processes of its own name: it has run nothing yet, so whatever names it
was left behind. On an exclusive store every other node has ended: its owner is alone.

What is never an orphan. A node that joins while orphans are searched may be named by a row already; so the nodes are listed
again after each page, and rows of any node that is known and has not ended are left out.

The lock. With each heartbeat every node sees the same ended nodes. The store's lock `take-over` lets one of them search,
for two heartbeats at most: if that node dies, the next one gets the lock. The lock only saves work; it is not needed for
correctness.

Attempts are fences. An orphan is fed in as a `Redispatch` envelope, which gives each activity that ran there a new attempt.
Feeding it in twice changes nothing, because the second one finds no activity on that node any more (orphans of a node's own
name are fed in once, before it runs anything). A node that was called dead and lives on loses only that: the results of its
attempts are refused, since another attempt is the present one. Whoever opens may thus search without the lock.

What a clean leave changes. `has_left` travels in the envelope: the attempts of a node that left are not counted as lost
with their process, so no activity becomes a suspect by it. It also needs no lease to run out.

Why `remove_nodes` comes last. A node's row says that it ended, and how. It is removed when each of its orphans is durable
elsewhere: committed, or in the inbox of an execution that others take. Removed earlier, an orphan of a node that left
cleanly would be held against its activities; and if this node died before the commit, no heartbeat would show the others a
reason to search. Hence requests of `take_over_from` carry a future that is answered after the commit, and one that fails is
found again with the next heartbeat. Requests of `recover` carry none: no heartbeat needs to come, and the pump itself keeps
them until they are committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holdfast.core.envelopes import Redispatch
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.safe_texts import count_noun
from holdfast.engine.nodes.roster import read_details
from holdfast.engine.requests import Request
from holdfast.errors import HoldfastError, StoreError
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.nodes.heartbeat import RenewedLease
    from holdfast.store.contract import Store
    from holdfast.store.rows import NodeRow

log = logging.getLogger("holdfast.engine")

LOCK: Final = "take-over"
PAGE: Final = 500

EndedNodes: TypeAlias = Mapping[str, bool]
"""Nodes that have ended, by name, and whether each left cleanly."""


class Orphan(NamedTuple):
    """Work that an ended node had in hand: all that it ran of one execution, or one offered activity that it had taken."""

    org: str
    execution_id: str
    node: str
    has_left: bool
    """Whether the node left cleanly: then the attempt is not counted as lost with its process."""
    number: int | None = None
    """The number of the offered activity; None for all that the node ran of the execution."""
    attempt: int = 0

    def to_envelope(self) -> Redispatch:
        """The envelope that gives the orphaned activities a new attempt."""
        return Redispatch(node=self.node, has_left=self.has_left, number=self.number, attempt=self.attempt)

    def to_request(self) -> Request:
        """The envelope, addressed to its execution, as a request for the next batch."""
        return Request(self.org, self.to_envelope(), execution_id=self.execution_id)


class Recovered(NamedTuple):
    """How many executions had orphans that were fed in."""

    resumed: int
    taken_over: int
    """Those of them whose node ended without leaving cleanly."""


def find_ended(beat: RenewedLease, node: str, lease: Micros, watched: Mapping[str, Micros]) -> EndedNodes:
    """The other nodes that left cleanly, or whose lease has run out as far as `node` may judge.

    A node that has not held its own lease for a whole period calls nobody dead. A node that announced a longer lease than
    `lease` is given that one. `watched` has the silence of those whose last heartbeat is in the future.
    """

    def has_ended(row: NodeRow) -> bool:
        silence = beat.reply.now - row.seen_at
        if silence < 0:
            silence = watched.get(row.node, 0)
        if row.has_left or not beat.is_steady or silence <= lease:
            return row.has_left
        return silence > read_details(row).lease * SECOND

    return {row.node: row.has_left for row in beat.reply.nodes if row.node != node and has_ended(row)}


async def find_orphans(store: Store, ended: EndedNodes, alive: Collection[str] = ()) -> list[Orphan]:
    """The orphans of nodes that have ended or that the store does not know; nothing that a living node has in hand."""
    living = set(alive)

    async def add_living() -> None:
        if not store.exclusive:
            living.update({row.node for row in await store.list_nodes()}.difference(ended))

    await add_living()
    found: list[Orphan] = []
    after = ""
    while True:
        rows = await store.list_orphans(living, PAGE, after)
        if rows:
            await add_living()  # a node that joined meanwhile may be named by these rows
        for row in rows:
            names = set(row.nodes) - living
            found.extend(Orphan(row.org, row.execution_id, name, ended.get(name, False)) for name in sorted(names))
        if len(rows) < PAGE:
            break
        after = rows[-1].execution_id
    offers = await store.list_lost_offers(living, PAGE)
    if offers:
        await add_living()
    found.extend(
        Orphan(row.org, row.execution_id, row.node, ended.get(row.node, False), row.number, row.attempt)
        for row in offers
        if row.node is not None and row.node not in living
    )
    return found


class TakeOver:
    """Finds the orphans of ended nodes, feeds them in, and removes the nodes once nothing of them is left."""

    def __init__(
        self, store: Store, submit: Callable[[Request], None], clock: Clock, node: str, *, lease: Micros, heartbeat: Micros
    ) -> None:
        self._store = store
        self._submit = submit
        self._clock = clock
        self._node = node
        self._lease = lease
        self._lock_time = 2 * heartbeat
        self._fed_in: dict[Orphan, bool] = {}
        """Orphans that heartbeats showed and that were fed in, and whether each is durable by now."""
        self._is_busy = False
        self._ahead: dict[str, tuple[Instant, Micros]] = {}
        """Nodes whose last heartbeat is in the future, because the store's clock was set back: when that is, and since when
        this node knows of it, by its steady clock. Those that live send another one, by the clock as it is now."""

    # --- when an engine opens, and on request ---

    async def recover(self, ended: EndedNodes, alive: Collection[str] = ()) -> Recovered:
        """Feed in the orphans of these nodes. Raises StoreError."""
        orphans = await find_orphans(self._store, ended, alive)
        for orphan in self._select_new(orphans):
            self._submit(orphan.to_request())
        resumed = {orphan.execution_id for orphan in orphans}
        taken_over = {orphan.execution_id for orphan in orphans if not orphan.has_left}
        return Recovered(len(resumed), len(taken_over))

    async def forget(self, ended: EndedNodes) -> None:
        """After `recover`, on an exclusive store: remove the ended nodes. On a shared one, heartbeats do that."""
        others = [node for node in ended if node != self._node]
        if others and self._store.exclusive:
            await self._store.remove_nodes(others)

    # --- with each heartbeat ---

    def find_ended(self, beat: RenewedLease) -> EndedNodes:
        """The other nodes that have ended, as far as this node may judge from a heartbeat."""
        ended = find_ended(beat, self._node, self._lease, self._watch_ahead(beat))
        if self._fed_in:
            # A node that came back may end once more: then its orphans are fed in again.
            self._forget_fed_in({row.node for row in beat.reply.nodes}.difference(ended))
        return ended

    def _watch_ahead(self, beat: RenewedLease) -> dict[str, Micros]:
        """For how long the nodes have been silent whose last heartbeat is in the future, as far as this node has seen."""
        ahead = [row for row in beat.reply.nodes if row.seen_at > beat.reply.now]
        if not ahead and not self._ahead:
            return {}
        before, self._ahead = self._ahead, {}
        for row in ahead:
            seen_at, since = before.get(row.node, (row.seen_at, beat.asked))
            self._ahead[row.node] = (row.seen_at, since if seen_at == row.seen_at else beat.asked)
        return {name: beat.asked - since for name, (_, since) in self._ahead.items()}

    def forget_fed_in(self) -> None:
        """The database went back: what was fed in and durable may be neither."""
        self._fed_in = {}

    async def take_over_from(self, ended: EndedNodes) -> None:
        """Feed in the orphans of these nodes and of those that the store does not know; remove nodes of which none is left.

        One node does so at a time.
        """
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._take_over_from(ended)
        except StoreError as error:
            log.warning(
                "node %s could not take over from %s, and tries again with its next heartbeat: %s",
                self._node,
                _join(ended) or "unknown nodes",
                error,
                extra=tag(LogEvent.NODE_NOT_TAKEN_OVER, node=self._node),
            )
        finally:
            self._is_busy = False

    async def _take_over_from(self, ended: EndedNodes) -> None:
        now = self._clock.now()
        if not await self._store.take_lock(LOCK, self._node, now, now + self._lock_time):
            return  # another node searches; if it dies, the lock expires
        orphans = await find_orphans(self._store, ended)
        new = self._select_new(orphans)
        if new:
            executions = {orphan.execution_id for orphan in new}
            ended_nodes = _join({orphan.node for orphan in new})
            log.warning(
                "node %s takes over %s from %s",
                self._node,
                count_noun(len(executions), "execution"),
                ended_nodes,
                extra=tag(LogEvent.NODE_TAKEN_OVER, node=self._node),
            )
        for orphan in new:
            self._feed_in(orphan)
        # What was passed on is durable in an inbox: it waits for a node that can do it, and does not need the ended one.
        finished = set(ended).difference(orphan.node for orphan in orphans if not self._fed_in.get(orphan, False))
        if finished:
            await self._store.remove_nodes(finished)
            self._forget_fed_in(finished)
        if len(finished) == len(ended):
            await self._store.release_lock(LOCK, self._node)

    def _select_new(self, orphans: Iterable[Orphan]) -> list[Orphan]:
        return [orphan for orphan in orphans if orphan not in self._fed_in]

    def _feed_in(self, orphan: Orphan) -> None:
        self._fed_in[orphan] = False
        request = orphan.to_request()
        request.future = asyncio.get_running_loop().create_future()
        request.future.add_done_callback(partial(self._note_answer, orphan))
        self._submit(request)

    def _note_answer(self, orphan: Orphan, answer: asyncio.Future[object]) -> None:
        error = None if answer.cancelled() else answer.exception()
        if orphan not in self._fed_in:
            return
        if isinstance(error, StoreError) or answer.cancelled():
            del self._fed_in[orphan]  # nothing was stored: the next heartbeat finds it again
        else:
            # An execution that is closed by now refuses it, and needs nothing more.
            self._fed_in[orphan] = error is None or isinstance(error, HoldfastError)

    def _forget_fed_in(self, nodes: Collection[str]) -> None:
        self._fed_in = {orphan: is_done for orphan, is_done in self._fed_in.items() if orphan.node not in nodes}


def _join(nodes: Collection[str]) -> str:
    return ", ".join(sorted(nodes))
