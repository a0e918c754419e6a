"""Requests that carry a key: what is remembered of them, and what a repeated one is answered.

A request id gets the answer of the first request again, exactly as it was; only the execution of a start is the open one if
that of the answer was removed. The idempotency key of a start stands for the execution instead: whoever repeats it did not
create it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core import codec, effects, payloads
from holdfast.core.effects import Acknowledged, SignalRecorded
from holdfast.core.envelopes import ANSWERED, ActivityBegan, Signal, Start
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND
from holdfast.core.replies import Replied, read_replied
from holdfast.engine.requests import Accepted, Handled, Opened, ReplyFollows, Request, Success
from holdfast.store.rows import RequestRow

if TYPE_CHECKING:
    from holdfast.core.effects import TurnAnswer
    from holdfast.core.envelopes import AnyEnvelope
    from holdfast.core.instants import Instant
    from holdfast.core.payloads import Payload
    from holdfast.core.request_keys import RequestKey
    from holdfast.errors import HoldfastError

IDEMPOTENCY_KEY: Final = "start"
"""The kind of key that stands for an execution. All other kinds stand for a request."""
SIGNAL_WITH_START: Final = "signal_with_start"
DEAD_LETTER: Final = "DeadLetter"
"""The type of the failure that answers what became a dead letter."""
REPLY_KEPT: Final = 3_600 * SECOND
"""For how long at least a reply is kept that a caller may still wait for."""
_TOLD_DEAD: Final = msgspec.json.encode({"type": DEAD_LETTER})
_DECODER: Final[msgspec.json.Decoder[Success]] = msgspec.json.Decoder(Success)


def answer_remembered(request: Request, row: RequestRow) -> Success:
    """The answer to a repeated request, from what is remembered of the first."""
    if row.answer is not None and row.kind != IDEMPOTENCY_KEY:
        try:
            answer = _DECODER.decode(row.answer)
        except msgspec.MsgspecError:
            pass  # of a newer Holdfast: what every version remembers is told
        else:
            return msgspec.structs.replace(answer, execution_id=row.execution_id) if type(answer) is Opened else answer
    return answer_repeated(request, row.execution_id, row.sequence)


def answer_repeated(request: Request, execution_id: str, sequence: int | None) -> Success:
    """The answer to a repeated request of which only the execution and the sequence are known."""
    if isinstance(request.signal or request.envelope, ANSWERED):
        return ReplyFollows(execution_id)
    if request.is_start:
        return Opened(execution_id, created=False, signal_sequence=sequence)
    return Accepted(execution_id, sequence) if type(request.envelope) is Signal else Handled()


def answer_like(request: Request, answer: Success) -> Success:
    """The answer to a request that is repeated within the batch of the first, which is answered thus."""
    if type(answer) is Opened and request.key is not None and request.key.kind == IDEMPOTENCY_KEY:
        return Opened(answer.execution_id, created=False, signal_sequence=answer.signal_sequence)
    return answer


def answer_of(envelope: AnyEnvelope, answer: TurnAnswer | None, execution_id: str, opened: bool | None) -> Success:
    """What a turn answers to an envelope. `opened`: whether it created the execution; None if it was not to start one."""
    if isinstance(envelope, ANSWERED):
        if type(answer) is effects.Replied:
            return Replied(execution_id, answer.result, created=bool(opened))
        return ReplyFollows(execution_id)
    if type(envelope) is Start:
        return Opened(execution_id, created=True)
    sequence = answer.sequence if type(answer) is SignalRecorded else None
    if opened is not None:
        return Opened(execution_id, opened, sequence)
    if type(envelope) is Signal:
        return Accepted(execution_id, sequence)
    if answer is None:  # no attempt begins that nobody said may begin: its execution closed before it was asked
        return Handled(type(envelope) is not ActivityBegan)
    return Handled(answer.is_done) if type(answer) is Acknowledged else Handled()


def make_reply_row(
    org: str, key: RequestKey, execution_id: str, answer: effects.Replied | effects.Refused, now: Instant
) -> RequestRow:
    """The answer to an envelope whose sender waits for it under a key: kept for a while, however old the request is."""
    if isinstance(answer, effects.Replied):
        reply = Replied(execution_id, answer.result)
    else:
        reply = Replied(execution_id, failure=describe_refusal(answer.error))
    kept = msgspec.structs.replace(key, expires_at=max(key.expires_at, now + REPLY_KEPT))
    return make_request_row(org, kept, execution_id, reply)


def describe_refusal(error: HoldfastError) -> Failure:
    """An error as it travels in a reply, from which `engine.replies.read_reply` makes it again."""
    return Failure(type=type(error).__name__, message=error.message, details=_describe_kind(error))


def _describe_kind(error: HoldfastError) -> Payload | None:
    """What an error tells beside its message: what the handler of an update raised, or which handlers there are."""
    told = {name: value for name in ("type", "known") if (value := getattr(error, name, None))}
    return payloads.encode(told, "the details of a failure") if told else None


def is_dead_letter(row: RequestRow) -> bool:
    """Whether a request is remembered as one that became a dead letter: if that is requeued, it is handled after all."""
    reply = read_replied(row.answer)
    if reply is None or reply.failure is None or reply.failure.details is None:
        return False
    return bytes(reply.failure.details.data) == _TOLD_DEAD


def make_request_row(org: str, key: RequestKey, execution_id: str, answer: Success) -> RequestRow:
    """What is remembered of a request with a key."""
    sequence = None
    if type(answer) is Opened:
        sequence = answer.signal_sequence
    elif type(answer) is Accepted:
        sequence = answer.sequence
    return RequestRow(org, key.kind, key.key, execution_id, sequence, key.expires_at, codec.encode(answer))
