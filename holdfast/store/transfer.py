"""What persistent stores offer beyond the contract: all that is in them can be taken elsewhere.

Rows are those of the contract, so that whoever moves them need not know from what kind of store to what other.
Snapshots stay behind: they are a cache.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from holdfast.store.definitions import DefinitionRow, ResourceRow
from holdfast.store.incidents import IncidentRow
from holdfast.store.pauses import PauseRow
from holdfast.store.publications import PendingRow, PublicationRow, StartSubscriptionRow, SubscriptionRow
from holdfast.store.rows import ActivityRow, DeadLetterRow, ExecutionRow, HistoryRow, InboxRow, NodeRow, RequestRow, TimerRow
from holdfast.store.schedules import ScheduleRow
from holdfast.store.tasks import TaskEventRow, TaskRow


class RowKind(StrEnum):
    """What there is to move, in the order in which it is moved: a history needs its execution."""

    EXECUTIONS = "executions"
    HISTORIES = "histories"
    TIMERS = "timers"
    INBOX = "inbox"
    DEAD_LETTERS = "dead letters"
    REQUESTS = "requests"
    ACTIVITIES = "activities"
    PAUSES = "pauses"
    SCHEDULES = "schedules"
    TASKS = "tasks"
    TASK_EVENTS = "task events"
    SUBSCRIPTIONS = "subscriptions"
    PENDING = "kept publications"
    PUBLICATIONS = "publications"
    STARTS = "start subscriptions"
    """Those of deployments. What nodes offer is theirs: they say it anew where they start."""
    RESOURCES = "deployed files"
    DEFINITIONS = "definitions"
    INCIDENTS = "incidents"


AnyRow: TypeAlias = (
    ExecutionRow
    | HistoryRow
    | TimerRow
    | InboxRow
    | DeadLetterRow
    | RequestRow
    | ActivityRow
    | PauseRow
    | ScheduleRow
    | TaskRow
    | TaskEventRow
    | SubscriptionRow
    | PendingRow
    | PublicationRow
    | StartSubscriptionRow
    | ResourceRow
    | DefinitionRow
    | IncidentRow
)

ROW_TYPES: Final[Mapping[RowKind, type[AnyRow]]] = {
    RowKind.EXECUTIONS: ExecutionRow,
    RowKind.HISTORIES: HistoryRow,
    RowKind.TIMERS: TimerRow,
    RowKind.INBOX: InboxRow,
    RowKind.DEAD_LETTERS: DeadLetterRow,
    RowKind.REQUESTS: RequestRow,
    RowKind.ACTIVITIES: ActivityRow,
    RowKind.PAUSES: PauseRow,
    RowKind.SCHEDULES: ScheduleRow,
    RowKind.TASKS: TaskRow,
    RowKind.TASK_EVENTS: TaskEventRow,
    RowKind.SUBSCRIPTIONS: SubscriptionRow,
    RowKind.PENDING: PendingRow,
    RowKind.PUBLICATIONS: PublicationRow,
    RowKind.STARTS: StartSubscriptionRow,
    RowKind.RESOURCES: ResourceRow,
    RowKind.DEFINITIONS: DefinitionRow,
    RowKind.INCIDENTS: IncidentRow,
}

ORDERED_KINDS: Final = frozenset({RowKind.EXECUTIONS, RowKind.ACTIVITIES, RowKind.SUBSCRIPTIONS})
"""Kinds whose order of arrival counts and is in none of their columns."""

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page ends with the row that makes it larger than this, however few rows it has then."""

Cursor: TypeAlias = tuple[int | str, ...]
"""Where a page ended. Only the store that made it understands it; it can be kept as JSON."""

FROM_THE_START: Final[Cursor] = ()


class Page(msgspec.Struct, frozen=True):
    """Some rows of one kind, and where the next page begins."""

    rows: Sequence[AnyRow]
    cursor: Cursor | None
    """Where to go on; None if there are no rows: that was all."""


class MarkChange(msgspec.Struct, frozen=True):
    """A mark as it is to become, provided that it is as expected; None stands for none."""

    name: str
    expected: str | None
    value: str | None


class ExecutionCopy(msgspec.Struct, frozen=True):
    """An execution with all that belongs to it, as of one moment."""

    row: ExecutionRow
    history: Sequence[HistoryRow] = ()
    timers: Sequence[TimerRow] = ()
    inbox: Sequence[InboxRow] = ()
    """What waits for it, by execution id or, while it is open, by workflow id; in order of arrival."""
    activities: Sequence[ActivityRow] = ()
    requests: Sequence[RequestRow] = ()
    """What was answered to requests for it; where a key is taken already, what is there counts."""
    tasks: Sequence[TaskRow] = ()
    task_events: Sequence[TaskEventRow] = ()
    """What happened to its human tasks, in order."""
    subscriptions: Sequence[SubscriptionRow] = ()
    """What it waits for, the oldest first. They begin anew where they are put, with regard to what is kept there."""
    pending: Sequence[PendingRow] = ()
    """Events that are kept for it alone."""
    publications: Sequence[PublicationRow] = ()
    """What it has published and is still in the outbox: perhaps it waits for what becomes of it."""
    incidents: Sequence[IncidentRow] = ()
    """What is open in it and waits for somebody to correct it, by number."""


class CopyResult(Enum):
    """Whether a copy of an execution was put into the store, or why not."""

    DONE = auto()
    EXISTS = auto()
    """Not put: the store has an execution with its id."""
    IS_OPEN = auto()
    """Not put: its workflow id is open in the store, and nothing older may come in behind that."""


class Transferable(Protocol):
    """All that an open store holds."""

    # --- marks: what is to be known about the database as a whole ---

    async def read_marks(self) -> dict[str, str]:
        """The marks of the database: their values by name."""
        ...

    async def change_marks(self, changes: Sequence[MarkChange]) -> bool:
        """Change marks, all of them if each is as expected, else none; whether it was. Durable on return."""
        ...

    async def list_present(self) -> list[tuple[NodeRow, int]]:
        """The nodes that have not left cleanly, with the seconds since they were seen, by the database's clock.

        None where this process owns the database.
        """
        ...

    # --- everything ---

    async def count_rows(self) -> dict[RowKind, int]:
        """How many rows of each kind there are."""
        ...

    async def read_page(self, kind: RowKind, cursor: Cursor, limit: int) -> Page:
        """Up to `limit` rows behind the cursor; always in the same order, and the history of an execution in its own.

        Executions come in the order of their arrival, and so do activities.
        """
        ...

    async def put_page(self, kind: RowKind, rows: Sequence[AnyRow], change: MarkChange) -> bool:
        """Put rows with their ids behind those that are there, and change a mark; or nothing if that is not as expected.

        Whether it was; durable on return.
        """
        ...

    async def settle(self) -> None:
        """All rows are put: what the database keeps about them is brought up to date, such as where ids go on."""
        ...

    async def empty(self, change: MarkChange) -> bool:
        """Remove all rows and change a mark, or nothing; whether the mark was as expected."""
        ...

    # --- one execution at a time ---

    async def read_copies(self, execution_ids: Collection[str]) -> list[ExecutionCopy]:
        """Executions with all that belongs to them, in the order of their arrival; those that are not there are left out."""
        ...

    async def put_copy(self, copy: ExecutionCopy) -> CopyResult:
        """Put an execution with all that belongs to it, or nothing. What waited for it waits behind what waits here."""
        ...


@runtime_checkable
class PersistentStore(Protocol):
    """A store whose database outlives the process."""

    async def open_existing(self, *, upgrade: bool = False) -> None:
        """Connect to a database that is there. Makes none, and changes its schema only if it may `upgrade` it.

        Raises a StoreError that says what is wrong: NotOurDatabase if there is none, OlderDatabase, NewerDatabase.
        """
        ...

    def make_transferable(self) -> Transferable:
        """For taking everything elsewhere. The store must be open."""
        ...
