"""The nodes that share a store: what each announces of itself, how it is shown to others, and whom to wake."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.instants import SECOND, Instant, to_datetime
from holdfast.core.publications import DEFAULT_EVENT, EventOptions
from holdfast.core.shown_values import ShownValue
from holdfast.errors import StoreError
from holdfast.store.nodes import HeartbeatReply, WakeReason
from holdfast.store.rows import NodeRow
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.store.contract import Store


class AnnouncedEvent(msgspec.Struct, frozen=True):
    """What a node announces of a type of events."""

    options: EventOptions = DEFAULT_EVENT
    schema: str = ""
    """The digest of a schema of its values, which is in the store."""


class NodeDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a node announces of itself with each heartbeat. All fields have defaults, to read nodes of other versions."""

    host: str = ""
    pid: int = 0
    version: str = ""
    """The version of Holdfast that it runs."""
    queues: Sequence[str] = ()
    """The queues from which it takes work; empty means all."""
    workflows: Sequence[str] = ()
    versions: Mapping[str, Sequence[str]] = {}
    """The versions that it has of each of its workflows, the newest last; empty from nodes that do not tell."""
    interprets: Sequence[str] = ()
    """What stands for workflows in the routes of processes that it can interpret, as in `core.routes`."""
    inputs: Mapping[str, Mapping[str, str]] = {}
    """By workflow and version: the digest of its input schema, which is in the store."""
    events: Mapping[str, AnnouncedEvent] = {}
    """By name: the types of events that it was given."""
    activities: Sequence[str] = ()
    running: int = 0
    """How many activities it runs."""
    lease: float = 0.0
    """Seconds without a heartbeat after which it counts as dead; 0 where it sends none."""
    realm: str = ""
    """The scope in which its process id is valid: boot and pid namespace."""
    token: str = ""
    """Tells this process from all others that ever had the node's name."""
    works: bool = False
    """Whether it takes work: not while it is joining or leaving."""
    beat: int = 0
    """The number of the heartbeat among those of its process: a node that finds an earlier one than it knows to be stored
    knows that the database went back."""


class NodeState(StrEnum):
    """The state of a node as other nodes see it."""

    ALIVE = "alive"
    LATE = "late"
    """Its lease has run out, or it ended without leaving: it died, is frozen or cut off. Other nodes take over from it."""
    LEFT = "left"
    """It left cleanly."""


class NodeInfo(ShownValue, frozen=True, kw_only=True):
    """One node at the moment of the question."""

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
    lease: float,
    *,
    queues: Sequence[str],
    versions: Mapping[str, Sequence[str]],
    interprets: Sequence[str],
    inputs: Mapping[str, Mapping[str, str]],
    events: Mapping[str, AnnouncedEvent],
    activities: Sequence[str],
    running: int,
) -> NodeDetails:
    """The details that this process announces of itself."""
    return NodeDetails(
        host=platform.node(),
        pid=os.getpid(),
        version=__version__,
        queues=queues,
        workflows=sorted(versions),
        versions=versions,
        interprets=interprets,
        inputs=inputs,
        events=events,
        activities=activities,
        running=running,
        lease=lease,
    )


def read_details(row: NodeRow) -> NodeDetails:
    """The details that a node announced; all defaults if they cannot be read."""
    try:
        return msgspec.json.decode(row.details, type=NodeDetails)
    except (msgspec.MsgspecError, ValueError):
        return NodeDetails()


async def list_nodes(store: Store, now: Instant, own: str = "") -> list[NodeInfo]:
    """Every node that the store knows, by name. `own` is the name of the node that asks, if it is one of them."""
    rows = await store.list_nodes()
    if store.exclusive:  # it has one owner and no heartbeats: who asks as its node is alive, and all others have ended
        rows = [msgspec.structs.replace(row, seen_at=now) if row.node == own else row for row in rows]
    return [to_node_info(row, now, has_ended=store.exclusive and row.node != own) for row in rows]


def to_node_info(row: NodeRow, now: Instant, *, has_ended: bool) -> NodeInfo:
    """A node as it is shown; `has_ended`: it certainly works no more, whether it left cleanly or not."""
    details = read_details(row)
    silence = max(0, now - row.seen_at) / SECOND
    is_late = has_ended or silence > details.lease > 0
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
    """The other living nodes, as far as this one knows; a node that is alone sends no wake-ups."""

    def __init__(self, store: Store, node: str, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._store = store
        self._node = node
        self._spawn = spawn
        self.names: frozenset[str] = frozenset()
        self._has_wake_up = False

    def note_wake_up(self) -> None:
        """Note that a wake-up came: another node is there, which the last heartbeat may not have shown."""
        self._has_wake_up = True

    def note(self, reply: HeartbeatReply) -> None:
        """Note the living nodes that a heartbeat showed."""
        self.names = frozenset(one.node for one in reply.nodes if not one.has_left and one.node != self._node)
        self._has_wake_up = False

    @property
    def has_any(self) -> bool:
        """Whether another node may be alive."""
        return bool(self.names) or self._has_wake_up

    def wake(self, why: WakeReason, *, is_certain: bool = False) -> None:
        """Send the other nodes a wake-up, if there are any; or if it `is_certain` that somebody is there, as a client is."""
        if self.has_any or is_certain:
            self._spawn(self._send(why))

    async def _send(self, why: WakeReason) -> None:
        try:
            await self._store.wake(why)
        except StoreError:
            return  # a lost wake-up only delays the others until their next heartbeat
