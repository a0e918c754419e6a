"""Fires schedules: waits until one is due, and starts what it says, exactly once on any number of nodes.

Theory of operation
-------------------
Nothing is polled. A node arms one alarm for the earliest schedule whose workflow it has (`find_next_schedule`), and looks:

- when the alarm rings, when it opens, and when its definitions change;
- when a schedule was made or changed, here or on another node (`WakeReason.SCHEDULES`);
- with a heartbeat that shows one which fires before its alarm: a wake-up may have been lost;
- while fires wait for executions to end: when some ended, here or elsewhere, and when a node was found dead; with a
  heartbeat, too, if other nodes held all schedules whose fires wait.

A look is a transaction: it holds up to `BATCH` schedules that are due, skipping those that other nodes hold, asks which of
their executions are open, lets `core.schedules.fire` decide, and commits the schedules together with the starts. A crash
before the commit leaves everything due; after it, nothing is left to do. If nobody knows whether it was committed, the next
look tells: what was is not due any more. Looks go on until nothing is due.

A schedule that cannot be read here, or whose workflow this node, alone on its store, does not have, is left alone (`_skip`)
until definitions change. To end executions, as an overlap policy may want it, is asked for after the commit, once by each
process; whoever dies in between leaves a fire that waits, and the next node asks again. They are named by their execution
ids; one whose start has not been taken yet is named by its workflow id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.envelopes import Cancel, Start, Terminate
from holdfast.core.instants import SECOND, Instant
from holdfast.core.schedules import Fired, OpenRun, Overlap, ScheduleDetails, ScheduleState, fire
from holdfast.engine.clock import call_after
from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.schedules.open_runs import FoundRun, follow_runs
from holdfast.engine.schedules.rows import change_row, make_start_row
from holdfast.errors import CorruptStore, NewerFormat, OutcomeUnknown, StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.contract import UnroutedWrite

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store, Transaction
    from holdfast.store.schedules import ScheduleKey, ScheduleOutlook, ScheduleRow

log = logging.getLogger("holdfast.engine")

BATCH: Final = 200
"""How many schedules one transaction fires at most."""
SHORTEST_PAUSE: Final = SECOND // 20
LONGEST_PAUSE: Final = 5 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRunnerDeps:
    """What a schedule runner works with."""

    store: Store
    catalog: Catalog
    routes: Routes
    clock: Clock
    node: str
    submit: Callable[[AnyRequest], None]
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    on_put: Callable[[], None]
    """Starts were put into the inbox."""
    on_changed: Callable[[], None]
    """A schedule was changed, or fires of one began to wait: other nodes should know."""


class ScheduleRunner:
    """Fires the schedules of one node's workflows, for as long as the engine is open."""

    def __init__(self, deps: ScheduleRunnerDeps) -> None:
        self._deps = deps
        self._clock = deps.clock
        self._alarm: Alarm | None = None
        self._retry: Alarm | None = None
        self._is_started = False
        self._is_busy = False
        self._looks_again = False
        self._may_wait = True
        """Whether fires of some schedule may wait for executions to end."""
        self._awaited: set[tuple[str, str]] = set()
        """(org, workflow id) of the executions for which fires wait, as of the last look."""
        self._ended: set[tuple[str, str] | None] | None = None
        """What ended during a look at what waits, which may have read it as open; None in it: some did, on another node."""
        self._told: set[tuple[str, str]] = set()
        """(org, execution id) of executions that this process asked to end, and for which fires wait."""
        self._skip: set[ScheduleKey] = set()
        self._pause = SHORTEST_PAUSE
        self._armed_for: Instant | None = None
        """When the alarm rings, if it is set."""

    # --- when to look ---

    def start(self) -> None:
        """Begin to fire; what came due meanwhile is fired at once, as the catch-up windows say."""
        self._is_started = True
        self.look()

    def stop(self) -> None:
        """Fire no more. A look that is under way ends by itself."""
        self._is_started = False
        self._disarm()

    def look(self, *, may_wait: bool = True) -> None:
        """Look for what is due, now; `may_wait`: also for what waits."""
        self._may_wait = self._may_wait or may_wait
        if not self._is_started:
            return
        if self._is_busy:
            self._looks_again = True
            return
        self._is_busy = True
        self._disarm()
        self._deps.spawn(self._run())

    def note_changed(self) -> None:
        """A schedule was made, changed or run by a call here: look, and let other nodes look."""
        self.look()
        self._deps.on_changed()

    def note_definitions(self) -> None:
        """Definitions were added or removed: what was left alone for want of them may fire now."""
        self._skip.clear()
        self.look()

    def note_went_back(self) -> None:
        """The database is at an earlier state: what was asked to end may be open again, and what fired may be due."""
        self._told.clear()
        self._skip.clear()
        self.look()

    @property
    def awaits_ends(self) -> bool:
        """Whether fires may wait for executions to end, as far as is known here."""
        return bool(self._awaited) or self._ended is not None

    def note_ends(self, ended: Collection[tuple[str, str]] | None = None) -> None:
        """Executions ended, as (org, workflow id); None: some did, on another node."""
        if self._ended is not None:
            self._ended.update((None,) if ended is None else ended)
        if self._awaited and (ended is None or not self._awaited.isdisjoint(ended)):
            self.look()

    def on_heartbeat(self, next_due: Instant | None) -> None:
        """Look if a schedule fires before this node's alarm, or if fires wait: for what nobody told of.

        `next_due`: when the earliest schedule fires, of all that this node takes.
        """
        is_early = next_due is not None and (self._armed_for is None or next_due < self._armed_for)
        if is_early or self._awaited or self._may_wait:
            self.look(may_wait=bool(self._awaited))

    def _disarm(self) -> None:
        for alarm in (self._alarm, self._retry):
            if alarm is not None:
                alarm.cancel()
        self._alarm = self._retry = self._armed_for = None

    # --- looking ---

    async def _run(self) -> None:
        try:
            while self._is_started:
                self._looks_again = False
                try:
                    await self._look_once()
                except OutcomeUnknown:  # what was committed is not due any more, and may wait
                    self._may_wait = True
                    self._deps.on_put()
                    self._deps.on_changed()
                    continue
                if not self._looks_again:
                    break
            self._pause = SHORTEST_PAUSE
        except StoreError as error:
            self._rest_after(error)
        finally:
            self._is_busy = False

    def _rest_after(self, error: StoreError) -> None:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        if pause >= SECOND:
            log.warning(
                "node %s could not fire schedules, and tries again in %d s: %s",
                self._deps.node,
                pause // SECOND,
                error,
                extra=tag(LogEvent.SCHEDULES_FAILED, node=self._deps.node),
            )
        if self._is_started:
            self._retry = call_after(self._clock, pause, self.look)

    async def _look_once(self) -> None:
        may_wait, self._may_wait = self._may_wait, False
        outlook = await self._ask()
        while outlook.due is not None and outlook.due <= self._clock.now() and self._is_started:
            if not await self._fire_batch():  # other nodes hold all of it, and are quick, or dead
                self._retry = call_after(self._clock, SHORTEST_PAUSE, self.look)
                break
            outlook = await self._ask()
        if not outlook.has_waiting:
            self._awaited.clear()
            self._told.clear()
        elif may_wait or self._may_wait:
            await self._look_at_waiting()
            outlook = await self._ask()
        if outlook.due is not None and self._retry is None and self._is_started:
            self._alarm, self._armed_for = self._clock.call_at(outlook.due, self._on_alarm), outlook.due

    async def _ask(self) -> ScheduleOutlook:
        return await self._deps.store.look_at_schedules(self._deps.routes.takes, self._skip)

    def _on_alarm(self) -> None:
        self._alarm = self._armed_for = None
        self.look(may_wait=False)

    async def _fire_batch(self) -> bool:
        """Fire up to a batch of what is due; whether there was any that nobody else holds."""
        transaction = await self._deps.store.begin()
        try:
            now = self._clock.now()
            rows = await transaction.claim_schedules(now, self._deps.routes.takes, self._skip, BATCH)
            waits = await self._fire(transaction, rows, now)
        except BaseException:
            await transaction.rollback()
            raise
        # Others that looked at what waits meanwhile could not hold these schedules, and await nothing for them.
        self._awaited |= {(org, run.workflow_id) for org, run in waits}
        return bool(rows)

    async def _look_at_waiting(self) -> None:
        """Let fires begin that waited for executions which have ended."""
        awaited: set[tuple[str, OpenRun]] = set()
        ended = self._ended = set()
        after, has_rows, self._may_wait = ("", ""), False, False
        try:
            while True:
                rows, waits = await self._fire_waiting(after)
                awaited |= waits
                has_rows = has_rows or bool(rows)
                if len(rows) < BATCH:
                    break
                after = rows[-1].key
        finally:
            self._ended = None
        self._awaited = {(org, run.workflow_id) for org, run in awaited}
        self._told &= {(org, run.execution_id) for org, run in awaited}
        if not awaited and not has_rows:  # others hold all of it, and may leave it waiting: the next heartbeat looks again
            self._may_wait = True
        if awaited and (None in ended or not self._awaited.isdisjoint(ended)):
            self.look()

    async def _fire_waiting(self, after: ScheduleKey) -> tuple[Sequence[ScheduleRow], set[tuple[str, OpenRun]]]:
        """Look at up to a batch of schedules whose fires wait: those, and the executions for which they go on waiting."""
        transaction = await self._deps.store.begin()
        try:
            rows = await transaction.claim_waiting_schedules(self._deps.routes.takes, after, BATCH)
            return rows, await self._fire(transaction, rows, self._clock.now())
        except BaseException:
            self._may_wait = True
            await transaction.rollback()
            raise

    async def _fire(self, transaction: Transaction, rows: Collection[ScheduleRow], now: Instant) -> set[tuple[str, OpenRun]]:
        """Fire schedules that the transaction holds, and commit; the executions (by org) for which fires wait then."""
        known = [(row, details) for row in rows if (details := self._read(row)) is not None]
        decided, registered = await self._decide(transaction, known, now)
        fired = [(row, details, decided[row.key]) for row, details in known if decided[row.key].details != details]
        if not fired:
            await transaction.rollback()
        else:
            starts = [make_start_row(row.org, start, now) for row, _, found in fired for start in found.starts]
            await transaction.write_schedules([change_row(row, found.details, now) for row, _, found in fired])
            if starts:
                await transaction.write([], UnroutedWrite(outgoing=starts))
            await transaction.commit()
            if starts:
                self._deps.on_put()
            if any(found.details.waiting and not details.waiting for _, details, found in fired):
                self._may_wait = True
                self._deps.on_changed()
        waits: set[tuple[str, OpenRun]] = set()
        for row, _ in known:
            found = decided[row.key]
            if found.details.awaits_ends(is_paused=_is_paused(row)):
                self._end_running(row.org, found, registered)
                waits |= {(row.org, run) for run in found.details.open_runs}
        return waits

    async def _decide(
        self, transaction: Transaction, known: Collection[tuple[ScheduleRow, ScheduleDetails]], now: Instant
    ) -> tuple[dict[ScheduleKey, Fired], set[str]]:
        """What each schedule does, as far as nobody else has the workflow ids of its starts, and none of its own is open.

        What would be started if nothing were open is asked for too, with one statement; so most decide once. The second are
        the execution ids of those of its own that have a row.
        """
        renewed = [(row, self._renew(row.org, details)) for row, details in known]
        decided = {row.key: _fire_one(row, details, now, (), ()) for row, details in renewed}
        asked: set[tuple[str, str]] = set()
        taken: set[tuple[str, str]] = set()
        own: dict[tuple[str, OpenRun], FoundRun] = {}
        while True:
            pairs = {(row.org, one) for row, details in renewed for one in _list_ids(details, decided[row.key])} - asked
            if not pairs:
                return decided, {found.run.execution_id for found in own.values() if found.is_registered}
            found = await transaction.find_open_ids(pairs)
            if not asked:
                runs = [(row.org, run) for row, details in renewed for run in details.open_runs]
                own = await follow_runs(transaction, [(org, run) for org, run in runs if (org, run.workflow_id) in found])
            asked |= pairs
            taken |= found
            used = set(taken)
            for row, details in renewed:
                if not used.isdisjoint((row.org, one) for one in _list_ids(details, decided[row.key])):
                    open_runs = [own[row.org, run].run for run in details.open_runs if (row.org, run) in own]
                    open_ids = {one for org, one in used if org == row.org}
                    decided[row.key] = _fire_one(row, details, now, open_runs, open_ids)
                used |= {(row.org, start.workflow_id) for start in decided[row.key].starts}

    def _read(self, row: ScheduleRow) -> ScheduleDetails | None:
        """A schedule's details; None: it is left alone until definitions change."""
        try:
            details = codec.decode_schedule(row.details)
        except (CorruptStore, NewerFormat) as error:
            log.warning(
                "schedule '%s' of org '%s' is left alone: %s",
                row.schedule_id,
                row.org,
                error,
                extra=tag(LogEvent.SCHEDULES_FAILED, node=self._deps.node),
            )
            self._skip.add(row.key)
            return None
        if not self._deps.routes.takes_all or self._find_version(row.org, details.start) is not None:
            return details
        self._skip.add(row.key)
        return None

    def _find_version(self, org: str, start: Start) -> str | None:
        catalog = self._deps.catalog
        if start.pinned:
            found = catalog.find_version(start.workflow, start.code_version, org)
        else:
            found = catalog.find_newest(start.workflow, org)
        return None if found is None else found.version

    def _renew(self, org: str, details: ScheduleDetails) -> ScheduleDetails:
        """What is not pinned starts with the newest version that is here."""
        version = self._find_version(org, details.start)
        if version is None or version == details.start.code_version:
            return details
        return replace(details, start=replace(details.start, code_version=version))

    def _end_running(self, org: str, found: Fired, registered: Collection[str]) -> None:
        is_ordered = found.details.overlap is Overlap.TERMINATE_RUNNING
        reason = "the next fire of its schedule"
        for run in found.ends:
            if (org, run.execution_id) not in self._told:
                self._told.add((org, run.execution_id))
                order = Terminate(reason=reason) if is_ordered else Cancel(reason=reason)
                if run.execution_id in registered:
                    self._deps.submit(Request(org, order, execution_id=run.execution_id))
                else:
                    self._deps.submit(Request(org, order, workflow_id=run.workflow_id))


def _is_paused(row: ScheduleRow) -> bool:
    return row.state == ScheduleState.PAUSED


def _fire_one(
    row: ScheduleRow, details: ScheduleDetails, now: Instant, open_runs: Sequence[OpenRun], taken: Collection[str]
) -> Fired:
    return fire(details, now, row.schedule_id, open_runs, taken, is_paused=_is_paused(row))


def _list_ids(details: ScheduleDetails, fired: Fired) -> list[str]:
    """The workflow ids on which it depends what a schedule does: of what it started, and of what it would start."""
    return [*(run.workflow_id for run in details.open_runs), *(start.workflow_id for start in fired.starts)]
