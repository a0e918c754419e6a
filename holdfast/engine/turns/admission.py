"""Which of a batch's executions take their turns in it; the others are left to other nodes, parked, or noted as suspects."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from holdfast.core.effects import Limits, Turn
from holdfast.core.envelopes import ActivityBeat, ActivityBegan, Redispatch
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.core.placing import clear_ended_suspects
from holdfast.engine.quarantine import Verdict, make_block_reason
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.turns.batch_effects import BatchEffects, Noted
from holdfast.engine.turns.claims import ClaimTarget
from holdfast.engine.turns.handoff import keep_rows, leave_to_others, register, register_next_run
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.pending_turns import PendingTurn, ends_for_good
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.taken_turns import TakenTurn
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ExecutionRow

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.engine.turns.pauses import PauseView
    from holdfast.engine.turns.services import TurnServices

_PASSIVE: Final = frozenset({ActivityBeat, ActivityBegan, Redispatch})
"""Envelopes that never make a program run: whoever gets nothing else is in no danger."""


class Admission:
    """Decides about the executions of one batch, before anything of theirs is loaded. `trial`: suspects that it tries."""

    def __init__(
        self,
        services: TurnServices,
        pauses: PauseView,
        effects: BatchEffects,
        now: Instant,
        trial: Collection[str],
        *,
        leaves_values: bool = False,
    ) -> None:
        self._services = services
        self._pauses = pauses
        self._effects = effects
        self._now = now
        self._trial = trial
        self.leaves_values = leaves_values
        """Whether values stay encoded, so that no program can run."""
        self._limits = services.limits

    def is_tried(self, execution_id: str) -> bool:
        """Whether the batch is the trial of an execution."""
        return execution_id in self._trial

    def is_paused(self, one: ExecutionRow | Execution) -> bool:
        """Whether the workflow or the queue of an execution is paused."""
        return self._pauses.any and self._pauses.covers(one)

    def admit(self, turn: PendingTurn, row: ExecutionRow) -> bool:
        """Whether an execution takes its turn. To be terminated, none of its code is needed: that anybody may be."""
        services = self._services
        if not services.routes.may_take(row.route):
            if turn.put_terminate_first():
                return True
            self._effects.answers += leave_to_others(turn, row.route, self._effects.unrouted)
            turn.clear()
            return False
        if row.status == Status.BLOCKED:
            if turn.put_terminate_first():
                return True
            self._effects.park(turn, row.route)
            return False
        if row.status == Status.PAUSED or self.is_paused(row):
            turn.needs_no_program = turn.put_terminate_first() and _needs_no_program(turn, row)
            if not turn.needs_no_program:
                self._effects.park(turn, row.route)
            return turn.needs_no_program
        if self.leaves_values:
            turn.needs_no_program = turn.put_terminate_first()
            if not turn.needs_no_program:
                self._effects.park(turn, row.route)
            return turn.needs_no_program
        if turn.retaken or turn.needs_no_program or is_passive(turn):
            return True
        verdict = services.quarantine.judge(turn.execution_id, row, self._trial, was_in_flight=False)
        return self._isolate(turn, row, verdict)

    def admit_new(self, turn: PendingTurn) -> bool:
        """Whether a new execution takes its first turn now. Else it is made, and waits for a node that does."""
        assert turn.start is not None  # noqa: S101 - asked only for new ones
        if self._services.quarantine.is_apart(turn.execution_id) and not self.is_tried(turn.execution_id):
            self._effects.awaiting_trial.append((turn.execution_id, turn.requests))
            turn.clear()
            return False
        is_paused = self._pauses.any and self._pauses.covers_start(turn.org, turn.start)
        if not is_paused and self._services.routes.may_begin(turn.start, turn.org):
            return True
        make = register_next_run if turn.follows else register
        self._effects.taken.append(make(turn, self._now, self._limits))
        return False

    def admit_marked(self, turn: PendingTurn, row: ExecutionRow | None) -> bool:
        """Whether an execution takes its turn although another process was about to, and never committed it."""
        verdict = self._services.quarantine.judge(turn.execution_id, row, self._trial, was_in_flight=True)
        return self._isolate(turn, row, verdict)

    def _isolate(self, turn: PendingTurn, row: ExecutionRow | None, verdict: Verdict) -> bool:
        """Do what the quarantine says; whether the execution takes its turn."""
        if verdict is Verdict.CLEAR:
            return True
        if turn.put_terminate_first() and (verdict is Verdict.BLOCK or _needs_no_program(turn, row)):
            turn.needs_no_program = True
            return True
        turn.unload()
        if verdict is Verdict.AWAITS_TRIAL:
            self._effects.awaiting_trial.append((turn.execution_id, turn.requests))
            keep_rows(turn, "" if row is None else row.route, self._effects.unrouted)  # so that it can be skipped
            turn.clear()
        elif verdict is Verdict.NOTE_FIRST:
            self._note_or_postpone(turn, row)
        elif row is not None and verdict is Verdict.BLOCK:
            self._block(turn, row)
        else:
            self._effects.park(turn, "" if row is None else row.route)
        return False

    def _note_or_postpone(self, turn: PendingTurn, row: ExecutionRow | None) -> None:
        """Note a suspect, or let it wait until those that are noted have been tried."""
        execution = None if row is None else from_row(row)
        tries = 1 if execution is None else execution.details.tries + 1
        if not self._services.quarantine.may_note(tries, [one.tries for one in self._effects.noted]):
            is_cleared = execution is not None and clear_ended_suspects(execution, turn.envelopes)
            self._effects.postponed.append(turn.execution_id)
            if row is not None:
                keep_rows(turn, row.route, self._effects.unrouted)
            self._effects.put_off(turn)
            if is_cleared and execution is not None and row is not None:
                execution.details.suspect = True  # a mark at the version before would no longer tell
                self._write(turn, execution, row)
        elif execution is None or row is None:
            self._note_new(turn)
        else:
            self._note(turn, execution, row)

    def _note(self, turn: PendingTurn, execution: Execution, row: ExecutionRow) -> None:
        """Note in an execution's row that it is about to take a turn. What has arrived waits until that is durable."""
        details = execution.details
        details.tries, details.trying, details.suspect = details.tries + 1, self._services.process, False
        clear_ended_suspects(execution, turn.envelopes)
        target = ClaimTarget(turn.org, turn.execution_id, row.workflow_id)
        self._effects.noted.append(Noted(target, details.tries, turn.requests))
        keep_rows(turn, row.route, self._effects.unrouted)
        turn.clear()
        self._write(turn, execution, row)

    def _note_new(self, turn: PendingTurn) -> None:
        """The same for one that does not exist yet: it is made, and its inbox holds what has arrived."""
        assert turn.start is not None  # noqa: S101 - one without a row is new
        target = ClaimTarget(turn.org, turn.execution_id, turn.start.workflow_id)
        self._effects.noted.append(Noted(target, 1, ()))
        self._effects.taken.append(register(turn, self._now, self._limits, process=self._services.process))

    def _block(self, turn: PendingTurn, row: ExecutionRow) -> None:
        """Block an execution that was tried too often; what it was to take stays in its inbox."""
        execution = from_row(row)
        version = self._services.routes.version_for(execution) or ""
        execution.block(make_block_reason(execution), version, self._now)
        self._effects.park(turn, row.route)
        self._write(turn, execution, row)

    def _write(self, turn: PendingTurn, execution: Execution, row: ExecutionRow) -> None:
        self._effects.taken.append(make_row_change(turn, execution, row, self._now, self._limits))


def make_row_change(turn: PendingTurn, execution: Execution, row: ExecutionRow, now: Instant, limits: Limits) -> TakenTurn:
    """A write that changes the row of an execution, and adds nothing to its history."""
    execution.state_version += 1
    write = TurnWrite(row=to_row(execution), expected_version=row.state_version)
    taken = Turn(execution, now, limits)
    if execution.status == Status.BLOCKED and row.status != Status.BLOCKED:
        taken.blocked = execution.details.last_error
    return TakenTurn(turn, LiveExecution(execution, NoProgram(), row, 0), taken, write)


def is_passive(turn: PendingTurn) -> bool:
    """Whether nothing that has arrived can make the program run."""
    return all(type(arrival.envelope) in _PASSIVE for arrival in turn.arrivals)


def _needs_no_program(turn: PendingTurn, row: ExecutionRow | None) -> bool:
    """Whether a turn ends its execution for good. After a timeout that may be retried, only the code knows what follows."""
    execution = None if row is None else from_row(row)
    return execution is None or any(ends_for_good(arrival.envelope, execution) for arrival in turn.arrivals)
