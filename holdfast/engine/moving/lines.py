"""An execution as one line of JSON, and back: everything that belongs to it, in words that people can read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from holdfast.core import codec
from holdfast.core.instants import from_datetime, to_datetime
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import to_turns
from holdfast.errors import CorruptStore
from holdfast.store.contract import ActivityRow, ExecutionRow, HistoryRow, InboxRow, RequestRow, TimerRow
from holdfast.store.moving import ExecutionCopy

VERSION: Final = 1
"""The version of the lines that this code writes."""

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
Text: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
Name: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00]+$")]
Uuid: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Number: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Attempt: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has all of its fields and no others."""


class Head(Struct, frozen=True):
    """What every version of a line begins with."""

    holdfast: Literal["execution"]
    version: Annotated[int, Meta(ge=1)]


class Execution(_Strict, frozen=True, kw_only=True):
    """The row of an execution, without its details."""

    org: Name
    execution_id: Uuid
    workflow_id: Name
    workflow: Name
    code_version: Text
    queue: Name
    status: Status
    state_version: Count
    sequence: Count
    node: Text | None
    parent_id: Text | None
    created_at: Time
    updated_at: Time
    closed_at: Time | None
    route: Text


class Timer(_Strict, frozen=True, kw_only=True):
    """An open timer."""

    number: Number
    due: Time
    attempt: Attempt
    route: Text


class Envelope(_Strict, frozen=True, kw_only=True):
    """What waits in the inbox: for the execution, or for its workflow id."""

    execution_id: Text
    workflow_id: Text
    attempts: Attempt
    route: Text
    body: Raw
    """The envelope; one that cannot be read is kept as it came, in base64."""


class Activity(_Strict, frozen=True, kw_only=True):
    """An offered activity."""

    number: Number
    attempt: Attempt
    route: Text
    node: Text | None
    body: Raw


class Answer(_Strict, frozen=True, kw_only=True):
    """What was answered to a request with a key."""

    kind: Name
    key: Name
    sequence: Count | None
    expires_at: Time


class Line(_Strict, frozen=True, kw_only=True):
    """All of it."""

    holdfast: str = "execution"
    version: int = VERSION
    schema: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    """The version in which the events are written."""
    row: Execution
    details: Raw
    history: Sequence[dict[str, Any]]
    timers: Sequence[Timer]
    inbox: Sequence[Envelope]
    activities: Sequence[Activity]
    requests: Sequence[Answer]


# --- writing --------------------------------------------------------------------------------------------------------------


def write_line(copy: ExecutionCopy) -> bytes:
    """The line of an execution. Raises CorruptStore if its history or details cannot be read."""
    row = copy.row
    codec.decode_details(row.details)
    line = Line(
        schema=codec.SCHEMA,
        row=Execution(
            org=row.org,
            execution_id=row.execution_id,
            workflow_id=row.workflow_id,
            workflow=row.workflow,
            code_version=row.code_version,
            queue=row.queue,
            status=Status(row.status),
            state_version=row.state_version,
            sequence=row.sequence,
            node=row.node,
            parent_id=row.parent_id,
            created_at=to_datetime(row.created_at),
            updated_at=to_datetime(row.updated_at),
            closed_at=None if row.closed_at is None else to_datetime(row.closed_at),
            route=row.route,
        ),
        details=Raw(row.details),
        history=codec.export_history(to_turns(copy.history)),
        timers=[
            Timer(number=one.number, due=to_datetime(one.due), attempt=one.attempt, route=one.route) for one in copy.timers
        ],
        inbox=[
            Envelope(
                execution_id=one.execution_id,
                workflow_id=one.workflow_id,
                attempts=one.attempts,
                route=one.route,
                body=_write_body(one.body, codec.decode_envelope),
            )
            for one in copy.inbox
        ],
        activities=[
            Activity(
                number=one.number,
                attempt=one.attempt,
                route=one.route,
                node=one.node,
                body=_write_body(one.body, codec.decode_task),
            )
            for one in copy.activities
        ],
        requests=[
            Answer(kind=one.kind, key=one.key, sequence=one.sequence, expires_at=to_datetime(one.expires_at))
            for one in copy.requests
        ],
    )
    return codec.encode(line)


def _write_body(body: bytes, decode: Any) -> Raw:
    """As it is if it can be read, on one line; else in base64, to be kept for whoever finds out why."""
    try:
        decode(body)
    except CorruptStore:
        return Raw(codec.encode(b64encode(body).decode()))
    return Raw(body if b"\n" not in body and b"\r" not in body else codec.encode(msgspec.json.decode(body)))


# --- reading --------------------------------------------------------------------------------------------------------------

_HEAD: Final = msgspec.json.Decoder(Head)
_LINE: Final = msgspec.json.Decoder(Line)


def read_line(text: bytes) -> ExecutionCopy:
    """The execution of a line, which agrees in itself so far as its types go. Raises ValueError that says what is wrong."""
    try:
        version = _HEAD.decode(text).version
        if version > VERSION:
            raise ValueError(f"it has version {version}, of a newer Holdfast - at `$.version`")
        line = _LINE.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    row = line.row
    org, execution_id = row.org, row.execution_id
    return ExecutionCopy(
        row=ExecutionRow(
            org,
            execution_id,
            row.workflow_id,
            row.workflow,
            row.code_version,
            row.queue,
            row.status.value,
            row.state_version,
            row.sequence,
            row.node,
            row.parent_id,
            from_datetime(row.created_at),
            from_datetime(row.updated_at),
            None if row.closed_at is None else from_datetime(row.closed_at),
            bytes(line.details),
            row.route,
        ),
        history=_read_history(line, execution_id),
        timers=[
            TimerRow(org, execution_id, one.number, from_datetime(one.due), one.attempt, one.route) for one in line.timers
        ],
        inbox=[
            InboxRow(org, one.execution_id, one.workflow_id, _read_body(one.body), 0, one.attempts, one.route)
            for one in line.inbox
        ],
        activities=[
            ActivityRow(org, execution_id, one.number, one.attempt, one.route, _read_body(one.body), one.node)
            for one in line.activities
        ],
        requests=[
            RequestRow(org, one.kind, one.key, execution_id, one.sequence, from_datetime(one.expires_at))
            for one in line.requests
        ],
    )


def _read_history(line: Line, execution_id: str) -> list[HistoryRow]:
    try:
        turns = codec.import_history(list(line.history), line.schema)
    except CorruptStore as error:
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


def _read_body(raw: Raw) -> bytes:
    body = bytes(raw)
    if not body.startswith(b'"'):
        return body
    try:
        return b64decode(msgspec.json.decode(body), validate=True)
    except (Base64Error, ValueError) as error:
        raise ValueError(f"a body is neither an object nor base64 ({error})") from error
