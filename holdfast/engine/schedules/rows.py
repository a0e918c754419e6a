"""Schedules as rows: what the store keeps of them, made from their details."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.envelopes import Start
from holdfast.core.instants import Instant
from holdfast.core.routes import find_start_route
from holdfast.core.schedules import ScheduleDetails, ScheduleState, find_due
from holdfast.errors import NewerFormat
from holdfast.store.rows import InboxRow
from holdfast.store.schedules import ScheduleRow

_STATES: Final = frozenset(state.value for state in ScheduleState)


def make_row(
    org: str, schedule_id: str, details: ScheduleDetails, now: Instant, *, owner: str = "", is_paused: bool = False
) -> ScheduleRow:
    """A new schedule as it is stored."""
    empty = ScheduleRow(org, schedule_id, owner, "", None, False, "", 0, now, now, b"")
    state = ScheduleState.PAUSED if is_paused else ScheduleState.ACTIVE
    return change_row(replace(empty, state=state), details, now)


def change_row(row: ScheduleRow, details: ScheduleDetails, now: Instant, state: ScheduleState | None = None) -> ScheduleRow:
    """A schedule with other details, one version later.

    One whose last fire is over has ended, also while fires wait, which begin nevertheless: unless a pause holds them back.
    """
    known = ScheduleState(row.state) if state is None else state
    if details.is_over and not (known is ScheduleState.PAUSED and details.has_timed_waiting):
        known = ScheduleState.ENDED
    elif known is ScheduleState.ENDED:
        known = ScheduleState.ACTIVE
    return replace(
        row,
        state=known.value,
        due=find_due(details) if known is ScheduleState.ACTIVE else None,
        is_waiting=details.awaits_ends(is_paused=known is ScheduleState.PAUSED),
        route=find_start_route(details.start),
        version=row.version + 1,
        updated_at=now,
        details=codec.encode(details),
    )


def read_details(row: ScheduleRow) -> ScheduleDetails:
    """The details of a stored schedule. Raises CorruptStore, or NewerFormat also if its state is not known here."""
    if row.state not in _STATES:
        raise NewerFormat(
            f"Expected to know the state of schedule '{row.schedule_id}', but it is '{row.state}': a newer Holdfast wrote "
            "it. Upgrade this node."
        )
    return codec.decode_schedule(row.details)


def make_start_row(org: str, start: Start, now: Instant) -> InboxRow:
    """The start of an execution, for whoever takes its workflow."""
    return InboxRow(org, "", start.workflow_id, codec.encode(start), route=find_start_route(start), at=now)
