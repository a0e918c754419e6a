"""Human tasks as stores keep them: one row each, and an append-only list of what happened to it.

Theory of operation
-------------------
A turn creates the row of a task in its own commit, and ends it when the program or the execution no longer waits. What
people do in between touches the row alone, conditionally: a change names the version that it was made for, and is not made
if the row is at another. Every change appends one task event, whose sequence is the new version: so events have no gaps.

What a turn does to a task, for its program or for a person who completes or cancels it, is part of the turn's commit.
Batches never wait: `lock_tasks` and `write` try the locks of rows, and a turn about a task that somebody is changing at
that very moment is put off, or lost. People's changes wait for the commit of such a turn, and see then that the version has
moved on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.payloads import NULL, Payload
from holdfast.errors import CorruptStore
from holdfast.store.once import KeyedCall


class TaskState(StrEnum):
    """The state of a human task: open, claimed, completed or cancelled."""

    OPEN = "open"
    """Nobody has claimed it."""
    CLAIMED = "claimed"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


TaskKey: TypeAlias = tuple[str, int]
"""The execution of a human task, and its number."""
OPEN_STATES: Final = (TaskState.OPEN, TaskState.CLAIMED)


class TaskBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the row of a task keeps beside its columns; nothing is searched by it. Fields may be added."""

    payload: Payload = NULL
    """What the person is shown."""
    description: str = ""
    form: str = ""
    """The type of the form in words."""
    form_schema: msgspec.Raw = msgspec.Raw(b"{}")
    """The JSON Schema of the form, for people."""
    form_check: msgspec.Raw = msgspec.Raw(b"{}")
    """The JSON Schema that what completes the task must fit, which is never narrower than its type; all fit an empty one."""
    result: Payload | None = None
    """The form as it was filled in."""


class TaskEventBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a task event tells beside its columns. Fields may be added."""

    comment: Payload | None = None
    """A text."""
    reason: str = ""
    before: dict[str, Any] = {}
    """What was changed, by the names of the columns: as it was."""
    after: dict[str, Any] = {}


class TaskRow(msgspec.Struct, frozen=True, gc=False):
    """One human task, open or ended. Org, ids, number, names, queue, roles and time of creation never change."""

    org: str
    task_id: str
    execution_id: str
    number: int
    workflow: str
    workflow_id: str
    name: str
    queue: str
    state: str
    version: int
    """How many task events it has."""
    assignee: str
    claimer: str
    users: tuple[str, ...]
    """The users that may claim it."""
    groups: tuple[str, ...]
    """The groups whose members may claim it."""
    roles: tuple[str, ...]
    """The groups as they were when it was created."""
    priority: int
    due: Instant | None
    follow_up: Instant | None
    business_key: str
    created_at: Instant
    updated_at: Instant
    ended_at: Instant | None
    body: bytes
    damaged: Mapping[str, str] = {}
    """The columns of lists that cannot be read, as they are stored: the lists are empty then, and stay as they are."""

    @property
    def is_open(self) -> bool:
        """Whether it has neither been completed nor cancelled."""
        return self.ended_at is None


class TaskEventRow(msgspec.Struct, frozen=True, gc=False):
    """One step of a human task: who did what, and when. Never changes."""

    task_id: str
    sequence: int
    kind: str
    at: Instant
    by: str
    """Empty where the engine did it."""
    groups: tuple[str, ...]
    """The groups of whoever did it, as they were told."""
    body: bytes
    damage: str = ""
    """What is wrong with its columns, where a store could not read them; never stored."""


class TurnTaskChange(msgspec.Struct, frozen=True, gc=False):
    """What a turn does to a task of its execution, if that is open: one task event, and what follows from it."""

    number: int
    kind: str
    at: Instant
    body: bytes
    groups: tuple[str, ...] = ()
    """Groups that may claim it, too, from now on."""
    ends: bool = False
    """Whether the task is cancelled by it, or completed if it is among `TurnWrite.completed_tasks`."""
    by: str = ""
    actor_groups: tuple[str, ...] = ()
    due: Instant | None = None
    sets_due: bool = False
    """Whether `due` is when it is due from now on."""


class TaskChange(msgspec.Struct, frozen=True, gc=False):
    """What somebody does to a task: the row as it becomes, one version on, and the event of that version."""

    row: TaskRow
    event: TaskEventRow


class ChangeOutcome(Enum):
    """What became of a change of a task."""

    DONE = auto()
    STALE = auto()
    """The task is at another version, or is gone: nothing was changed. Read it again."""


class TaskOrder(StrEnum):
    """In which order a list of tasks comes."""

    CREATED = "created"
    DUE = "due"


class TaskFilter(msgspec.Struct, frozen=True, gc=False):
    """Which tasks of an org to list, in which order, and how many at most. All conditions must hold."""

    org: str
    states: Collection[str] = OPEN_STATES
    assignee: str | None = None
    claimer: str | None = None
    group: str | None = None
    user: str | None = None
    due_before: Instant | None = None
    name: str | None = None
    workflow: str | None = None
    execution_id: str | None = None
    queue: str | None = None
    business_key: str | None = None
    order: TaskOrder = TaskOrder.CREATED
    """By creation, the oldest first; or by due date, the earliest first, those without one left out."""
    after_id: str = ""
    """Behind this task, the last of the page before; in the order of due dates with its date."""
    after_due: Instant = -(2**63)
    limit: int = 100

    @property
    def is_open_only(self) -> bool:
        """Whether only tasks are asked for that have not ended."""
        return set(self.states) <= set(OPEN_STATES)


class Tasks(Protocol):
    """What can be asked and done about human tasks outside of batches."""

    async def find(self, org: str, task_id: str) -> TaskRow | None:
        """A task by its id, open or ended; a damaged one says so."""
        ...

    async def search(self, query: TaskFilter) -> list[TaskRow]:
        """The tasks that a filter selects, in its order; a damaged one says so."""
        ...

    async def list_events(self, org: str, task_id: str) -> list[TaskEventRow]:
        """What happened to a task, in order."""
        ...

    async def change(self, change: TaskChange, call: KeyedCall | None = None) -> ChangeOutcome:
        """Replace a task's row, and append its event, if the stored version is the one before; durable on return.

        With `call`, a call that is remembered changes nothing, and is DONE. Only what is DONE is remembered.
        May raise OutcomeUnknown: the stored version and its event tell what became of it.
        """
        ...


class KeyKind(StrEnum):
    """What a key is, by which lists find tasks."""

    ASSIGNEE = "assignee"
    CLAIMER = "claimer"
    USER = "user"
    GROUP = "group"
    BUSINESS = "business"
    EXECUTION = "execution"


def list_keys(row: TaskRow) -> list[tuple[str, str]]:
    """Under which (kind, value) pairs lists find a task: each has a row in the table of keys."""
    keys = [(KeyKind.EXECUTION.value, row.execution_id)]
    single = ((KeyKind.ASSIGNEE, row.assignee), (KeyKind.CLAIMER, row.claimer), (KeyKind.BUSINESS, row.business_key))
    keys += [(kind.value, value) for kind, value in single if value]
    keys += [(KeyKind.USER.value, one) for one in row.users]
    keys += [(KeyKind.GROUP.value, one) for one in row.groups]
    return keys


def choose_key(query: TaskFilter) -> tuple[str, str] | None:
    """The condition by whose key a list is made, the most selective first; None: all tasks of the org are walked."""
    by_kind = (
        (KeyKind.EXECUTION, query.execution_id),
        (KeyKind.BUSINESS, query.business_key),
        (KeyKind.CLAIMER, query.claimer),
        (KeyKind.ASSIGNEE, query.assignee),
        (KeyKind.USER, query.user),
        (KeyKind.GROUP, query.group),
    )
    return next(((kind.value, value) for kind, value in by_kind if value is not None), None)


_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])
_LISTS: Final = ("users", "groups", "roles")
TASK_COLUMNS: Final = tuple(name for name in TaskRow.__struct_fields__ if name != "damaged")
EVENT_COLUMNS: Final = ("task_id", "sequence", "kind", "at", "actor", "groups", "body")


def from_task_row(row: TaskRow) -> list[Any]:
    """The columns of a task, in the order of the row's fields; names as JSON."""
    values = {name: getattr(row, name) for name in TASK_COLUMNS}
    values |= {name: msgspec.json.encode(values[name]).decode() for name in _LISTS}
    values |= row.damaged
    values["state"] = str(row.state)
    return list(values.values())


def to_task_row(columns: Any) -> TaskRow:
    """The row of a task from its columns. Raises CorruptStore."""
    row = read_task_row(columns)
    require_readable(row)
    return row


def read_task_row(columns: Any) -> TaskRow:
    """As `to_task_row`; if lists of names cannot be read, the row without them, and with their damage."""
    values = dict(zip(TASK_COLUMNS, columns, strict=True))
    try:
        return TaskRow(**values | {name: _NAMES.decode(values[name]) for name in _LISTS})
    except (msgspec.MsgspecError, ValueError):
        found = {name: _read_names(values[name]) for name in _LISTS}
        damaged = {name: values[name] for name in _LISTS if found[name] is None}
        return TaskRow(**values | {name: found[name] or () for name in _LISTS}, damaged=damaged)


def _read_names(text: str) -> tuple[str, ...] | None:
    try:
        return _NAMES.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return None


def require_readable(row: TaskRow) -> None:
    """Raises CorruptStore if lists of a task cannot be read: who may claim it is not known then."""
    if row.damaged:
        raise CorruptStore(f"{describe_damage(row)} Run `holdfast check`, and end its execution: terminate still works.")


def describe_damage(row: TaskRow) -> str:
    """What is wrong with the columns of a task, as a sentence; empty if nothing is."""
    if not row.damaged:
        return ""
    return f"Expected task {row.task_id} to be readable, but its {' and '.join(row.damaged)} are damaged."


def from_event_row(row: TaskEventRow) -> tuple[Any, ...]:
    """The columns of a task event, in the order of the row's fields."""
    groups = msgspec.json.encode(row.groups).decode()
    return (row.task_id, row.sequence, row.kind, row.at, row.by, groups, row.body)


def to_event_row(columns: Any) -> TaskEventRow:
    """A task event from its columns. Raises CorruptStore."""
    row = read_event_row(columns)
    if row.damage:
        raise CorruptStore(f"{row.damage} Run `holdfast check`.")
    return row


def read_event_row(columns: Any) -> TaskEventRow:
    """As `to_event_row`; if its groups cannot be read, the event without them, and with its damage."""
    task_id, sequence, kind, at, by, groups, body = columns
    names = _read_names(groups)
    damage = f"Expected event {sequence} of task {task_id} to be readable, but its groups are damaged."
    return TaskEventRow(task_id, sequence, kind, at, by, names or (), body, damage if names is None else "")


_BODY: Final = msgspec.json.Decoder(TaskBody)
_EVENT_BODY: Final = msgspec.json.Decoder(TaskEventBody)


def decode_body(row: TaskRow) -> TaskBody:
    """What a task's row keeps beside its columns. Raises CorruptStore."""
    try:
        return _BODY.decode(row.body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptStore(f"Expected task {row.task_id} to be readable, but {error}. Run `holdfast check`.") from None


def decode_event_body(row: TaskEventRow) -> TaskEventBody:
    """What a task event tells beside its columns. Raises CorruptStore."""
    try:
        return _EVENT_BODY.decode(row.body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptStore(
            f"Expected event {row.sequence} of task {row.task_id} to be readable, but {error}. Run `holdfast check`."
        ) from None


def apply_turn_change(
    row: TaskRow, change: TurnTaskChange, completed: Sequence[TaskRow] = ()
) -> tuple[TaskRow, TaskEventRow]:
    """An open task after a turn did something to it, and the event that tells of it; `completed`: see `TurnWrite`."""
    groups = (*row.groups, *(one for one in change.groups if one not in row.groups))
    at = max(row.updated_at, change.at)
    row = msgspec.structs.replace(row, version=row.version + 1, updated_at=at, groups=groups)
    if change.sets_due:
        row = msgspec.structs.replace(row, due=change.due)
    if change.ends:
        ended = next((one for one in completed if one.number == change.number), None)
        row = msgspec.structs.replace(
            row,
            state=TaskState.CANCELLED if ended is None else TaskState.COMPLETED,
            ended_at=at,
            body=row.body if ended is None else ended.body,
        )
    return row, TaskEventRow(row.task_id, row.version, change.kind, at, change.by, change.actor_groups, change.body)


def matches(row: TaskRow, query: TaskFilter) -> bool:
    """Whether a filter selects a task, whatever the page."""
    return (
        row.org == query.org
        and (not query.states or row.state in query.states)
        and query.assignee in (None, row.assignee)
        and query.claimer in (None, row.claimer)
        and (query.group is None or query.group in row.groups)
        and (query.user is None or query.user in row.users)
        and (query.due_before is None or (row.due is not None and row.due < query.due_before))
        and query.name in (None, row.name)
        and query.workflow in (None, row.workflow)
        and query.execution_id in (None, row.execution_id)
        and query.queue in (None, row.queue)
        and query.business_key in (None, row.business_key)
        and (query.order is TaskOrder.CREATED or row.due is not None)
    )
