"""What every store promises. The only words in which the engine speaks to a database.

The shape is that of many nodes on one database: lock, then read, then take turns in memory, then write, then commit. A store
that one process owns keeps the same promises with less work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.filters.syntax import NEWEST_FIRST, Condition, Order, Value
from holdfast.store.attributes import AttributeChange
from holdfast.store.definitions import Definitions
from holdfast.store.incidents import IncidentRow, Incidents
from holdfast.store.nodes import HeartbeatConnection, InFlightMark, Nodes, WakeReason
from holdfast.store.offers import Offers
from holdfast.store.once import KeyedCall, Once
from holdfast.store.pauses import Pauses
from holdfast.store.publications import PublicationRow, Publications, Publishing, SubscriptionRow
from holdfast.store.questions import Questions
from holdfast.store.rows import (
    ActivityRow,
    BacklogRow,
    Counts,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    RequestKeyId,
    RequestRow,
    Route,
    StatusCounts,
    TimerRow,
)
from holdfast.store.schedules import Schedules, Scheduling
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.stale import StaleWork
from holdfast.store.tasks import TaskEventRow, TaskKey, TaskRow, Tasks, TurnTaskChange
from holdfast.store.usage import Usage

T = TypeVar("T")

LONGEST_ORDER: Final = 64 * 1024
"""How many bytes a body has at most that is looked at for `Claim.order_prefix`."""

# --- what a batch asks and writes -----------------------------------------------------------------------------------------


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """An execution for which this node holds envelopes."""

    org: str
    execution_id: str
    known_version: int | None = None
    """The version of its cached program, if there is one: its row is not read then, unless it is at another version."""
    workflow_id: str = ""
    """Its workflow id, where the version is known: else it is read with its row."""
    whole_inbox: bool = False
    """Whether to read all that waits for it, also if it takes no turns: see `Claimed.withheld`."""
    known_at: Instant | None = None
    """When its row was changed last, at the known version: one that was changed at another time is of another past, and is
    read. None: the version alone counts."""

    def is_known(self, version: int, updated_at: Instant) -> bool:
        """Whether the row is the one that the cached program stands for."""
        return version == self.known_version and self.known_at in (None, updated_at)


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What a batch would like to hold."""

    wanted: Sequence[Wanted] = ()
    workflow_ids: Sequence[tuple[str, str]] = ()
    """(org, workflow id) pairs to resolve to their open execution, which is claimed like a wanted one; held against other
    starters until the end."""
    due_until: Instant = 0
    """Timers count as due up to and including this instant; 0: none do."""
    limit: int = 0
    """How many executions and workflow ids to take beyond the wanted ones: those with inbox rows or due timers."""
    routes: Collection[Route] | None = None
    """Take beyond the wanted ones only what goes by these routes, or is for anybody; None: everything. Executions on other
    routes take no turns here, however they come to be held: see `Claimed.withheld`."""
    skip: Collection[str] = ()
    """Executions to leave alone: they cannot take turns here for the time being."""
    request_keys: Sequence[RequestKeyId] = ()
    """Keys of requests to hold against other transactions that claim them, until the end."""
    skip_workflow_ids: Collection[tuple[str, str]] = ()
    """(org, workflow id) pairs of which to leave alone what is addressed by the workflow id alone."""
    order_prefix: bytes = b""
    """How inbox rows begin that concern also executions which take no turns; empty: none does."""
    closing: Collection[str] = ()
    """Executions to hold also against deliveries, which wait until the transaction ends; only where none is under way."""
    has_code: Callable[[ExecutionRow], bool] | None = None
    """Says of a held execution whether the code that takes its turns is here, at once; None: it always is."""
    is_paused: Callable[[ExecutionRow], bool] | None = None
    """Says of a held execution whether its workflow or its queue is paused, at once; None: none is."""


class Withheld(Enum):
    """Why a held execution takes no turns here, so that its inbox is not read."""

    BLOCKED = auto()
    OFF_ROUTE = auto()
    """It goes by a route that is not among those of the claim; whether it is blocked, too, is for others to see."""
    NO_CODE = auto()
    """It would be taken here, but its code is missing."""
    PAUSED = auto()
    """Somebody paused it, its workflow or its queue."""


class Claimed(msgspec.Struct, gc=False):
    """What a batch holds until its transaction ends."""

    held: set[str] = msgspec.field(default_factory=set)
    """Open executions that are locked for this transaction."""
    rows: dict[str, ExecutionRow] = msgspec.field(default_factory=dict)
    """The rows of held executions, read after the lock; those whose version was already known may be left out."""
    busy: set[str] = msgspec.field(default_factory=set)
    """Wanted executions that another transaction holds, also those that a workflow id stands for."""
    open_ids: dict[tuple[str, str], str | None] = msgspec.field(default_factory=dict)
    """The open execution of each workflow id asked for, if any; an id that is missing here is being started elsewhere. Also
    the workflow ids of held executions: as long as one is held, nobody else can be open under its id."""
    held_keys: set[RequestKeyId] = msgspec.field(default_factory=set)
    """The request keys asked for that are locked for this transaction; one that is missing here is another's at present."""
    inbox: list[InboxRow] = msgspec.field(default_factory=list)
    """What waits for the held executions, by their id or by their workflow id, and for the workflow ids asked for, in order
    of arrival: so nobody takes a turn of an execution past what was accepted for it before. Also what waits for executions
    that are closed, or not there (yet): no other transaction gets any of it meanwhile. What is left out for executions that
    take no turns says `withheld`."""
    withheld: dict[str, Withheld] = msgspec.field(default_factory=dict)
    """Held executions that take no turns here: an inbox that only grows is not read, so what a claim costs does not depend
    on its size. Their rows are in `rows`. None is withheld whose known version is the stored one, or whose whole inbox is
    wanted.

    A claim that only takes what is wanted (`limit` 0), or skips such an execution, reads nothing of what waits for its id.
    One that looks for work reads what may have to be done nonetheless: rows of up to LONGEST_ORDER bytes that begin with the
    claim's `order_prefix`, and those for an execution off the claim's routes that do not go by its own route yet. What is
    addressed by workflow ids that were asked for or found, and due timers, are read in any case."""
    due: list[TimerRow] = msgspec.field(default_factory=list)
    """Due timers of the held executions, in due order."""
    skipped: bool = False
    """Whether other transactions hold executions that have work: it is worth looking again soon."""


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
    adopted: Sequence[int] = ()
    """Ids of inbox rows that wait for this execution from now on, and no longer for the run that it continues. Each keeps
    its place in the order of arrival. To closings of the same batch they count as taken."""
    outgoing: Sequence[InboxRow] = ()
    readdressed: Sequence[InboxRow] = ()
    """Inbox rows that wait for the execution from now on, as in `UnroutedWrite`."""
    dead_letters: Sequence[DeadLetterRow] = ()
    requests: Sequence[RequestRow] = ()
    offered: Sequence[ActivityRow] = ()
    """Activities for whoever can take them; each replaces what was offered under its number before."""
    withdrawn: Sequence[int] = ()
    """Numbers of activities whose offers end, taken or not; before `offered`."""
    has_rare: bool = True
    """False promises that there are no attributes, subscriptions, publications, human tasks, incidents and snapshots, as in
    most turns; and where it closes an execution, that this has no snapshot and no open incidents."""
    attributes: Sequence[AttributeChange] = ()
    """What lists find of a stored execution's state, where that has changed. That of a new execution is in its details."""
    ended_subscriptions: Sequence[SubscriptionRow] = ()
    """Subscriptions that end, before those that begin; of an execution that closes, all that are open. A message, or an
    event that one consumer gets, has taken its subscription along already: to name it again does no harm."""
    subscriptions: Sequence[SubscriptionRow] = ()
    """Subscriptions that begin. Each is matched at once with what is kept, see `holdfast.store.publications`."""
    publications: Sequence[PublicationRow] = ()
    """What is to be published once this is committed: rows of the outbox."""
    tasks: Sequence[TaskRow] = ()
    """Human tasks that begin, each with its first event at the same place of `task_events`."""
    task_events: Sequence[TaskEventRow] = ()
    task_changes: Sequence[TurnTaskChange] = ()
    """What becomes of human tasks that are open, also of those that begin; of an execution that closes, all end by it. If
    somebody is changing one of them at that very moment, the turn is lost."""
    completed_tasks: Sequence[TaskRow] = ()
    """Those of the human tasks that a person completes: their bodies hold the forms as they were filled in."""
    incidents: Sequence[IncidentRow] = ()
    """Incidents that are open from now on."""
    ended_incidents: Sequence[int] = ()
    """Numbers of incidents that are resolved; those of an execution that closes end with it."""
    snapshot: SnapshotRow | None = None
    """Takes the place of the execution's snapshot; that of an execution that closes goes."""
    takes_over: str = ""
    """The execution id of the run that this one continues: events that are kept for that one are for this one now. If this
    one is lost since a lock of its subscriptions is not to be had, the closing of that one is lost with it."""


class UnroutedWrite(msgspec.Struct, gc=False):
    """What a batch writes that belongs to none of its turns: inbox rows that no execution takes, and answers to them."""

    consumed: list[int] = msgspec.field(default_factory=list)
    outgoing: list[InboxRow] = msgspec.field(default_factory=list)
    dead_letters: list[DeadLetterRow] = msgspec.field(default_factory=list)
    failed: list[int] = msgspec.field(default_factory=list)
    """Ids of inbox rows whose handling failed: their `attempts` grow by one."""
    requests: list[RequestRow] = msgspec.field(default_factory=list)
    rerouted: list[tuple[int, Route]] = msgspec.field(default_factory=list)
    """Inbox rows, by id, that turned out to be for others: from now on they go by this route."""
    readdressed: list[InboxRow] = msgspec.field(default_factory=list)
    """Inbox rows that wait for an execution from now on, each as it is to become under its id: its place in the order of
    arrival stays."""
    settings: int | None = None
    """The settings number by which the turns of the same write were taken, see `holdfast.store.pauses`: if the stored one is
    another, all of them are lost. None: it does not matter."""
    publications: list[PublicationRow] = msgspec.field(default_factory=list)
    """What is to be published once this is committed: rows of the outbox."""
    node: str = ""
    """The node that writes, for dead letters that follow from closings."""
    discards_dead_letters: bool = False
    """Whether nothing that follows from closings becomes a dead letter."""
    most_subscriptions: Mapping[str, int] = {}
    """How many subscriptions orgs may have, where that is limited. Instead of one too many, the same write puts a
    `SubscriptionRefused` into the inbox of its execution. What other transactions write meanwhile is not counted."""


def find_taken(turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[int]:
    """Ids of the inbox rows that the turns of a batch take or hand on: any other keeps its execution from closing."""
    taken = set(unrouted.consumed)
    for turn in turns:
        taken.update(turn.consumed)
        taken.update(turn.adopted)
        taken.update(row.id for row in turn.readdressed)
    return taken


class ExecutionFilter(msgspec.Struct, frozen=True, gc=False):
    """Which executions of an org to list, and how many at most."""

    org: str
    statuses: Collection[Status] = ()
    workflow: str | None = None
    workflow_id: str | None = None
    parent_id: str | None = None
    before: str | None = None
    """Only executions behind this one in the order of the list: the last of the page before."""
    limit: int = 100
    workflow_id_prefix: str | None = None
    metadata: Mapping[str, str] = {}
    """Only executions that have all of this metadata. Longer names and values than an index takes are never found, see
    `holdfast.store.attributes`."""
    created_after: Instant | None = None
    """Only executions created at this instant or later; as for the following, the other end of a range is left out. One
    whose start waited in an inbox for more than an hour may be missing."""
    created_before: Instant | None = None
    closed_after: Instant | None = None
    closed_before: Instant | None = None
    where: Condition | None = None
    """What else must hold."""
    order: Order = NEWEST_FIRST
    before_value: Value | None = None
    """Beside `before`, what the last execution of the page before is ordered by; None where that has no such field."""
    scan: int | None = None
    """Look at no more executions than so many, where none of the conditions has an index; None: at all."""


class Transaction(Scheduling, Publishing, Protocol):
    """One transaction of a batch. Ends by `commit` or `rollback`; an exception from any method means it is rolled back."""

    async def claim(self, claim: Claim) -> Claimed:
        """Lock without waiting, skip what others hold, then read in a new statement. May be called again."""
        ...

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        """The history of each execution behind the sequence given, in order."""
        ...

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        """The snapshots of those of these executions that have one."""
        ...

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        """Rows by execution id, open or closed, without locking them."""
        ...

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        """How many inbox rows wait for each of these execution ids; of one for which more do, `limit` are counted."""
        ...

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """The newest execution of a workflow id, open or closed: the one that was inserted last."""
        ...

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        """What was answered to those of these keyed requests that have not expired."""
        ...

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of these offers, as (execution id, number), that no node has; none takes them before this ends."""
        ...

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        """Those of these human tasks that are open: nobody else changes them before this ends.

        Nobody waits: None stands for one that somebody is changing at this moment.
        """
        ...

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        """Record that a process is about to take turns of these executions, each at this state version (0: not stored yet).

        The mark outlives the process at once, but not the machine. It is no part of this transaction: a rollback leaves it.
        It replaces what the process recorded in that slot before. A committed turn raises the version, so a mark at an older
        version says nothing and need not be cleared.
        Returns which of these executions other processes recorded at the very same version, with their marks, oldest first.
        Whoever marks under the lock of an execution finds by them who ended, or lost its connection, before it committed
        such a turn.
        """
        ...

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        """Write the turns; returns the executions whose turn was not written, not even in part.

        A turn is lost if the stored version is not the expected one, if a new execution's workflow id is open already, or
        if the settings number is another than `UnroutedWrite.settings`, or
        if it closes an execution for which the inbox holds rows that it did not take. Unless it is terminated, that counts
        also for what waits under its workflow id and no route: signals that were accepted. It is lost, too, if another
        transaction publishes what it begins or ceases to wait for. Closings come before inserts, and end all timers, offers,
        subscriptions, incidents and snapshots of their executions. Never raises for a lost turn: a batch stands or falls by
        turns.
        """
        ...

    async def commit(self) -> None:
        """Make it durable. Raises StoreUnavailable if it certainly was not, OutcomeUnknown if that cannot be told."""
        ...

    async def rollback(self) -> None:
        """Undo everything that the transaction wrote, and free its locks. Never raises."""
        ...


class Reader(Protocol):
    """Reads outside of batches. They see what is committed and nothing else."""

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        """The execution with this id; None if the org has none."""
        ...

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """The open execution of a workflow id, else the newest closed one: the one that was inserted last."""
        ...

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        """The executions that a filter selects, newest first: by execution id, from the greatest down."""
        ...

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        """As `list_executions`, with where the next page begins. Executions that begin meanwhile come before the first."""
        ...

    async def count_executions(self, query: ExecutionFilter) -> StatusCounts:
        """How many of the executions that a filter selects have each status; no more are counted than its limit.

        If fewer were counted and the walk was not given up at `scan`, these were all, at one moment.
        """
        ...

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        """History rows behind a sequence, in order."""
        ...

    async def load_snapshot(self, execution_id: str) -> SnapshotRow | None:
        """The snapshot of an execution; None if it has none."""
        ...

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        """The newest history row: of a closed execution, the one that closed it."""
        ...

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        """What waits for an execution, the oldest first: by its id, or by the workflow id alone."""
        ...

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        """The dead letters of an org behind the id `after`, in the order of their ids."""
        ...

    async def find_next_due(self, skip: Collection[str], routes: Collection[Route] | None = None) -> Instant | None:
        """When the earliest timer on these routes comes due, those of `skip` aside."""
        ...

    async def find_settled(self, execution_ids: Collection[str]) -> dict[str, bool]:
        """Which of these executions are closed (True), or blocked (False); those that are neither are not in it."""
        ...

    async def find_oldest_closed(self) -> Instant | None:
        """When the execution closed that has been closed for longest."""
        ...

    async def find_oldest_dead_letter(self) -> Instant | None:
        """When the first dead letter of all orgs was written, by the order of ids."""
        ...

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        """Open executions that name a node which is not alive, by execution id."""
        ...

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        """Of the next `limit` open executions behind the id `after`: those that name a node, and the last one in any case.

        By execution id; empty if there are no more. What it costs is bounded by `limit`.
        """
        ...

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        """Blocked executions, in the order of their ids, behind the id `after`."""
        ...

    async def count(self) -> Counts:
        """How many open executions, timers, inbox rows and dead letters there are."""
        ...

    async def read_backlog(self, now: Instant, limit: int) -> list[BacklogRow]:
        """The first `limit` of each kind that waits, those of blocked or paused executions apart.

        Of offers `oldest` is not known.
        """
        ...

    async def read_input_schemas(self, digests: Collection[str]) -> dict[str, bytes]:
        """Input schemas by digest; those that are not there are left out."""
        ...

    async def check(self) -> list[str]:
        """What contradicts itself in the store; empty if nothing does. What is newer than this code is not judged."""
        ...

    async def list_newer(self) -> list[str]:
        """What only a newer Holdfast can read, a sentence each. Reads the whole store, as `check` does."""
        ...


UserFunction: TypeAlias = Callable[[Any, Callable[[InboxRow], None]], T | Awaitable[T]]
"""A user's function: gets the driver's own connection, and a function that puts an envelope into an inbox."""


class Store(Reader, Nodes, Offers, Pauses, Schedules, Publications, StaleWork, Usage, Protocol):
    """A database that holds executions, as one node uses it."""

    @property
    def exclusive(self) -> bool:
        """Whether this process is the only one that writes: then a row at a committed version need not be read again."""
        ...

    @property
    def max_transactions(self) -> int:
        """How many transactions may be under way at once."""
        ...

    @property
    def tasks(self) -> Tasks:
        """The human tasks, outside of batches."""
        ...

    @property
    def definitions(self) -> Definitions:
        """The deployed definitions and their content."""
        ...

    @property
    def incidents(self) -> Incidents:
        """The open incidents, outside of batches."""
        ...

    @property
    def questions(self) -> Questions:
        """Questions to nodes that have the code of an execution."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Raises a StoreError that says what is wrong."""
        ...

    async def close(self) -> None:
        """Disconnect, and roll back what is open. Idempotent."""
        ...

    async def begin(self) -> Transaction:
        """Begin the transaction of a batch. May wait until one of those under way has ended."""
        ...

    async def was_committed(self, transaction: Transaction) -> bool:
        """Whether a transaction whose outcome was unknown took place. Waits until the database can tell.

        Raises OutcomeUnknown if it never will: the transaction wrote no turn, and the server has forgotten it.
        """
        ...

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """Put envelopes into the inbox of executions that others hold, each only if its execution is open.

        Which of them were, in the order given; durable on return. Raises StoreUnavailable if none was put, OutcomeUnknown if
        that cannot be told.
        """
        ...

    async def discard_dead_letters(self, org: str, ids: Collection[int], call: KeyedCall | None = None) -> int:
        """Remove dead letters; how many there were. May raise OutcomeUnknown; doing it again does no harm."""
        ...

    async def requeue_dead_letters(
        self, org: str, ids: Collection[int], at: Instant = 0, call: KeyedCall | None = None
    ) -> int:
        """Move dead letters back into the inbox, as one step, as accepted `at`; how many there were.

        Each starts anew: with 0 attempts, and for anybody. May raise OutcomeUnknown; doing it again does no harm.
        """
        ...

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        """Replace one row outside of a batch, and nothing else, if its version is the expected one; whether it was.

        May raise OutcomeUnknown; the stored version tells what became of it.
        """
        ...

    async def remember(self, call: KeyedCall, answer: int) -> int:
        """Remember the answer to a call that changed nothing; if the call was answered before, that answer is returned."""
        ...

    async def put_input_schemas(self, schemas: Mapping[str, bytes]) -> None:
        """Keep input schemas by their digests; one that is there stays. Doing it again does no harm."""
        ...

    async def purge(self, closed_before: Instant, limit: int) -> int:
        """Remove up to `limit` executions that closed before then, with their histories and answered requests; how many.

        With them go definitions that were undeployed before then and have no execution left, and resources of those alone.
        The oldest ends come first; what another transaction holds is left for the next time. Requests stay until they expire
        where an execution is open under the workflow id: keys of starts lead there. Harmless to repeat after OutcomeUnknown.
        """
        ...

    async def purge_dead_letters(self, before: Instant, limit: int) -> int:
        """Like `purge`, for those of the first `limit` dead letters, by id and of all orgs, that were written before."""
        ...

    async def transact(self, work: UserFunction[T], once: Once | None = None) -> T:
        """Do work in a transaction of its own, and commit it with the envelopes that it put. Whatever it raises undoes it.

        Envelopes are put unchecked, as they are addressed and routed. Raises OutcomeUnknown like a commit.
        Where the store has one connection for all writes, work may not wait for anything: it must be a plain function. Where
        the driver's connection is async, it must be a coroutine function. Raises InvalidArguments otherwise.

        With `once`, raises AlreadyDone if it was done before, or is not wanted in the end; work is undone then, or was not
        begun. Of two with one key the second waits for the end of the first.
        """
        ...

    async def enlist(self, connection: Any, rows: Sequence[InboxRow]) -> None:
        """Put envelopes into inboxes by a transaction of the caller's: they are there if it commits.

        Unchecked, and without a lock that others might wait for. Raises InvalidArguments if the connection is not of a kind
        that reaches this database.
        """
        ...

    def make_heartbeat_connection(self) -> HeartbeatConnection | None:
        """For heartbeats from a thread with a loop of its own, which a busy engine cannot hold up.

        It connects when it is first used. None where heartbeats can be sent from the engine's loop, since nobody judges by
        them.
        """
        ...

    def on_wake(self, callback: Callable[[WakeReason], None]) -> None:
        """Call back whenever another node sent a wake-up; late or lost calls only cost time."""
        ...

    async def wake(self, why: WakeReason) -> None:
        """Send a wake-up to the other nodes: after the commit, never before. Many calls in a short time may become one."""
        ...
