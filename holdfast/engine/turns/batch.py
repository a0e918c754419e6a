"""One batch: lock, plan, take the turns in memory, write, commit once; what follows is the commit outcome.

Nothing is visible before it is durable, no answer leaves before its commit. A turn that is lost is taken again; a batch that
fails leaves everything as it was, but for the marks of what was in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.core.envelopes import TASK_STEPS
from holdfast.core.execution import Execution
from holdfast.core.failures import NOT_COMMITTED, Failure, describe_exception
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.core.placing import find_recallable, recall_offers
from holdfast.core.subscriptions import is_taken_by_one
from holdfast.engine.encoded_store import begin_without_values
from holdfast.engine.quarantine import make_block_reason, undo_note
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.turns.admission import Admission, make_row_change
from holdfast.engine.turns.batch_effects import BatchEffects
from holdfast.engine.turns.claims import BatchOrder, Claimer, Claims, ClaimTarget
from holdfast.engine.turns.commit_outcome import CommitOutcome, make_outcome
from holdfast.engine.turns.handoff import register
from holdfast.engine.turns.inline_children import InlineChildren
from holdfast.engine.turns.loading import Loader, note_version
from holdfast.engine.turns.notices import HistoryWarnings
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import AnswerRequest, Plan
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.routing import route
from holdfast.engine.turns.stale_orders import StaleOrders
from holdfast.engine.turns.turn_taking import TurnTaker, as_answer
from holdfast.engine.turns.unrouted import DeadLetterRules, UnroutedWrites
from holdfast.engine.turns.writing import rewrite_offers
from holdfast.errors import NewerFormat, OutcomeUnknown, StoreUnavailable, UnknownWorkflow
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.rows import ExecutionRow
from holdfast.store.tasks import TaskKey

if TYPE_CHECKING:
    from holdfast.core.placing import MayKeep
    from holdfast.engine.requests import Request
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.engine.turns.services import TurnServices
    from holdfast.store.contract import Transaction


class BatchSetting:
    """How one batch is run: when, in which slot of this process, whom it tries, and which activities may stay here."""

    __slots__ = ("inlines_children", "leaves_values", "may_keep", "now", "slot", "trial")

    def __init__(
        self,
        now: Instant,
        slot: int = 0,
        trial: Collection[str] = (),
        may_keep: MayKeep | None = None,
        *,
        leaves_values: bool = False,
    ) -> None:
        self.now = now
        self.slot = slot
        self.trial = trial
        """Suspects that were noted: this batch is for them alone."""
        self.may_keep = may_keep
        """Says which activities this node can run itself; None: all."""
        self.inlines_children = not trial
        self.leaves_values = leaves_values
        """Whether no value is decoded: executions are terminated, all else for them is kept in their inboxes."""


class Batch:
    """Takes one batch through its transaction."""

    def __init__(
        self,
        services: TurnServices,
        prefetch: HistoryPrefetch,
        setting: BatchSetting,
        on_claimed: Callable[[Claims], None] | None = None,
    ) -> None:
        self._services = services
        self._prefetch = prefetch
        self._setting = setting
        self._now = setting.now
        self._on_claimed = on_claimed
        """Called once it is known what the batch holds."""
        self._claims = Claims()
        self._plan: Plan | None = None
        self._rules = DeadLetterRules(services.node, setting.now, services.config.max_attempts)
        self._effects = BatchEffects(UnroutedWrites(self._rules))
        self._pending: list[PendingTurn] = []
        room = services.config.batch_size if setting.inlines_children else 0
        self._children = InlineChildren(services.routes, room)
        self._pauses = services.pauses.present
        self._admission = Admission(
            services, self._pauses, self._effects, setting.now, setting.trial, leaves_values=setting.leaves_values
        )
        self._taker = TurnTaker(services, self._effects, self._children, setting.may_keep)

    @property
    def members(self) -> list[tuple[ClaimTarget, Sequence[Request]]]:
        """The executions that were to take turns, with the requests for each: for whoever splits a batch that failed."""
        turns = () if self._plan is None else self._plan.turns.values()
        found: list[tuple[ClaimTarget, Sequence[Request]]] = []
        for one in turns:
            row = self._claims.rows.get(one.execution_id)
            workflow_id = one.start.workflow_id if one.start is not None else "" if row is None else row.workflow_id
            requests = [arrival.request for arrival in one.arrivals if arrival.request is not None]
            found.append((ClaimTarget(one.org, one.execution_id, workflow_id), requests))
        return found

    async def run(self, order: BatchOrder) -> CommitOutcome:
        """Run the batch in one transaction: claim, plan, take turns, write, commit. If it raises, nothing was committed."""
        store = self._services.store
        transaction = await (begin_without_values(store) if self._setting.leaves_values else store.begin())
        try:
            plan = await self._make_plan(transaction, order)
            todo = self._pending = _make_pending(plan)
            if self._services.turn_order.matters:
                self._services.turn_order.arrange(todo, self._find_workflow)
            loader = Loader(self._services, self._claims, self._admission, self._prefetch, self._effects)
            is_first = True
            while todo:
                await self._load(transaction, loader, todo, marks=is_first)
                await self._lock_tasks(transaction, todo)
                if plan.judged:
                    StaleOrders(self._effects, self._pauses, self._services.cache).drop_touched(todo, plan.judged)
                is_first = False
                todo = call_outside_task(self._taker.take_all, todo)
            if self._setting.trial:
                await self._undo_notes(transaction)
            await self._recall_offers(transaction)
            lost = await self._write(transaction)
            await self._commit(transaction)
            if lost and len(lost) == len(self._effects.taken):  # maybe because something was paused or resumed meanwhile
                await self._services.pauses.try_refresh()
        except BaseException:
            await transaction.rollback()
            self._discard()
            raise
        return self._make_outcome(plan, lost)

    async def note_failure(self, order: BatchOrder, error: Exception, *, is_try: bool = True) -> CommitOutcome:
        """Take no turn: note in the row of an execution that its turn fails, and after `max_lost` tries block it.

        Callers are told, unless the store may take it later (StoreUnavailable): then their requests are among the retries.
        Inbox rows for one that does not exist yet are counted as failed. What was no try (`is_try`) counts nowhere.
        """
        transaction = await self._services.store.begin()
        try:
            plan = await self._make_plan(transaction, order)
            for pending in _make_pending(plan):
                await self._note_failure(transaction, pending, error, is_try=is_try)
            lost = await self._write(transaction)
            await self._commit(transaction)
            if lost and len(lost) == len(self._effects.taken):  # maybe because something was paused or resumed meanwhile
                await self._services.pauses.try_refresh()
        except BaseException:
            await transaction.rollback()
            raise
        return self._make_outcome(plan, lost)

    # --- planning ---

    async def _make_plan(self, transaction: Transaction, order: BatchOrder) -> Plan:
        services, exclusive = self._services, self._services.store.exclusive
        closing = services.lost_closings.repeated if services.lost_closings.losses else ()
        claimer = Claimer(transaction, services, self._pauses, self._now, closing=closing)
        claims = self._claims
        await claimer.claim(claims, order)
        limits = services.limits
        plan = self._plan = route(claims, order.requests, self._rules, limits, exclusive=exclusive)
        while plan.lookups:
            await claimer.look_up(claims, plan.lookups, limits.max_signals)
            plan = self._plan = route(claims, order.requests, self._rules, limits, exclusive=exclusive)
        self._effects.unrouted.begin_with(plan.unrouted)
        if self._on_claimed is not None:
            self._on_claimed(claims)
        return plan

    def _find_workflow(self, pending: PendingTurn) -> str:
        """The name of the workflow of which an execution is one, before it is loaded."""
        if pending.start is not None:
            return pending.start.workflow
        if (row := self._claims.rows.get(pending.execution_id)) is not None:
            return row.workflow
        live = self._services.cache.get(pending.execution_id)
        return "" if live is None else live.execution.workflow

    # --- loading ---

    async def _load(self, transaction: Transaction, loader: Loader, turns: Sequence[PendingTurn], *, marks: bool) -> None:
        """Give each execution its program. It is marked before any code runs: a replay may end the process as well."""
        stored: dict[str, PendingTurn] = {}
        for pending in turns:
            if pending.start is not None:
                self._make_new(pending)
            else:
                stored[pending.execution_id] = pending
        old = await loader.take_from_cache(transaction, stored) if stored else stored
        if marks:
            await self._mark(transaction, turns)
            old = {execution_id: pending for execution_id, pending in old.items() if pending.arrivals}
        for pending, error in await loader.catch_up(transaction, old) if old else ():
            if isinstance(error, Failure):
                self._taker.block(pending, error)
            elif isinstance(error, NewerFormat):
                self._leave_alone(pending, self._claims.rows[pending.execution_id], error)
            else:
                self._effects.parked.append(pending.execution_id)
                self._taker.fail_callers(pending, error)

    def _leave_alone(self, pending: PendingTurn, row: ExecutionRow, error: NewerFormat) -> None:
        """A newer Holdfast wrote an execution: what has arrived for it waits in its inbox for a node that can read it."""
        self._effects.newer[pending.execution_id] = error.message
        self._effects.park(pending, row.route)

    def _make_new(self, pending: PendingTurn) -> None:
        assert pending.start is not None  # noqa: S101 - asked only for new ones
        if pending.live is not None:
            return
        if pending.start.route_name:  # also where it is only registered: its row names one version as long as it is there
            pending.start = self._services.processes.bind_start(pending.org, pending.start)
        if not self._admission.admit_new(pending):
            return
        execution = Execution.register(pending.org, pending.start, self._services.clock.now())
        if pending.start.route_name and self._services.routes.has_definition(execution) and not self._is_ready(execution):
            self._taker.leave_to_inbox(pending)  # from there it is put off until its process is compiled
            return
        try:
            program = self._services.make_program(execution)
        except UnknownWorkflow as error:
            if pending.follows:
                self._taker.leave_to_inbox(pending)  # its row says what it waits for
            else:
                self._refuse_new(pending, error)
            return
        except Exception as error:  # noqa: BLE001 - one poison envelope must not stop the others
            self._taker.fail_callers(pending, error)
            return
        note_version(execution, program)
        pending.live = LiveExecution(execution, program, None, 0)

    def _is_ready(self, execution: Execution) -> bool:
        return self._services.processes.is_ready(execution.org, execution.workflow, execution.code_version)

    def _refuse_new(self, pending: PendingTurn, error: UnknownWorkflow) -> None:
        """A start whose workflow is not known here: callers were told before; a parent hears of it now."""
        assert pending.start is not None  # noqa: S101 - asked only for new ones
        self._effects.unrouted.refuse_child(pending.start, pending.org, describe_exception(error))
        for arrival in pending.arrivals:
            if arrival.request is not None:
                self._effects.answers.append(AnswerRequest(arrival.request, error))
            elif (publication := pending.start.publication) is not None and is_taken_by_one(publication):
                self._effects.unrouted.consume(arrival)  # what it started goes no more: it is matched again, or kept
                self._effects.unrouted.give_back(pending.org, publication)
            else:
                self._effects.unrouted.refuse(arrival, error)
        pending.clear()

    async def _lock_tasks(self, transaction: Transaction, turns: Sequence[PendingTurn]) -> None:
        """Read the human tasks about which people want something, which nobody else changes then; or put the turn off."""
        wanted: dict[TaskKey, PendingTurn] = {}
        for pending in [one for one in turns if (live := one.live) is not None and live.execution.tasks]:
            for arrival in pending.arrivals:
                if isinstance(arrival.envelope, TASK_STEPS):
                    wanted[pending.execution_id, arrival.envelope.number] = pending
        for (execution_id, number), row in (await transaction.lock_tasks(wanted)).items() if wanted else ():
            pending = wanted[execution_id, number]
            if row is None:
                self._taker.put_off(pending)
            else:
                pending.task_standings = {**(pending.task_standings or {}), number: row}

    # --- quarantine ---

    async def _mark(self, transaction: Transaction, turns: Sequence[PendingTurn]) -> None:
        """Leave a trace of what is in flight, should the process end; and find out whose process did.

        On a shared store usually only for what other nodes would take next: all else is lost with this process.
        """
        marks_all = self._services.store.exclusive or self._services.quarantine.is_alert(self._now)
        rows, versions = self._claims.rows, dict[str, int]()
        for pending in turns:
            if not pending.arrivals or not (marks_all or pending.comes_from_store):
                continue
            if (row := rows.get(pending.execution_id)) is not None:
                versions[pending.execution_id] = row.state_version
            elif pending.live is not None:
                versions[pending.execution_id] = pending.live.execution.state_version
        if not versions:
            return
        marked = await transaction.mark_in_flight(self._services.process, self._setting.slot, versions)
        for pending in turns if marked else ():
            if self._services.quarantine.count_lost(marked.get(pending.execution_id, ())):
                row = rows.get(pending.execution_id)
                self._admission.admit_marked(pending, row if row is not None or pending.live is None else pending.live.row)

    async def _undo_notes(self, transaction: Transaction) -> None:
        """Take the notes back of suspects that had nothing to take after all, or whose program did not run.

        They stay suspects: nothing shows that they are innocent.
        """
        process = self._services.process
        written: set[str] = set()
        for one in self._effects.taken:
            if one.write is None:
                continue
            written.add(one.pending.execution_id)
            is_tried = one.pending.execution_id in self._setting.trial and one.live.execution.status != Status.BLOCKED
            if is_tried and one.write.history is None and undo_note(one.live.execution, process):
                one.write.row = to_row(one.live.execution, one.write.row.route)
        idle = [execution_id for execution_id in self._setting.trial if execution_id not in written]
        idle = [execution_id for execution_id in idle if execution_id in self._claims.held]
        for execution_id, row in (await transaction.read_rows(idle)).items() if idle else ():
            try:
                execution = from_row(row)
            except NewerFormat:
                continue  # a newer Holdfast wrote it meanwhile: the note is no longer this node's to take back
            if undo_note(execution, process):
                pending = PendingTurn(row.org, execution_id, None, [])
                self._effects.taken.append(make_row_change(pending, execution, row, self._now, self._services.limits))

    async def _note_failure(self, transaction: Transaction, pending: PendingTurn, error: Exception, *, is_try: bool) -> None:
        waiting: list[Request] = []
        for request in pending.requests:
            if request.future is None or isinstance(error, StoreUnavailable):
                waiting.append(request)
            else:
                self._effects.answers.append(AnswerRequest(request, as_answer(error)))
        if pending.start is not None:
            self._effects.retries += waiting
            if is_try:
                self._effects.unrouted.fail(pending.arrivals, error)
            return
        row = self._claims.rows.get(pending.execution_id)
        if row is None:
            row = (await transaction.read_rows([pending.execution_id])).get(pending.execution_id)
        if row is None:
            return
        try:
            execution = from_row(row)
        except NewerFormat as newer:
            self._leave_alone(pending, row, newer)
            return
        details = execution.details
        before = details.last_error, details.suspect
        details.last_error = _describe(error)
        if is_try:
            if details.trying != self._services.process:  # else this try is counted already
                details.tries += 1
            details.trying, details.suspect = "", False
        elif not undo_note(execution, self._services.process):
            details.suspect = True  # so that other nodes try it apart as well, and a turn that is committed clears the note
            if before == (details.last_error, True):
                self._effects.retries += waiting
                return
        pending.arrivals = [arrival for arrival in pending.arrivals if arrival.request in waiting]
        if is_try and details.tries >= self._services.config.max_lost:
            version = self._services.routes.version_for(execution) or ""
            execution.block(make_block_reason(execution), version, self._now)
            self._effects.park(pending, row.route)
        self._effects.retries += pending.requests
        pending.clear()
        self._effects.taken.append(make_row_change(pending, execution, row, self._now, self._services.limits))

    # --- the end ---

    def _make_outcome(self, plan: Plan, lost: set[str]) -> CommitOutcome:
        services, config = self._services, self._services.config
        warnings = HistoryWarnings(config.history_warning_events, config.history_warning_bytes, services.node)
        return make_outcome(plan, self._claims, self._effects, lost, services.cache, warnings)

    async def _recall_offers(self, transaction: Transaction) -> None:
        """End at once what is cancelled while it is on offer, unless a node has it: its program waits for that end."""
        recallable = {
            (one.pending.execution_id, number): one
            for one in self._effects.taken
            if one.turn.cancelled and one.write is not None
            for number in find_recallable(one.turn)
        }
        if not recallable:
            return
        free = await transaction.lock_offers(recallable)
        for taken in {id(recallable[key]): recallable[key] for key in free}.values():
            execution_id, write = taken.pending.execution_id, taken.write
            assert write is not None  # noqa: S101 - asked above
            numbers = sorted(number for key, number in free if key == execution_id)
            recall_offers(taken.turn, numbers, self._services.node)
            rewrite_offers(write, taken.live.execution, taken.turn)

    async def _write(self, transaction: Transaction) -> set[str]:
        """Write the turns, parents before the children that they started in this batch. Which of them are lost."""
        taken, unrouted = self._effects.taken, self._effects.unrouted
        is_discarding = self._services.config.dead_letter_policy == "discard"
        if is_discarding:
            unrouted.discard_dead_letters()
        writes = [(one.pending, one.write) for one in taken if one.write is not None]
        turns = [write for pending, write in writes if not pending.generation]
        unrouted.write.settings, unrouted.write.node = self._pauses.number, self._services.node
        unrouted.write.discards_dead_letters = is_discarding
        unrouted.write.most_subscriptions = self._limit_subscriptions(turns)
        lost = await transaction.write(turns, unrouted.write)
        put_off: set[str] = set()
        for generation in range(1, self._children.generations + 1):
            born = [(pending, write) for pending, write in writes if pending.generation == generation]
            lost.update(pending.execution_id for pending, _ in born if pending.parent in lost or pending.parent in put_off)
            turns = [write for pending, write in born if pending.execution_id not in lost]
            beside = UnroutedWrite(
                settings=self._pauses.number,
                node=self._services.node,
                discards_dead_letters=is_discarding,
                most_subscriptions=self._limit_subscriptions(turns),
            )
            losers = await transaction.write(turns, beside)
            if losers:
                put_off |= await self._put_off(transaction, losers)
                lost |= losers - put_off
        if lost:
            await self._drop_repeated_starts(transaction, lost)
        return lost

    async def _put_off(self, transaction: Transaction, lost: set[str]) -> set[str]:
        """Let children whose first turn is lost begin from their inbox: their parents have started them. Which ones do.

        Their turn was lost since another transaction has the lock of what they wait for.
        """
        put_off: set[str] = set()
        for place, taken in enumerate(self._effects.taken):
            pending = taken.pending
            if pending.execution_id in lost and pending.start is not None and not pending.follows:
                pending.unload()
                registered = register(pending, self._now, self._services.limits)
                assert registered.write is not None  # noqa: S101 - it makes the row
                if not await transaction.write([registered.write], UnroutedWrite(settings=self._pauses.number)):
                    self._effects.taken[place] = registered
                    put_off.add(pending.execution_id)
        return put_off

    def _limit_subscriptions(self, turns: Sequence[TurnWrite]) -> Mapping[str, int]:
        """How many subscriptions the orgs may have in which these turns begin some."""
        config = self._services.config
        if config.org_limits is None and not config.org_limit_overrides:
            return {}
        found = {turn.row.org: config.limits_of(turn.row.org) for turn in turns if turn.subscriptions}
        limits = {org: limits.subscriptions for org, limits in found.items() if limits is not None}
        return {org: limit for org, limit in limits.items() if limit is not None}

    async def _drop_repeated_starts(self, transaction: Transaction, lost: set[str]) -> None:
        """A start that came by the inbox and whose execution exists was handled before: it is taken away."""
        starts = {
            one.pending.execution_id: one.pending.start_row
            for one in self._effects.taken
            if one.pending.start is not None and one.pending.arrivals and one.pending.execution_id in lost
        }
        if starts:
            known = await transaction.read_rows(starts)
            rows = [row.id for execution_id, row in starts.items() if execution_id in known and row is not None]
            await transaction.write([], UnroutedWrite(consumed=rows))

    async def _commit(self, transaction: Transaction) -> None:
        try:
            await transaction.commit()
        except OutcomeUnknown as error:
            if not await self._services.store.was_committed(transaction):
                raise StoreUnavailable(
                    "Expected to commit, but the connection broke and nothing was stored. Try again.", fault=error.fault
                ) from error

    def _discard(self) -> None:
        """Nothing was committed: every program that may have moved is thrown away."""
        for pending in self._pending:
            pending.unload()
        self._effects.close_programs()


def _describe(error: Exception) -> Failure:
    """A failed turn for the row of its execution. What the store refused for now is gone once a turn is committed."""
    failure = describe_exception(error)
    if isinstance(error, StoreUnavailable):
        return Failure(type=NOT_COMMITTED, message=failure.message, trace=failure.trace)
    return failure


def _make_pending(plan: Plan) -> list[PendingTurn]:
    """The turns that a plan asks for. What has arrived is copied: a turn may do without it, and the plan stays as it is."""
    turns = [PendingTurn(one.org, one.execution_id, one.start, [*one.arrivals]) for one in plan.turns.values()]
    if plan.runs_before:
        for pending in turns:
            pending.runs_before = plan.runs_before.get(pending.execution_id, 0)
    return turns
