"""An execution on its way through a batch: what has arrived for it, and how far its turn has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from holdfast.core.chains import TimeoutScope
from holdfast.core.envelopes import (
    ENDING,
    MUST_BE_GIVEN,
    AnyEnvelope,
    DeadlineDue,
    InternalContinue,
    Redispatch,
    Start,
    Terminate,
)
from holdfast.core.events import UpdateAccepted
from holdfast.core.execution import Execution
from holdfast.core.unused import NO_ENTRIES
from holdfast.engine.requests import Request
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.store.rows import InboxRow
from holdfast.store.tasks import TaskRow

_ENDING_RANKS: Final[dict[type[AnyEnvelope], int]] = {Start: 0, InternalContinue: 0, Terminate: 1, DeadlineDue: 2}


class PendingTurn(msgspec.Struct, eq=False, gc=False):
    """A turn that a batch is about to take, or has to do without."""

    org: str
    execution_id: str
    start: Start | None
    """The start that makes the execution, if it does not exist yet."""
    arrivals: list[Arrival]
    live: LiveExecution | None = None
    """The execution with its program, once it is loaded."""
    retaken: bool = False
    """Whether the turn is taken once more because the program ended before it was given all signals."""
    waiting: deque[Arrival] | None = None
    """Signals that are carried along by a chain of runs: each run takes from the front what it has to see, and leaves the
    rest to the next. They are behind `arrivals`; None: what has arrived is all there."""
    follows: bool = False
    """Whether a turn of the same batch continued as it: it must come to exist, or what was carried over is lost."""
    runs_before: int = 0
    """How many runs it continues that began and ended without coming to rest, and without taking a signal."""
    runs_in_batch: int = 0
    """How many runs of its chain took a turn in this batch before it."""
    parent: str = ""
    """The execution that started it in the same batch: if that one's turn is lost, so is this one."""
    generation: int = 0
    """How many such parents it has, one above the other."""
    had_requests: bool = False
    """Whether it was cleared, and requests of this node were among what had arrived."""
    task_standings: dict[int, TaskRow] | None = None
    """By number, the human tasks about which people want something with it, locked; None: there are no such."""
    accepted: dict[int, UpdateAccepted] = NO_ENTRIES
    """The updates that wait for a start that was delayed, as they were before its first turn."""
    needs_no_program: bool = False
    """Whether it is terminated without its program, which does not fit or may end the process."""

    def note_accepted(self, execution: Execution) -> None:
        """Remember the updates that wait for a start that was delayed, before the turn changes the execution."""
        if execution.updates and execution.details.start_at is not None:
            self.accepted = dict(execution.updates)

    @property
    def is_planned(self) -> bool:
        """Whether the batch's plan asks for it, and not another turn of the same batch."""
        return not self.generation and not self.follows and not self.retaken

    @property
    def envelopes(self) -> list[AnyEnvelope]:
        """What has arrived, without where it came from."""
        return [arrival.envelope for arrival in self.arrivals]

    @property
    def requests(self) -> list[Request]:
        """This node's own requests among what has arrived."""
        return [arrival.request for arrival in self.arrivals if arrival.request is not None]

    @property
    def has_requests(self) -> bool:
        """Whether somebody on this node waits for the turn, or did before it was cleared."""
        return self.had_requests or any(arrival.request is not None for arrival in self.arrivals)

    @property
    def start_row(self) -> InboxRow | None:
        """The inbox row that brought its start, if one did: with a signal, that is the signal's."""
        first, *others = self.arrivals[:2]
        if first.row is not None or first.request is not None or not others:
            return first.row
        return others[0].row

    @property
    def comes_from_store(self) -> bool:
        """Whether any of it would be found by another node if this one ended: an inbox row, a due timer, or an orphan."""
        return any(arrival.request is None or type(arrival.envelope) is Redispatch for arrival in self.arrivals)

    def give_in_order(self) -> Iterator[AnyEnvelope]:
        """What has arrived, one after the other: what waits joins `arrivals` as it is asked for."""
        for arrival in self.arrivals:
            yield arrival.envelope
        while self.waiting:
            arrival = self.waiting.popleft()
            self.arrivals.append(arrival)
            yield arrival.envelope

    def arrange(self) -> None:
        """Bring several arrivals into the order in which its turn takes them."""
        if any(arrival.makes_room for arrival in self.arrivals):
            self.put_terminate_first()  # if it continued, there would be no room for the one in its place
        else:
            self._let_signals_wait()

    def _let_signals_wait(self) -> None:
        """Let a run that begins from its inbox take what it has to see, one by one, if nothing but signals came for it."""
        if self.retaken or type(self.arrivals[0].envelope) is not InternalContinue:
            return
        if all(type(arrival.envelope) in MUST_BE_GIVEN for arrival in islice(self.arrivals, 1, None)):
            self.waiting = deque(islice(self.arrivals, 1, None))
            del self.arrivals[1:]

    def find_following(self, handled: int) -> Arrival | None:
        """What comes after so many arrivals, if there is more."""
        if handled < len(self.arrivals):
            return self.arrivals[handled]
        return self.waiting[0] if self.waiting else None

    def take_waiting(self) -> None:
        """Let all that waits join what has arrived."""
        if self.waiting is not None:
            self.arrivals += self.waiting
            self.waiting = None

    def put_terminate_first(self) -> bool:
        """Put an order to terminate, or a deadline, before all else but the start; whether there is one.

        It needs no program.
        """
        self.arrivals.sort(key=lambda arrival: _ENDING_RANKS.get(type(arrival.envelope), 3))
        return any(type(arrival.envelope) in ENDING for arrival in self.arrivals[:2])

    def unload(self) -> None:
        """Close its program: it is not needed, or of no use."""
        if self.live is not None:
            self.live.program.close()
            self.live = None

    def clear(self) -> None:
        """Give it nothing of what has arrived: it takes no turn in this batch."""
        self.had_requests = self.has_requests
        self.arrivals.clear()


def ends_for_good(envelope: AnyEnvelope, execution: Execution) -> bool:
    """Whether an envelope ends an execution and no run can follow: for that, nothing of its history is needed."""
    if type(envelope) is not DeadlineDue:
        return type(envelope) is Terminate
    chain = execution.details.chain
    return envelope.scope is TimeoutScope.EXECUTION or chain is None or chain.retry is None


def has_opened(pending: PendingTurn, request: Request) -> bool:
    """Whether a request to start is the one with which the execution of this turn begins."""
    return pending.start is not None and pending.arrivals[0].request is request
