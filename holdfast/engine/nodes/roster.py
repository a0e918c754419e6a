"""The nodes that share a store: what each tells of itself, how it looks to others, and whom to wake."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.instants import SECOND, Instant, to_datetime
from holdfast.errors import StoreError
from holdfast.store.contract import NodeRow, Pulse, Wake

if TYPE_CHECKING:
    from holdfast.store.contract import Store


class NodeDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a node tells of itself with each heartbeat. Every field has a default: nodes of other versions are read too."""

    host: str = ""
    pid: int = 0
    version: str = ""
    """Of Holdfast."""
    queues: Sequence[str] = ()
    """From which it takes work; empty: from all."""
    workflows: Sequence[str] = ()
    activities: Sequence[str] = ()
    running: int = 0
    """How many activities it runs."""
    lease: float = 0.0
    """Seconds after which it counts as gone without a heartbeat; 0 where it sends none."""
    realm: str = ""
    """Where its process id is valid."""
    token: str = ""
    """Its own among all that ever had its name."""
    works: bool = False
    """Whether it works under its name: not while it comes or goes."""
    ended: Mapping[str, Instant] = {}
    """Nodes that ended without a goodbye shortly before, and when this one heard of it."""


class NodeState(StrEnum):
    """How a node stands, as others see it."""

    ALIVE = "alive"
    LATE = "late"
    """Its lease has run out, or it ended without a word: it died, stands still or is cut off. Others take over."""
    LEFT = "left"
    """It said goodbye."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One node as it stood when it was asked about."""

    node: str
    state: NodeState
    started_at: datetime
    seen_at: datetime
    seen_ago: float
    """Seconds since its last heartbeat."""
    host: str
    pid: int
    version: str
    queues: Sequence[str]
    workflows: Sequence[str]
    activities: Sequence[str]
    running: int


def describe_node(
    lease: float, *, queues: Sequence[str], workflows: Sequence[str], activities: Sequence[str], running: int
) -> NodeDetails:
    """What this process tells of itself."""
    from holdfast import __version__  # noqa: PLC0415 - the package imports this module

    return NodeDetails(
        host=platform.node(),
        pid=os.getpid(),
        version=__version__,
        queues=queues,
        workflows=workflows,
        activities=activities,
        running=running,
        lease=lease,
    )


def read_details(row: NodeRow) -> NodeDetails:
    """What a node told of itself; nothing, if it cannot be read."""
    try:
        return msgspec.json.decode(row.details, type=NodeDetails)
    except (msgspec.MsgspecError, ValueError):
        return NodeDetails()


async def list_nodes(store: Store, now: Instant, own: str = "") -> list[NodeInfo]:
    """Every node that the store knows, by name. `own` is that of whoever asks, if it is one of them."""
    rows = await store.list_nodes()
    # A store of one's own has no heartbeats: who can look into it while it is not there itself finds nobody alive.
    return [to_node_info(row, now, is_over=store.exclusive and row.node != own) for row in rows]


def to_node_info(row: NodeRow, now: Instant, *, is_over: bool) -> NodeInfo:
    """A node as it is shown; `is_over`: it certainly works no more, whether it said so or not."""
    details = read_details(row)
    silence = max(0, now - row.seen_at) / SECOND
    is_late = is_over or silence > details.lease > 0
    return NodeInfo(
        node=row.node,
        state=NodeState.LEFT if row.has_left else NodeState.LATE if is_late else NodeState.ALIVE,
        started_at=to_datetime(row.started_at),
        seen_at=to_datetime(row.seen_at),
        seen_ago=silence,
        host=details.host,
        pid=details.pid,
        version=details.version,
        queues=details.queues,
        workflows=details.workflows,
        activities=details.activities,
        running=details.running,
    )


class Peers:
    """The other living nodes, as far as is known: whoever is alone need not wake anybody."""

    def __init__(self, store: Store, node: str, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._store = store
        self._node = node
        self._spawn = spawn
        self.names: frozenset[str] = frozenset()
        self._has_heard = False

    def hear(self) -> None:
        """A wake-up came: somebody is there, whom the last heartbeat may not have shown."""
        self._has_heard = True

    def note(self, pulse: Pulse) -> None:
        """A heartbeat showed who is there."""
        self.names = frozenset(one.node for one in pulse.nodes if not one.has_left and one.node != self._node)
        self._has_heard = False

    @property
    def has_any(self) -> bool:
        """Whether somebody else may be there."""
        return bool(self.names) or self._has_heard

    def wake(self, why: Wake) -> None:
        """Tell the others, if there are any."""
        if self.has_any:
            self._spawn(self._send(why))

    async def _send(self, why: Wake) -> None:
        try:
            await self._store.wake(why)
        except StoreError:
            return  # a wake-up that is lost costs a heartbeat's time, and nothing else
