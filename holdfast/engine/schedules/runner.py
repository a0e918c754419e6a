"""Fires schedules: waits until one is due, and starts what it says, exactly once on any number of nodes.

Theory of operation
-------------------
Nothing is polled. A node arms one alarm for the earliest schedule whose workflow it has (`find_next_schedule`), and looks:

- when the alarm rings, when it opens, and when its definitions change;
- when a schedule was made or changed, here or on another node (`WakeReason.SCHEDULES`);
- with a heartbeat that shows one which fires before its alarm: a wake-up may have been lost;
- while fires wait for executions to end: when some ended, here or elsewhere, and when a node was found dead; with a
  heartbeat, too, if other nodes held all schedules whose fires wait.

A look is a series of transactions (`firing`), which goes on until nothing is due. What is late takes turns: a schedule that
is still due after its turn is passed over until all others had theirs, so one that is late by days does not hold up those
that are due now. Whatever goes wrong, the look is repeated later; what concerns one schedule alone stops none of the
others.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from holdfast.core.instants import SECOND, Instant
from holdfast.engine.clock import call_after
from holdfast.engine.schedules.firing import BATCH, FiredBatch, ScheduleFiring, ScheduleRunnerDeps
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.core.schedules import OpenRun
    from holdfast.engine.clock import Alarm
    from holdfast.store.schedules import ScheduleOutlook

log = logging.getLogger("holdfast.engine")

SHORTEST_PAUSE: Final = SECOND // 20
LONGEST_PAUSE: Final = 5 * SECOND


class ScheduleRunner:
    """Fires the schedules of one node's workflows, for as long as the engine is open."""

    def __init__(self, deps: ScheduleRunnerDeps) -> None:
        self._deps = deps
        self._clock = deps.clock
        self._firing = ScheduleFiring(deps)
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
        self._firing.note_definitions()
        self.look()

    def note_went_back(self) -> None:
        """The database is at an earlier state: what was asked to end may be open again, and what fired may be due."""
        self._firing.note_went_back()
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
        except Exception as error:  # noqa: BLE001 - the last resort: without an alarm, no schedule would ever fire again
            self._rest_after(error)
        finally:
            self._is_busy = False

    def _rest_after(self, error: Exception) -> None:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        is_expected = isinstance(error, StoreError)
        if pause >= SECOND or not is_expected:
            log.warning(
                "node %s could not fire schedules, and tries again in %.2f s: %s",
                self._deps.node,
                pause / SECOND,
                error,
                exc_info=None if is_expected else error,
                extra=tag(LogEvent.SCHEDULES_FAILED, node=self._deps.node),
            )
        if self._is_started:
            self._retry = call_after(self._clock, pause, self.look)

    async def _look_once(self) -> None:
        may_wait, self._may_wait = self._may_wait, False
        may_wait = self._firing.take_back() or may_wait
        self._firing.begin_round()
        outlook = await self._ask()
        while self._is_started:
            if outlook.due is not None and outlook.due <= self._clock.now():
                if not await self._fire_due() and not self._firing.begin_round():
                    # Other nodes hold all of it, and are quick, or dead.
                    self._retry = call_after(self._clock, SHORTEST_PAUSE, self.look)
                    break
            elif not self._firing.begin_round():
                break
            elif outlook.has_waiting and (may_wait or self._may_wait):
                may_wait = False
                await self._look_at_waiting()
            outlook = await self._ask()
        if not outlook.has_waiting:
            self._awaited.clear()
            self._firing.keep_told(())
        elif may_wait or self._may_wait:
            await self._look_at_waiting()
            outlook = await self._ask()
        self._arm(outlook)

    def _arm(self, outlook: ScheduleOutlook) -> None:
        """Set the alarm for the next schedule that is due, or for the end of the time for which one is put aside."""
        dues = [one for one in (outlook.due, self._firing.aside_until) if one is not None]
        if dues and self._retry is None and self._is_started:
            self._armed_for = min(dues)
            self._alarm = self._clock.call_at(self._armed_for, self._on_alarm)

    async def _ask(self) -> ScheduleOutlook:
        return await self._deps.store.look_at_schedules(self._deps.routes.takes, self._firing.list_skipped())

    def _on_alarm(self) -> None:
        self._alarm = self._armed_for = None
        self.look(may_wait=False)

    async def _fire_due(self) -> bool:
        """Fire up to a batch of what is due; whether there was any that nobody else holds."""
        batch = await self._firing.fire_due()
        self._note_batch(batch)
        # Others that looked at what waits meanwhile could not hold these schedules, and await nothing for them.
        self._awaited |= {(org, run.workflow_id) for org, run in batch.waits}
        return bool(batch.looked_at)

    def _note_batch(self, batch: FiredBatch) -> None:
        if batch.begins_to_wait:
            self._may_wait = True
            self._deps.on_changed()

    async def _look_at_waiting(self) -> None:
        """Let fires begin that waited for executions which have ended."""
        awaited: set[tuple[str, OpenRun]] = set()
        ended = self._ended = set()
        after, has_rows, self._may_wait = ("", ""), False, False
        try:
            while True:
                batch = await self._firing.fire_waiting(after)
                self._note_batch(batch)
                awaited |= batch.waits
                has_rows = has_rows or bool(batch.looked_at)
                if batch.is_all and len(batch.looked_at) < BATCH:
                    break
                after = batch.looked_at[-1].key
        except BaseException:
            self._may_wait = True
            raise
        finally:
            self._ended = None
        self._awaited = {(org, run.workflow_id) for org, run in awaited}
        self._firing.keep_told({(org, run.execution_id) for org, run in awaited})
        if not awaited and not has_rows:  # others hold all of it, and may leave it waiting: the next heartbeat looks again
            self._may_wait = True
        if awaited and (None in ended or not self._awaited.isdisjoint(ended)):
            self.look()
