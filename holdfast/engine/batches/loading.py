"""How executions get their programs: from the cache, caught up with what other nodes did since, or by replay."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.envelopes import Terminate
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.turn import fold
from holdfast.engine.batches.care import read_tries
from holdfast.engine.batches.leaving import keep_rows
from holdfast.engine.batches.plain_calls import call_plainly
from holdfast.engine.batches.programs import Live, MakeProgram, ProgramCache
from holdfast.engine.batches.stand_ins import NoProgram
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import CorruptStore, HoldfastError, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.program import Program
    from holdfast.engine.batches.care import Care
    from holdfast.engine.batches.gate import Gate
    from holdfast.engine.batches.routing import Router
    from holdfast.engine.batches.warming import Warming
    from holdfast.engine.batches.work import Work
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import ExecutionRow, HistoryRow, Transaction

Trouble = tuple["Work", Failure | Exception]
"""An execution that cannot take its turn: its code does not fit, or it cannot be loaded at all."""


class Loader:
    """Loads the executions of one batch, which are locked; the long histories among them are left to `warming`."""

    def __init__(
        self,
        cache: ProgramCache,
        make_program: MakeProgram,
        routes: Routes,
        care: Care,
        gate: Gate,
        warming: Warming,
        longest: int,
    ) -> None:
        self._cache = cache
        self._make_program = make_program
        self._routes = routes
        self._care = care
        self._gate = gate
        self._warming = warming
        self._longest = longest

    async def load(self, transaction: Transaction, router: Router, works: dict[str, Work]) -> list[Trouble]:
        """Give each execution its program, at the version that is locked; those that take no turn now get none."""
        old: dict[str, Work] = {}
        for execution_id, work in works.items():
            live = work.live = None if work.retaken else self._cache.take(execution_id)
            if live is None or self._care.is_taken or live.execution.state_version != router.version_of(execution_id):
                old[execution_id] = work
        self._warming.forget(execution_id for execution_id, work in works.items() if work.live is not None)
        if not old:
            return []
        missing = [execution_id for execution_id in old if execution_id not in router.rows]
        if missing:
            router.rows.update(await transaction.read_rows(missing))
        for work in old.values():
            self._keep_if_it_can_catch_up(work, router.rows.get(work.execution_id))
        self._pick(old, router)
        self._leave_long_ones(old, router)
        if not old:
            return []
        after = {execution_id: _sequence_of(work) for execution_id, work in old.items()}
        histories = await transaction.read_history(after)
        return await call_plainly(functools.partial(self._catch_up_all, old, router, histories))

    def _keep_if_it_can_catch_up(self, work: Work, row: ExecutionRow | None) -> None:
        """What is in memory is good for catching up if it is behind, and the code here still is what is to go on."""
        live = work.live
        if live is None:
            return
        try:
            is_good = (
                row is not None
                and row.sequence >= live.execution.sequence
                and row.state_version >= live.execution.state_version
                and not self._care.is_taken
                and self._fits(from_row(row), work)
            )
        except CorruptStore:
            is_good = False  # found again where it is handled
        if not is_good:
            work.unload()

    def _pick(self, old: dict[str, Work], router: Router) -> None:
        """Those that take their turns now are left in `old`; the others need no program."""
        works = list(old.values())
        self._gate.pick(old, router)
        for work in works:
            if work.execution_id not in old:
                work.unload()

    def _leave_long_ones(self, old: dict[str, Work], router: Router) -> None:
        for execution_id, work in list(old.items()):
            row = router.rows.get(execution_id)
            if row is None or not self._is_long(work, row):
                continue
            if self._warming.wants(execution_id):
                del old[execution_id]
                router.cold.append((work.org, execution_id, work.requests))
                keep_rows(work, router, row.route)
                work.clear()
                work.unload()

    def _is_long(self, work: Work, row: ExecutionRow) -> bool:
        """Whether too much has to be replayed. What may end the process is replayed where that was noted, though.

        And what is terminated is so at once: another may be about to take its workflow id.
        """
        if row.sequence - _sequence_of(work) < self._longest or work.retaken or work.ends:
            return False
        if self._care.is_taken or read_tries(row):
            return False
        return not any(type(envelope) is Terminate for envelope in work.arrived)

    def _catch_up_all(self, old: dict[str, Work], router: Router, histories: dict[str, list[HistoryRow]]) -> list[Trouble]:
        troubles: list[Trouble] = []
        for execution_id, work in old.items():
            row = router.rows.get(execution_id)
            if row is None:
                continue
            try:
                blocked = self._catch_up(work, row, histories.get(execution_id, []))
            except Exception as error:  # noqa: BLE001 - one damaged row must not stop the others
                work.unload()
                troubles.append((work, error))
                continue
            if blocked is not None and not self._end_without_program(work):
                troubles.append((work, blocked))
        return troubles

    def _catch_up(self, work: Work, row: ExecutionRow, history: Sequence[HistoryRow]) -> Failure | None:
        """Bring an execution to its row, from what is in memory or from its beginning. The failure, if its code differs."""
        execution = from_row(row)
        if work.live is None:
            program, weight = self._find_program(execution, work), 0
            if row.sequence == 0 and type(program) is not NoProgram:
                self.note_version(execution, program)
        else:
            program, weight = work.live.program, work.live.weight
            execution.take_open_from(work.live.execution)
        work.live = Live(execution, program, row, weight + sum(len(one.body) for one in history))
        try:
            blocked = replay(execution, program, history)
        except HoldfastError as error:  # a history that cannot be decoded
            blocked = describe_exception(error)
        return None if type(program) is NoProgram else blocked

    def _end_without_program(self, work: Work) -> bool:
        """Whether it is to be terminated: for that, no program is needed."""
        live = work.live
        if live is None or not work.put_terminate_first():
            return False
        live.program.close()
        work.live = Live(live.execution, NoProgram(), live.row, 0)
        return True

    def _find_program(self, execution: Execution, work: Work) -> Program:
        if self._fits(execution, work):
            try:
                return self._make_program(execution)
            except UnknownWorkflow:
                pass  # another node may know it
        return NoProgram()

    def _fits(self, execution: Execution, work: Work) -> bool:
        return execution.status != "blocked" and not work.ends and self._routes.fits(execution)

    def note_version(self, execution: Execution, program: Program) -> None:
        """At its first turn an execution is of the code that takes it."""
        execution.code_version = program.code_version
        execution.details.pinned = self._routes.is_pinned(execution.workflow)


def replay(execution: Execution, program: Program, history: Sequence[HistoryRow]) -> Failure | None:
    """Let an execution and its program go through what happened. The failure, if the program does not agree with it."""
    turns = to_turns(history)
    fold(execution, turns)
    step = program.apply(turns)
    return step.commands[0].error if step.commands else None  # type: ignore[union-attr]  # it is a Block


def _sequence_of(work: Work) -> int:
    return 0 if work.live is None else work.live.execution.sequence
