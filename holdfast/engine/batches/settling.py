"""What has to happen once a batch is committed: answers, activities to start and stop, who closed, what comes due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.core.effects import ActivityTask, Turn, make_task
from holdfast.core.envelopes import Signal, Start, Terminate
from holdfast.core.events import AnyEvent
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.engine.batches.programs import Live, ProgramCache
from holdfast.engine.batches.requests import Accepted, Opened, Request
from holdfast.engine.batches.routing import Router
from holdfast.engine.batches.stand_ins import NoProgram
from holdfast.engine.batches.work import Work
from holdfast.errors import ExecutionClosed, HoldfastError
from holdfast.store.contract import TurnWrite


class Settled:
    """What has to happen now that a batch is committed."""

    __slots__ = (
        "again",
        "answers",
        "closed",
        "cold",
        "dispatched",
        "doomed",
        "elsewhere",
        "next_due",
        "offered",
        "parked",
        "sent",
        "skipped",
        "stopped",
        "took",
    )

    def __init__(self) -> None:
        self.answers: list[tuple[Request, Any]] = []
        self.dispatched: list[ActivityTask] = []
        self.offered = False
        """Whether activities were offered to whoever can take them."""
        self.stopped: list[tuple[str, int]] = []
        self.closed: list[tuple[Execution, AnyEvent]] = []
        self.cold: list[tuple[str, str, list[Request]]] = []
        """Executions with long histories that are to be replayed first, by org and id, with what waits for that."""
        self.next_due: Instant | None = None
        self.took = False
        """Whether there was anything in the inbox, or due: there may be more."""
        self.skipped = False
        """Whether others hold something that has work."""
        self.sent = False
        """Whether envelopes went to inboxes."""
        self.again: list[Request] = []
        """Requests whose turn was lost: to be fed in again."""
        self.elsewhere: list[tuple[Request, str]] = []
        """Requests for executions that another node holds."""
        self.parked: list[str] = []
        """Executions that cannot take turns here: blocked, or of an unknown workflow."""
        self.doomed: list[str] = []
        """Executions that were sent an order to terminate, for which no program is needed."""


class Taken:
    """A turn that was taken, before it is written."""

    __slots__ = ("live", "turn", "work", "write")

    def __init__(self, work: Work, live: Live, turn: Turn, write: TurnWrite | None) -> None:
        self.work = work
        self.live = live
        self.turn = turn
        self.write = write


def settle(router: Router, taken: Sequence[Taken], parked: list[str], lost: set[str], cache: ProgramCache) -> Settled:
    """What follows from a committed batch, of which the turns in `lost` were not written."""
    settled = Settled()
    settled.answers.extend(router.answers)
    settled.elsewhere = router.elsewhere
    settled.again = router.again
    settled.cold = router.cold
    settled.parked = parked
    settled.took = router.took
    settled.skipped = router.skipped
    settled.sent = bool(router.loose.write.outgoing)
    for one in taken:
        if one.write is not None and one.work.execution_id in lost:
            one.live.program.close()
            settled.again.extend(source for source in one.work.sources if isinstance(source, Request))
            continue
        _settle_turn(one, settled, cache)
    answered = {id(request): value for request, value in settled.answers}
    for request, first in router.followers:
        if id(first) in answered:
            answer = answered[id(first)]
            if isinstance(answer, Opened):
                answer = Opened(answer.execution_id, created=False, signal_sequence=answer.signal_sequence)
            settled.answers.append((request, answer))
        else:
            settled.again.append(request)
    settled.again = list(dict.fromkeys(settled.again))  # a lost turn and that of its next run share their requests
    return settled


def _settle_turn(one: Taken, settled: Settled, cache: ProgramCache) -> None:
    work, live, turn, execution = one.work, one.live, one.turn, one.live.execution
    for index, source in enumerate(work.sources):
        if isinstance(source, Request) and source.future is not None:
            _answer(work, turn, index, source, settled)
    if one.write is None:
        _keep(live, cache)
        return
    live.row = one.write.row
    if one.write.history is not None:
        live.weight += len(one.write.history.body)
    if turn.dispatched:
        route = one.write.row.route
        settled.dispatched.extend(make_task(execution, number, route) for number in turn.dispatched)
    if turn.offered:
        settled.offered = True
    if turn.stopped:
        settled.stopped.extend((execution.execution_id, number) for number in turn.stopped)
    for timer in turn.started_timers:
        if settled.next_due is None or timer.due < settled.next_due:
            settled.next_due = timer.due
    if one.write.outgoing:
        settled.sent = True
        settled.doomed.extend(one.execution_id for one in turn.outgoing if type(one.envelope) is Terminate)
    if execution.closed_at is not None:
        settled.closed.append((execution, turn.events[-1]))
    _keep(live, cache)


def _keep(live: Live, cache: ProgramCache) -> None:
    if type(live.program) is not NoProgram:
        cache.put(live)


def _answer(work: Work, turn: Turn, index: int, request: Request, settled: Settled) -> None:
    envelope, answer = work.arrived[index], turn.answers.get(index)
    kind = type(envelope)
    if isinstance(answer, ExecutionClosed) and request.is_start:
        settled.again.append(request)  # it was terminated beside: a closed execution is none, another is started
    elif isinstance(answer, HoldfastError):
        settled.answers.append((request, answer))
    elif answer is not None and answer is turn.successor:
        return  # the next run answers
    elif kind is Start:
        if request.signal is None:
            settled.answers.append((request, Opened(work.execution_id, created=True)))
    elif request.is_start:
        created = work.new is not None and work.sources[0] is request
        settled.answers.append((request, Opened(work.execution_id, created, answer)))
    elif kind is Signal:
        settled.answers.append((request, Accepted(work.execution_id, answer)))
    else:
        settled.answers.append((request, answer))
