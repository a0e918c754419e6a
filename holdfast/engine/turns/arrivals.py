"""What has arrived for executions: envelopes that know where they came from."""

from __future__ import annotations

import msgspec

from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import AnyEnvelope, OfferDue, RetryDue, Signal, TimerDue
from holdfast.engine.requests import Request
from holdfast.store.rows import InboxRow, TimerRow


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """An envelope for one execution, and where it came from: a request of this node, or a row of the inbox.

    Neither: a due timer, or something that another turn of the same batch sent.
    """

    envelope: AnyEnvelope
    request: Request | None = None
    row: InboxRow | None = None

    @property
    def came_with_start(self) -> bool:
        """Whether it is a signal that came with the envelope that begins a run: it can only be taken with that."""
        return self.row is None and self.request is None and type(self.envelope) is Signal


def make_due_envelope(timer: TimerRow) -> AnyEnvelope:
    """The envelope that a due timer stands for."""
    match timer.kind:
        case TimerKind.TIMER:
            return TimerDue(number=timer.number)
        case TimerKind.RETRY:
            return RetryDue(number=timer.number, attempt=timer.attempt)
        case TimerKind.OFFER:
            return OfferDue(number=timer.number, attempt=timer.attempt)
