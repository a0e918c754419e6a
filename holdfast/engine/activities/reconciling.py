"""Reconciling: what rows say that this node runs is compared with what it runs.

Theory of operation
-------------------

Activities are not rows while they run: the row of their execution names the node that has them in memory. As long as the
database keeps what it acknowledged, the two agree. If it goes back to an earlier state (a restore, a failover to a replica
that lagged), rows may name a living node for attempts that it has finished, or never began; nobody else would ever begin
them again, since the node is alive. And the node may run attempts that no row knows of.

*When.* The database went back, as far as is known (`note_went_back`): all rows that name this node are compared, with each
of the next heartbeats (`ROUNDS`). Otherwise only after attempts were begun here, for what nobody noticed: two passes over
the open executions, a page per heartbeat, `SWEEP_INTERVAL` apart. A node that has begun nothing since asks nothing.

*What is lost.* An attempt that a row says to run here, and that neither runs, nor waits for a slot, nor has an outcome on
its way: in a queue of this process, in a batch that is under way, or in the execution's inbox. A row that was committed a
moment ago may name an attempt that is about to begin, and a row that was read a moment ago one that has ended since; so an
attempt counts as lost only if it was missing at two heartbeats in a row. It is fed in as `Redispatch` of exactly that
attempt, which is ignored if the attempt is no longer the present one. It does not count as lost with its process. It may
have begun in the state that was lost: so an activity that runs at most once is reported as lost instead.

*What is unknown.* After the database went back, attempts that run here are compared with their rows and histories: one that
is not asked for any more, or under whose number other work is asked for, is stopped. A transaction activity is stopped also
if it was given out later than the state to which the database went back: it checks its history from there on only. It is
lost then, and begun anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from holdfast.activities.definitions import Activity, TransactionActivity
from holdfast.core import codec, envelopes
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import Status
from holdfast.core.turn import fold
from holdfast.engine.activities.stale_attempts import AttemptKey, find_present, key_of
from holdfast.engine.requests import Request
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import CorruptStore, NewerFormat, StoreError
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask
    from holdfast.core.execution import Execution
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.turns.program_cache import ProgramCache
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

log = logging.getLogger("holdfast.engine")

ROUNDS: Final = 3
"""With how many heartbeats everything is compared after the database went back."""
PASSES: Final = 2
"""How many passes follow the last attempt that began: the first may come before the database goes back."""
SWEEP_INTERVAL: Final = 30 * SECOND
"""From the beginning of one pass to the next, at least."""
PAGE: Final = 1_000
"""How many open executions are looked at with one heartbeat, while nothing is known to be wrong."""
MOST_LOADED: Final = 50
"""How many histories are read with one heartbeat, while nothing is known to be wrong."""
MOST_INBOX: Final = 100
"""How many rows of an inbox are searched for an outcome; behind a longer one nothing is begun anew."""
_NUMBERED: Final = (
    envelopes.ActivityReturned,
    envelopes.ActivityRaised,
    envelopes.ActivityExpired,
    envelopes.ActivityStopped,
    envelopes.Redispatch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDeps:
    """What a node's reconciler works with."""

    store: Store
    runner: ActivityRunner
    activities: Mapping[str, Activity[..., Any]]
    cache: ProgramCache
    node: str
    submit: Callable[[Request], None]
    """Puts a request into the next batch."""
    is_held: Callable[[str], bool]
    """Whether a batch that is under way here holds an execution: its outcome may be on its way."""


class Reconciler:
    """Finds attempts that rows say to run on this node and that do not, and the other way round."""

    def __init__(self, deps: ReconcilerDeps) -> None:
        self._store = deps.store
        self._runner = deps.runner
        self._activities = deps.activities
        self._cache = deps.cache
        self._node = deps.node
        self._submit = deps.submit
        self._is_held = deps.is_held
        self._rounds = 0
        """With how many heartbeats everything is still to be compared."""
        self._passes = 0
        self._seen_starts = 0
        """How many attempts had begun here at the last look."""
        self._swept_at: Instant = 0
        self._after: str | None = None
        """Where the pass that is under way continues; None: none is."""
        self._missing: dict[AttemptKey, str] = {}
        """Attempts that were missing at the last heartbeat, with their orgs."""
        self._known: dict[str, tuple[int, frozenset[AttemptKey]]] = {}
        """By execution id: what a row says to run here, at which version of it; so that its history is read once."""
        self._sent: WeakValueDictionary[AttemptKey, Request] = WeakValueDictionary()
        """What was fed in and is not taken yet."""
        self._is_busy = False
        self.begun_anew = 0
        """How many lost attempts were fed in."""

    def note_went_back(self) -> None:
        """Compare everything with the next heartbeats: the database is at an earlier state than it was."""
        self._rounds, self._after = ROUNDS, None
        self._known.clear()

    @property
    def is_comparing(self) -> bool:
        """Whether it is known that the database went back, and everything is still to be compared."""
        return self._rounds > 0

    def is_due(self, now: Instant) -> bool:
        """Whether anything is to be compared with the present heartbeat; called with each."""
        if self._runner.started != self._seen_starts:
            self._seen_starts, self._passes = self._runner.started, PASSES
        if self._swept_at == 0:
            self._swept_at = now  # the first pass comes one interval after the node
        is_recent = 0 <= now - self._swept_at < SWEEP_INTERVAL  # else the clock may have been set back
        if self._after is None and self._passes and not is_recent:
            self._after, self._swept_at, self._passes = "", now, self._passes - 1
        return not self._is_busy and (self._rounds > 0 or bool(self._missing) or self._after is not None)

    async def compare(self) -> None:
        """Compare what there is to compare, and begin anew what is lost."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            if self._rounds:
                await self._stop_unknown()
                rows, most = await self._list_all(), None
                self._rounds -= 1
            else:
                rows, most = await self._list_page(), MOST_LOADED
            missing = await self._find_missing(rows, most)
            for key in [key for key in missing if key in self._missing]:
                if await self._begin_anew(missing[key], key):
                    del missing[key]
            self._missing = missing
        except StoreError:
            return  # the next heartbeat compares again
        finally:
            self._is_busy = False

    # --- what rows say ---

    async def _list_all(self) -> list[ExecutionRow]:
        found: list[ExecutionRow] = []
        after = ""
        while rows := await self._store.list_held(self._node, PAGE, after):
            found.extend(rows)
            after = rows[-1].execution_id
        return found

    async def _list_page(self) -> list[ExecutionRow]:
        """The next page of a pass, if one is under way, and the executions of what was missing."""
        rows: list[ExecutionRow] = []
        if self._after is not None:
            rows = await self._store.list_held(self._node, PAGE, self._after)
            self._after = rows[-1].execution_id if rows else None
        listed = {row.execution_id for row in rows}
        again = dict.fromkeys(key[0] for key in self._missing if key[0] not in listed)
        return [*rows, *(await self._read_rows(again)).values()] if again else rows

    async def _read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        transaction = await self._store.begin()
        try:
            return await transaction.read_rows(execution_ids)
        finally:
            await transaction.rollback()

    async def _find_missing(self, rows: Collection[ExecutionRow], most: int | None) -> dict[AttemptKey, str]:
        """The attempts that rows say to run here, and that this process does not have, with their orgs."""
        idle = (Status.BLOCKED, Status.PAUSED)
        held = [row for row in rows if self._node in row.nodes and row.status not in idle and row.closed_at is None]
        known, self._known = self._known, {}
        asked: dict[AttemptKey, str] = {}
        for row in held:
            version, keys = known.get(row.execution_id, (0, frozenset[AttemptKey]()))
            if version != row.state_version:
                execution = self._recall(row)
                if execution is None:
                    if most is not None and (most := most - 1) < 0:
                        continue
                    execution = await self._load(row)
                keys = frozenset() if execution is None else self._find_own(execution)
            self._known[row.execution_id] = row.state_version, keys
            asked.update(dict.fromkeys(sorted(keys), row.org))
        present = find_present(self._runner) if asked else ()
        return {key: org for key, org in asked.items() if key not in present}

    def _recall(self, row: ExecutionRow) -> Execution | None:
        live = self._cache.get(row.execution_id)
        return None if live is None or live.execution.state_version != row.state_version else live.execution

    async def _load(self, row: ExecutionRow) -> Execution | None:
        """The execution of a row with what is open in it; None if that cannot be read, which its next turn reports."""
        history = await self._store.load_history(row.execution_id)
        try:
            execution = from_row(row)
            fold(execution, to_turns([turn for turn in history if turn.first <= row.sequence]))
        except (CorruptStore, NewerFormat):
            return None
        return execution

    def _find_own(self, execution: Execution) -> frozenset[AttemptKey]:
        """The attempts that an execution says to run on this node, without those on offer."""
        return frozenset(
            (execution.execution_id, number, execution.attempt_of(number).attempt)
            for number in execution.running
            if execution.runner_of(number) == self._node
        )

    # --- lost attempts ---

    async def _begin_anew(self, org: str, key: AttemptKey) -> bool:
        """Give a lost attempt a successor; False if its outcome may be on its way."""
        execution_id, number, attempt = key
        if self._is_held(execution_id) or key in self._sent or await self._has_envelope(org, key):
            return False
        if self._is_held(execution_id) or key in find_present(self._runner):
            return False  # meanwhile
        log.warning(
            "activity %d of execution %s is begun anew: by its row this node runs attempt %d of it, which it does not have",
            number,
            execution_id,
            attempt,
            extra=tag(LogEvent.ACTIVITY_BEGUN_ANEW, org=org, execution_id=execution_id, attempt=attempt, node=self._node),
        )
        envelope = envelopes.Redispatch(node=self._node, has_left=True, number=number, attempt=attempt, may_have_begun=True)
        request = self._sent[key] = Request(org, envelope, execution_id=execution_id)
        self._submit(request)
        self.begun_anew += 1
        return True

    async def _has_envelope(self, org: str, key: AttemptKey) -> bool:
        """Whether something about the attempt waits in the inbox of its execution, or may wait there."""
        rows = await self._store.list_inbox(org, key[0], "", MOST_INBOX)
        if len(rows) == MOST_INBOX:
            return True
        for row in rows:
            try:
                envelope = codec.decode_envelope(row.body)
            except (CorruptStore, NewerFormat):
                continue
            if isinstance(envelope, _NUMBERED) and envelope.number in (key[1], None):
                return True
        return False

    # --- unknown attempts ---

    async def _stop_unknown(self) -> None:
        """Stop the attempts that run here and that their executions do not ask for, as they are now."""
        tasks = [task for task in self._runner.tasks if not task.is_offered]
        if not tasks:
            return
        rows = await self._read_rows(dict.fromkeys(task.execution_id for task in tasks))
        executions: dict[str, Execution | None] = {}
        for execution_id, row in rows.items():
            executions[execution_id] = None if row.closed_at is not None else self._recall(row) or await self._load(row)
        for task in tasks:
            if not self._is_asked_for(task, rows, executions):
                self._runner.stop(task.execution_id, task.event.number, task.attempt)

    def _is_asked_for(
        self, task: ActivityTask, rows: Mapping[str, ExecutionRow], executions: Mapping[str, Execution | None]
    ) -> bool:
        row, execution = rows.get(task.execution_id), executions.get(task.execution_id)
        if row is None or row.closed_at is not None:
            return False
        if execution is None:
            return True  # it cannot be read here
        if key_of(task) not in self._find_own(execution) or execution.activities[task.event.number].event != task.event:
            return False
        return row.sequence >= task.sequence or not isinstance(self._activities.get(task.event.name), TransactionActivity)
