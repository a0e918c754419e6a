"""What this node itself feeds into a batch (calls of the API, results of activities, take-overs), and how it is answered."""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

import msgspec

from holdfast.core.envelopes import AnyEnvelope, Cancel, Signal, Start, Terminate, Update
from holdfast.core.instants import Instant
from holdfast.core.replies import Replied
from holdfast.core.request_keys import RequestKey
from holdfast.errors import HoldfastError

_VERBS: Final = {Cancel: "cancel", Signal: "signal", Start: "start", Terminate: "terminate", Update: "update"}


class Opened(msgspec.Struct, frozen=True, gc=False, tag="opened"):
    """The answer to a start: the execution that was created, or was open already."""

    execution_id: str
    created: bool
    signal_sequence: int | None = None


class Accepted(msgspec.Struct, frozen=True, gc=False, tag="accepted"):
    """The answer to a signal. `sequence` is absent where it waits in the inbox."""

    execution_id: str
    sequence: int | None


class Handled(msgspec.Struct, frozen=True, gc=False, tag="handled"):
    """The answer to everything else: whether it had an effect. A cancel request for a closed execution has none."""

    is_done: bool = True


class ReplyFollows(msgspec.Struct, frozen=True, gc=False, tag="reply_follows"):
    """The answer to such an envelope for now: what comes of it will be kept under its key. It is never remembered."""

    execution_id: str


Success: TypeAlias = Opened | Accepted | Handled | Replied | ReplyFollows
"""An answer that is remembered where the request has a key. A refusal is not: the request can be repeated."""
Answer: TypeAlias = Success | HoldfastError
"""What a request is answered after the commit; an error refuses it."""


class Judged(msgspec.Struct, frozen=True, gc=False):
    """What was known when an execution was found to be stale: whoever touches it since changes one of these."""

    state_version: int
    settings: int | None
    """The settings number, see `holdfast.store.pauses`."""


class Request(msgspec.Struct, eq=False, weakref=True):
    """An envelope for one execution and, for callers, a future that is resolved after the commit.

    The execution is named by its id or, where `execution_id` is empty, by its workflow id.
    """

    org: str
    envelope: AnyEnvelope
    execution_id: str = ""
    workflow_id: str = ""
    signal: Signal | Update | None = None
    """With a Start: the signal or the update that goes along."""
    key: RequestKey | None = None
    future: asyncio.Future[Answer] | None = None
    """Who waits for the answer; None for what the engine sends to itself."""
    attempts: int = 0
    """How many batches with it failed because the store was out of reach."""
    at: Instant = 0
    """When it was handed in."""
    judged: Judged | None = None
    """Of an order to terminate: it counts only while all of this holds. Then it is never put into an inbox."""

    def resolve(self, answer: Answer) -> None:
        """Answer the caller, if there is one who still waits."""
        _resolve(self.future, answer)

    @property
    def keyed_envelope(self) -> AnyEnvelope:
        """The envelope for an inbox: there it carries the request's key, so that a repeated one is known."""
        envelope = self.signal or self.envelope
        if self.key is not None and isinstance(envelope, Signal | Cancel | Terminate):
            return msgspec.structs.replace(envelope, request=self.key)
        return envelope

    @property
    def has_own_id(self) -> bool:
        """Whether it starts an execution whose workflow id is its execution id: nobody else can have that."""
        envelope = self.envelope
        return type(envelope) is Start and envelope.workflow_id == envelope.execution_id

    @property
    def verb(self) -> str:
        """What the caller wants to do, for the message of a refusal."""
        return _VERBS.get(type(self.envelope), "reach")

    @property
    def is_start(self) -> bool:
        """Whether it may create an execution."""
        return type(self.envelope) is Start


class WorkflowIdLookup(msgspec.Struct, eq=False):
    """Asks that what waits in the inbox under a workflow id is handled first: a start may have come by the inbox."""

    org: str
    workflow_id: str
    future: asyncio.Future[Answer] | None = None
    attempts: int = 0
    """How many batches with it failed because the store was out of reach."""

    def resolve(self, answer: Answer) -> None:
        """Answer the caller, if there is one who still waits."""
        _resolve(self.future, answer)


AnyRequest: TypeAlias = Request | WorkflowIdLookup


def _resolve(future: asyncio.Future[Answer] | None, answer: Answer) -> None:
    if future is None or future.done():
        return
    if isinstance(answer, HoldfastError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
