"""One execution in memory: its row, what is open in it, and the named operations on its state."""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeAlias

import msgspec

from holdfast.core.chains import Chain
from holdfast.core.envelopes import Start
from holdfast.core.events import (
    ActivityScheduled,
    ChildStarted,
    EventSent,
    ExternalSignalInitiated,
    IncidentRaised,
    MessagePublished,
    SignalBroadcast,
    Subscribed,
    TaskCreated,
    UpdateAccepted,
)
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Operation, Status, next_status
from holdfast.core.parents import Parent
from holdfast.core.payloads import Payload
from holdfast.core.references import BusinessReference
from holdfast.core.unused import NO_ENTRIES
from holdfast.core.work_keys import digest_work


class AttemptState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """How far an activity has come when that is more than its plain first attempt.

    `attempt` numbers the runs of the function and fences late results; only `failures` count against the retry policy.
    """

    attempt: int = 1
    failures: int = 0
    retry_at: Instant | None = None
    failure: Failure | None = None
    heartbeat: Payload | None = None
    node: str | None = None
    """The node that runs it, where that is not the first that the execution names."""
    lost: int = 0
    """How often in a row an attempt ended with its process."""
    begun: bool = False
    """Of one that was lost often: whether its function has begun."""
    offered: bool = False
    """Whether it is a row of the store, which any node that can run it takes."""
    may_not_repeat: bool = False
    """Of one that is run at most once: whether its function may have been called."""


FIRST_ATTEMPT = AttemptState()


class OpenActivity(msgspec.Struct, gc=False):
    """An activity whose end is not recorded yet."""

    event: ActivityScheduled
    scheduled_at: Instant
    _work: str = ""
    is_cancelling: bool = False
    """Whether the program has cancelled it, and waits for the end of its function."""

    @property
    def work(self) -> str:
        """The digest of what is asked (`core.work_keys`), which is made once."""
        if not self._work:
            self._work = digest_work(self.event)
        return self._work


class OpenTask(msgspec.Struct, frozen=True, gc=False):
    """A human task that has not ended, and which of its dates have passed."""

    event: TaskCreated
    is_followed_up: bool = False
    is_overdue: bool = False
    is_escalated: bool = False


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """What a suspended execution waits for, for people to read.

    The kinds, each with its token: `task` (the id of the human task), `signal` (the names), `child`, `timer` and
    `signal_answer` (the number of the command),
    `retry` (number and attempt, as in `3:2`), `never` (where in the code it waits for what nothing can bring); `message`,
    `event` and `broadcast` (the names, with keys and fields; behind them, with their kinds, those of the other two),
    `publication_answer` (the number of the command), `update` (the names of its update handlers), `incident` (the number of
    the one that has been open for longest: nothing goes on until somebody corrects what went wrong).
    """

    kind: str
    token: str = ""
    until: Instant | None = None


MOST_SHOWN: Final = 10
"""Of so many things that an execution waits for, the description of its wait tells the names."""
MOST_LOOKED_AT: Final = 100
"""So many of them are looked at for it: it is made in each turn."""
Published: TypeAlias = MessagePublished | EventSent | SignalBroadcast


def describe_awaited(subscription: Subscribed) -> str:
    """What a subscription waits for, for people: `paid`, `order (7)` with a key, `OrderPaid (order=7)` with fields."""
    selected = subscription.key or ", ".join(f"{name}={value}" for name, value in subscription.where.items())
    return f"{subscription.name} ({selected})" if selected else subscription.name


class Paused(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Since when an execution is paused, by whom and why."""

    at: Instant
    by: str = ""
    reason: str = ""
    was_suspended: bool = False
    """Whether it only waited when it was paused: so it does again once it is resumed."""


NEVER: Final = "never"
"""What an execution waits for that has nothing open: only other code of its own could wake it, and none of that runs."""


class Details(msgspec.Struct, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """What the row keeps beside its columns; nothing is searched by it."""

    parent: Parent | None = None
    continued_from: str | None = None
    metadata: dict[str, str] = {}
    start_at: Instant | None = None
    """When its code begins to run, while it waits for that."""
    chain: Chain | None = None
    """Its timeouts and its retry policy, if it has any."""
    retried_as: str | None = None
    """Of a run that failed: the run that follows it by the retry policy."""
    signals: int = 0
    cancel_requested: bool = False
    cancel_reason: str = ""
    attempts: dict[int, AttemptState] = {}
    waiting: Waiting | None = None
    state: Payload | None = None
    active_task: str = ""
    """The id of the human task that has been open for longest; empty if none is open."""
    searchable: dict[str, str] = {}
    """What lists find of the state: as `core.searchable_values` writes it, in plain text. Older nodes, which would not keep
    it up to date, do not know the field and leave the execution alone."""
    reference: BusinessReference | None = None
    last_signal: str = ""
    last_error: Failure | None = None
    last_node: str = ""
    """The node that committed its last turn."""
    blocked_version: str | None = None
    """The version of the code that blocked it; empty if the code names none."""
    blocked_at: Instant | None = None
    """When it was blocked; None if it has taken a turn since, or a Holdfast blocked it that did not note the time."""
    pause: Paused | None = None
    """Since when it is paused, by whom and why; None if it is not."""
    last_turn_at: Instant | None = None
    """When it took its last turn, where it was touched since then without taking one; None: `updated_at` says it."""
    pinned: bool = False
    """Whether only the version of the code with which it began may take its turns."""
    route_name: str = ""
    """Of a process: what stands for its workflow in its route, as in `Start`."""
    snapshot: int | None = None
    """The place in the history up to which its snapshot tells what happened; None if it has none: see `core.snapshots`."""
    tries: int = 0
    """In quarantine: how often in a row a turn was begun and, as far as is known, not committed."""
    trying: str = ""
    """In quarantine: the process that began the last of them."""
    suspect: bool = False
    """In quarantine: whether it may have ended a process, and has not been tried since."""


class Execution(msgspec.Struct, kw_only=True, gc=False):
    """The state of one run. Columns first, then details, then what is open (folded from history, never stored)."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    code_version: str
    queue: str
    status: Status
    state_version: int = 0
    sequence: int = 0
    """How many events its history has."""
    nodes: tuple[str, ...] = ()
    """The nodes whose memory holds running activities of it."""
    created_at: Instant
    updated_at: Instant
    closed_at: Instant | None = None
    details: Details = msgspec.field(default_factory=Details)

    activities: dict[int, OpenActivity] = msgspec.field(default_factory=dict)
    running: set[int] = msgspec.field(default_factory=set)
    """The open activities that do not wait for a retry."""
    timers: dict[int, Instant] = msgspec.field(default_factory=dict)
    timer_labels: dict[int, str] = NO_ENTRIES
    """What people call the open timers that have a name."""
    children: dict[int, ChildStarted] = NO_ENTRIES
    externals: dict[int, ExternalSignalInitiated] = NO_ENTRIES
    """The signals to other executions that are not answered yet."""
    subscriptions: dict[int, Subscribed] = NO_ENTRIES
    """The open waits for what is published without naming it."""
    publications: dict[int, Published] = NO_ENTRIES
    """What it published, as far as that is not answered yet."""
    tasks: dict[int, OpenTask] = NO_ENTRIES
    """The human tasks that have not ended."""
    updates: dict[int, UpdateAccepted] = NO_ENTRIES
    """The updates that were accepted and are not answered yet."""
    incidents: dict[int, IncidentRaised] = NO_ENTRIES
    """What went wrong and waits for somebody to correct it."""
    last_signal_sequence: int = 0
    """The place in the history of the signal that it received last; 0 if it received none."""
    behaviours: frozenset[str] = frozenset()
    """What its events mean, where that has changed since it began: see `core.behaviours`. Folded from its first event."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """What it hands on to activities, children and receivers of its signals. Folded from its first event."""
    input: Payload | None = None
    """What a retry begins with; None without a retry policy. Folded from its first event."""

    # --- the named operations: the only ways in which a status changes ---

    @classmethod
    def register(cls, org: str, start: Start, now: Instant) -> Execution:
        """A new execution, before its first turn, as its start describes it."""
        start_at, chain = start.start_at, start.chain
        if start_at is not None and start_at <= now:
            start_at = None
        if chain is not None:
            chain = chain.begin(now if start_at is None else start_at)
        return cls(
            org=org,
            execution_id=start.execution_id,
            workflow_id=start.workflow_id,
            workflow=start.workflow,
            code_version=start.code_version,
            queue=start.queue,
            status=next_status(None, Operation.REGISTER),
            created_at=now,
            updated_at=now,
            details=Details(
                parent=start.parent,
                continued_from=start.continued_from,
                metadata=start.metadata,
                reference=start.reference,
                start_at=start_at,
                chain=chain,
                pinned=start.pinned,
                route_name=start.route_name,
            ),
        )

    def take_open_from(self, earlier: Execution) -> None:
        """What is open in a freshly loaded execution, from an earlier version of it: what happened since must be folded."""
        self.activities, self.timers, self.timer_labels = earlier.activities, earlier.timers, earlier.timer_labels
        self.subscriptions, self.publications = earlier.subscriptions, earlier.publications
        self.tasks, self.incidents = earlier.tasks, earlier.incidents
        self.children, self.externals, self.updates = earlier.children, earlier.externals, earlier.updates
        self.behaviours, self.headers, self.input = earlier.behaviours, earlier.headers, earlier.input
        self.last_signal_sequence = earlier.last_signal_sequence
        self.running = {number for number in self.activities if self.attempt_of(number).retry_at is None}

    def suspend(self, waiting: Waiting | None) -> None:
        """Mark the execution as suspended: nothing is outstanding, it only waits."""
        self.status = next_status(self.status, Operation.SUSPEND)
        self.details.waiting = waiting
        self.details.blocked_at = None

    def resume(self) -> None:
        """Mark the execution as running: something is outstanding again."""
        self.status = next_status(self.status, Operation.RESUME)
        self.details.waiting = None
        self.details.blocked_at = None

    def finish(self, operation: Operation, now: Instant, error: Failure | None = None) -> None:
        """Close the execution as completed, failed, cancelled, terminated or continued; nothing is open in it any more."""
        self.status = next_status(self.status, operation)
        self.closed_at = now
        self.nodes = ()
        details = self.details
        details.waiting = details.blocked_at = details.pause = None
        details.attempts = {}
        details.last_error = error
        details.active_task = ""
        self.activities.clear()
        self.running.clear()
        self.timers.clear()
        self.children = self.externals = self.subscriptions = self.publications = self.tasks = self.updates = NO_ENTRIES
        self.incidents = NO_ENTRIES

    def block(self, error: Failure, code_version: str, now: Instant) -> None:
        """Let the execution take no more turns, because of this error; `code_version` is the version that failed.

        One that is tried again in vain is blocked since the first time.
        """
        if self.details.blocked_at is None:
            self.details.blocked_at = now
        self.status = next_status(self.status, Operation.BLOCK)
        self.details.last_error = error
        self.details.blocked_version = code_version

    def unblock(self, now: Instant) -> None:
        """Let a blocked execution take turns again, because somebody or another version of its code tries."""
        self.status = next_status(self.status, Operation.UNBLOCK)
        self._touch(now)
        self.details.last_error = None
        self.details.blocked_version = None
        self.details.tries, self.details.trying, self.details.suspect = 0, "", False

    def pause(self, now: Instant, by: str = "", reason: str = "") -> None:
        """Let the execution take no more turns until it is unpaused. What it waits for is remembered."""
        was_suspended = self.status is Status.SUSPENDED
        self.status = next_status(self.status, Operation.PAUSE)
        self.details.pause = Paused(now, by, reason, was_suspended)

    def unpause(self, now: Instant) -> None:
        """Let a paused execution take turns again; it stands where it stood when it was paused."""
        paused, self.details.pause = self.details.pause, None
        self.status = next_status(self.status, Operation.UNPAUSE)
        if paused is not None and paused.was_suspended:
            self.status = next_status(self.status, Operation.SUSPEND)
        self._touch(now)

    def _touch(self, now: Instant) -> None:
        """Note that somebody cares for the execution: it is not stale. What waited for it has still arrived when it did."""
        if now > self.updated_at:
            if self.details.last_turn_at is None:
                self.details.last_turn_at = self.updated_at
            self.updated_at = now

    # --- what is asked about it ---

    @property
    def is_closed(self) -> bool:
        """Whether the execution has ended, in whatever way."""
        return self.closed_at is not None

    @property
    def last_turn_at(self) -> Instant:
        """When it took its last turn: nothing that arrives is shown as earlier."""
        noted = self.details.last_turn_at
        return self.updated_at if noted is None else noted

    def attempt_of(self, number: int) -> AttemptState:
        """How far an open activity has come: its present attempt."""
        return self.details.attempts.get(number, FIRST_ATTEMPT)

    def runner_of(self, number: int) -> str | None:
        """The node that runs an activity; None if it is offered, or no node is named yet."""
        attempt = self.attempt_of(number)
        if attempt.node is not None or attempt.offered:
            return attempt.node
        return self.nodes[0] if self.nodes else None

    def describe_wait(self, signal_names: tuple[str, ...]) -> Waiting | None:
        """What it waits for now, the most telling thing first."""
        if self.details.start_at is not None:
            return Waiting("start", "", self.details.start_at)
        until = min(self.timers.values()) if self.timers else None
        if self.tasks:
            return Waiting("task", self.details.active_task, until)
        if signal_names:
            return Waiting("signal", ", ".join(signal_names), until)  # names alone: where the code is missing, they are read
        if self.subscriptions:
            kind = next(iter(self.subscriptions.values())).kind
            return Waiting(kind, ", ".join(self._list_awaited(kind)), until)
        if self.children:
            return Waiting("child", str(min(self.children)), until)
        if self.activities:
            return self._describe_retry()
        if self.timers:
            return Waiting("timer", str(min(self.timers, key=self.timers.__getitem__)), until)
        if self.externals:
            return Waiting("signal_answer", str(min(self.externals)))
        if self.publications:
            return Waiting("publication_answer", str(min(self.publications)))
        return Waiting("incident", str(min(self.incidents))) if self.incidents else None

    def _list_awaited(self, kind: str) -> list[str]:
        """What is awaited of what others publish: first those of one kind, then all others with their kinds."""
        looked_at = islice(self.subscriptions.values(), MOST_LOOKED_AT)  # a process may have tens of thousands
        waits = sorted(looked_at, key=lambda one: one.kind != kind)
        told = (describe_awaited(one) if one.kind == kind else f"{one.kind} {describe_awaited(one)}" for one in waits)
        awaited = list(dict.fromkeys(told))
        has_more = len(awaited) > MOST_SHOWN or len(self.subscriptions) > MOST_LOOKED_AT
        return awaited[:MOST_SHOWN] + (["…"] if has_more else [])

    def _describe_retry(self) -> Waiting:
        """The next attempt that begins, of those activities that failed."""
        retries = [(one.retry_at, number) for number, one in self.details.attempts.items() if one.retry_at is not None]
        if not retries:
            return Waiting("retry")
        retry_at, number = min(retries)
        return Waiting("retry", f"{number}:{self.attempt_of(number).attempt}", retry_at)
