"""Schedules: what fires when, as a pure function of a schedule, the time, and which of its executions are open.

Theory of operation
-------------------
A schedule knows its next *nominal* time (`next_at`), which depends on its spec alone, and is *due* then, or up to `jitter`
later: by how much depends on the schedule and on that time, so that every node computes the same. `fire` goes through all
nominal times that are due, in their order (`find_due_times`):

- One that is due for longer than the catch-up window is *missed*: nobody was there to fire it in time. It is only counted.
  Where the jitter is longer than the interval, a time may be due before an earlier one, and waits for that: then it is late
  since the earlier one was due (`latest_due`).
- Any other starts an execution, unless somebody else's is open under its workflow id: then it is *refused*, and counted.
- If one that the schedule started before is still open, the overlap policy decides: `skip` counts the fire; `queue` lets it
  wait, in order; `cancel_running` and `terminate_running` end what is open, and the newest fire waits until that has
  happened; `allow` does not mind. What a backfill started is never ended, and a fire of a backfill ends nothing: both wait.

What waits begins when nothing is open any more. Each nominal time is used up by this, whatever became of it; `remaining`
counts them down where there is an end. The next nominal time derives from the one before, never from the clock: so a late
fire does not shift those after it, and a clock that is set back repeats nothing.

While a schedule is paused, no nominal time is looked at, and fires at nominal times that wait go on waiting; those of a
backfill begin. What was due within the pause is left out afterwards, and does not count. What was due before and had not
been fired is fired then, like everything that is late. Since that may come first, a pause is remembered (`pauses`) until the
next nominal time lies behind it.

What a schedule started is known by its execution id (`OpenRun`), not by its workflow id, which anybody may use again. Under
`allow`, nobody has to know which of them are open, until the policy changes or a backfill waits: so the newest are kept, and
looked at only when there are many (`needs_open_runs`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.core.envelopes import Start
from holdfast.core.ids import derive_entropy, make_execution_id
from holdfast.core.instants import SECOND, Instant, Micros, to_datetime
from holdfast.core.times.specs import AnySpec, list_fires

DEFAULT_CATCH_UP: Final = 24 * 3600 * SECOND
SHORTEST_CATCH_UP: Final = 10 * SECOND
"""A fire that is late by less is always made good: nodes are restarted, and clocks are set."""
MOST_WAITING: Final = 1_000
MOST_AT_ONCE: Final = 100
"""How many starts one schedule makes in one transaction."""
MOST_UNCHECKED: Final = 50
"""How many runs a schedule that allows overlaps keeps until it is looked at which of them are open."""
MOST_ALLOWED: Final = MOST_UNCHECKED // 2
"""How many of those that are open it keeps then, the newest."""
MOST_TIMES: Final = 1_000
"""How many nominal times one look goes through; the next look goes on."""
MOST_MISSED_LOOKS: Final = 100
"""How many more looks a schedule without an end is given to count what it missed; if it takes more, that is not counted."""
RECENT: Final = 10
"""How many runs a schedule remembers."""
TEMPLATE: Final = "{schedule}-{time}"


class ScheduleState(StrEnum):
    """Whether a schedule fires, and if not, why."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Overlap(StrEnum):
    """What a fire does while an execution that the schedule started before is open."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"
    CANCEL_RUNNING = "cancel_running"
    TERMINATE_RUNNING = "terminate_running"


class RunKind(StrEnum):
    """Why a schedule started an execution."""

    TIME = "time"
    MANUAL = "manual"
    BACKFILL = "backfill"


class PlannedRun(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A fire that waits until it may start its execution."""

    at: Instant
    kind: RunKind = RunKind.TIME


class ScheduledRun(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An execution that a schedule started, or would have."""

    at: Instant
    """The time for which it was started."""
    started_at: Instant
    workflow_id: str
    execution_id: str
    """Empty if it was refused."""
    kind: RunKind = RunKind.TIME
    is_refused: bool = False
    """Whether nothing was started, since an execution that was not the schedule's had the workflow id."""


class OpenRun(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An execution that a schedule started, and that was open when it was last looked at."""

    workflow_id: str
    execution_id: str
    """Of the run that was the newest then: an execution may continue as others."""
    kind: RunKind = RunKind.TIME


class Pause(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A pause that is over: what was due within it is left out."""

    begin: Instant
    end: Instant


class ScheduleDetails(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything about a schedule that the store does not look into."""

    uid: str
    """Tells it from others that had its id before."""
    spec: AnySpec
    start: Start
    """What it starts. The workflow id is a template."""
    armed_at: Instant
    """From when its spec counts."""
    next_at: Instant | None = None
    """The next nominal time; None: there is none."""
    overlap: Overlap = Overlap.SKIP
    catch_up_us: Micros = DEFAULT_CATCH_UP
    jitter_us: Micros = 0
    count: int | None = None
    """After how many fires it ends, as asked for."""
    notes: str = ""
    remaining: int | None = None
    """How many fires are left; None: no end."""
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    refused: int = 0
    """How many starts were refused, since somebody else's execution had the workflow id."""
    runs: int = 0
    """How many executions it started in all, for whatever reason."""
    recent: tuple[ScheduledRun, ...] = ()
    """The newest runs, the newest first."""
    open_runs: tuple[OpenRun, ...] = ()
    """What it started and was open when it was last looked at; if it allows overlaps, only the newest."""
    waiting: tuple[PlannedRun, ...] = ()
    paused_at: Instant | None = None
    """Since when it is paused; None: it is not."""
    pauses: tuple[Pause, ...] = ()
    """The pauses within which its next nominal times may be due."""
    latest_due: Instant = 0
    """When the latest of the times gone through was due, if that is later than the next one is; else 0."""

    @property
    def is_over(self) -> bool:
        """Whether no nominal time is left."""
        return self.next_at is None or self.remaining == 0

    def awaits_ends(self, *, is_paused: bool) -> bool:
        """Whether fires wait that may begin as soon as nothing is open: those at nominal times not during a pause."""
        return any(not is_paused or one.kind is not RunKind.TIME for one in self.waiting)

    @property
    def has_timed_waiting(self) -> bool:
        """Whether fires at nominal times wait, which a pause holds back."""
        return any(one.kind is RunKind.TIME for one in self.waiting)

    @property
    def needs_open_runs(self) -> bool:
        """Whether it depends on its open executions what it does, or it keeps too many of which nobody knows."""
        return self.overlap is not Overlap.ALLOW or bool(self.waiting) or len(self.open_runs) >= MOST_UNCHECKED


class DueTimes(msgspec.Struct, frozen=True, gc=False):
    """The nominal times of a schedule that a look goes through."""

    details: ScheduleDetails
    """The schedule behind them, with what was missed counted."""
    times: tuple[Instant, ...]
    """Those that are not missed, nor left out in a pause."""
    count: int
    """How many there were in all."""


class Fired(msgspec.Struct, frozen=True):
    """What came of looking at a schedule."""

    details: ScheduleDetails
    starts: tuple[Start, ...] = ()
    ends: tuple[OpenRun, ...] = ()
    """Executions that are to be cancelled or terminated, as the overlap policy says."""


def arm(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """The schedule as it counts from now on, with all its fires before it."""
    limits = [one for one in (details.spec.count_fires(now), details.count) if one is not None]
    remaining = min(limits) if limits else None
    first = None if remaining == 0 else details.spec.first(now)
    return replace(details, armed_at=now, next_at=first, remaining=remaining, pauses=(), latest_due=0)


def pause(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """The schedule as it is paused from now on."""
    return replace(details, paused_at=now)


def resume(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """The schedule after a pause: what was due within it is left out, and does not count."""
    begin, found = details.paused_at, details.next_at
    details = replace(details, paused_at=None)
    if begin is None or found is None or details.is_over:
        return details
    if max(found, details.armed_at) < begin - details.jitter_us:
        found = details.spec.next_after(details.armed_at, begin - details.jitter_us - 1)
    if found is None or found > now:
        return details
    details = replace(details, pauses=(*details.pauses, Pause(begin, now)))
    for _ in range(MOST_TIMES):  # the rest when it is fired
        if (within := _find_pause(details)) is None:
            break
        details = _leave_out(details, within)
    return details


def _find_pause(details: ScheduleDetails) -> Pause | None:
    """The pause within which the next fire is due; None: there is none."""
    due = find_due(details)
    if due is None:
        return None
    due = max(due, details.armed_at)
    return next((one for one in details.pauses if one.begin <= due <= one.end), None)


def _leave_out(details: ScheduleDetails, within: Pause) -> ScheduleDetails:
    """Leave out the next nominal time, which is due within a pause, and those behind it that are for certain."""
    at = details.next_at or 0
    return _move_on(details, max(at, within.end - details.jitter_us - 1) if at >= within.begin else at)


def _move_on(details: ScheduleDetails, after: Instant) -> ScheduleDetails:
    """The schedule with the first nominal time later than `after` as its next."""
    return _move_to(details, details.spec.next_after(details.armed_at, after), details.remaining, details.latest_due)


def _move_to(details: ScheduleDetails, found: Instant | None, remaining: int | None, latest_due: Instant) -> ScheduleDetails:
    """The schedule with another next nominal time; None: there is none."""
    if found is None:
        return replace(details, next_at=None, remaining=None if remaining is None else 0, pauses=(), latest_due=0)
    pauses = tuple(one for one in details.pauses if one.end >= found) if details.pauses else ()
    moved = replace(details, next_at=found, remaining=remaining, pauses=pauses, latest_due=latest_due)
    if latest_due and ((due := find_due(moved)) is None or due >= latest_due):
        return replace(moved, latest_due=0)
    return moved


def find_due(details: ScheduleDetails) -> Instant | None:
    """When the next fire is due: its nominal time and its share of the jitter; None: there is none."""
    if details.next_at is None or details.remaining == 0:
        return None
    if not details.jitter_us:
        return details.next_at
    return details.next_at + derive_entropy(details.uid, details.next_at) % (details.jitter_us + 1)


def find_due_times(details: ScheduleDetails, now: Instant) -> DueTimes:
    """Go through the nominal times that are due now: up to so many of them, the rest with the next look."""
    found: list[Instant] = []
    count, missed, first = 0, 0, details.next_at or 0
    window = max(details.catch_up_us, SHORTEST_CATCH_UP)
    following = list_fires(details.spec, details.armed_at, first)
    while count < MOST_TIMES and len(found) < MOST_AT_ONCE:
        if (due := find_due(details)) is None or due > now:
            break
        count += 1
        if details.pauses and (within := _find_pause(details)) is not None:
            details = _leave_out(details, within)
            following = list_fires(details.spec, details.armed_at, details.next_at or 0)
            continue
        latest = max(due, details.latest_due)
        if now - max(latest, details.armed_at) <= window:
            found.append(details.next_at or 0)
        else:
            missed += 1
        remaining = None if details.remaining is None else details.remaining - 1
        details = _move_to(details, next(following, None), remaining, latest if details.jitter_us else 0)
    if missed == MOST_TIMES and details.next_at is not None and details.remaining is None:
        oldest = now - window - details.jitter_us - 1
        if oldest - details.next_at > MOST_MISSED_LOOKS * (details.next_at - first):
            details = _move_on(details, oldest)
    details = replace(details, missed=details.missed + missed, fired=details.fired + len(found))
    return DueTimes(details, tuple(found), count)


def fire(
    details: ScheduleDetails,
    now: Instant,
    schedule_id: str,
    open_runs: Sequence[OpenRun],
    taken: Collection[str],
    *,
    is_paused: bool = False,
    due: DueTimes | None = None,
) -> Fired:
    """Fire what is due now, and begin what waits.

    `open_runs` are those of its executions that are open, `taken` workflow ids under which anything is open, whoever started
    it. If the schedule is paused, only fires of backfills that wait may begin. `due` is what `find_due_times` found, where
    somebody asked before.
    """
    if due is None and not is_paused:
        due = find_due_times(details, now)
    return _Firing(details, now, schedule_id, open_runs, taken).fire(due)


def run_now(details: ScheduleDetails, now: Instant, schedule_id: str) -> tuple[ScheduleDetails, Start, Instant]:
    """Start an execution now, whatever is open. The time that tells it from others is the third."""
    at = max([now, *(run.at + 1 for run in details.recent if run.kind is RunKind.MANUAL)])
    taken = {run.workflow_id for run in details.open_runs}
    while name_run(details.start.workflow_id, schedule_id, at, RunKind.MANUAL, 0) in taken:
        at += 1
    firing = _Firing(details, now, schedule_id, details.open_runs, taken)
    firing.start(PlannedRun(at, RunKind.MANUAL))
    return firing.finish().details, firing.starts[0], at


def list_passed(details: ScheduleDetails, first: Instant, last: Instant) -> Iterator[Instant]:
    """The nominal times from `first` up to and including `last`, also before the schedule was made where its spec has some.

    None are behind the end of the schedule. Of a cycle of N there are N, or as many as have come: what is left out in a
    pause comes later instead.
    """
    end = _find_end(details)
    for at in list_fires(details.spec, details.armed_at, first - 1):
        if at > last or (end is not None and at >= end):
            return
        yield at


def _find_end(details: ScheduleDetails) -> Instant | None:
    """From when on nominal times are none of the schedule; None: there is no such time beside the end of the spec."""
    if details.remaining == 0:
        return details.next_at
    last = details.spec.find_last(details.armed_at)
    return None if last is None else max(last + 1, details.next_at or 0)


def backfill(
    details: ScheduleDetails,
    now: Instant,
    schedule_id: str,
    times: Collection[Instant],
    *,
    queue: bool,
    taken: Collection[str] = (),
) -> Fired:
    """Start executions for times that have passed: all now, or one after the other. `taken` are others' workflow ids."""
    known = {run.workflow_id for run in details.open_runs}
    firing = _Firing(details, now, schedule_id, details.open_runs, known.union(taken))
    planned = [PlannedRun(at, RunKind.BACKFILL) for at in times]
    if queue:
        firing.waiting += planned
    else:
        for one in planned:
            firing.start(one)
    return firing.finish()


def name_run(template: str, schedule_id: str, at: Instant, kind: RunKind, number: int) -> str:
    """The workflow id of a run. Those of times that may come twice end with what tells them apart."""
    text = to_datetime(at).isoformat().replace("+00:00", "Z")
    named = template.replace("{schedule}", schedule_id).replace("{time}", text)
    if kind is RunKind.BACKFILL:
        return f"{named}-backfill-{number}"
    return f"{named}-manual" if kind is RunKind.MANUAL else named


class _Firing:
    """One look at a schedule: collects what is to be started, and what becomes of the schedule."""

    def __init__(
        self,
        details: ScheduleDetails,
        now: Instant,
        schedule_id: str,
        open_runs: Sequence[OpenRun],
        taken: Collection[str],
    ) -> None:
        self._details = details
        self._now = now
        self._schedule_id = schedule_id
        self._taken = taken
        self._open = list(open_runs)
        self.waiting = list(details.waiting)
        self.starts: list[Start] = []
        self._ends: tuple[OpenRun, ...] = ()
        self._recent = list(details.recent)
        self._runs = details.runs
        self._skipped = details.skipped
        self._refused = details.refused

    def fire(self, due: DueTimes | None) -> Fired:
        if self._details.overlap is Overlap.ALLOW and len(self._details.open_runs) >= MOST_UNCHECKED and not self.waiting:
            self._open = self._open[-MOST_ALLOWED:]
        if due is not None:
            self._details = due.details
            for at in due.times:
                self._overlap(PlannedRun(at))
        is_paused = due is None
        while not self._open and (planned := self._take_waiting(is_paused=is_paused)) is not None:
            self.start(planned)
        has_timed = not is_paused and any(one.kind is RunKind.TIME for one in self.waiting)
        if has_timed and self._details.overlap in (Overlap.CANCEL_RUNNING, Overlap.TERMINATE_RUNNING):
            self._ends = tuple(run for run in self._open if run.kind is not RunKind.BACKFILL)
        return self.finish()

    def _take_waiting(self, *, is_paused: bool) -> PlannedRun | None:
        """The first fire that waits and may begin, which then waits no more."""
        for number, planned in enumerate(self.waiting):
            if not is_paused or planned.kind is not RunKind.TIME:
                return self.waiting.pop(number)
        return None

    def _overlap(self, planned: PlannedRun) -> None:
        overlap = self._details.overlap
        if overlap is Overlap.ALLOW or not (self._open or self.waiting):
            self.start(planned)
        elif overlap is Overlap.SKIP or (overlap is Overlap.QUEUE and len(self.waiting) >= MOST_WAITING):
            self._skipped += 1
        elif overlap is Overlap.QUEUE:
            self.waiting.append(planned)
        else:
            self._skipped += sum(one.kind is RunKind.TIME for one in self.waiting)
            self.waiting = [*(one for one in self.waiting if one.kind is not RunKind.TIME), planned]

    def start(self, planned: PlannedRun) -> None:
        details, at, kind = self._details, planned.at, planned.kind
        workflow_id = name_run(details.start.workflow_id, self._schedule_id, at, kind, self._runs + 1)
        if workflow_id in self._taken:
            self._refused += 1
            self._recent.insert(0, ScheduledRun(at, self._now, workflow_id, "", kind, is_refused=True))
            return
        self._runs += 1
        execution_id = make_execution_id(self._now, derive_entropy(details.uid, self._runs))
        self.starts.append(replace(details.start, workflow_id=workflow_id, execution_id=execution_id))
        self._recent.insert(0, ScheduledRun(at, self._now, workflow_id, execution_id, kind))
        self._open.append(OpenRun(workflow_id, execution_id, kind))

    def finish(self) -> Fired:
        details = replace(
            self._details,
            waiting=tuple(self.waiting),
            recent=tuple(self._recent[:RECENT]),
            runs=self._runs,
            skipped=self._skipped,
            refused=self._refused,
            open_runs=tuple(self._open[-MOST_WAITING:]),
        )
        return Fired(details, tuple(self.starts), self._ends)
