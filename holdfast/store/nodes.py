"""What stores promise about nodes: their heartbeats, named locks, and wake-ups between them."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from holdfast.core.instants import Instant
from holdfast.store.rows import NodeRow, Route


class HeartbeatReply(msgspec.Struct, frozen=True, gc=False):
    """What the store answers to a heartbeat, so that an idle node need not ask for anything else."""

    now: Instant
    """The store's time; that of the heartbeat where it has none of its own."""
    nodes: list[NodeRow]
    next_due: Instant | None
    """When the earliest timer on the node's routes comes due."""
    has_inbox: bool
    """Whether anything waits on the node's routes."""
    has_offers: bool
    """Whether an activity on the node's routes waits to be taken."""
    before: NodeRow | None = None
    """The node's own row as this heartbeat found it."""
    settings: int = 0
    """The number of the pauses, see `holdfast.store.pauses`."""
    has_publications: bool = False
    """Whether anything waits in the outbox, or has yet to reach subscribers."""
    has_questions: bool = False
    """Whether somebody asks about executions what only their code can answer, or has not removed such a question."""
    next_schedule: Instant | None = None
    """When the earliest schedule on the node's routes fires; None where this process alone changes schedules."""
    timeline: str | None = None
    """What changes if another server, or a restored one, takes the place of the database's; None: not known at present."""


class WakeReason(Enum):
    """Why a node wakes the others."""

    WORK = auto()
    """There may be something to take."""
    ENDS = auto()
    """Executions ended, for which somebody may wait."""
    OFFERS = auto()
    """Activities were offered that another node may run."""
    REPLIES = auto()
    """Updates and the like were answered, for which somebody may wait."""
    QUESTIONS = auto()
    """Somebody asks about an execution what only its code can answer."""
    WATCHED = auto()
    """Somebody watches executions, and wants to be told of changes for a while."""
    CHANGES = auto()
    """Executions have changed; sent only while somebody watches some."""
    RETRIED = auto()
    """Executions were unblocked, which nodes may have ceased to look at, or imported with something to publish."""
    SCHEDULES = auto()
    """A schedule was made or changed, or fires of one wait until an execution ends."""
    DEFINITIONS = auto()
    """Something was deployed, which nodes may want to read and compile before it is used."""


class InFlightMark(NamedTuple):
    """That a process had an execution in flight, in one of its slots."""

    process: str
    slot: int


class Nodes(Protocol):
    """Heartbeats of nodes, and named locks for what only one node may do at a time."""

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        """Record a heartbeat. Returns what waits on these routes, for executions and for activities."""
        ...

    async def list_nodes(self) -> list[NodeRow]:
        """Every node that has sent a heartbeat and was not removed since."""
        ...

    async def leave(self, node: str) -> None:
        """Record that a node left cleanly: its row says `has_left` from now on."""
        ...

    async def remove_nodes(self, nodes: Collection[str]) -> None:
        """Forget nodes of which nothing is left to take over. One that beats again is back."""
        ...

    async def forget_processes(self, processes: Collection[str]) -> None:
        """Forget what these processes recorded as in flight, by `Transaction.mark_in_flight`."""
        ...

    async def take_lock(self, name: str, node: str, now: Instant, until: Instant) -> bool:
        """Take a named lock until `until`, or keep it; False if another node holds it beyond `now`."""
        ...

    async def release_lock(self, name: str, node: str) -> None:
        """Stop holding a lock, if this node holds it."""
        ...


@runtime_checkable
class TimeKeeper(Protocol):
    """A shared store that tells its own time to whoever sends no heartbeats."""

    async def read_time(self) -> Instant:
        """The store's time. Raises StoreUnavailable if it is out of reach."""
        ...


class HeartbeatConnection(Nodes, Protocol):
    """Heartbeats and locks over a connection that serves nothing else."""

    async def expire(self, node: str) -> None:
        """Let a node count as silent, until it beats again. Unlike with `leave` it does not count as having left."""
        ...

    async def close(self) -> None:
        """Let go of the connection. Idempotent."""
        ...
