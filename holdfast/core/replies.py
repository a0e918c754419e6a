"""The reply to an envelope whose sender waits for what comes of it, as it is kept under the key of its request."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.core.failures import Failure
from holdfast.core.payloads import Payload


class Replied(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="replied"):
    """The answer to an envelope whose sender waits for what comes of it: a value, or why there is none."""

    execution_id: str
    result: Payload | None = None
    failure: Failure | None = None
    """Why there is no result. Its type is the name of the error that the caller gets, see `engine.replies`."""
    created: bool = False
    """Whether the execution was started with it."""


REPLIED: Final[msgspec.json.Decoder[Replied]] = msgspec.json.Decoder(Replied)
"""Reads a reply as it is remembered."""


def read_replied(answer: bytes | None) -> Replied | None:
    """A reply as it is remembered; None if something else is."""
    if answer is None or b'"replied"' not in answer:
        return None
    try:
        return REPLIED.decode(answer)
    except msgspec.MsgspecError:
        return None
