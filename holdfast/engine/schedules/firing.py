"""The transactions that fire schedules, and which schedules are left out of them.

Theory of operation
-------------------
A transaction holds up to `BATCH` schedules that are due, skipping those that other
nodes hold, asks which of their executions are open, lets `core.schedules.fire` decide, and commits the schedules together
with the starts. A crash before the commit leaves everything due; after it, nothing is left to do. If nobody knows whether
it was committed, the next look tells: what was is not due any more.

After a downtime many nominal times are due at once. A transaction goes through about a thousand of them (`decisions`), and
then lets others at the database. A schedule that has more is passed over (`_behind`) until the next round.

One schedule never stops the others. One that cannot be computed or committed is logged and put aside (`_aside`) for half a
minute; if a transaction fails as a whole, and the store is not to blame, each of its schedules gets one of its own, which
tells whose fault it was. One that cannot be read here, or whose workflow this node, alone on its store, does not have, is
left alone (`_skip`) until definitions change.

To end executions, as an overlap policy may want it, is asked for after the commit, once by each
process; whoever dies in between leaves a fire that waits, and the next node asks again. They are named by their execution
ids; one whose start has not been taken yet is named by its workflow id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from holdfast.core.envelopes import Cancel, Start, Terminate
from holdfast.core.instants import SECOND, Instant
from holdfast.core.schedules import Fired, OpenRun, Overlap, ScheduleDetails
from holdfast.engine.encoded_store import begin_without_values
from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.schedules.decisions import Decision, decide_batch
from holdfast.engine.schedules.rows import read_details
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, StoreError, StoreFault, StoreUnavailable
from holdfast.log_events import LogEvent, tag
from holdfast.store.contract import UnroutedWrite

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store, Transaction
    from holdfast.store.schedules import ScheduleKey, ScheduleRow

log = logging.getLogger("holdfast.engine")

BATCH: Final = 200
"""How many schedules one transaction fires at most."""
TIME_ASIDE: Final = 30 * SECOND
"""For how long a schedule that cannot be fired is put aside."""

_Claim: TypeAlias = "Callable[[Transaction, Instant], Awaitable[list[ScheduleRow]]]"


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


@dataclass(frozen=True, slots=True)
class FiredBatch:
    """What came of the schedules that one transaction held."""

    looked_at: Sequence[ScheduleRow]
    """Those that it looked at, from the first that it held."""
    is_all: bool
    """Whether it looked at all that it held."""
    waits: frozenset[tuple[str, OpenRun]] = frozenset()
    """The executions (by org) for which fires go on waiting."""
    behind: frozenset[ScheduleKey] = frozenset()
    """Schedules that are still due."""
    begins_to_wait: bool = False
    """Whether fires of some wait now, and none did before."""


@dataclass(frozen=True, slots=True)
class _FailedBatch:
    """A transaction that failed as a whole, although the store can be reached."""

    held: Sequence[ScheduleRow]
    error: Exception


class ScheduleFiring:
    """Fires schedules that a node holds, one transaction at a time."""

    def __init__(self, deps: ScheduleRunnerDeps) -> None:
        self._deps = deps
        self._clock = deps.clock
        self._told: set[tuple[str, str]] = set()
        """(org, execution id) of executions that this process asked to end, and for which fires wait."""
        self._skip: set[ScheduleKey] = set()
        self._aside: dict[ScheduleKey, Instant] = {}
        """Schedules that could not be fired, and until when they are put aside."""
        self._behind: set[ScheduleKey] = set()
        """Schedules that had their turn in this round, and are still due."""
        self._limit = BATCH
        """How many schedules the next transaction holds at most: fewer while they have much to go through."""

    # --- what is left out ---

    def list_skipped(self) -> set[ScheduleKey]:
        """The schedules that are not fired now, although they may be due."""
        return self._skip.union(self._aside, self._behind)

    def note_definitions(self) -> None:
        """Definitions were added or removed: what was left alone for want of them may fire now."""
        self._skip.clear()

    def note_went_back(self) -> None:
        """The database is at an earlier state: what was asked to end may be open again, and rows be others."""
        self._told.clear()
        self._skip.clear()
        self._aside.clear()

    def begin_round(self) -> bool:
        """Let schedules that are late have another turn; whether there are any."""
        had_some = bool(self._behind)
        self._behind.clear()
        return had_some

    def take_back(self) -> bool:
        """Take back schedules that were put aside for long enough; whether there were any."""
        now = self._clock.now()
        over = [key for key, until in self._aside.items() if not now < until <= now + TIME_ASIDE]
        for key in over:
            del self._aside[key]
        return bool(over)

    @property
    def aside_until(self) -> Instant | None:
        """When the first of the schedules that are put aside is tried again; None: there are none."""
        return min(self._aside.values(), default=None)

    def keep_told(self, awaited: Collection[tuple[str, str]]) -> None:
        """Forget what was asked to end, except for these (org, execution id), for which fires wait."""
        self._told.intersection_update(awaited)

    # --- transactions ---

    async def fire_due(self) -> FiredBatch:
        """Fire up to a batch of schedules that are due and that nobody else holds."""

        async def claim(transaction: Transaction, now: Instant) -> list[ScheduleRow]:
            return await transaction.claim_schedules(now, self._deps.routes.takes, self.list_skipped(), self._limit)

        batch = await self._fire_claimed(claim)
        self._behind |= batch.behind
        self._limit = min(2 * self._limit, BATCH) if batch.is_all else max(1, len(batch.looked_at))
        return batch

    async def fire_waiting(self, after: ScheduleKey) -> FiredBatch:
        """Look at up to a batch of schedules whose fires wait, behind a key: they begin if nothing is open any more."""

        async def claim(transaction: Transaction, _: Instant) -> list[ScheduleRow]:
            return await transaction.claim_waiting_schedules(self._deps.routes.takes, after, BATCH)

        return await self._fire_claimed(claim)

    async def _fire_claimed(self, claim: _Claim) -> FiredBatch:
        """Fire schedules that `claim` holds. Those at fault are put aside, if there are any; the others fire."""
        await asyncio.sleep(0)  # on SQLite a transaction may not have waited for anything: others come between two
        batch = await self._fire_in_transaction(claim)
        if isinstance(batch, FiredBatch):
            return batch
        fired: list[FiredBatch] = []
        for row in batch.held:
            await asyncio.sleep(0)
            alone = await self._fire_in_transaction(claim, row.key)
            if isinstance(alone, FiredBatch):
                fired.append(alone)
            else:
                self._put_aside(row, alone.error)
        return FiredBatch(
            batch.held,
            is_all=True,
            waits=frozenset().union(*(one.waits for one in fired)),
            behind=frozenset().union(*(one.behind for one in fired)),
            begins_to_wait=any(one.begins_to_wait for one in fired),
        )

    async def _fire_in_transaction(self, claim: _Claim, only: ScheduleKey | None = None) -> FiredBatch | _FailedBatch:
        """Fire schedules that `claim` holds, or only one of them, in one transaction."""
        rows: list[ScheduleRow] = []
        transaction = await begin_without_values(self._deps.store)
        try:
            now = self._clock.now()
            rows = await claim(transaction, now)
            return await self._fire(transaction, rows if only is None else [one for one in rows if one.key == only], now)
        except Exception as error:
            await transaction.rollback()
            if not rows or _is_outage(error):
                raise
            return _FailedBatch(rows, error)
        except BaseException:
            await transaction.rollback()
            raise

    async def _fire(self, transaction: Transaction, rows: Sequence[ScheduleRow], now: Instant) -> FiredBatch:
        """Fire schedules that the transaction holds, and commit."""
        found = await decide_batch(transaction, rows, lambda row: self._decide(row, now), self._put_aside)
        changed = [one for one in found.decisions if one.new_row is not None]
        if not changed:
            await transaction.rollback()
        else:
            starts = [start for one in changed for start in one.start_rows]
            await transaction.write_schedules([one.new_row for one in changed if one.new_row is not None])
            if starts:
                await transaction.write([], UnroutedWrite(outgoing=starts))
            await transaction.commit()
            if starts:
                self._deps.on_put()
        waits: set[tuple[str, OpenRun]] = set()
        for one in found.decisions:
            if one.awaits_ends:
                self._end_running(one.row.org, one.fired, found.registered)
                waits |= {(one.row.org, run) for run in one.fired.details.open_runs}
        return FiredBatch(
            rows[: found.looked_at],
            is_all=found.looked_at == len(rows),
            waits=frozenset(waits),
            behind=frozenset(one.row.key for one in found.decisions if one.is_behind),
            begins_to_wait=any(one.begins_to_wait for one in changed),
        )

    # --- single schedules ---

    def _decide(self, row: ScheduleRow, now: Instant) -> Decision | None:
        """What a schedule does if nothing is open; None: it is left alone."""
        if row.key in self._aside or (details := self._read(row)) is None:
            return None
        return Decision(row, details, self._renew(row.org, details), now)

    def _put_aside(self, row: ScheduleRow, error: Exception) -> None:
        self._aside[row.key] = self._clock.now() + TIME_ASIDE
        log.warning(
            "schedule '%s' of org '%s' cannot be fired, and is put aside for %d s: %s",
            row.schedule_id,
            row.org,
            TIME_ASIDE // SECOND,
            error if isinstance(error, HoldfastError) else repr(error),
            exc_info=None if isinstance(error, HoldfastError) else error,
            extra=tag(LogEvent.SCHEDULES_FAILED, org=row.org, node=self._deps.node),
        )

    def _read(self, row: ScheduleRow) -> ScheduleDetails | None:
        """A schedule's details; None: it is left alone until definitions change."""
        try:
            details = read_details(row)
        except (CorruptStore, NewerFormat) as error:
            log.warning(
                "schedule '%s' of org '%s' is left alone: %s",
                row.schedule_id,
                row.org,
                error,
                extra=tag(LogEvent.SCHEDULES_FAILED, org=row.org, node=self._deps.node),
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


def _is_outage(error: Exception) -> bool:
    """Whether the store is to blame, and not what a transaction read or was to write."""
    if isinstance(error, StoreUnavailable):
        return error.fault is not StoreFault.CODEC
    return isinstance(error, StoreError) and not isinstance(error, CorruptStore | NewerFormat)
