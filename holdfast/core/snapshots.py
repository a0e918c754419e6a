"""Snapshots: what a history amounts to up to one of its events, so that not all of it has to be replayed.

Theory of operation
-------------------
A snapshot is a cache, never the truth. It holds the state of a program that can write its state down, and all that is folded
from the history into the execution beside its row: what is open in it. The turn that reaches its sequence writes it, in the
place of the one before, and the row's details name that sequence. Who has to replay from nothing reads the snapshot, and
then only the history behind it. One that is missing, damaged, encoded by a codec that is not here, of another sequence than
the details name, or of a schema that is not known here, is ignored: everything is folded from the beginning.

One is due when the history since the last is longer than four times that, and than 64 KB. So a byte of history costs the
same however long it is, and reading a snapshot with what is behind it costs no more than five times its size.

What is stored is one payload, so that a codec finds the whole of it: nothing in a snapshot is plain where payloads are not.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.core import codec
from holdfast.core.behaviours import as_set
from holdfast.core.events import (
    ChildStarted,
    ExternalSignalInitiated,
    IncidentRaised,
    Subscribed,
    UpdateAccepted,
)
from holdfast.core.execution import Execution, OpenActivity, OpenTask, Published
from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload
from holdfast.core.unused import NO_ENTRIES

SCHEMA: Final = 1
"""The version in which this code writes snapshots; that of the program's own part is inside."""
SHORTEST: Final = 64 * 1024
"""How many bytes of history a snapshot has to save at least."""
MOST_BEHIND: Final = 4
"""How many times as long as the snapshot the history behind it may be before another is written."""


class OpenThings(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """All that is folded from a history into an execution: see the fields of `Execution`."""

    activities: dict[int, OpenActivity] = {}
    timers: dict[int, Instant] = {}
    timer_labels: dict[int, str] = {}
    children: dict[int, ChildStarted] = {}
    externals: dict[int, ExternalSignalInitiated] = {}
    subscriptions: dict[int, Subscribed] = {}
    publications: dict[int, Published] = {}
    tasks: dict[int, OpenTask] = {}
    updates: dict[int, UpdateAccepted] = {}
    incidents: dict[int, IncidentRaised] = {}
    last_signal_sequence: int = 0
    behaviours: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    input: Payload | None = None


class Snapshot(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The state of an execution and of its program after one of its events."""

    sequence: int
    """The place in the history of the last event that it tells of."""
    last_turn: tuple[int, Instant]
    """The first event of the history row that ends there, and its time: by them it is known whether a history has it."""
    history_bytes: int
    """How many bytes the history up to there has."""
    open: OpenThings
    program: bytes
    program_schema: int
    event_schema: int = codec.SCHEMA
    """The version in which the events in it are written."""


_DECODER: Final = msgspec.json.Decoder(Snapshot)
_PAYLOAD: Final = msgspec.json.Decoder(Payload)


def is_due(behind: int, size: int) -> bool:
    """Whether a snapshot is to be written: so many bytes of history lie behind the last one, which has this size."""
    return behind > SHORTEST and behind > MOST_BEHIND * size


def capture(execution: Execution) -> OpenThings:
    """What is open in an execution, not copied: to be encoded at once."""
    return OpenThings(
        activities=execution.activities,
        timers=execution.timers,
        timer_labels=execution.timer_labels,
        children=execution.children,
        externals=execution.externals,
        subscriptions=execution.subscriptions,
        publications=execution.publications,
        tasks=execution.tasks,
        updates=execution.updates,
        incidents=execution.incidents,
        last_signal_sequence=execution.last_signal_sequence,
        behaviours=tuple(sorted(execution.behaviours)),
        headers=execution.headers,
        input=execution.input,
    )


def restore(execution: Execution, found: OpenThings) -> None:
    """Let what is open in a freshly loaded execution be what a snapshot tells; what happened since must be folded."""
    execution.activities, execution.timers = found.activities, found.timers
    execution.timer_labels = found.timer_labels or NO_ENTRIES
    execution.children = found.children or NO_ENTRIES
    execution.externals = found.externals or NO_ENTRIES
    execution.subscriptions = found.subscriptions or NO_ENTRIES
    execution.publications = found.publications or NO_ENTRIES
    execution.tasks = found.tasks or NO_ENTRIES
    execution.updates = found.updates or NO_ENTRIES
    execution.incidents = found.incidents or NO_ENTRIES
    execution.last_signal_sequence = found.last_signal_sequence
    execution.behaviours = as_set(found.behaviours)
    execution.headers = found.headers
    execution.input = found.input
    execution.running = {number for number in found.activities if execution.attempt_of(number).retry_at is None}


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as a row keeps it: one payload."""
    return codec.encode(Payload(msgspec.Raw(codec.encode(snapshot))))


def decode_payload(body: bytes) -> Payload:
    """The one payload of a snapshot as it was stored. Raises CorruptStore or NewerFormat."""
    return codec.decode_with(_PAYLOAD, body, "a snapshot")


def decode(body: bytes, schema: int) -> Snapshot | None:
    """A snapshot as it was stored; None if a codec must decode it first, or it is of a schema that is not known here.

    Raises CorruptStore or NewerFormat for what is no snapshot.
    """
    if schema != SCHEMA:
        return None
    payload = decode_payload(body)
    if payload.encoding != "json":
        return None
    snapshot = codec.decode_with(_DECODER, bytes(payload.data), "a snapshot")
    return snapshot if snapshot.event_schema == codec.SCHEMA else None
