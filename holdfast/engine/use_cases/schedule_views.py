"""What people are shown of schedules, and what they can say about them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.core import payloads
from holdfast.core.instants import Duration, Instant, to_datetime
from holdfast.core.references import BusinessReference
from holdfast.core.schedules import Overlap, RunKind, ScheduleDetails, ScheduledRun, ScheduleState
from holdfast.core.shown_values import ShownValue
from holdfast.core.times.specs import list_fires
from holdfast.engine.schedules.rows import read_details
from holdfast.engine.use_cases.start_options import RunOptions
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, StoreError
from holdfast.store.schedules import ScheduleRow

SHOWN_FIRES: Final = 5


class ScheduleOptions(RunOptions, total=False):
    """The options of a schedule: when it fires and how, and those of the executions that it starts."""

    time_zone: str
    """The IANA name of the zone in which local times count. Default 'UTC'."""
    overlap: Overlap | str
    """What a fire does while an execution of the schedule is open: 'skip', 'queue', 'allow', 'cancel_running' or
    'terminate_running'. Default 'skip'."""
    catch_up: Duration
    """How late a fire may be after a time in which no node ran; what is later is only counted. Default one day."""
    jitter: Duration
    """By how much a fire may be put off, by an amount that differs from fire to fire. Default 0."""
    count: int | None
    """After how many fires the schedule ends. Default: as the cycle says, or never."""
    notes: str
    """For people. Default empty."""
    paused: bool
    """Whether it is created paused. Default no."""
    workflow_id: str
    """The template of workflow ids, which has `{time}` in it and may have `{schedule}`. Default '{schedule}-{time}'."""


class ScheduleRun(ShownValue, frozen=True):
    """An execution that a schedule started, or would have."""

    at: datetime
    """The time for which it was started."""
    started_at: datetime
    workflow_id: str
    execution_id: str
    """Empty if it was refused."""
    kind: RunKind
    """Why: 'time', 'manual' or 'backfill'."""
    is_refused: bool = False
    """Whether nothing was started, since an execution that was not the schedule's had the workflow id."""


class ScheduleInfo(ShownValue, frozen=True, kw_only=True):
    """A schedule as it now is."""

    org: str
    schedule_id: str
    state: ScheduleState
    spec: str
    """When it fires, as it was written."""
    time_zone: str
    workflow: str
    queue: str
    overlap: Overlap
    catch_up: timedelta
    jitter: timedelta
    next_fires: list[datetime]
    """The next five times for which it fires; fewer if it ends before, none while it is paused."""
    fired: int
    """How many of its times came, and were started, put off or skipped."""
    skipped: int
    """How many of those were skipped, since an execution was open."""
    missed: int
    """How many were too late when a node came to them. Without an end, of more than about 100,000 at once only the first."""
    refused: int
    """How many starts were refused, since an execution that was not the schedule's had the workflow id."""
    waiting: int
    """How many fires wait until an execution has ended; timed ones, while it is paused, until it is resumed too."""
    remaining: int | None
    """How many fires are left; None: no end."""
    recent_runs: list[ScheduleRun]
    """What it started last, the newest first; ten of them at most."""
    owner: str
    """The definition that it belongs to; empty: none."""
    notes: str
    version: int
    created_at: datetime
    updated_at: datetime
    input: Any = None
    """The arguments of the workflow, as plain JSON values."""
    metadata: dict[str, str]
    business_reference: BusinessReference | None = None
    workflow_id: str = ""
    """The template of workflow ids."""
    count: int | None = None
    """After how many fires it ends, as asked for; None: as its cycle says, or never."""
    problem: str = ""
    """Why it cannot be read, or cannot compute its times; empty: it can. What cannot be read is empty, and a state that is
    not known here is shown as paused."""


def show_schedule(row: ScheduleRow) -> ScheduleInfo:
    """A schedule as people see it; one that cannot be read, or whose times cannot be computed, says why."""
    try:
        details = read_details(row)
    except (CorruptStore, NewerFormat) as error:
        return _show_unreadable(row, error)
    state = ScheduleState(row.state)
    problem, next_fires = "", list[datetime]()
    try:
        next_fires = list_next(details, state)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other schedules of a list are shown
        problem = error.message if isinstance(error, HoldfastError) else f"its next times cannot be computed: {error!r}"
    return ScheduleInfo(
        org=row.org,
        schedule_id=row.schedule_id,
        state=state,
        spec=details.spec.text,
        time_zone=details.spec.zone,
        workflow=details.start.workflow,
        queue=details.start.queue,
        overlap=details.overlap,
        catch_up=timedelta(microseconds=details.catch_up_us),
        jitter=timedelta(microseconds=details.jitter_us),
        next_fires=next_fires,
        fired=details.fired,
        skipped=details.skipped,
        missed=details.missed,
        refused=details.refused,
        waiting=len(details.waiting),
        remaining=details.remaining,
        recent_runs=[show_run(run) for run in details.recent],
        owner=row.owner,
        notes=details.notes,
        version=row.version,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        input=payloads.show_value(details.start.input),
        metadata=details.start.metadata,
        business_reference=details.start.reference,
        workflow_id=details.start.workflow_id,
        count=details.count,
        problem=problem,
    )


def _show_unreadable(row: ScheduleRow, error: StoreError) -> ScheduleInfo:
    """What the columns of a row say, where its details cannot be read."""
    return ScheduleInfo(
        org=row.org,
        schedule_id=row.schedule_id,
        state=ScheduleState(row.state) if row.state in {state.value for state in ScheduleState} else ScheduleState.PAUSED,
        spec="",
        time_zone="",
        workflow="",
        queue="",
        overlap=Overlap.SKIP,
        catch_up=timedelta(),
        jitter=timedelta(),
        next_fires=[] if row.due is None else [to_datetime(row.due)],
        fired=0,
        skipped=0,
        missed=0,
        refused=0,
        waiting=0,
        remaining=None,
        recent_runs=[],
        owner=row.owner,
        notes="",
        version=row.version,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        metadata={},
        problem=error.message,
    )


def show_run(run: ScheduledRun) -> ScheduleRun:
    """A run as people see it."""
    return ScheduleRun(
        to_datetime(run.at), to_datetime(run.started_at), run.workflow_id, run.execution_id, run.kind, run.is_refused
    )


def list_next(details: ScheduleDetails, state: ScheduleState) -> list[datetime]:
    """The next times for which an active schedule fires."""
    if state is not ScheduleState.ACTIVE or details.is_over or details.next_at is None:
        return []
    most = SHOWN_FIRES if details.remaining is None else min(SHOWN_FIRES, details.remaining)
    found: list[Instant] = [details.next_at]
    if most > 1:
        for at in list_fires(details.spec, details.armed_at, details.next_at):
            found.append(at)
            if len(found) == most:
                break
    return [to_datetime(at) for at in found]
