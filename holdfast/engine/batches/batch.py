"""One batch: lock, take the turns in memory, write, commit once; then answer and start activities.

Nothing is visible before it is durable, no answer leaves before its commit. A turn that is lost is taken again; a batch that
fails leaves everything as it was.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.core.effects import Limits, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.instants import Instant
from holdfast.core.placing import MayKeep, place_activities
from holdfast.core.turn import take_turn
from holdfast.engine.batches.care import Care, read_tries
from holdfast.engine.batches.gate import Gate
from holdfast.engine.batches.joining import Joining, follow
from holdfast.engine.batches.loading import Loader
from holdfast.engine.batches.plain_calls import call_plainly
from holdfast.engine.batches.programs import Live, MakeProgram, ProgramCache
from holdfast.engine.batches.requests import Request
from holdfast.engine.batches.routing import Router
from holdfast.engine.batches.settling import Settled, Taken, settle
from holdfast.engine.batches.stand_ins import FailingProgram, NoProgram
from holdfast.engine.batches.tries import clear_tries
from holdfast.engine.batches.warming import Warming
from holdfast.engine.batches.work import Work
from holdfast.engine.batches.writing import bury_refused, make_write
from holdfast.engine.routes import Routes
from holdfast.engine.rows import from_row, to_row
from holdfast.errors import OutcomeUnknown, StoreUnavailable, TurnTooLong, UnknownWorkflow
from holdfast.store.contract import LooseWrite, Store, Transaction, TurnWrite

if TYPE_CHECKING:
    from holdfast.engine.config import Config

log = logging.getLogger("holdfast.engine")

SPARE_RUNS: Final = 1_000
"""How often an execution may continue within one transaction beyond once for each signal that it carries along."""


class Batch:
    """Takes one batch through its transaction."""

    def __init__(
        self,
        store: Store,
        cache: ProgramCache,
        make_program: MakeProgram,
        config: Config,
        node: str,
        now: Instant,
        routes: Routes,
        care: Care,
        warming: Warming,
        may_keep: MayKeep | None = None,
        *,
        joins: bool = True,
    ) -> None:
        self._store = store
        self._routes = routes
        self._may_keep = may_keep
        self._cache = cache
        self._make_program = make_program
        self._config = config
        self._limits = Limits(max_signals=config.max_signals)
        self._node = node
        self._now = now
        self.on_claimed: Callable[[Router], None] | None = None
        """Called once it is known what the batch holds."""
        self._gate = Gate(routes, care, node, now, self._limits, config.max_lost)
        self._loader = Loader(cache, make_program, routes, care, self._gate, warming, config.replay_ahead)
        self._taken = self._gate.written
        self._joining = Joining(routes, config.batch_size if joins else 0)
        self._more: list[Work] = []
        """What is to be loaded and taken in the same batch."""

    async def run(self, requests: Sequence[Request], limit: int, skip: set[str]) -> Settled:
        """Do it all. Raises StoreUnavailable if nothing was committed."""
        transaction = await self._store.begin()
        router = Router(
            transaction,
            self._cache,
            node=self._node,
            now=self._now,
            exclusive=self._store.exclusive,
            max_attempts=self._config.max_attempts,
            routes=self._routes.takes,
        )
        try:
            await router.route(requests, self._now, limit, skip)
            if self.on_claimed is not None:
                self.on_claimed(router)
            todo = list(router.work.values())
            while todo:
                await self._load(transaction, router, todo)
                todo = await call_plainly(functools.partial(self._take_turns, todo, router))
            lost = await self._write(transaction, router)
            if lost:
                await self._drop_repeated_starts(transaction, lost)
            await self._commit(transaction)
        except BaseException:
            await transaction.rollback()
            self._discard(router)
            raise
        settled = settle(router, self._taken, self._gate.parked, lost, self._cache)
        settled.again[:0] = self._gate.settle(self._taken, lost)
        return settled

    async def _write(self, transaction: Transaction, router: Router) -> set[str]:
        """Write the turns, parents before the children that they started in this batch. Which of them are lost."""
        writes = [(one.work, one.write) for one in self._taken if one.write is not None]
        lost = await transaction.write([write for work, write in writes if not work.generation], router.loose.write)
        for generation in range(1, self._joining.generations + 1):
            born = [(work, write) for work, write in writes if work.generation == generation]
            lost.update(work.execution_id for work, _ in born if work.parent in lost)
            turns = [write for work, write in born if work.execution_id not in lost]
            lost |= await transaction.write(turns, LooseWrite())
        return lost

    async def _drop_repeated_starts(self, transaction: Transaction, lost: set[str]) -> None:
        """A start that came by the inbox and whose execution exists was handled before: it is taken away."""
        starts = {
            one.work.execution_id: one.work.sources[0]
            for one in self._taken
            if one.work.new is not None and one.work.execution_id in lost
        }
        if starts:
            known = await transaction.read_rows(starts)
            rows = [source for execution_id, source in starts.items() if execution_id in known and type(source) is int]
            await transaction.write([], LooseWrite(consumed=rows))

    async def _commit(self, transaction: Transaction) -> None:
        try:
            await transaction.commit()
        except OutcomeUnknown as error:
            if not await self._store.was_committed(transaction):
                raise StoreUnavailable(
                    "Expected to commit, but the connection broke and nothing was stored. Try again."
                ) from error

    def _discard(self, router: Router) -> None:
        """Nothing was committed: every program that may have moved is thrown away."""
        for work in router.work.values():
            if work.live is not None:
                work.live.program.close()
        for one in self._taken:
            one.live.program.close()

    # --- loading ---

    async def _load(self, transaction: Transaction, router: Router, works: list[Work]) -> None:
        """Give each execution its program."""
        stored: dict[str, Work] = {}
        for work in works:
            if work.new is not None:
                self._make_new(work, router)
            else:
                stored[work.execution_id] = work
        if stored:
            for work, error in await self._loader.load(transaction, router, stored):
                if isinstance(error, Failure):
                    self._block(work, router, error)
                else:
                    self._gate.parked.append(work.execution_id)
                    self._set_aside(work, router, error)

    def _make_new(self, work: Work, router: Router) -> None:
        assert work.new is not None  # noqa: S101 - asked only for new ones
        if not self._gate.may_begin(work):
            return
        execution = Execution.register(work.org, work.new, self._now)
        try:
            program = self._make_program(execution)
        except UnknownWorkflow as error:
            self._refuse_new(work, router, error)
            return
        except Exception as error:  # noqa: BLE001 - one poison envelope must not stop the others
            self._set_aside(work, router, error)
            return
        self._loader.note_version(execution, program)
        work.live = Live(execution, program, None, 0)

    def _refuse_new(self, work: Work, router: Router, error: UnknownWorkflow) -> None:
        """A start whose workflow is not known here: callers were told before; a parent hears of it now."""
        assert work.new is not None  # noqa: S101 - asked only for new ones
        router.loose.refuse_child(work.new, work.org, describe_exception(error))
        for envelope, source in zip(work.arrived, work.sources, strict=True):
            if isinstance(source, Request):
                router.answers.append((source, error))
            elif source is not None:
                router.loose.refuse_row(source, envelope, error)
        work.clear()

    # --- turns ---

    def _take_turns(self, works: list[Work], router: Router) -> list[Work]:
        """Take every turn; what comes back has to be loaded and taken in the same batch."""
        self._more = []
        for work in works:
            if work.live is None or not work.arrived:
                continue
            try:
                self._take_one(work, work.live, router)
            except Exception as error:  # noqa: BLE001 - one poison envelope must not stop the others
                self._poison(work, router, error)
        return self._more

    def _take_one(self, work: Work, live: Live, router: Router) -> None:
        if type(live.program) is NoProgram and not work.put_terminate_first():
            self._gate.park(work, router, router.rows.get(work.execution_id))
            return
        if work.runs_before > self._limits.max_signals + SPARE_RUNS:
            live.program.close()
            self._fail_new(work, router, describe_exception(_never_rests(work)))
            return
        turn = take_turn(live.execution, live.program, work.arrived, self._now, self._limits, hold_signals=work.retaken)
        if turn.unseen_signals and not work.retaken:
            live.program.close()
            work.live, work.retaken = None, True
            self._more.append(work)
            return
        if turn.blocked is not None and work.new is None and work.put_terminate_first():
            live.program.close()
            work.live, work.ends = None, True
            self._more.append(work)
            return
        if turn.blocked is not None:
            self._block(work, router, turn.blocked)
            return
        self._finish_turn(work, live, turn, router)

    def _finish_turn(self, work: Work, live: Live, turn: Turn, router: Router) -> None:
        execution = live.execution
        bury_refused(work, turn)
        if execution.details.tries:
            execution.details.tries, execution.details.trying, turn.changed = 0, "", True
        if not turn.writes:
            router.loose.consume(*work.consumed)
            self._taken.append(Taken(work, live, turn, None))
            return
        if turn.outgoing and self._joining.room:
            self._more += self._joining.take_children(work, turn)
        place_activities(turn, self._node, self._may_keep)
        execution.details.last_node = self._node
        row = live.row
        expected = execution.state_version if row is not None else None
        route = row.route or None if row is not None and row.sequence else None  # its first turn may pin it
        self._taken.append(Taken(work, live, turn, make_write(work, execution, turn, expected, self._node, route)))
        if turn.successor is not None:
            self._more.append(follow(work, turn, turn.successor))

    # --- what cannot take its turn ---

    def _block(self, work: Work, router: Router, error: Failure) -> None:
        """The code does not fit: nothing of the turn is kept, what arrived is parked, and the row says why."""
        live = work.live
        assert live is not None  # noqa: S101 - only loaded ones are blocked
        live.program.close()
        if live.row is None or live.row.sequence == 0:
            # Its first turn is what cannot be taken. It fails instead of leaving nothing behind.
            self._fail_new(work, router, error)
            return
        execution = from_row(live.row)
        execution.block(error, live.program.code_version)
        expected = execution.state_version
        execution.state_version += 1
        blocked = Live(execution, NoProgram(), live.row, 0)
        turn = Turn(execution, self._now, self._limits)
        self._taken.append(Taken(work, blocked, turn, TurnWrite(row=to_row(execution), expected_version=expected)))
        self._gate.park(work, router, router.rows.get(work.execution_id))

    def _fail_new(self, work: Work, router: Router, error: Failure) -> None:
        row = work.live.row if work.live is not None else None
        execution = Execution.register(work.org, work.new, self._now) if row is None else from_row(row)  # type: ignore[arg-type]
        program = FailingProgram(error)
        turn = take_turn(execution, program, work.arrived, self._now, self._limits, hold_signals=True)
        self._finish_turn(work, Live(execution, program, row, 0), turn, router)

    def _poison(self, work: Work, router: Router, error: Exception) -> None:
        """Handling failed in a way nobody foresaw: the others go on.

        Envelopes from the inbox are tried again some times, then buried; an execution that fails without any is blocked.
        """
        live = work.live
        assert live is not None  # noqa: S101 - only loaded ones take turns
        log.error("a turn of execution %s failed", work.execution_id, exc_info=error)
        if not work.consumed:
            try:
                self._block(work, router, describe_exception(error))
            except Exception as second:  # noqa: BLE001 - what cannot be written at all is nobody's but the caller's
                self._set_aside(work, router, second)
            return
        live.program.close()
        if live.row is not None and read_tries(live.row):
            self._taken.append(clear_tries(work, live.row, self._now, self._limits))
        router.loose.fail_rows(work.consumed, error)
        router.again.extend(source for source in work.sources if isinstance(source, Request))
        work.arrived.clear()
        work.sources.clear()

    def _set_aside(self, work: Work, router: Router, error: Exception) -> None:
        """It cannot be loaded, or not be written: who asked is told, the rest is kept; the others go on."""
        if work.parent:
            raise error  # it comes by the inbox next time, when the batch is smaller
        log.error("execution %s cannot take a turn", work.execution_id, exc_info=error)
        if work.new is not None:
            router.loose.fail_rows(work.consumed, error)
        for envelope, source in zip(work.arrived, work.sources, strict=True):
            if isinstance(source, Request) and source.future is not None:
                router.answers.append((source, error))
            elif isinstance(source, Request):
                router.loose.send(work.org, work.execution_id, envelope)
        work.arrived.clear()
        work.sources.clear()


def _never_rests(work: Work) -> TurnTooLong:
    return TurnTooLong(
        f"Expected workflow '{work.new.workflow if work.new is not None else ''}' to come to rest, but it continued "
        f"{work.runs_before} times without waiting for anything. Let each run wait before it calls continue_as."
    )
