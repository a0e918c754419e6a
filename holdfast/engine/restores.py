"""What a node does when the database went back to an earlier state: it forgets what it remembers of a later one.

Programs in memory may be ahead of their rows, or come from a past that is no more; so may be what was replayed ahead, the
ends of executions, the orphans that were fed in, and what the node knows of offers, of what it removed, of executions that
it asked to end for schedules, of rows of the outbox, of pauses and of definitions. All that is cheap to find out again. What
cannot be found out again, which attempts run here, is compared with the rows (`engine.activities.reconciling`), and whoever
waits for an execution that is gone is told.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.engine.regress import Regress
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.activities.offers import OfferTaker
    from holdfast.engine.activities.reconciling import Reconciler
    from holdfast.engine.nodes.retention import AnyRetention
    from holdfast.engine.nodes.take_over import TakeOver
    from holdfast.engine.processes.known_definitions import KnownDefinitions
    from holdfast.engine.publishing.publisher import Publisher
    from holdfast.engine.results import RemoteResults, ResultWaiters
    from holdfast.engine.schedules.runner import ScheduleRunner
    from holdfast.engine.turns.pauses import KnownPauses
    from holdfast.engine.turns.program_cache import ProgramCache
    from holdfast.engine.turns.pump import Pump

log = logging.getLogger("holdfast.engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoresDeps:
    """The parts of an engine that remember something of the database, or compare it."""

    node: str
    cache: ProgramCache
    pump: Pump
    result_waiters: ResultWaiters
    remote_results: RemoteResults
    offers: OfferTaker
    take_over: TakeOver
    reconciler: Reconciler
    retentions: Sequence[AnyRetention]
    schedules: ScheduleRunner
    publisher: Publisher
    pauses: KnownPauses
    definitions: KnownDefinitions


class Restores:
    """Lets one node go on with a database that was restored under it, or replaced by a replica that lagged."""

    def __init__(self, deps: RestoresDeps) -> None:
        self._deps = deps
        self.noticed: list[Regress] = []
        """By what this node noticed that the database went back, each time."""

    def on_went_back(self, how: Regress) -> None:
        """The database is at an earlier state: forget what is remembered of a later one, and compare everything with it."""
        deps = self._deps
        is_told = how is Regress.EXECUTION and deps.reconciler.is_comparing  # one restore shows in many executions
        if how is not Regress.REMOVED and not is_told:
            self.noticed.append(how)
            log.warning(
                "node %s finds the database at an earlier state than it was: %s. It was restored, or a replica that lagged "
                "has taken over. What was committed since is lost, also calls that were answered. The node drops what it "
                "remembers, and begins anew what by its rows it runs and does not: see docs/operations.md, 'When the "
                "database goes back'",
                deps.node,
                how,
                extra=tag(LogEvent.DATABASE_WENT_BACK, node=deps.node),
            )
        deps.cache.clear()
        deps.pump.note_went_back()
        deps.result_waiters.forget_recent()
        deps.offers.note_went_back()
        deps.take_over.forget_fed_in()
        deps.reconciler.note_went_back()
        for retention in deps.retentions:
            retention.note_went_back()
        deps.schedules.note_went_back()
        deps.publisher.note_went_back()
        deps.definitions.note_went_back()
        deps.pauses.note_went_back()

    async def reconcile(self) -> None:
        """Compare with the store what is in memory: what runs here, and what somebody waits for."""
        await self._deps.pauses.try_refresh()
        await self._deps.reconciler.compare()
        await self._deps.remote_results.look_for_missing()
