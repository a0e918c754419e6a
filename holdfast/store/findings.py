"""What a check of a store finds: what is wrong, and what only a newer Holdfast can read, which is not wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import msgspec

from holdfast.core.codec import decode_publication, decode_schedule, decode_with
from holdfast.core.replies import REPLIED
from holdfast.core.schedules import ScheduleState
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.attributes import list_attributes
from holdfast.store.matching import make_lookup, name_fields
from holdfast.store.pauses import PauseKind, Settings
from holdfast.store.publication_columns import find_conditions, read_mapping, read_start, read_subscribers
from holdfast.store.publications import SubscriptionRow
from holdfast.store.tasks import (
    OPEN_STATES,
    TaskEventRow,
    TaskRow,
    TaskState,
    decode_body,
    decode_event_body,
    describe_damage,
    list_keys,
)


class Newer(msgspec.Struct, frozen=True, gc=False):
    """A sentence about something that a newer Holdfast wrote, and that this one cannot judge."""

    sentence: str


_JSON: Final = msgspec.json.Decoder()

Finding: TypeAlias = str | Newer
"""A sentence about what is wrong, or about what is newer."""


class Findings(msgspec.Struct, frozen=True):
    """Everything that a check found, a sentence each."""

    problems: list[str]
    newer: list[str]


def describe_unreadable(name: str, error: CorruptStore | NewerFormat) -> Finding:
    """What to report about something that could not be decoded."""
    sentence = f"{name}: {error.message}"
    return Newer(sentence) if isinstance(error, NewerFormat) else sentence


def check_schedule(org: str, schedule_id: str, state: str, due: int | None, details: bytes) -> Iterator[Finding]:
    """What is wrong with a schedule."""
    name = f"schedule {schedule_id} of org {org}"
    try:
        is_active = ScheduleState(state) is ScheduleState.ACTIVE
    except ValueError:
        yield Newer(f"{name}: its state is '{state}', which is not known here")
        return
    if due is not None and not is_active:
        yield f"{name}: it is {state}, and yet due"
    try:
        decode_schedule(details)
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)


class FoundBy(NamedTuple):
    """What a check reads of an execution, to compare it with the table of attributes."""

    org: str
    workflow: str
    code_version: str
    details: bytes
    attributes: str | None
    """As JSON: a list of the org, the kind, the name and the value of each."""


def check_attributes(name: str, row: FoundBy) -> Iterator[Finding]:
    """Where the table of attributes says something else of an execution than its row, whose details can be read."""
    found = {tuple(one) for one in msgspec.json.decode(row.attributes or "[]", type=list[list[str]])}
    said = {(row.org, *one) for one in list_attributes(row.workflow, row.code_version, row.details)}
    for _, kind, key, _ in sorted(found - said):
        yield f"{name}: lists find it by {_name_attribute(kind, key)} with a value that its details do not have"
    for _, kind, key, _ in sorted(said - found):
        yield f"{name}: lists do not find it by the value of {_name_attribute(kind, key)} that its details have"


def _name_attribute(kind: str, key: str) -> str:
    return f"{kind} '{key}'" if key else kind


class KeptRow(NamedTuple):
    """What a check reads of a message or an event that is kept."""

    id: int
    body: bytes
    target: str
    status: str | None
    """Of the execution for which it is kept; None if there is none."""
    closed_at: int | None
    is_overdue: bool
    """Whether it expired a day ago, and a node that has run for longer has not removed it."""
    fields: str
    """By which waits select it, as JSON: a mapping."""
    found_by: str | None
    """By which it is found, as JSON: a list of pairs."""
    start: bytes | None = None
    """Of a message: what it starts, as JSON."""


def check_kept(row: KeptRow) -> Iterator[Finding]:
    """What is wrong with a message or an event that is kept."""
    name = f"kept publication {row.id}"
    if row.target and row.status is None:
        yield f"{name}: it is kept for execution {row.target}, and there is no such execution"
    elif row.target and row.closed_at is not None:
        yield f"{name}: it is kept for execution {row.target}, which is {row.status}"
    if row.is_overdue:
        yield f"{name}: it expired more than a day ago, and no node has removed it"
    fields = dict(msgspec.json.decode(row.found_by or "[]", type=list[tuple[str, str]]))
    yield from _check_readable(name, lambda: read_mapping(row.fields))
    if find_conditions(row.fields) not in (None, fields):
        yield f"{name}: waits do not find it by its fields"
    yield from _check_readable(name, lambda: read_start(row.start))
    yield from _check_readable(name, lambda: decode_publication(row.body))


def check_publication(row_id: int, body: bytes, fields: str, subscribers: str | None) -> Iterator[Finding]:
    """What is wrong with something that is to be published."""
    name = f"publication {row_id}"
    yield from _check_readable(name, lambda: decode_publication(body))
    yield from _check_readable(name, lambda: read_mapping(fields))
    if subscribers is not None:
        yield from _check_readable(name, lambda: read_subscribers(subscribers))


def _check_readable(name: str, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)


class WaitRow(NamedTuple):
    """What a check reads of a subscription."""

    execution_id: str
    number: int
    status: str | None
    """Of its execution; None if there is none."""
    closed_at: int | None
    conditions: str
    """The fields that it selects by, as JSON: a mapping."""
    key: str
    fields: str
    """The names of the fields, by which it is found."""
    lookup: str


def check_subscription(row: WaitRow) -> Iterator[Finding]:
    """What is wrong with a subscription."""
    name = f"subscription {row.number} of execution {row.execution_id}"
    if row.status is None:
        yield f"{name}: there is no such execution"
    elif row.closed_at is not None:
        yield f"{name}: the execution is {row.status}"
    yield from _check_readable(name, lambda: read_mapping(row.conditions))
    where = find_conditions(row.conditions)
    if where is None:
        return
    wait = SubscriptionRow("", "", "", row.execution_id, row.number, row.key, where)
    if (row.fields, row.lookup) != (name_fields(where), make_lookup(wait)):
        yield f"{name}: what is published does not find it by its fields or its key"


def check_task(row: TaskRow, status: str | None, closed_at: int | None, found_by: str | None) -> Iterator[Finding]:
    """What is wrong with a human task. `found_by`: the keys by which lists find it, as JSON: a list of pairs."""
    name = f"human task {row.task_id}"
    is_misplaced = status is None or (closed_at is not None and row.is_open)
    if is_misplaced:
        yield f"{name}: there is no such execution" if status is None else f"{name}: the execution is {status}"
    try:
        is_open = TaskState(row.state) in OPEN_STATES
    except ValueError:
        yield Newer(f"{name}: its state is '{row.state}', which is not known here")
    else:
        if is_open != row.is_open:
            yield f"{name}: it is {row.state}, and its time of ending is {row.ended_at}"
    if row.damaged:
        yield f"{name}: {describe_damage(row)}"
    elif not is_misplaced and set(list_keys(row)) != set(msgspec.json.decode(found_by or "[]", type=list[tuple[str, str]])):
        yield f"{name}: lists do not find it by its people, its business key or its execution"
    yield from _check_readable(name, lambda: decode_body(row))


def check_task_event(row: TaskEventRow) -> Iterator[Finding]:
    """What is wrong with a step of a human task."""
    name = f"event {row.sequence} of human task {row.task_id}"
    if row.damage:
        yield f"{name}: {row.damage}"
    yield from _check_readable(name, lambda: decode_event_body(row))


def check_request(org: str, kind: str, key: str, answer: bytes | None) -> Iterator[Finding]:
    """What is wrong with what is remembered of a call: the answer that a repeated one gets."""
    if answer is not None:
        name = f"answer to '{kind}' with the key {key!r} of org '{org}'"
        yield from _check_readable(name, lambda: _read_answer(answer))


def _read_answer(answer: bytes) -> None:
    found = decode_with(_JSON, answer, "an answer")
    if isinstance(found, dict) and found.get("type") == "replied":
        decode_with(REPLIED, answer, "an answer")


def check_pauses(settings: Settings) -> Iterator[Finding]:
    """What is wrong with the pauses of workflows and queues."""
    for pause in settings.pauses:
        name = f"pause of {pause.kind} '{pause.name}' in org '{pause.org}'"
        if pause.kind not in set(PauseKind):
            yield Newer(f"{name}: '{pause.kind}' is nothing that is paused here")
        elif settings.number == 0:
            yield f"{name}: the settings have no number, so nodes would never hear of it"


def split_findings(findings: Iterable[Finding]) -> Findings:
    """What is wrong and what is newer, each in the order of the check."""
    found = Findings([], [])
    for one in findings:
        if isinstance(one, Newer):
            found.newer.append(one.sentence)
        else:
            found.problems.append(one)
    return found
