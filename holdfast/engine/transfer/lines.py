"""The format of exports: one execution, with everything that belongs to it, as one readable line of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from holdfast.core import codec
from holdfast.core.effects import TimerKind
from holdfast.core.instants import from_datetime, to_datetime
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import to_turns
from holdfast.engine.transfer.definition_lines import IncidentFields, read_incidents, write_incidents
from holdfast.engine.transfer.line_types import (
    AttemptNumber,
    Count,
    Name,
    Number,
    StrictStruct,
    Text,
    Time,
    Uuid,
    read_body,
    write_body,
)
from holdfast.engine.transfer.older_lines import upcast_line
from holdfast.engine.transfer.publication_lines import (
    KeptFields,
    OutboxFields,
    SubscriptionFields,
    read_kept,
    read_outbox,
    read_subscriptions,
    write_kept,
    write_outbox,
    write_subscriptions,
)
from holdfast.engine.transfer.task_lines import TaskFields, read_task_events, read_tasks, write_tasks
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.rows import ActivityRow, ExecutionRow, HistoryRow, InboxRow, RequestRow, TimerRow
from holdfast.store.transfer import ExecutionCopy

VERSION: Final = 2
"""The version of the format that this code writes."""


class Head(Struct, frozen=True):
    """The fields that every version of the format has."""

    holdfast: Literal["execution"]
    version: Annotated[int, Meta(ge=1)]


class ExecutionFields(StrictStruct, frozen=True, kw_only=True):
    """The row of the execution, without its details."""

    org: Name
    execution_id: Uuid
    workflow_id: Name
    workflow: Name
    code_version: Text
    queue: Name
    status: Status
    state_version: Count
    sequence: Count
    nodes: Sequence[Name]
    parent_id: Text | None
    created_at: Time
    updated_at: Time
    closed_at: Time | None
    route: Text


class TimerFields(StrictStruct, frozen=True, kw_only=True):
    """An open timer of the execution."""

    number: Number
    due: Time
    kind: TimerKind
    attempt: AttemptNumber
    route: Text


class EnvelopeFields(StrictStruct, frozen=True, kw_only=True, omit_defaults=True):
    """An envelope in the inbox, addressed to the execution or to its workflow id."""

    execution_id: Text
    workflow_id: Text
    attempts: AttemptNumber
    route: Text
    body: Raw
    """The envelope; an unreadable one as its bytes in base64."""
    at: Time | None = None
    """When it was accepted; absent where that is unknown."""


class ActivityFields(StrictStruct, frozen=True, kw_only=True):
    """An activity of the execution that is offered to other nodes."""

    number: Number
    attempt: AttemptNumber
    route: Text
    node: Text | None
    body: Raw


class RequestFields(StrictStruct, frozen=True, kw_only=True, omit_defaults=True):
    """The remembered answer to a request with an idempotency key or request id."""

    kind: Name
    key: Name
    sequence: Count | None
    expires_at: Time
    answer: dict[str, Any] | Count | None = None
    """Absent where an earlier version remembered the request. A number where the call took no turn: `retry_blocked`."""


class Line(StrictStruct, frozen=True, kw_only=True):
    """One exported execution: the whole line."""

    holdfast: str = "execution"
    version: int = VERSION
    schema: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    """The schema version of the events."""
    row: ExecutionFields
    details: Raw
    history: Sequence[dict[str, Any]]
    timers: Sequence[TimerFields]
    inbox: Sequence[EnvelopeFields]
    activities: Sequence[ActivityFields]
    requests: Sequence[RequestFields]
    tasks: Sequence[TaskFields] | UnsetType = UNSET
    """Left out where there is none, as are all that follow: so versions that do not know them yet read the line."""
    subscriptions: Sequence[SubscriptionFields] | UnsetType = UNSET
    kept: Sequence[KeptFields] | UnsetType = UNSET
    outbox: Sequence[OutboxFields] | UnsetType = UNSET
    incidents: Sequence[IncidentFields] | UnsetType = UNSET


# --- writing --------------------------------------------------------------------------------------------------------------


def write_line(copy: ExecutionCopy) -> bytes:
    """Encode an execution as one line of JSON. Raises CorruptStore if its history or details cannot be read."""
    codec.decode_details(copy.row.details)
    line = Line(
        schema=codec.SCHEMA,
        row=_write_row(copy.row),
        details=Raw(copy.row.details),
        history=codec.export_history(to_turns(copy.history)),
        timers=[
            TimerFields(number=one.number, due=to_datetime(one.due), kind=one.kind, attempt=one.attempt, route=one.route)
            for one in copy.timers
        ],
        inbox=[
            EnvelopeFields(
                execution_id=one.execution_id,
                workflow_id=one.workflow_id,
                attempts=one.attempts,
                route=one.route,
                body=write_body(one.body, codec.decode_envelope),
                at=to_datetime(one.at) if one.at else None,
            )
            for one in copy.inbox
        ],
        activities=[
            ActivityFields(
                number=one.number,
                attempt=one.attempt,
                route=one.route,
                node=one.node,
                body=write_body(one.body, codec.decode_task),
            )
            for one in copy.activities
        ],
        requests=[
            RequestFields(
                kind=one.kind,
                key=one.key,
                sequence=one.sequence,
                expires_at=to_datetime(one.expires_at),
                answer=None if one.answer is None else msgspec.json.decode(one.answer),
            )
            for one in copy.requests
        ],
        tasks=write_tasks(copy.tasks, copy.task_events) or UNSET,
        subscriptions=write_subscriptions(copy.subscriptions) or UNSET,
        kept=write_kept(copy.pending) or UNSET,
        outbox=write_outbox(copy.publications) or UNSET,
        incidents=write_incidents(copy.incidents) or UNSET,
    )
    return codec.encode(line)


def _write_row(row: ExecutionRow) -> ExecutionFields:
    return ExecutionFields(
        org=row.org,
        execution_id=row.execution_id,
        workflow_id=row.workflow_id,
        workflow=row.workflow,
        code_version=row.code_version,
        queue=row.queue,
        status=Status(row.status),
        state_version=row.state_version,
        sequence=row.sequence,
        nodes=row.nodes,
        parent_id=row.parent_id,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        closed_at=None if row.closed_at is None else to_datetime(row.closed_at),
        route=row.route,
    )


# --- reading --------------------------------------------------------------------------------------------------------------

_HEAD: Final = msgspec.json.Decoder(Head)
_LINE: Final = msgspec.json.Decoder(Line)


def read_line(text: bytes) -> ExecutionCopy:
    """Decode one line; types are checked, agreement between the parts is not. Raises ValueError that names the field."""
    line = _decode_line(text)
    row = _read_row(line.row, bytes(line.details))
    org, execution_id = row.org, row.execution_id
    return ExecutionCopy(
        row=row,
        history=_read_history(line, execution_id),
        timers=[
            TimerRow(org, execution_id, one.number, from_datetime(one.due), one.kind, one.attempt, one.route)
            for one in line.timers
        ],
        inbox=[_read_envelope(org, one) for one in line.inbox],
        activities=[
            ActivityRow(org, execution_id, one.number, one.attempt, one.route, read_body(one.body), one.node)
            for one in line.activities
        ],
        requests=[_read_request(org, execution_id, one) for one in line.requests],
        tasks=read_tasks(row, line.tasks or ()),
        task_events=read_task_events(line.tasks or ()),
        subscriptions=read_subscriptions(org, execution_id, row.created_at, line.subscriptions or ()),
        pending=read_kept(org, execution_id, line.kept or ()),
        publications=read_outbox(org, execution_id, line.outbox or ()),
        incidents=read_incidents(row, line.incidents or ()),
    )


def _decode_line(text: bytes) -> Line:
    try:
        version = _HEAD.decode(text).version
        if version > VERSION:
            raise ValueError(f"it has version {version}, of a newer Holdfast - at `$.version`")
        return _LINE.decode(text if version == VERSION else upcast_line(text))
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _read_row(row: ExecutionFields, details: bytes) -> ExecutionRow:
    return ExecutionRow(
        row.org,
        row.execution_id,
        row.workflow_id,
        row.workflow,
        row.code_version,
        row.queue,
        row.status.value,
        row.state_version,
        row.sequence,
        tuple(row.nodes),
        row.parent_id,
        from_datetime(row.created_at),
        from_datetime(row.updated_at),
        None if row.closed_at is None else from_datetime(row.closed_at),
        details,
        row.route,
    )


def _read_envelope(org: str, one: EnvelopeFields) -> InboxRow:
    return InboxRow(
        org,
        one.execution_id,
        one.workflow_id,
        read_body(one.body),
        attempts=one.attempts,
        route=one.route,
        at=0 if one.at is None else from_datetime(one.at),
    )


def _read_request(org: str, execution_id: str, one: RequestFields) -> RequestRow:
    return RequestRow(
        org,
        one.kind,
        one.key,
        execution_id,
        one.sequence,
        from_datetime(one.expires_at),
        None if one.answer is None else codec.encode(one.answer),
    )


def _read_history(line: Line, execution_id: str) -> list[HistoryRow]:
    try:
        turns = codec.import_history(list(line.history), line.schema)
    except (CorruptStore, NewerFormat) as error:
        raise ValueError(f"{error.message} - at `$.history`") from error
    rows = [
        HistoryRow(execution_id, turn.first, len(turn.events), turn.at, codec.SCHEMA, codec.encode(turn.events))
        for turn in turns
    ]
    expected = 1
    for row in rows:
        if row.first != expected:
            raise ValueError(f"turn {row.first} of the history begins with event {expected} - at `$.history`")
        expected += row.count
    return rows
