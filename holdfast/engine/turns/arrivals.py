"""What has arrived for executions: envelopes that know where they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.core.chains import EXECUTION_DEADLINE_NUMBER, RUN_DEADLINE_NUMBER, START_NUMBER, TimeoutScope
from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import (
    MUST_BE_GIVEN,
    AnyEnvelope,
    DeadlineDue,
    OfferDue,
    RetryDue,
    StartDue,
    Terminate,
    TimerDue,
)
from holdfast.core.event_times import TOLERANCE
from holdfast.core.instants import Instant
from holdfast.engine.requests import Request
from holdfast.store.rows import InboxRow, TimerRow


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """An envelope for one execution, and where it came from: a request of this node, or a row of the inbox.

    Neither: a due timer, or something that another turn of the same batch sent.
    """

    envelope: AnyEnvelope
    request: Request | None = None
    row: InboxRow | None = None
    since: Instant = 0
    """When it arrived, where neither a request nor a row tells; 0 if with the turn itself."""

    @property
    def at(self) -> Instant:
        """When it arrived: was handed in, was accepted into the inbox, or came due. 0 if that is not known."""
        if self.request is not None:
            return self.request.at
        return self.since if self.row is None else self.row.at

    @property
    def came_with_start(self) -> bool:
        """Whether it is a signal or an update that came with what begins a run: it can only be taken with that."""
        return self.row is None and self.request is None and type(self.envelope) in MUST_BE_GIVEN

    @property
    def makes_room(self) -> bool:
        """Whether it terminates an execution in whose place the same batch starts another."""
        return type(self.envelope) is Terminate and self.row is None and self.request is None


_OF_THE_EXECUTION: Final[Mapping[int, AnyEnvelope]] = {
    START_NUMBER: StartDue(),
    RUN_DEADLINE_NUMBER: DeadlineDue(scope=TimeoutScope.RUN),
    EXECUTION_DEADLINE_NUMBER: DeadlineDue(scope=TimeoutScope.EXECUTION),
}
"""What the timers stand for that an execution has beside those of its program."""


def make_due_envelope(timer: TimerRow) -> AnyEnvelope:
    """The envelope that a due timer stands for."""
    match timer.kind:
        case TimerKind.TIMER if timer.number <= 0:
            return _OF_THE_EXECUTION[timer.number]
        case TimerKind.TIMER:
            return TimerDue(number=timer.number, due=timer.due)
        case TimerKind.RETRY:
            return RetryDue(number=timer.number, attempt=timer.attempt)
        case TimerKind.OFFER:
            return OfferDue(number=timer.number, attempt=timer.attempt)


def find_late(arrivals: Sequence[Arrival], clock: Instant) -> Callable[[int], Instant] | None:
    """Says of each place when that arrived, if one of them has waited for so long that its event has to tell it.

    More may join them while the turn is taken, behind a start: nothing is shown before that, so they need not be looked at.
    """
    for arrival in arrivals:
        if 0 < arrival.at < clock - TOLERANCE:
            return lambda place: arrivals[place].at
    return None
