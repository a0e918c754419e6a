"""How executions get their programs: from the cache, caught up with what other nodes did since, or by replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.behaviours import check_known
from holdfast.core.chains import Chain
from holdfast.core.envelopes import Terminate
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.instants import Instant
from holdfast.core.turn import fold
from holdfast.engine.payload_codecs import check_decoded
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.turns.batch_effects import Prefetch
from holdfast.engine.turns.handoff import keep_rows
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.pending_turns import PendingTurn, ends_for_good
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.errors import CodecMissing, CorruptStore, HoldfastError, NewerFormat, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.instants import Instant
    from holdfast.core.program import Program
    from holdfast.engine.turns.admission import Admission
    from holdfast.engine.turns.batch_effects import BatchEffects
    from holdfast.engine.turns.claims import Claims
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.engine.turns.services import TurnServices
    from holdfast.store.contract import Transaction
    from holdfast.store.rows import ExecutionRow, HistoryRow

Unloadable = tuple["PendingTurn", Failure | Exception]
"""An execution that cannot take its turn: its code does not fit its history, or it cannot be loaded at all."""


class Loader:
    """Loads the executions of one batch, which are locked; those with long histories are left to the prefetch."""

    def __init__(
        self, services: TurnServices, claims: Claims, admission: Admission, prefetch: HistoryPrefetch, effects: BatchEffects
    ) -> None:
        self._services = services
        self._claims = claims
        self._admission = admission
        self._prefetch = prefetch
        self._effects = effects

    async def take_from_cache(self, transaction: Transaction, turns: dict[str, PendingTurn]) -> dict[str, PendingTurn]:
        """Take from memory what is there, and decide who takes a turn now. Who has to be replayed; no code runs yet."""
        cache, claims = self._services.cache, self._claims
        old: dict[str, PendingTurn] = {}
        for execution_id, turn in turns.items():
            is_new = turn.retaken or self._admission.leaves_values
            live = turn.live = None if is_new else cache.take(execution_id)
            if live is None or live.execution.state_version != claims.version_of(execution_id):
                old[execution_id] = turn
            elif execution_id in claims.rows and _is_of_another_past(live, claims.rows[execution_id]):
                old[execution_id] = turn  # the database went back in between
            elif live.execution.details.tries or live.execution.details.suspect:
                old[execution_id] = turn  # it is in quarantine: though it is in memory, it may not go on like others
            elif self._admission.is_paused(live.execution):
                old[execution_id] = turn  # whoever is addressed directly, as by a termination, is claimed in spite of that
        self._prefetch.forget(execution_id for execution_id, turn in turns.items() if turn.live is not None)
        if not old:
            return old
        missing = [execution_id for execution_id in old if execution_id not in claims.rows]
        if missing:
            claims.rows.update(await transaction.read_rows(missing))
        for turn in old.values():
            self._keep_if_it_can_catch_up(turn, claims.rows.get(turn.execution_id))
        self._admit(old)
        self._leave_long_ones(old)
        return old

    async def catch_up(self, transaction: Transaction, old: dict[str, PendingTurn]) -> list[Unloadable]:
        """Bring each execution to the version that is locked, by replay: that runs its code."""
        after = {execution_id: _read_after(turn) for execution_id, turn in old.items()}
        histories = await transaction.read_history(after)
        foreign = {turn.execution_id: 0 for turn in old.values() if not self._continues(turn, histories)}
        if foreign:
            self._services.on_older_row()
            histories.update(await transaction.read_history(foreign))
        return call_outside_task(self._catch_up_all, old, histories)

    def _continues(self, turn: PendingTurn, histories: dict[str, list[HistoryRow]]) -> bool:
        """Whether a history goes on from the program in memory; else that is of another past, and is unloaded.

        The last turn that the program stands for was read again: it is compared, and left out of what is to be replayed.
        """
        live = turn.live
        if live is None or not live.last_turn[0]:
            return True
        history = histories.get(turn.execution_id)
        if not history or (history[0].first, history[0].at) != live.last_turn:
            turn.unload()
            return False
        histories[turn.execution_id] = history[1:]
        return True

    def _keep_if_it_can_catch_up(self, turn: PendingTurn, row: ExecutionRow | None) -> None:
        """What is in memory is good for catching up if it is behind, and the code here still is what is to go on."""
        live = turn.live
        if live is None:
            return
        try:
            is_good = (
                row is not None
                and row.sequence >= live.execution.sequence
                and row.state_version >= live.execution.state_version
                and self._fits(from_row(row), turn)
            )
        except (CorruptStore, NewerFormat):
            is_good = False  # found again where it is handled
        if row is not None and _is_of_another_past(live, row):
            is_good = False
            self._services.on_older_row()
        if not is_good:
            turn.unload()

    def _admit(self, old: dict[str, PendingTurn]) -> None:
        """Leave those in `old` that take their turns now; the others need no program."""
        for execution_id, turn in list(old.items()):
            row = self._claims.rows.get(execution_id)
            if row is not None and not self._admission.admit(turn, row):
                del old[execution_id]
                turn.unload()

    def _leave_long_ones(self, old: dict[str, PendingTurn]) -> None:
        for execution_id, turn in list(old.items()):
            row = self._claims.rows.get(execution_id)
            if row is None or not self._is_long(turn, row):
                continue
            if self._prefetch.wants(execution_id):
                del old[execution_id]
                self._effects.prefetches.append(Prefetch(turn.org, execution_id, turn.requests))
                keep_rows(turn, row.route, self._effects.unrouted)
                turn.clear()
                turn.unload()

    def _is_long(self, turn: PendingTurn, row: ExecutionRow) -> bool:
        """Whether too much has to be replayed under the lock.

        What is terminated is so at once, though: another execution may be about to take its workflow id. And a suspect is
        replayed where it was noted that it may end the process.
        """
        if row.sequence - _sequence_of(turn) < self._services.config.replay_ahead or turn.retaken or turn.needs_no_program:
            return False
        if self._admission.is_tried(turn.execution_id):
            return False
        return not any(type(arrival.envelope) is Terminate for arrival in turn.arrivals)

    def _catch_up_all(self, old: dict[str, PendingTurn], histories: dict[str, list[HistoryRow]]) -> list[Unloadable]:
        unloadable: list[Unloadable] = []
        with self._services.cpu_timer:
            for execution_id, turn in old.items():
                row = self._claims.rows.get(execution_id)
                if row is None:
                    continue
                try:
                    blocked = self._catch_up(turn, row, histories.get(execution_id, []))
                except Exception as error:  # noqa: BLE001 - one damaged row must not stop the others
                    turn.unload()
                    unloadable.append((turn, error))
                    continue
                if blocked is not None and not self._end_without_program(turn):
                    unloadable.append((turn, blocked))
        return unloadable

    def _catch_up(self, turn: PendingTurn, row: ExecutionRow, history: Sequence[HistoryRow]) -> Failure | None:
        """Bring an execution to its row, from what is in memory or from its beginning. The failure, if its code differs."""
        execution = from_row(row)
        if turn.live is None:
            program, history_bytes = self._find_program(execution, turn), 0
            if row.sequence == 0 and type(program) is not NoProgram:
                self.note_version(execution, program)
        else:
            program, history_bytes = turn.live.program, turn.live.history_bytes
            execution.take_open_from(turn.live.execution)
        last_turn = find_last_turn(history) if history or turn.live is None else turn.live.last_turn
        size = history_bytes + sum(len(one.body) for one in history)
        turn.live = LiveExecution(execution, program, row, size, last_turn)
        try:
            blocked = replay(execution, program, history, self._services.clock.now())
        except CodecMissing as error:
            if not any(ends_for_good(arrival.envelope, execution) for arrival in turn.arrivals):
                raise
            blocked = describe_exception(error)  # no value is needed to end it
        except NewerFormat:
            raise  # a node that can read it takes its turn, also if it is to be terminated
        except HoldfastError as error:  # a history that cannot be decoded
            blocked = describe_exception(error)
        return None if type(program) is NoProgram else blocked

    def _end_without_program(self, turn: PendingTurn) -> bool:
        """Whether it is to be terminated: for that, no program is needed."""
        live = turn.live
        if live is None or not turn.put_terminate_first():
            return False
        live.program.close()
        turn.live = LiveExecution(live.execution, NoProgram(), live.row, 0)
        return True

    def _find_program(self, execution: Execution, turn: PendingTurn) -> Program:
        if self._fits(execution, turn):
            try:
                return self._services.make_program(execution)
            except UnknownWorkflow:
                pass  # another node may know it
        return NoProgram()

    def _fits(self, execution: Execution, turn: PendingTurn) -> bool:
        return execution.status != "blocked" and not turn.needs_no_program and self._services.routes.fits(execution)

    def note_version(self, execution: Execution, program: Program) -> None:
        """Note in an execution that takes its first turn which version of the code takes it, and how that is retried."""
        execution.code_version = program.code_version
        definition, details = program.definition, execution.details
        if definition is None:
            return
        if definition.is_pinned:
            details.pinned = True
        if definition.retry is not None and (details.chain is None or details.chain.retry is None):
            details.chain = msgspec.structs.replace(details.chain or Chain(), retry=definition.retry)


def replay(execution: Execution, program: Program, history: Sequence[HistoryRow], clock: Instant) -> Failure | None:
    """Let an execution and its program go through what happened. The failure, if the program does not agree with it.

    Raises CorruptStore, NewerFormat or CodecMissing if the history cannot be read.
    """
    turns = to_turns(history)
    fold(execution, turns, clock)
    if type(program) is not NoProgram:
        for row, turn in zip(history, turns, strict=True):
            check_decoded(row.body, turn.events)
    if execution.behaviours:
        check_known(execution.behaviours)
    return program.apply(turns)


def find_last_turn(history: Sequence[HistoryRow]) -> tuple[int, Instant]:
    """The first event of the last row of a history, and its time; zeros if there is none."""
    return (history[-1].first, history[-1].at) if history else (0, 0)


def _is_of_another_past(live: LiveExecution, row: ExecutionRow) -> bool:
    """Whether a locked row cannot come after the one that a program stands for: the database went back in between."""
    if row.state_version != live.execution.state_version:
        return row.state_version < live.execution.state_version
    return live.row is not None and live.row.updated_at != row.updated_at


def _read_after(turn: PendingTurn) -> int:
    """Behind which event a history is to be read: the last turn that the program in memory stands for comes again."""
    return _sequence_of(turn) if turn.live is None or not turn.live.last_turn[0] else turn.live.last_turn[0] - 1


def _sequence_of(turn: PendingTurn) -> int:
    return 0 if turn.live is None else turn.live.execution.sequence
