"""Takes the turns of a batch in memory, one after the other; a turn that cannot be taken does not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from time import monotonic  # the guard puts a slower one into the module
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.effects import Refused, Turn
from holdfast.core.envelopes import (
    ANSWERED,
    ENDING,
    MUST_BE_GIVEN,
    ActivityBegan,
    AnyEnvelope,
    InternalContinue,
    Signal,
    TaskCompleted,
    Terminate,
    Update,
)
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.payloads import Payload
from holdfast.core.placing import MayKeep, place_activities
from holdfast.core.troubles import LetterDiscarded
from holdfast.core.turn import hold, take_turn
from holdfast.core.unused import add
from holdfast.engine.quarantine import clear_note
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.turns.arrivals import Arrival, find_late
from holdfast.engine.turns.handoff import register, register_next_run
from holdfast.engine.turns.inline_children import InlineChildren, make_next_run
from holdfast.engine.turns.null_programs import FailingProgram, NoProgram
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import AnswerRequest
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.engine.turns.taken_turns import TakenTurn
from holdfast.engine.turns.turn_order import SHORT_TURN, TurnKind, find_overtaken
from holdfast.engine.turns.writing import dead_letter_refused, find_refused_update, make_write
from holdfast.errors import HoldfastError, StoreError, TurnTooLarge, TurnTooLong
from holdfast.log_events import LogEvent, tag, tag_execution
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ExecutionRow

if TYPE_CHECKING:
    from holdfast.engine.turns.batch_effects import BatchEffects
    from holdfast.engine.turns.services import TurnServices

log = logging.getLogger("holdfast.engine")

RUNS_PER_BATCH: Final = 200
"""How often an execution may continue within one transaction; then its next run begins from its inbox."""
SIGNALS_PER_RUN: Final = 16
"""It may continue more often where many signals wait: once for as many of them. Each transaction touches all that wait, so
what one signal costs in all does not depend on how many there are."""
SPARE_RUNS: Final = 1_000
"""How often an execution may continue without coming to rest and without taking a signal, beyond `max_signals`."""
MOST_SECONDS: Final = 0.5
"""How long the turns of one batch may compute together: a transaction must not hold its locks for long."""
MOST_BYTES: Final = 32 * 1024 * 1024
"""How much history the turns of one batch may write together: a single turn may write more than that."""


class TurnTaker:
    """Takes turns and keeps what comes out of them in the effects of the batch."""

    def __init__(
        self,
        services: TurnServices,
        effects: BatchEffects,
        children: InlineChildren,
        may_keep: MayKeep | None,
    ) -> None:
        self._services = services
        self._effects = effects
        self._clock = services.clock
        self._children = children
        self._may_keep = may_keep
        self._limits = services.limits
        self._lost_closings = services.lost_closings
        self._node = services.node
        self._max_bytes = services.config.max_turn_bytes
        self._following: list[PendingTurn] = []
        self._bytes = 0
        self._until: float | None = None
        """Until when the batch may compute, by the monotonic clock."""

    def take_all(self, turns: Sequence[PendingTurn]) -> list[PendingTurn]:
        """Take every turn; what comes back has to be loaded and taken in the same batch.

        Once the batch has computed for long, or would if it took the next one, or has much to write, those of the plan that
        are left wait for the next batch. Children and next runs that this batch was to begin are made, and begin from their
        inboxes.
        """
        self._following = []
        taken, order = self._effects.taken, self._services.turn_order
        put_off: list[tuple[str, TurnKind]] = []
        now = monotonic()
        has_suspects = bool(self._effects.noted) or self._services.quarantine.is_trying
        if self._until is None:
            self._until = now + MOST_SECONDS
        with self._services.cpu_timer:
            for pending in turns:
                live = pending.live
                if live is None or not pending.arrivals:
                    continue
                length = order.seconds.get(live.execution.workflow, 0.0) if order.seconds else 0.0
                if taken and (self._bytes > MOST_BYTES or now + length > self._until) and not pending.retaken:
                    if pending.is_planned:
                        put_off.append((pending.execution_id, self._kind_of(pending, live)))
                        self._put_off(pending, live)
                        continue
                    if pending.start is not None:
                        self.leave_to_inbox(pending)
                        continue
                if has_suspects and self._begins_activity(pending):
                    self._put_off(pending, live)
                    continue
                began = now
                try:
                    self._take(pending, live)
                except Exception as error:  # noqa: BLE001 - one poison envelope must not stop the others
                    self._handle_failure(pending, error)
                now = monotonic()
                if now - began > SHORT_TURN or order.seconds:
                    order.note_length(live.execution.workflow, now - began)
        if put_off:
            served = {self._kind_of(one.pending, one.live) for one in taken}
            self._effects.overtaken += find_overtaken(put_off, served)
        return self._following

    def _kind_of(self, pending: PendingTurn, live: LiveExecution) -> TurnKind:
        return self._services.turn_order.kind_of(live.execution.workflow, has_requests=pending.has_requests)

    def _begins_activity(self, pending: PendingTurn) -> bool:
        """Whether a suspect activity is to be noted as begun: not now, or it would be blamed for what is tried next."""
        is_tried = self._services.quarantine.is_noted(pending.execution_id)
        return not is_tried and any(type(arrival.envelope) is ActivityBegan for arrival in pending.arrivals)

    def put_off(self, pending: PendingTurn) -> None:
        """Let a turn wait for the next batch, since somebody is changing what it is about."""
        if pending.live is not None:
            self._put_off(pending, pending.live)

    def _put_off(self, pending: PendingTurn, live: LiveExecution) -> None:
        if pending.start is None and type(live.program) is not NoProgram and live.row is not None:
            self._services.cache.put(live)  # it is where its row is: nothing has moved it
            pending.live = None
        self._effects.put_off(pending)

    def _put_off_rest(self, pending: PendingTurn, handled: int) -> bool:
        """Let what a turn had no time or no room for wait for the next batch: in the inbox, due, or as a request.

        Whether the turn stands. That of a next run does not: it begins from its inbox, and is taken in several turns.
        """
        if pending.follows and pending.waiting:
            self.leave_to_inbox(pending)
            return False
        pending.take_waiting()
        rest = pending.arrivals[handled:]
        if not rest:
            return True
        del pending.arrivals[handled:]
        self._effects.unfinished += [arrival.request for arrival in rest if arrival.request is not None]
        self._effects.has_put_off = True
        return True

    def leave_to_inbox(self, pending: PendingTurn) -> None:
        """Make a child, or the next run of what continued, without its first turn: that it takes from its inbox."""
        pending.unload()
        make = register_next_run if pending.follows else register
        self._effects.taken.append(make(pending, self._clock.now(), self._limits))

    def _take(self, pending: PendingTurn, live: LiveExecution) -> None:
        if type(live.program) is NoProgram and not pending.put_terminate_first():
            self._park(pending, live)
            return
        if pending.runs_before and pending.runs_before > self._limits.max_signals + SPARE_RUNS:
            live.program.close()
            self._fail_new(pending, describe_exception(_never_rests(pending)))
            return
        arrivals, may_go_on = pending.arrivals, None
        if self._lost_closings.losses and self._lost_closings.take_hold(pending.execution_id):
            held = find_held(pending, live, self._max_bytes // 2, self._limits.max_signals)
            if held:
                self._hold(pending, live, held)
                return
        if len(arrivals) > 1:
            pending.arrange()
        arrived: Iterable[AnyEnvelope]
        if pending.waiting is not None:
            arrived = pending.give_in_order()
            may_go_on = _Budget(pending, self._max_bytes // 2, self._until or 0.0)
        elif len(arrivals) == 1:
            arrived = [arrivals[0].envelope]
        else:
            arrived = pending.envelopes
            if pending.start is not None and _count_bytes(arrived) > self._max_bytes // 2:
                self.leave_to_inbox(pending)  # from there it is taken in several turns
                return
            if pending.start is None and not pending.retaken and not any(type(one) in ENDING for one in arrived):
                may_go_on = _Budget(pending, self._max_bytes // 2, self._until or 0.0)
        clock = self._clock.now()
        pending.note_accepted(live.execution)
        turn = take_turn(
            live.execution,
            live.program,
            arrived,
            clock,
            self._limits,
            holds=pending.retaken,
            may_go_on=may_go_on,
            time_of=find_late(arrivals, clock),
            task_standings=pending.task_standings,
            bind_child=self._services.processes.bind_child,
        )
        if turn.handled is not None and not self._put_off_rest(pending, turn.handled):
            return
        if turn.has_unseen and not pending.retaken:
            live.program.close()
            pending.take_waiting()
            pending.live, pending.retaken = None, True
            self._following.append(pending)
        elif turn.blocked is None:
            self._finish(pending, live, turn)
        elif pending.start is None and pending.put_terminate_first():
            live.program.close()
            pending.live, pending.needs_no_program = None, True
            self._following.append(pending)
        else:
            self.block(pending, turn.blocked)

    def _hold(self, pending: PendingTurn, live: LiveExecution, held: list[Arrival]) -> None:
        """Commit signals and updates, without running the program, before a closing; all else waits for the next batch."""
        self._effects.unfinished += pending.requests
        self._effects.has_put_off = True
        pending.arrivals = held
        clock = self._clock.now()
        time_of = find_late(held, clock)
        turn = hold(live.execution, live.program, pending.envelopes, clock, self._limits, time_of=time_of)
        if turn.blocked is None:
            self._finish(pending, live, turn)
        else:
            self.block(pending, turn.blocked)

    def _finish(self, pending: PendingTurn, live: LiveExecution, turn: Turn) -> None:
        """Make what a turn writes of what it collected."""
        execution = live.execution
        if turn.answers:
            if pending.start is not None and (refused := find_refused_update(pending, turn)) is not None:
                self._start_nothing(pending, live, *refused)
                return
            dead_letter_refused(pending, turn)
        if turn.dead_letters and self._services.config.dead_letter_policy == "discard":
            _discard(turn)
        details = execution.details
        if (details.tries or details.suspect) and turn.events:
            clear_note(details)
            turn.changed = True
        if not turn.events and not turn.writes:
            for index, arrival in enumerate(pending.arrivals):
                self._effects.unrouted.consume(arrival)
                answer = turn.answers.get(index) if turn.answers else None
                if type(answer) is Refused and arrival.request is None and isinstance(arrival.envelope, ANSWERED):
                    key = arrival.envelope.request
                    self._effects.unrouted.reply(pending.org, key, pending.execution_id, answer.error)
            self._effects.taken.append(TakenTurn(pending, live, turn, None))
            return
        following = self._children.take_children(pending, turn) if turn.outgoing and self._children.room else ()
        place_activities(turn, self._node, self._may_keep)
        details.last_node = self._node
        expected, route = None, None
        if (row := live.row) is not None:
            expected = execution.state_version
            route = row.route if row.sequence else None  # its first turn may pin it
        write = make_write(pending, live, turn, expected, self._services, route or None)
        if write.history is not None:
            size = len(write.history.body)
            if size > self._max_bytes:
                self._refuse_size(pending, live, _too_large(execution, size, self._max_bytes))
                return
            self._bytes += size + (0 if write.snapshot is None else len(write.snapshot.body))
        self._effects.taken.append(TakenTurn(pending, live, turn, write))
        if execution.closed_at is not None:
            live.program.close()  # while the timer runs, which is for many turns: starting it anew costs two system calls
        if following:
            self._following += following
        if turn.successor is not None:
            self._continue(make_next_run(pending, turn, turn.successor))

    def _start_nothing(self, pending: PendingTurn, live: LiveExecution, update: Arrival, refused: Refused) -> None:
        """The update that was to start an execution is refused: nothing is stored. All else that came for it comes again."""
        effects = self._effects
        live.program.close()
        if update.request is not None:
            effects.answers.append(AnswerRequest(update.request, refused.error))
        elif isinstance(update.envelope, Update):
            effects.unrouted.reply(pending.org, update.envelope.request, pending.execution_id, refused.error)
        effects.unrouted.consume(update)
        others = pending.arrivals[2:]
        effects.unfinished += [one.request for one in others if one.request is not None]
        effects.has_put_off = effects.has_put_off or bool(others)
        pending.clear()

    def _continue(self, following: PendingTurn) -> None:
        """The next run takes its first turn in this batch, unless there were too many before it."""
        signals = 0 if following.waiting is None else len(following.waiting)
        may_begin = following.runs_in_batch < max(RUNS_PER_BATCH, signals // SIGNALS_PER_RUN)
        if may_begin or any(type(arrival.envelope) is Terminate for arrival in following.arrivals[:2]):
            self._following.append(following)
        else:
            self._effects.taken.append(register_next_run(following, self._clock.now(), self._limits))

    # --- what cannot take its turn ---

    def block(self, pending: PendingTurn, error: Failure) -> None:
        """Block an execution whose turn cannot be taken: nothing of it is kept, and what has arrived waits in its inbox."""
        live = pending.live
        assert live is not None  # noqa: S101 - only loaded ones are blocked
        pending.take_waiting()
        live.program.close()
        if live.row is None or live.row.sequence == 0 or from_row(live.row).details.start_at is not None:
            # Its first turn is what cannot be taken. It fails instead of leaving nothing behind.
            self._fail_new(pending, error)
            return
        self._block_row(pending, live.row, error, live.program.code_version)

    def _block_row(self, pending: PendingTurn, row: ExecutionRow, error: Failure, code_version: str) -> None:
        execution, now = from_row(row), self._clock.now()
        execution.block(error, code_version, now)
        expected = execution.state_version
        execution.state_version += 1
        blocked = LiveExecution(execution, NoProgram(), row, 0)
        write = TurnWrite(row=to_row(execution), expected_version=expected)
        turn = Turn(execution, now, self._limits, blocked=error)
        self._effects.taken.append(TakenTurn(pending, blocked, turn, write))
        self._effects.park(pending, row.route)

    def _refuse_size(self, pending: PendingTurn, live: LiveExecution, error: TurnTooLarge) -> None:
        """A turn would write too much: its execution is blocked, or fails if it is new.

        If not even that failure can be written, since too much has arrived with the start: one that has a row is blocked, a
        child or a next run gets a row first, and any other start is refused.
        """
        if type(live.program) is not FailingProgram:
            self.block(pending, describe_exception(error))
        elif live.row is not None:
            self._block_row(pending, live.row, describe_exception(error), "")
        elif pending.is_planned:
            self.fail_callers(pending, error)
        else:
            self.leave_to_inbox(pending)

    def fail_callers(self, pending: PendingTurn, error: Exception) -> None:
        """Fail the callers of an execution that cannot be loaded or written. Its inbox rows stay; the others go on.

        The next run of what continued is made, and begins from its inbox: whoever continued is closed already.
        """
        if pending.follows:
            log.error(
                "execution %s cannot take its first turn, which waits in its inbox",
                pending.execution_id,
                exc_info=error,
                extra=_tag(LogEvent.FIRST_TURN_PUT_OFF, pending),
            )
            self.leave_to_inbox(pending)
            return
        if pending.parent:
            raise error  # it comes by the inbox next time, when the batch is smaller
        log.error(
            "execution %s cannot take a turn, so its callers are refused and its inbox rows wait; run `holdfast check`",
            pending.execution_id,
            exc_info=error,
            extra=_tag(LogEvent.TURN_NOT_POSSIBLE, pending),
        )
        effects = self._effects
        if pending.start is not None:
            effects.unrouted.fail(pending.arrivals, error)
        for arrival in pending.arrivals:
            request = arrival.request
            if request is not None and request.future is not None:
                effects.answers.append(AnswerRequest(request, as_answer(error)))
            elif request is not None:
                effects.unrouted.send(pending.org, pending.execution_id, arrival.envelope, arrived_at=arrival.at)
        pending.clear()

    def _park(self, pending: PendingTurn, live: LiveExecution) -> None:
        self._effects.park(pending, "" if live.row is None else live.row.route)

    def _fail_new(self, pending: PendingTurn, error: Failure) -> None:
        """Close an execution as failed that did not survive its first turn."""
        pending.take_waiting()
        row = pending.live.row if pending.live is not None else None
        if row is None:
            assert pending.start is not None  # noqa: S101 - one without a row is new
            execution = Execution.register(pending.org, pending.start, self._clock.now())
        else:
            execution = from_row(row)
            execution.updates = pending.accepted  # whoever made them is answered
        program = FailingProgram(error)
        clock = self._clock.now()
        time_of = find_late(pending.arrivals, clock)
        turn = take_turn(execution, program, pending.envelopes, clock, self._limits, holds=True, time_of=time_of)
        self._finish(pending, LiveExecution(execution, program, row, 0), turn)

    def _handle_failure(self, pending: PendingTurn, error: Exception) -> None:
        """A turn failed in a way nobody foresaw: the others go on.

        Inbox rows are tried again up to `max_attempts` times, then become dead letters; an execution without any is blocked.
        """
        live = pending.live
        assert live is not None  # noqa: S101 - only loaded ones take turns
        pending.take_waiting()
        log.error(
            "a turn of execution %s failed unexpectedly; it is tried again, or the execution blocked: see `holdfast show`",
            pending.execution_id,
            exc_info=error,
            extra=tag_execution(LogEvent.TURN_FAILED, live.execution, node=self._node),
        )
        if pending.follows or not any(arrival.row is not None for arrival in pending.arrivals):
            try:
                self.block(pending, describe_exception(error))
            except Exception as second:  # noqa: BLE001 - what cannot be written at all is nobody's but the caller's
                self.fail_callers(pending, second)
            return
        live.program.close()
        self._effects.unrouted.fail(pending.arrivals, error)
        self._effects.retries += pending.requests
        pending.clear()


def _count_bytes(envelopes: Sequence[AnyEnvelope]) -> int:
    """How many bytes of values some envelopes bring: what they add to a history, at least."""
    return sum(map(_value_size, envelopes))


def _value_size(envelope: AnyEnvelope) -> int:
    if isinstance(envelope, Signal | Update | TaskCompleted):
        return len(envelope.value.data)
    start = envelope.start if type(envelope) is InternalContinue else envelope
    value: Payload | None = getattr(start, "result", None) or getattr(start, "input", None)
    return 0 if value is None else len(value.data)


class _Budget:
    """Says whether a turn goes on to the next of several arrivals: not once it took long, or recorded much already."""

    __slots__ = ("_bytes", "_most_bytes", "_pending", "_until")

    def __init__(self, pending: PendingTurn, most_bytes: int, until: float) -> None:
        self._pending = pending
        self._most_bytes = most_bytes
        self._until = until
        self._bytes = 0

    def __call__(self, handled: int, recorded: int) -> bool:
        self._bytes += _value_size(self._pending.arrivals[handled - 1].envelope)
        if self._bytes + recorded <= self._most_bytes and monotonic() <= self._until:
            return True
        following = self._pending.find_following(handled)
        return following is not None and following.came_with_start and not self._pending.follows


def find_held(pending: PendingTurn, live: LiveExecution, most_bytes: int, max_signals: int) -> list[Arrival]:
    """The signals and updates that are committed before an execution closes, after a lost closing: see `lost_closings`.

    None before its first event, nor where it is terminated; and never the last one, which has to make the program run.
    """
    if pending.start is not None or pending.retaken or live.row is None or not live.row.sequence:
        return []
    if any(type(arrival.envelope) in ENDING for arrival in pending.arrivals):
        return []
    rows = [one for one in pending.arrivals if one.row is not None and type(one.envelope) in MUST_BE_GIVEN]
    found: list[Arrival] = []
    most = min(len(rows), max_signals - live.execution.details.signals) - 1
    for arrival in rows[: max(0, most)]:
        most_bytes -= _value_size(arrival.envelope)
        if most_bytes < 0 and found:
            break
        found.append(arrival)
    return found


def as_answer(error: Exception) -> HoldfastError:
    """An exception as a caller gets it."""
    if isinstance(error, HoldfastError):
        return error
    return StoreError(f"Expected to take a turn, but {type(error).__name__}: {error}. See the log.")


def _discard(turn: Turn) -> None:
    for letter in turn.dead_letters:
        turn.troubles = add(turn.troubles, (LetterDiscarded(letter.reason),))
    turn.dead_letters.clear()


def _tag(event: LogEvent, pending: PendingTurn) -> dict[str, Any]:
    """The fields of a record about an execution that may not be loaded."""
    workflow_id, workflow = None, None
    if pending.start is not None:
        workflow_id, workflow = pending.start.workflow_id, pending.start.workflow
    return tag(event, org=pending.org, workflow=workflow, workflow_id=workflow_id, execution_id=pending.execution_id)


def _too_large(execution: Execution, size: int, limit: int) -> TurnTooLarge:
    return TurnTooLarge(
        f"Expected a turn of workflow '{execution.workflow}' to write at most {limit:,} bytes of history, but it would "
        f"write {size:,}. Start fewer activities at once, pass references instead of large values, or raise max_turn_bytes."
    )


def _never_rests(pending: PendingTurn) -> TurnTooLong:
    workflow = "" if pending.start is None else pending.start.workflow
    return TurnTooLong(
        f"Expected workflow '{workflow}' to come to rest, but it continued "
        f"{pending.runs_before} times without waiting for anything. Let each run wait before it calls continue_as."
    )
