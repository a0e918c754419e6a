"""What stores keep, as they keep it: rows."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

import msgspec

from holdfast.core.effects import TimerKind
from holdfast.core.instants import Instant

Route: TypeAlias = str
"""Who may take something: made of a queue, a name and where that matters a version, by the engine. The store only compares
it. Empty: anybody."""

RequestKeyId: TypeAlias = tuple[str, str, str]
"""(org, kind, key) of a request that carries a key."""


class ExecutionRow(msgspec.Struct, frozen=True, gc=False):
    """One execution. `nodes` hold running activities of it in memory.

    `details` is JSON of which the store reads the metadata alone, by which executions are found.

    Org, execution id, workflow id, workflow, queue, parent id, time of creation and metadata never change. All others may,
    with every turn.
    """

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    code_version: str
    queue: str
    status: str
    state_version: int
    sequence: int
    nodes: tuple[str, ...]
    parent_id: str | None
    created_at: Instant
    updated_at: Instant
    closed_at: Instant | None
    details: bytes
    route: Route = ""
    """The route by which nodes may take its turns."""


class HistoryRow(msgspec.Struct, frozen=True, gc=False):
    """The events of one turn: `count` of them from sequence `first` on. Never changes."""

    execution_id: str
    first: int
    count: int
    at: Instant
    schema: int
    body: bytes


class TimerRow(msgspec.Struct, frozen=True, gc=False):
    """Something that is due for an execution at a time; setting it again under its number replaces it."""

    org: str
    execution_id: str
    number: int
    due: Instant
    kind: TimerKind = TimerKind.TIMER
    attempt: int = 0
    """Of an activity's timer, the attempt that begins or waits; 0 for a program's own."""
    route: Route = ""
    """The route of its execution."""


class ActivityRow(msgspec.Struct, frozen=True, gc=False):
    """An attempt of an activity that its own node could not take: offered to whoever can.

    Only `node` changes, once; everything else by a new offer in its place.
    """

    org: str
    execution_id: str
    number: int
    attempt: int
    route: Route
    body: bytes
    node: str | None = None
    """The node that has taken it; None while it is offered."""


class InboxRow(msgspec.Struct, frozen=True, gc=False):
    """An envelope to be handled now. `execution_id` is empty where it is addressed by workflow id.

    `id` is given by the store, in the order of arrival: a database sequence, never a time. Of the rest only
    `attempts` and `route` change, and by `UnroutedWrite.readdressed` whom it is for.
    """

    org: str
    execution_id: str
    workflow_id: str
    body: bytes
    id: int = 0
    attempts: int = 0
    route: Route = ""
    """That of the receiver, where the sender knows it. `Store.deliver` fills it in."""
    at: Instant = 0
    """When it was accepted, for people; 0 if that is unknown: a node of an earlier version put it."""


class DeadLetterRow(msgspec.Struct, frozen=True, gc=False):
    """An envelope that could not be handled, as it came, and why. Never changes."""

    org: str
    execution_id: str
    workflow_id: str
    body: bytes
    reason: str
    node: str
    at: Instant
    attempts: int = 0
    id: int = 0


START_KEY_KINDS: Final = ("start", "start_request")
"""The kinds of requests that stand for an execution: if that is removed, for the open one of its workflow id."""


class RequestRow(msgspec.Struct, frozen=True, gc=False):
    """What was answered to a request with a key, kept until it expires, or the execution that it is about is removed.

    While another execution is open under the same workflow id, it outlives the execution that it is about.
    """

    org: str
    kind: str
    key: str
    execution_id: str
    """Empty where it is about no execution."""
    sequence: int | None
    expires_at: Instant
    answer: bytes | None = None
    """JSON that the store does not look into: the answer; None where an earlier version remembered the request."""


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node's heartbeat, which is its lease."""

    node: str
    seen_at: Instant
    started_at: Instant
    has_left: bool = False
    """Whether the node left cleanly: others take what it has not finished, at once."""
    details: bytes = b"{}"
    """JSON that the store does not look into: where it runs, and what it can do."""


class ExecutionPage(msgspec.Struct, frozen=True, gc=False):
    """Some executions that a filter selects, and where the next page begins."""

    rows: list[ExecutionRow]
    end: str | None
    """The `before` of the next page; None if that was all. A page with fewer rows than the limit may have one: the walk was
    given up at `ExecutionFilter.scan`."""
    end_value: str | int | None = None
    """The `before_value` of the next page."""


class StatusCounts(msgspec.Struct, frozen=True, gc=False):
    """How many of the executions that a filter selects have each status."""

    by_status: dict[str, int]
    is_given_up: bool = False
    """Whether the walk was given up at `ExecutionFilter.scan`: there may be more than were counted."""

    @property
    def total(self) -> int:
        """How many executions were counted, whatever their status."""
        return sum(self.by_status.values())


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How much a store holds: what a recovery report and `holdfast check` print."""

    executions: dict[str, int]
    """By status; closed ones are left out."""
    timers: int
    inbox: int
    dead_letters: int


class Waiting(Enum):
    """What a backlog is made of."""

    OPEN = "open"
    """Open executions."""
    INBOX = "inbox"
    """Envelopes in inboxes."""
    DUE = "due"
    """Timers that are due."""
    OFFERED = "offered"
    """Activities that no node has taken."""


class BacklogRow(msgspec.Struct, frozen=True, gc=False):
    """How many things of one kind wait that have the same org, queue, route and status."""

    what: Waiting
    org: str
    queue: str | None
    """The queue of the execution; None where there is none, or it is not known: then the route tells it."""
    route: Route
    status: str
    """Of open executions. Of envelopes and timers: `blocked` or `paused` if they wait for such an execution, else empty."""
    count: int
    oldest: Instant | None
    """Since when the oldest waits; None if that is not known."""
