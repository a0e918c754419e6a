"""Frames: how calls and answers lie on a connection between a client and the process that owns a database.

A frame is a header (the length of its body, its kind, and the number of the call that it belongs to) and a body in JSON.
Many calls may be under way on one connection; answers come in any order. A long answer is cut into parts, so that short
ones need not wait behind it.
"""

from __future__ import annotations

import asyncio
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

PROTOCOL: Final = 1
"""The version of the protocol: a client and a server of different versions do not speak to each other."""
_HEADER: Final = Struct("!IBQ")
LONGEST_PART: Final = 256 * 1024
"""The most bytes of an answer in one frame."""
LONGEST_HELLO: Final = 4_096
"""The most bytes of a frame before the other side has proved itself."""


class FrameKind(IntEnum):
    """What a frame is, for the side that reads it."""

    HELLO = 1
    """The client's first frame; also its proof, where one is asked for."""
    WELCOME = 2
    """The server's answer to it."""
    CALL = 3
    CANCEL = 4
    """The client waits no longer for an answer."""
    PART = 5
    """A part of an answer: more follows."""
    ANSWER = 6
    """The last part of an answer."""
    ERROR = 7
    """The call was refused, or failed; with number 0, the connection is."""


class Frame(NamedTuple):
    """One frame as it came over a connection."""

    kind: FrameKind
    number: int
    body: bytes


class MalformedFrame(Exception):
    """What came is no frame, or a larger one than is taken: there is no telling where the next one begins."""


def make_frame(kind: FrameKind, number: int, body: bytes = b"") -> bytes:
    """A frame as it is sent."""
    return _HEADER.pack(len(body), kind, number) + body


async def read_frame(reader: asyncio.StreamReader, longest: int) -> Frame | None:
    """The next frame; None if the other side is gone. Raises MalformedFrame."""
    try:
        length, kind, number = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        if length > longest:
            raise MalformedFrame(f"a frame has {length} bytes, more than {longest}")
        try:
            known = FrameKind(kind)
        except ValueError:
            raise MalformedFrame(f"a frame is of the unknown kind {kind}") from None
        return Frame(known, number, await reader.readexactly(length) if length else b"")
    except (asyncio.IncompleteReadError, OSError):
        return None
