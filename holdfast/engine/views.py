"""What the engine shows of executions: values for people and programs to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, Literal, overload

import msgspec

from holdfast.core import codec, payloads
from holdfast.core.effects import ActivityTask
from holdfast.core.event_times import list_times
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.execution import NEVER, Details, Waiting
from holdfast.core.failures import describe_exception
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import to_datetime
from holdfast.core.lifecycle import Status, read_status
from holdfast.core.references import BusinessReference
from holdfast.core.shown_values import ShownValue, make_pydantic_schema
from holdfast.engine.pending import FailureInfo, PendingWork, SignalInfo, show_failure
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.rows import DeadLetterRow, ExecutionRow, InboxRow

TOLD_TOKENS: Final = frozenset({"signal", "timer", "message", "event", "broadcast"})
"""The kinds of waits whose token says something to people."""


class WaitingEnvelope(ShownValue, frozen=True):
    """An envelope that is in an inbox and was not taken yet."""

    id: int
    envelope: Any
    """As JSON values, with its `type`; as text if it cannot be read."""
    attempts: int
    """How often handling it failed."""


class Pause(ShownValue, frozen=True, kw_only=True):
    """Why executions take no turns for the time being: somebody paused one of them, a workflow or a queue."""

    org: str
    kind: Literal["execution", "workflow", "queue"]
    name: str
    """The workflow id of the execution, or the name of the workflow or queue."""
    since: datetime
    by: str = ""
    """Who paused it, as they said."""
    reason: str = ""

    def __str__(self) -> str:
        what = "it is paused" if self.kind == "execution" else f"its {self.kind} '{self.name}' is paused"
        by = f" by {self.by}" if self.by else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{what} since {self.since:%Y-%m-%d %H:%M:%S} UTC{by}{reason}"


class ExecutionInfo(ShownValue, frozen=True, kw_only=True):
    """One execution as it stood when it was asked about."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    code_version: str
    queue: str
    status: Status
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    history_length: int
    """How many events its history has."""
    state_version: int
    """How many turns were committed."""
    waiting_for: str | None
    """What it waits for, in words: the kind, and for signals, what others publish, timers and what never comes the token
    too."""
    waiting_kind: str | None = None
    """What it waits for, the most telling thing first: `task` (of a person), `signal`, `child`, `activity` (one
    runs, or is to), `retry` (one
    failed, and is tried again later), `timer`, `signal_answer` (of an execution that it signalled), or `never`: nothing is
    open that could wake it, only its own code could, and none of that runs. None if it is closed, or takes no turns."""
    waiting_token: str | None = None
    """Which one: the id of the human task; the names of the signals; the names of the messages, events or broadcast
    signals, and behind them, with their kinds, those of the other two; the number of the child, timer or sent signal, as in
    the history; number and attempt of an activity, as in `3:2` (of a running one, `query_status` fills it in, lists do
    not); for `never`, the lines of the code that wait."""
    active_task_id: str | None = None
    """The human task that has been open for longest, if one is open."""
    waiting_until: datetime | None
    """When the earliest of its timers or retries comes due, if it waits for one, also beside something else. While an
    activity runs, `query_status` fills it in, lists do not."""
    last_signal: SignalInfo | None
    """The signal that it received last; its sequence is filled in by `query_status` of open executions, lists do not."""
    last_error: FailureInfo | None
    """Why it is blocked, failed, or cannot take its turn; while an activity is tried again, its last failure."""
    state: Any
    metadata: dict[str, str]
    parent_execution_id: str | None
    continued_from: str | None
    nodes: tuple[str, ...]
    """The nodes that run its activities. Of those that other nodes took, since the node of the turn could not run them,
    `query_status` fills it in, lists do not."""
    last_node: str
    """The node that committed its last turn."""
    history_bytes: int | None = None
    """How many bytes its history has. `query_status` fills it in for open executions, lists do not."""
    pending: PendingWork | None = None
    """Everything that it waits for. `query_status` fills it in for open executions that can be read, lists do not."""
    attempt: int = 1
    """Which run of the same work it is, by the retry policy of the workflow."""
    retried_as: str | None = None
    """Of a run that failed: the execution id of the run that follows it, by the retry policy."""
    times_out_at: datetime | None = None
    """When it is closed as timed out, if it has an execution_timeout or a run_timeout."""
    business_reference: BusinessReference | None = None
    """What it is about, in the words of the business: by its key and its parts it is found."""
    blocked_since: datetime | None = None
    """When it was blocked, if it is; retries in vain do not change it. None also where an older Holdfast blocked it."""
    pauses: tuple[Pause, ...] = ()
    """Why it takes no turns although nothing is wrong with it: it is paused itself, its workflow is, or its queue. The last
    two are filled in by `query_status`, lists do not."""
    missing_definition: str | None = None
    """Why an open execution cannot go on: which workflow, in which version, no living node has. None: some node has it."""
    inbox: tuple[WaitingEnvelope, ...] = ()
    """What waits for an open execution that cannot take it: it is blocked, paused or damaged, or its definition is missing.
    The oldest first, a hundred at most. `query_status` fills it in, lists do not."""
    unheard: tuple[str, ...] = ()
    """Attempts of its activities that are over while their functions still run on the node that was asked: each as a
    sentence. A sync function cannot be ended. `query_status` fills it in, lists do not."""


class RecordedEvent(ShownValue, frozen=True):
    """An event with its place in the history."""

    sequence: int
    at: datetime
    """When what it tells of happened: a signal that waited, for instance, was accepted then. What follows from an event in
    the same turn has its time."""
    event: AnyEvent
    taken_at: datetime
    """The time of its turn: what `ctx.now()` showed to the code. Later than `at` if what arrived had to wait."""

    @property
    def kind(self) -> str:
        """The event's name, in the past tense."""
        return type(self.event).__name__

    @property
    def type(self) -> str:
        """The event's name as JSON and the command line's `--json` have it: `activity_completed`."""
        return str(self.event.__struct_config__.tag)

    def to_dict(self) -> dict[str, Any]:
        """The event as plain JSON values, with its place and times; the values in it as in `History.to_json`."""
        times = {"at": self.at.isoformat(), "taken_at": self.taken_at.isoformat()}
        return {"sequence": self.sequence, "kind": self.kind, **times, "event": codec.export_event(self.event)}


class History(msgspec.Struct, frozen=True):
    """The whole history of one execution. It can be iterated, counted and indexed: a sequence of RecordedEvent."""

    turns: list[HistoryTurn]
    execution_id: str = ""
    """Random numbers, UUIDs and the ids of children derive from it: a replay elsewhere needs it."""
    org: str = DEFAULT_ORG

    @property
    def events(self) -> list[RecordedEvent]:
        """The events of all turns, in order."""
        return [
            RecordedEvent(turn.first + offset, to_datetime(at), event, to_datetime(turn.at))
            for turn in self.turns
            for offset, (event, at) in enumerate(zip(turn.events, list_times(turn), strict=True))
        ]

    @property
    def kinds(self) -> list[str]:
        """The names of the events' types, in order."""
        return [type(event).__name__ for turn in self.turns for event in turn.events]

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return sum(len(turn.events) for turn in self.turns)

    @overload
    def __getitem__(self, index: int) -> RecordedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[RecordedEvent]: ...
    def __getitem__(self, index: int | slice) -> RecordedEvent | list[RecordedEvent]:
        return self.events[index]

    def to_json(self) -> list[dict[str, Any]]:
        """One object per event: what `holdfast.testing.replay` takes."""
        items = codec.export_history(self.turns)
        if items:
            items[0] |= {"execution_id": self.execution_id, "org": self.org}
        return items

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        return make_pydantic_schema(cls, lambda history: history.to_json())

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "array", "title": cls.__name__, "items": {"type": "object"}}


class DeadLetter(ShownValue, frozen=True):
    """An envelope that could not be handled."""

    id: int
    org: str
    execution_id: str
    workflow_id: str
    envelope: Any
    reason: str
    node: str
    at: datetime
    attempts: int


class RecoveryReport(ShownValue, frozen=True):
    """What the engine found when it opened, or when it was asked to recover."""

    resumed: int
    """Executions whose activities are run again, since the node that ran them is gone or left."""
    waiting: int
    """Executions that go on waiting; they are not loaded."""
    timers: int
    """Timers that stay armed in the store."""
    taken_over: int
    """Those of the resumed whose node ended without leaving cleanly."""
    blocked: int
    """Blocked executions. Those that another version of the code, or code without a version, may fix were unblocked."""
    inbox: int
    """Envelopes that wait to be handled."""


def to_info(row: ExecutionRow, missing_definition: str | None = None) -> ExecutionInfo:
    """A row as it is shown; whether its definition is missing has to be known."""
    status = Status.BLOCKED  # as what cannot be read is shown: here it takes no turns
    try:
        status = read_status(row.status, row.execution_id)
        details = codec.decode_details(row.details)
    except (CorruptStore, NewerFormat) as damage:  # one damaged row must not hide the others
        details = Details(last_error=describe_exception(damage))
    waiting = _find_waiting(row, status, details)
    chain = details.chain
    return ExecutionInfo(
        org=row.org,
        execution_id=row.execution_id,
        workflow_id=row.workflow_id,
        workflow=row.workflow,
        code_version=row.code_version,
        queue=row.queue,
        status=status,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        closed_at=None if row.closed_at is None else to_datetime(row.closed_at),
        history_length=row.sequence,
        state_version=row.state_version,
        waiting_for=None if waiting is None else _describe_waiting(waiting),
        waiting_kind=None if waiting is None else waiting.kind,
        waiting_token=None if waiting is None else waiting.token or None,
        active_task_id=details.active_task or None,
        waiting_until=None if waiting is None or waiting.until is None else to_datetime(waiting.until),
        last_signal=SignalInfo(details.last_signal) if details.last_signal else None,
        last_error=_find_error(details),
        state=None if details.state is None else payloads.show_value(details.state),
        metadata=details.metadata,
        business_reference=details.reference,
        parent_execution_id=row.parent_id,
        continued_from=details.continued_from,
        nodes=tuple(row.nodes),
        last_node=details.last_node,
        attempt=1 if chain is None else chain.attempt,
        retried_as=details.retried_as,
        times_out_at=None if chain is None or chain.times_out_at is None else to_datetime(chain.times_out_at),
        blocked_since=_find_blocked_since(status, details),
        pauses=_find_pauses(row, details),
        missing_definition=missing_definition,
    )


def _find_waiting(row: ExecutionRow, status: Status, details: Details) -> Waiting | None:
    """What a row waits for. Rows do not say so of activities that run: it follows from where they run."""
    if details.waiting is not None or status is not Status.RUNNING:
        return None if status is Status.BLOCKED else details.waiting
    is_offered = any(one.offered for one in details.attempts.values())
    return Waiting("activity") if row.nodes or is_offered else None


def _find_blocked_since(status: Status, details: Details) -> datetime | None:
    if status is not Status.BLOCKED or details.blocked_at is None:
        return None
    return to_datetime(details.blocked_at)


def _find_pauses(row: ExecutionRow, details: Details) -> tuple[Pause, ...]:
    paused = details.pause
    if paused is None:
        return ()
    since = to_datetime(paused.at)
    return (Pause(org=row.org, kind="execution", name=row.workflow_id, since=since, by=paused.by, reason=paused.reason),)


def _describe_waiting(waiting: Waiting) -> str:
    if waiting.kind == NEVER:
        return f"what can never come, at {waiting.token}" if waiting.token else "what can never come"
    return f"{waiting.kind} {waiting.token}" if waiting.kind in TOLD_TOKENS else waiting.kind


def _find_error(details: Details) -> FailureInfo | None:
    """The trouble of an execution, or else of those of its activities that are tried again, of which the latest."""
    if details.last_error is not None:
        return show_failure(details.last_error)
    failed = [
        (one.retry_at or 0, number, one.failure) for number, one in details.attempts.items() if one.failure is not None
    ]
    if not failed:
        return None
    _, number, failure = max(failed, key=itemgetter(0, 1))
    return show_failure(failure, number)


def add_unheard(info: ExecutionInfo, node: str, tasks: Sequence[ActivityTask]) -> ExecutionInfo:
    """The info of an execution with the attempts that are over while their functions still run on a node."""
    if not tasks:
        return info
    said = [
        f"attempt {task.attempt} of activity '{task.event.name}' (number {task.event.number}) is over, but its function "
        f"still runs on node {node}"
        for task in sorted(tasks, key=lambda task: (task.event.number, task.attempt))
    ]
    return msgspec.structs.replace(info, unheard=tuple(said))


def to_dead_letter(row: DeadLetterRow) -> DeadLetter:
    """A dead letter as it is shown; an envelope that cannot be read is shown as text."""
    return DeadLetter(
        row.id,
        row.org,
        row.execution_id,
        row.workflow_id,
        _show_envelope(row.body),
        row.reason,
        row.node,
        to_datetime(row.at),
        row.attempts,
    )


def to_waiting(row: InboxRow) -> WaitingEnvelope:
    """An inbox row as it is shown."""
    return WaitingEnvelope(row.id, _show_envelope(row.body), row.attempts)


def _show_envelope(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return body.decode(errors="replace")


def describe_wait(info: ExecutionInfo) -> str:
    """What keeps an open execution from its end, as part of a sentence."""
    if info.missing_definition is not None:
        return info.missing_definition
    if info.status is Status.BLOCKED:
        return f"it is blocked by {info.last_error}"
    if info.pauses:
        return str(info.pauses[0])
    if info.waiting_for is None:
        return f"it is {info.status}"
    until = "" if info.waiting_until is None else f", until {info.waiting_until:%Y-%m-%d %H:%M:%S} UTC"
    return f"it is {info.status}, and waits for {info.waiting_for}{until}"
