"""Schedules: what fires when, as a pure function of a schedule, the time, and which of its executions are open.

Theory of operation
-------------------
A schedule knows its next *nominal* time (`next_at`), which depends on its spec alone, and is *due* then, or up to `jitter`
later: by how much depends on the schedule and on that time, so that every node computes the same. `fire` goes through all
nominal times that are due:

- One that is due for longer than the catch-up window is *missed*: nobody was there to fire it in time. It is only counted.
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

What a schedule started is known by its execution id (`OpenRun`), not by its workflow id, which anybody may use again.
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
    """What it started and was open when it was last looked at."""
    waiting: tuple[PlannedRun, ...] = ()
    paused_at: Instant | None = None
    """Since when it is paused; None: it is not."""
    pauses: tuple[Pause, ...] = ()
    """The pauses within which its next nominal times may be due."""

    @property
    def is_over(self) -> bool:
        """Whether no nominal time is left."""
        return self.next_at is None or self.remaining == 0

    def awaits_ends(self, *, is_paused: bool) -> bool:
        """Whether fires wait that may begin as soon as nothing is open: those at nominal times not during a pause."""
        return any(not is_paused or one.kind is not RunKind.TIME for one in self.waiting)


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
    return replace(details, armed_at=now, next_at=first, remaining=remaining, pauses=())


def pause(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """The schedule as it is paused from now on."""
    return replace(details, paused_at=now)


def resume(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """The schedule after a pause: what was due within it is left out, and does not count."""
    begin, found = details.paused_at, details.next_at
    details = replace(details, paused_at=None)
    if begin is None or found is None:
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
    found = details.spec.next_after(details.armed_at, after)
    if found is None:
        return replace(details, next_at=None, remaining=None if details.remaining is None else 0, pauses=())
    pauses = tuple(one for one in details.pauses if one.end >= found) if details.pauses else ()
    return replace(details, next_at=found, pauses=pauses)


def find_due(details: ScheduleDetails) -> Instant | None:
    """When the next fire is due: its nominal time and its share of the jitter; None: there is none."""
    if details.next_at is None or details.remaining == 0:
        return None
    if not details.jitter_us:
        return details.next_at
    return details.next_at + derive_entropy(details.uid, details.next_at) % (details.jitter_us + 1)


def fire(
    details: ScheduleDetails,
    now: Instant,
    schedule_id: str,
    open_runs: Sequence[OpenRun],
    taken: Collection[str],
    *,
    is_paused: bool = False,
) -> Fired:
    """Go through what is due now.

    `open_runs` are those of its executions that are open, `taken` workflow ids under which anything is open, whoever started
    it. If the schedule is paused, only fires of backfills that wait may begin.
    """
    return _Firing(details, now, schedule_id, open_runs, taken).fire(is_paused=is_paused)


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

    def fire(self, *, is_paused: bool) -> Fired:
        if not is_paused:
            self._go_through_due()
        while not self._open and (planned := self._take_waiting(is_paused=is_paused)) is not None:
            self.start(planned)
        has_timed = not is_paused and any(one.kind is RunKind.TIME for one in self.waiting)
        if has_timed and self._details.overlap in (Overlap.CANCEL_RUNNING, Overlap.TERMINATE_RUNNING):
            self._ends = tuple(run for run in self._open if run.kind is not RunKind.BACKFILL)
        return self.finish()

    def _go_through_due(self) -> None:
        """Start, skip, count or let wait what is due: up to so many nominal times, and the rest with the next look."""
        details, missed, fired = self._details, 0, 0
        first = details.next_at or 0
        window = max(details.catch_up_us, SHORTEST_CATCH_UP)
        for _ in range(MOST_TIMES):
            if (due := find_due(details)) is None or due > self._now or fired == MOST_AT_ONCE:
                break
            if (within := _find_pause(details)) is not None:
                details = _leave_out(details, within)
                continue
            at = details.next_at or 0
            if self._now - max(due, details.armed_at) <= window:
                fired += 1
                self._overlap(PlannedRun(at))
            else:
                missed += 1
            remaining = None if details.remaining is None else details.remaining - 1
            details = _move_on(replace(details, remaining=remaining), at)
        if missed == MOST_TIMES and details.next_at is not None and details.remaining is None:
            oldest = self._now - window - details.jitter_us - 1
            if oldest - details.next_at > MOST_MISSED_LOOKS * (details.next_at - first):
                details = _move_on(details, oldest)
        self._details = replace(details, missed=details.missed + missed, fired=details.fired + fired)

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
        keeps = self._details.overlap is not Overlap.ALLOW or bool(self.waiting)
        details = replace(
            self._details,
            waiting=tuple(self.waiting),
            recent=tuple(self._recent[:RECENT]),
            runs=self._runs,
            skipped=self._skipped,
            refused=self._refused,
            open_runs=tuple(self._open[-MOST_WAITING:]) if keeps else (),
        )
        return Fired(details, tuple(self.starts), self._ends)
