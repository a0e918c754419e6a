"""What every store promises. The only words in which the engine speaks to a database.

The shape is that of many nodes on one database: lock, then read, then take turns in memory, then write, then commit. A store
that one process owns keeps the same promises with less work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status

# --- rows: what is kept, as it is kept ------------------------------------------------------------------------------------


class ExecutionRow(msgspec.Struct, frozen=True, gc=False):
    """One execution. `details` is JSON that the store does not look into."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    code_version: str
    queue: str
    status: str
    state_version: int
    sequence: int
    node: str | None
    parent_id: str | None
    created_at: Instant
    updated_at: Instant
    closed_at: Instant | None
    details: bytes


class HistoryRow(msgspec.Struct, frozen=True, gc=False):
    """The events of one turn: `count` of them from sequence `first` on."""

    execution_id: str
    first: int
    count: int
    at: Instant
    schema: int
    body: bytes


class TimerRow(msgspec.Struct, frozen=True, gc=False):
    """An envelope with a due time. `attempt` 0 is a program's timer, else an activity's next attempt."""

    org: str
    execution_id: str
    number: int
    due: Instant
    attempt: int


class InboxRow(msgspec.Struct, frozen=True, gc=False):
    """An envelope to be handled now. `execution_id` is empty where it is addressed by workflow id.

    `id` is given by the store, in the order of arrival: a database sequence, never a time.
    """

    org: str
    execution_id: str
    workflow_id: str
    body: bytes
    id: int = 0
    attempts: int = 0


class DeadLetterRow(msgspec.Struct, frozen=True, gc=False):
    """An envelope that could not be handled, as it came, and why."""

    org: str
    execution_id: str
    workflow_id: str
    body: bytes
    reason: str
    node: str
    at: Instant
    attempts: int = 0
    id: int = 0


class RequestRow(msgspec.Struct, frozen=True, gc=False):
    """What was answered to a request that carried a key, kept until it expires."""

    org: str
    kind: str
    key: str
    execution_id: str
    sequence: int | None
    expires_at: Instant


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node's heartbeat, which is its lease."""

    node: str
    seen_at: Instant
    started_at: Instant


# --- what a batch asks and writes -----------------------------------------------------------------------------------------


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """An execution for which this node holds envelopes; `known_version` is the version of its cached program, or -1."""

    org: str
    execution_id: str
    known_version: int = -1


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What a batch would like to hold."""

    wanted: Sequence[Wanted] = ()
    workflow_ids: Sequence[tuple[str, str]] = ()
    """(org, workflow id) pairs to resolve to their open execution, which is claimed like a wanted one; held against other
    starters until the end."""
    due_before: Instant = 0
    """Timers count as due up to and including this instant."""
    limit: int = 0
    """How many executions and workflow ids to take beyond the wanted ones: those with inbox rows or due timers."""
    skip: Collection[str] = ()
    """Executions to leave alone: blocked, or of a workflow that this node does not have."""


class Claimed(msgspec.Struct, gc=False):
    """What a batch holds until its transaction ends."""

    held: set[str] = msgspec.field(default_factory=set)
    """Open executions that are locked for this transaction."""
    rows: dict[str, ExecutionRow] = msgspec.field(default_factory=dict)
    """The rows of held executions, read after the lock; those whose version was already known may be left out."""
    busy: set[str] = msgspec.field(default_factory=set)
    """Wanted executions that another transaction holds, also those that a workflow id stands for."""
    open_ids: dict[tuple[str, str], str | None] = msgspec.field(default_factory=dict)
    """The open execution of each workflow id asked for, if any; an id that is missing here is being started elsewhere."""
    inbox: list[InboxRow] = msgspec.field(default_factory=list)
    """What waits for the held executions, and what is addressed by workflow id, in order of arrival. Also what waits for
    executions that are closed, or not there (yet): no other transaction gets any of it meanwhile."""
    due: list[TimerRow] = msgspec.field(default_factory=list)
    """Due timers of the held executions, in due order."""


class TurnWrite(msgspec.Struct, gc=False):
    """Everything one turn writes. It stands or falls as a whole, by itself."""

    row: ExecutionRow
    expected_version: int | None
    """The version the stored row must have; None to insert a new execution."""
    history: HistoryRow | None = None
    timers: Sequence[TimerRow] = ()
    ended_timers: Sequence[int] = ()
    """Numbers of timers that end, also of those that this very turn set."""
    consumed: Sequence[int] = ()
    """Ids of the inbox rows that this turn took."""
    outgoing: Sequence[InboxRow] = ()
    dead_letters: Sequence[DeadLetterRow] = ()
    requests: Sequence[RequestRow] = ()


class LooseWrite(msgspec.Struct, gc=False):
    """What belongs to no execution of the batch: envelopes for nobody, answers to them."""

    consumed: list[int] = msgspec.field(default_factory=list)
    outgoing: list[InboxRow] = msgspec.field(default_factory=list)
    dead_letters: list[DeadLetterRow] = msgspec.field(default_factory=list)
    failed: list[int] = msgspec.field(default_factory=list)
    """Ids of inbox rows whose handling failed: their `attempts` grow by one."""
    requests: list[RequestRow] = msgspec.field(default_factory=list)


class Filter(msgspec.Struct, frozen=True, gc=False):
    """Which executions to list."""

    org: str
    statuses: Collection[Status] = ()
    workflow: str | None = None
    workflow_id: str | None = None
    parent_id: str | None = None
    before: str | None = None
    """Only executions created before this execution id: the last of the page before."""
    limit: int = 100


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How much a store holds: what a recovery report and `holdfast check` print."""

    executions: dict[str, int]
    """By status; closed ones are left out."""
    timers: int
    inbox: int
    dead_letters: int


class Transaction(Protocol):
    """One transaction of a batch. Ends by `commit` or `rollback`; an exception from any method means it is rolled back."""

    async def claim(self, claim: Claim) -> Claimed:
        """Lock without waiting, then read in a new statement.

        Executions that another transaction holds are skipped. May be called again in the same transaction.
        """
        ...

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        """The history of each execution behind the sequence given, in order."""
        ...

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        """Rows by execution id, open or closed, without locking them."""
        ...

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """The newest execution of a workflow id, open or closed."""
        ...

    async def read_request(self, org: str, kind: str, key: str, now: Instant) -> RequestRow | None:
        """What was answered to a keyed request that has not expired."""
        ...

    async def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        """Write the turns; returns the executions whose turn was not written, not even in part.

        A turn is lost if the stored version is not the expected one, if a new execution's workflow id is open already, or
        if it closes an execution for which the inbox holds rows that it did not take. Closings come before inserts, and end
        all timers of their executions. Never raises for a lost turn: a batch stands or falls by turns.
        """
        ...

    async def commit(self) -> None:
        """Make it durable. Raises StoreUnavailable if it certainly was not, OutcomeUnknown if that cannot be told."""
        ...

    async def rollback(self) -> None:
        """Give everything up. Never raises."""
        ...


class Reader(Protocol):
    """Reads outside of batches. They see what is committed and nothing else."""

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        """By execution id."""
        ...

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """The open execution of a workflow id, else the newest closed one."""
        ...

    async def list_executions(self, query: Filter) -> list[ExecutionRow]:
        """Newest first."""
        ...

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        """History rows behind a sequence, in order."""
        ...

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        """The newest history row: of a closed execution, the one that closed it."""
        ...

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        """In the order of their ids."""
        ...

    async def find_next_due(self, skip: Collection[str]) -> Instant | None:
        """When the earliest timer comes due, those of `skip` aside."""
        ...

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        """Open executions that name a node which is not alive, by execution id. `node` holds ids joined by commas."""
        ...

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        """Blocked executions, by execution id."""
        ...

    async def count(self) -> Counts:
        """How much there is."""
        ...

    async def check(self) -> list[str]:
        """What contradicts itself in the store; empty if nothing does."""
        ...


class Nodes(Protocol):
    """Who is alive. On a store that one process owns, that process."""

    async def beat(self, node: NodeRow) -> None:
        """Record a heartbeat."""
        ...

    async def list_nodes(self) -> list[NodeRow]:
        """Every node that has not said goodbye."""
        ...

    async def leave(self, node: str) -> None:
        """Say goodbye."""
        ...


class Store(Reader, Nodes, Protocol):
    """A database that holds executions."""

    @property
    def exclusive(self) -> bool:
        """Whether this process is the only one that writes: then a row at a committed version need not be read again."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Raises a StoreError that says what is wrong."""
        ...

    async def close(self) -> None:
        """Let go of everything. Idempotent."""
        ...

    async def begin(self) -> Transaction:
        """A new transaction."""
        ...

    async def was_committed(self, transaction: Transaction) -> bool:
        """Whether a transaction whose outcome was unknown took place. Waits until the database can tell."""
        ...

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """Put envelopes into the inbox of executions that others hold, each only if its execution is open.

        Which of them were, in the order given; durable on return.
        """
        ...

    async def discard_dead_letters(self, org: str, ids: Collection[int]) -> int:
        """Remove dead letters; how many there were."""
        ...

    async def requeue_dead_letters(self, org: str, ids: Collection[int]) -> int:
        """Move dead letters back into the inbox, as one step; how many there were."""
        ...

    async def set_status(self, org: str, execution_id: str, expected_version: int, row: ExecutionRow) -> bool:
        """Replace one row outside of a batch if its version is the expected one; whether it was."""
        ...

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call back whenever another node may have left work; late or lost calls only cost time."""
        ...

    async def wake(self) -> None:
        """Tell other nodes that there may be work. After the commit, never before."""
        ...
