"""What the storyteller and its worker process say to each other: one JSON object per line, over pipes."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from holdfast.engine.views import RecoveryReport

DATABASE: Final = "demo.db"
"""The file in the story's folder that one of them opens at a time."""


class Say(msgspec.Struct, frozen=True, tag="say"):
    """A person writes a message: signal with start. The request id makes sending it again harmless."""

    person: str
    text: str
    last: bool
    request_id: str


class Buy(msgspec.Struct, frozen=True, tag="buy"):
    """Somebody orders items: a plain start, with the order id as the workflow id."""

    order_id: str
    account: str
    items: list[str]
    patience: float


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """Wait until these workflows have ended."""

    workflow_ids: list[str]


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker process says that its engine is open."""

    report: RecoveryReport


class RequestAccepted(msgspec.Struct, frozen=True, tag="accepted"):
    """It is durable. `created` tells whether an execution was made for it."""

    created: bool
    sequence: int | None


class WorkflowsEnded(msgspec.Struct, frozen=True, tag="ended"):
    """All of them have ended well."""


class RequestRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The worker process could not do what was asked; it shuts its engine down and ends."""

    reason: str


Request: TypeAlias = Say | Buy | Finish
Answer: TypeAlias = Ready | RequestAccepted | WorkflowsEnded | RequestRefused


def encode_line(message: Request | Answer) -> bytes:
    """A message and the end of its line."""
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Decode one line that the storyteller wrote to the worker process."""
    request: Request = msgspec.json.decode(line, type=Request)
    return request


def decode_answer(line: bytes) -> Answer:
    """Decode one line that the worker process printed."""
    answer: Answer = msgspec.json.decode(line, type=Answer)
    return answer
