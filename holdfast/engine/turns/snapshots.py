"""Snapshots on their way from programs to rows, and back: see `holdfast.core.snapshots` for what they are.

A snapshot may save the reading of a history; it may never change what comes of it. So whatever is wrong with one (it is
missing, damaged, encoded, of another schema, of another past, or its program does not take it) leads to the same: all of the
history is read. And one that cannot be made is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import snapshots
from holdfast.core.instants import Instant
from holdfast.core.snapshots import Snapshot
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.log_events import LogEvent, tag_execution
from holdfast.store.snapshots import SnapshotRow

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.program import Program
    from holdfast.engine.turns.program_cache import LiveExecution
    from holdfast.store.rows import ExecutionRow, HistoryRow

log = logging.getLogger("holdfast.engine")

_MARK: Final = b'"snapshot":'
"""What is in the details of every execution that has a snapshot, and hardly in any others."""


def may_have_snapshot(row: ExecutionRow) -> bool:
    """Whether the details of an execution may name a snapshot: a search in a few bytes."""
    return _MARK in row.details


def read_snapshot(stored: SnapshotRow | None, execution: Execution) -> Snapshot | None:
    """The snapshot that the row of an execution names; None if there is none of use."""
    sequence = execution.details.snapshot
    if stored is None or sequence is None or stored.sequence != sequence or sequence > execution.sequence:
        return None
    try:
        found = snapshots.decode(stored.body, stored.schema)
    except (CorruptStore, NewerFormat):
        return None
    return found if found is not None and found.sequence == sequence else None


def first_to_read(snapshot: Snapshot) -> int:
    """Behind which event a history is to be read: the row that ends with the snapshot comes again, to be compared."""
    return snapshot.last_turn[0] - 1


def continues(snapshot: Snapshot, history: Sequence[HistoryRow]) -> bool:
    """Whether a history, read as `first_to_read` says, goes on from a snapshot; else that is of another past."""
    if not history:
        return False
    last = history[0]
    return (last.first, last.at) == snapshot.last_turn and last.first + last.count - 1 == snapshot.sequence


def restore_snapshot(execution: Execution, program: Program, snapshot: Snapshot, clock: Instant) -> bool:
    """Let a loaded execution and its new program stand where a snapshot does; whether they do.

    Else both are of no use: others take the whole history. As in `fold`, what waits since a time that the clock does not
    show yet has waited since now.
    """
    try:
        if not program.restore_snapshot(snapshot.program, snapshot.program_schema):
            return False
        snapshots.restore(execution, snapshot.open)
    except Exception:
        log.exception(
            "the snapshot of execution %s cannot be restored, so that its whole history is replayed",
            execution.execution_id,
            extra=tag_execution(LogEvent.SNAPSHOT_FAILED, execution),
        )
        return False
    for activity in execution.activities.values():
        activity.scheduled_at = min(activity.scheduled_at, clock)
    return True


def take_snapshot(live: LiveExecution, history: HistoryRow, most_bytes: int) -> SnapshotRow | None:
    """The snapshot that the turn with these events has to write, if one is due; its details name it then.

    One that cannot be made, or is too large, is left out: the next is tried when as much history has come again.
    """
    size = live.history_bytes + len(history.body)
    if not snapshots.is_due(size - live.snapshot_from, live.snapshot_size):
        return None
    live.snapshot_from = size  # also if none is made now
    execution, program = live.execution, live.program
    try:
        state = program.take_snapshot()
        if state is None:
            return None
        snapshot = Snapshot(
            sequence=execution.sequence,
            last_turn=(history.first, history.at),
            history_bytes=size,
            open=snapshots.capture(execution),
            program=state,
            program_schema=program.snapshot_schema,
        )
        body = snapshots.encode(snapshot)
    except Exception:
        log.exception(
            "no snapshot of execution %s can be taken; it goes on without one",
            execution.execution_id,
            extra=tag_execution(LogEvent.SNAPSHOT_FAILED, execution),
        )
        return None
    live.snapshot_size = len(body)
    if len(body) > most_bytes:
        return None
    execution.details.snapshot = execution.sequence
    return SnapshotRow(execution.org, execution.execution_id, execution.sequence, snapshots.SCHEMA, body)


def find_difference(snapshot: Snapshot, execution: Execution, program: Program) -> str | None:
    """In what a snapshot differs from an execution and a program that were folded up to its sequence; None if in nothing."""
    folded = snapshots.capture(execution)
    for name in folded.__struct_fields__:
        if name == "activities":
            known = {number: (one.event, one.is_cancelling) for number, one in snapshot.open.activities.items()}
            found = {number: (one.event, one.is_cancelling) for number, one in folded.activities.items()}
            is_same = known == found
        else:
            is_same = getattr(snapshot.open, name) == getattr(folded, name)
        if not is_same:
            return f"the open {name.replace('_', ' ')}"
    if snapshot.program_schema != program.snapshot_schema:
        return None  # of another version of the interpreter: it would not be used
    state = program.take_snapshot()
    if state is None or snapshot.program == state or _read_json(snapshot.program) == _read_json(state):
        return None
    return "the variables and tokens of its program"


def _read_json(state: bytes) -> Any:
    """A state without the order of its names, if it is JSON; else as it is."""
    try:
        return msgspec.json.decode(state)
    except (msgspec.MsgspecError, RecursionError):
        return state
