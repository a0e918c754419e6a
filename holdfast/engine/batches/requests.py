"""What is fed into a batch by this node itself: calls of the API, results of activities, its own take-overs."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from holdfast.core.envelopes import AnyEnvelope, Redispatch, RequestKey, Signal, Start


class Opened(msgspec.Struct, frozen=True, gc=False):
    """The answer to a start."""

    execution_id: str
    created: bool
    signal_sequence: int | None = None


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The answer to a signal. `sequence` is absent where it waits in the inbox."""

    execution_id: str
    sequence: int | None


class Request:
    """An envelope with an address and, for callers, a future that is resolved after the commit."""

    __slots__ = ("envelope", "execution_id", "future", "key", "org", "signal", "verb", "workflow_id")

    def __init__(
        self,
        org: str,
        envelope: AnyEnvelope,
        *,
        execution_id: str = "",
        workflow_id: str = "",
        signal: Signal | None = None,
        key: RequestKey | None = None,
        future: asyncio.Future[Any] | None = None,
        verb: str = "reach",
    ) -> None:
        self.org = org
        self.envelope = envelope
        self.execution_id = execution_id
        self.workflow_id = workflow_id
        self.signal = signal
        """With a Start: the signal that goes along."""
        self.key = key
        self.future = future
        self.verb = verb

    def resolve(self, value: Any) -> None:
        """Answer the caller; an exception refuses the request."""
        future = self.future
        if future is None or future.done():
            return
        if isinstance(value, BaseException):
            future.set_exception(value)
        else:
            future.set_result(value)

    @property
    def keyed_envelope(self) -> AnyEnvelope:
        """What goes into an inbox: there a signal carries the request's key, so that a repeated one is known."""
        envelope = self.signal or self.envelope
        if self.key is not None and type(envelope) is Signal:
            return msgspec.structs.replace(envelope, request=self.key)
        return envelope

    @property
    def has_own_id(self) -> bool:
        """Whether it starts an execution whose workflow id is its execution id: nobody else can have it."""
        envelope = self.envelope
        return type(envelope) is Start and envelope.workflow_id == envelope.execution_id

    @property
    def is_start(self) -> bool:
        """Whether it may create an execution."""
        return type(self.envelope) is Start


class Look(Request):
    """Asks for nothing but that what waits under a workflow id is taken first: a start may have come by the inbox."""

    __slots__ = ()

    def __init__(self, org: str, workflow_id: str) -> None:
        super().__init__(org, Redispatch(node=""), workflow_id=workflow_id, verb="find")
