"""How executions get their programs: from the cache, caught up with what other nodes did since, or by replay.

A replay begins with the snapshot of the execution, if its row names one (`engine.turns.snapshots`), else with its first
event. What would take long under the lock is left to the prefetch, and its turn put off: a long history, and the execution
of a process that is not compiled yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.core.behaviours import check_known
from holdfast.core.chains import Chain
from holdfast.core.envelopes import Terminate
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.instants import Instant
from holdfast.core.snapshots import Snapshot
from holdfast.core.turn import fold
from holdfast.engine.payload_codecs import check_decoded
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.turns.batch_effects import Prefetch
from holdfast.engine.turns.handoff import keep_rows
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.pending_turns import PendingTurn, ends_for_good
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.snapshots import (
    continues,
    first_to_read,
    may_have_snapshot,
    read_snapshot,
    restore_snapshot,
)
from holdfast.errors import CodecMissing, CorruptStore, HoldfastError, NewerFormat, UnknownWorkflow
from holdfast.store.attributes import is_process

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
        found = await self._read_snapshots(transaction, old)
        after |= {execution_id: first_to_read(one.snapshot) for execution_id, one in found.items()}
        histories = await transaction.read_history(after)
        unusable: dict[str, PendingTurn] = {}
        if found:
            unusable = {
                execution_id: old[execution_id]
                for execution_id, one in found.items()
                if not continues(one.snapshot, histories.get(execution_id, ()))
            }
            histories |= {execution_id: histories[execution_id][1:] for execution_id in found.keys() - unusable.keys()}
            old = {execution_id: turn for execution_id, turn in old.items() if execution_id not in unusable}
        foreign = {turn.execution_id: 0 for turn in old.values() if not self._continues(turn, histories)}
        if foreign:
            self._services.on_older_row()
            histories.update(await transaction.read_history(foreign))
        unloadable, unrestored = call_outside_task(self._catch_up_all, old, histories, found)
        unusable |= unrestored
        self._leave_long_ones(unusable, use_snapshots=False)
        if unusable:
            histories = await transaction.read_history(dict.fromkeys(unusable, 0))
            more, _ = call_outside_task(self._catch_up_all, unusable, histories, {})
            unloadable += more
        return unloadable

    async def _read_snapshots(self, transaction: Transaction, old: dict[str, PendingTurn]) -> dict[str, _Found]:
        """The snapshots from which executions can be replayed that have no program in memory."""
        rows = self._claims.rows
        wanted = [
            execution_id
            for execution_id, turn in old.items()
            if turn.live is None and execution_id in rows and may_have_snapshot(rows[execution_id])
        ]
        if not wanted:
            return {}
        found: dict[str, _Found] = {}
        for execution_id, stored in (await transaction.read_snapshots(wanted)).items():
            try:
                snapshot = read_snapshot(stored, from_row(rows[execution_id]))
            except (CorruptStore, NewerFormat):
                continue  # of its row, which is found again where it is handled
            if snapshot is not None:
                found[execution_id] = _Found(snapshot, len(stored.body))
        return found

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
        if row is not None and is_good and may_have_snapshot(row):
            is_good = (from_row(row).details.snapshot or 0) - live.execution.sequence < self._services.config.replay_ahead
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

    def _leave_long_ones(self, old: dict[str, PendingTurn], *, use_snapshots: bool = True) -> None:
        """Put off those in `old` whose replay would take long, or whose process is not compiled."""
        for execution_id, turn in list(old.items()):
            row = self._claims.rows.get(execution_id)
            if row is None or not self._is_long(turn, row, use_snapshots=use_snapshots):
                continue
            if self._prefetch.wants(execution_id):
                del old[execution_id]
                self._effects.prefetches.append(Prefetch(turn.org, execution_id, turn.requests))
                keep_rows(turn, row.route, self._effects.unrouted)
                turn.clear()
                turn.unload()

    def _is_long(self, turn: PendingTurn, row: ExecutionRow, *, use_snapshots: bool) -> bool:
        """Whether too much has to be replayed under the lock, or its process compiled.

        What is terminated is so at once, though: another execution may be about to take its workflow id. And a suspect is
        replayed where it was noted that it may end the process.
        """
        if turn.retaken or turn.needs_no_program or any(type(arrival.envelope) is Terminate for arrival in turn.arrivals):
            return False
        if turn.live is None and not self._is_ready(row):
            return True
        behind, most = row.sequence - _sequence_of(turn), self._services.config.replay_ahead
        if behind < most or self._admission.is_tried(turn.execution_id):
            return False
        if use_snapshots and turn.live is None and may_have_snapshot(row):
            behind -= _read_sequence(row)
        return behind >= most

    def _is_ready(self, row: ExecutionRow) -> bool:
        """Whether the program of an execution can be made at once: that of code always."""
        return not is_process(row.details) or self._services.processes.is_ready(row.org, row.workflow, row.code_version)

    def _catch_up_all(
        self, old: dict[str, PendingTurn], histories: dict[str, list[HistoryRow]], found: dict[str, _Found]
    ) -> tuple[list[Unloadable], dict[str, PendingTurn]]:
        """Those that cannot be loaded; and those that do not fit their snapshot, and have to be replayed as a whole."""
        unloadable: list[Unloadable] = []
        unrestored: dict[str, PendingTurn] = {}
        with self._services.cpu_timer:
            for execution_id, turn in old.items():
                row = self._claims.rows.get(execution_id)
                if row is None:
                    continue
                snapshot = found.get(execution_id)
                try:
                    blocked = self._catch_up(turn, row, histories.get(execution_id, []), snapshot)
                except _NotRestored:
                    turn.unload()
                    unrestored[execution_id] = turn
                    continue
                except Exception as error:  # noqa: BLE001 - one damaged row must not stop the others
                    turn.unload()
                    unloadable.append((turn, error))
                    continue
                if blocked is not None and snapshot is not None:
                    turn.unload()  # the snapshot may be what does not fit
                    unrestored[execution_id] = turn
                elif blocked is not None and not self._end_without_program(turn):
                    unloadable.append((turn, blocked))
        return unloadable, unrestored

    def _catch_up(
        self, turn: PendingTurn, row: ExecutionRow, history: Sequence[HistoryRow], found: _Found | None
    ) -> Failure | None:
        """Bring an execution to its row, from what is in memory, from a snapshot or from its beginning.

        The failure, if its code differs.
        """
        execution = from_row(row)
        if turn.live is None:
            live = LiveExecution(execution, self._find_program(execution, turn), row, 0)
            turn.live = live
            if row.sequence == 0 and type(live.program) is not NoProgram:
                note_version(execution, live.program)
            if found is not None:
                self._restore(live, found)
        else:
            live = turn.live = _go_on(turn.live, execution, row)
        program = live.program
        live.note_history(history)
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

    def _restore(self, live: LiveExecution, found: _Found) -> None:
        snapshot = found.snapshot
        if not restore_snapshot(live.execution, live.program, snapshot, self._services.clock.now()):
            raise _NotRestored
        live.note_snapshot(snapshot, found.size)

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


class _NotRestored(Exception):
    """The program of an execution did not take a snapshot."""


class _Found(NamedTuple):
    """A snapshot that may be of use, and its size."""

    snapshot: Snapshot
    size: int


def note_version(execution: Execution, program: Program) -> None:
    """Note in an execution that takes its first turn which version of the code takes it, and how that is retried."""
    execution.code_version = program.code_version
    definition, details = program.definition, execution.details
    if definition is None:
        return
    if definition.is_pinned:
        details.pinned = True
    if definition.retry is not None and (details.chain is None or details.chain.retry is None):
        details.chain = msgspec.structs.replace(details.chain or Chain(), retry=definition.retry)


def _go_on(live: LiveExecution, execution: Execution, row: ExecutionRow) -> LiveExecution:
    """A program in memory with the newer row of its execution; what happened between the two must be replayed."""
    execution.take_open_from(live.execution)
    later = LiveExecution(execution, live.program, row, live.history_bytes, live.last_turn)
    later.snapshot_from, later.snapshot_size = live.snapshot_from, live.snapshot_size
    if execution.details.snapshot != live.execution.details.snapshot:
        later.snapshot_from = live.history_bytes  # another node has written one since
    return later


def _read_sequence(row: ExecutionRow) -> int:
    """The sequence of the snapshot of an execution; 0 if it has none, or cannot be read."""
    try:
        return from_row(row).details.snapshot or 0
    except (CorruptStore, NewerFormat):
        return 0


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
