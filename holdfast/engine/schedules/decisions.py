"""What the schedules of one transaction do: which are gone through, what each starts, and what becomes of its row.

Each schedule is decided on its own. One that cannot be computed, whatever the reason (a time zone that this machine does not
know, a spec that another version wrote), is handed to `on_failure`, and the others go on. Together they go through no more
than about `MOST_TIMES_TOGETHER` nominal times, since the transaction is open meanwhile: those that are left stay due.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.core.schedules import DueTimes, Fired, OpenRun, ScheduleDetails, ScheduleState, find_due, find_due_times, fire
from holdfast.engine.schedules.open_runs import FoundRun, follow_runs
from holdfast.engine.schedules.rows import change_row, make_start_row

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.store.contract import Transaction
    from holdfast.store.rows import InboxRow
    from holdfast.store.schedules import ScheduleKey, ScheduleRow

MOST_TIMES_TOGETHER: Final = 1_000
"""After how many nominal times a transaction begins with no other schedule."""

T = TypeVar("T")


class Decision:
    """What one schedule of a transaction does."""

    def __init__(self, row: ScheduleRow, stored: ScheduleDetails, details: ScheduleDetails, now: Instant) -> None:
        self.row = row
        self._stored = stored
        self._details = details
        """As stored, but with the version of the workflow that is to be started."""
        self._now = now
        self.is_paused = row.state == ScheduleState.PAUSED
        self._due: DueTimes | None = None if self.is_paused else find_due_times(details, now)
        self.fired: Fired = self._fire(() if self.needs_open_runs else details.open_runs, ())
        self.new_row: ScheduleRow | None = None
        """The row as it is to be written; None: it stays."""
        self.start_rows: list[InboxRow] = []

    def _fire(self, open_runs: Sequence[OpenRun], taken: Collection[str]) -> Fired:
        schedule_id, is_paused = self.row.schedule_id, self.is_paused
        return fire(self._details, self._now, schedule_id, open_runs, taken, is_paused=is_paused, due=self._due)

    @property
    def needs_open_runs(self) -> bool:
        """Whether it depends on which of its executions are open what it does."""
        return self._details.needs_open_runs

    @property
    def open_runs(self) -> Sequence[OpenRun]:
        """Its executions that may be open, as far as that matters."""
        return self._details.open_runs if self.needs_open_runs else ()

    @property
    def times(self) -> int:
        """How many nominal times it goes through."""
        return 0 if self._due is None else self._due.count

    @property
    def begins_to_wait(self) -> bool:
        """Whether fires wait now, and none did before."""
        return bool(self.fired.details.waiting and not self._stored.waiting)

    @property
    def awaits_ends(self) -> bool:
        """Whether fires wait that may begin as soon as nothing is open."""
        return self.fired.details.awaits_ends(is_paused=self.is_paused)

    @property
    def is_behind(self) -> bool:
        """Whether it is still due afterwards."""
        due = None if self.is_paused else find_due(self.fired.details)
        return due is not None and due <= self._now

    def list_ids(self) -> list[str]:
        """The workflow ids on which it depends what is done: of what it started, and of what it would start."""
        return [*(run.workflow_id for run in self.open_runs), *(start.workflow_id for start in self.fired.starts)]

    def decide_again(self, own: dict[tuple[str, OpenRun], FoundRun], open_ids: Collection[str]) -> None:
        """Decide with what is open: those of its own executions that are, and workflow ids that anybody has."""
        org = self.row.org
        if self.needs_open_runs:
            runs: Sequence[OpenRun] = [own[org, run].run for run in self._details.open_runs if (org, run) in own]
        else:
            runs = self._details.open_runs
        self.fired = self._fire(runs, open_ids)

    def make_rows(self) -> None:
        """Make the rows that are to be written, if there is a change.

        A row that says another due time than its details is written, too: it would be claimed again and again.
        """
        new_row = change_row(self.row, self.fired.details, self._now)
        if self.row.due != new_row.due or self.fired.details != self._stored:
            self.new_row = new_row
            self.start_rows = [make_start_row(self.row.org, start, self._now) for start in self.fired.starts]


@dataclass(frozen=True, slots=True)
class BatchDecisions:
    """What the schedules of a transaction do."""

    decisions: Sequence[Decision]
    looked_at: int
    """How many of the rows were looked at, from the first; the others are left for another transaction."""
    registered: Collection[str]
    """The execution ids of those of their executions that have a row."""


async def decide_batch(
    transaction: Transaction,
    rows: Sequence[ScheduleRow],
    decide: Callable[[ScheduleRow], Decision | None],
    on_failure: Callable[[ScheduleRow, Exception], None],
) -> BatchDecisions:
    """What each schedule does, as far as nobody else has the workflow ids of its starts, and none of its own is open.

    `decide` makes the first decision, as if nothing were open; None: the schedule is left alone. What would be started then
    is asked for too, with one statement; so most decide once.
    """
    found: dict[ScheduleKey, Decision] = {}
    times, looked_at = 0, 0

    def attempt(row: ScheduleRow, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this schedule alone
            found.pop(row.key, None)
            on_failure(row, error)
            return None

    for row in rows:
        if times >= MOST_TIMES_TOGETHER:
            break
        looked_at += 1
        if (decision := attempt(row, partial(decide, row))) is not None:
            found[row.key] = decision
            times += decision.times
    asked: set[tuple[str, str]] = set()
    taken: set[tuple[str, str]] = set()
    own: dict[tuple[str, OpenRun], FoundRun] = {}
    while pairs := {(org, one) for (org, _), decision in found.items() for one in decision.list_ids()} - asked:
        open_ids = await transaction.find_open_ids(pairs)
        if not asked:
            runs = [(org, run) for (org, _), decision in found.items() for run in decision.open_runs]
            own = await follow_runs(transaction, [(org, run) for org, run in runs if (org, run.workflow_id) in open_ids])
        asked |= pairs
        taken |= open_ids
        used = set(taken)
        for decision in list(found.values()):
            row = decision.row
            if not used.isdisjoint((row.org, one) for one in decision.list_ids()):
                of_org = {one for org, one in used if org == row.org}
                attempt(row, partial(decision.decide_again, own, of_org))
            used |= {(row.org, start.workflow_id) for start in decision.fired.starts}
    for decision in list(found.values()):
        attempt(decision.row, decision.make_rows)
    registered = {one.run.execution_id for one in own.values() if one.is_registered}
    return BatchDecisions(list(found.values()), looked_at, registered)
