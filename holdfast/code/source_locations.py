"""Where in the user's code something happens, for messages."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import CodeType, FrameType

_OURS: Final = ("holdfast.code", "holdfast.core", "holdfast.engine")
_LIBRARY: Final = asyncio.__file__.rpartition("asyncio")[0]
"""Where Python's standard library is, which also holds what is installed."""


def find_caller(stop: CodeType) -> str:
    """The innermost line of user code on the stack above `stop`, the function that replays."""
    return find_innermost(sys._getframe(1), stop)


def find_innermost(frame: FrameType | None, stop: CodeType) -> str:
    """The innermost line of user code among a frame and its callers, up to `stop`; empty if there is none."""
    while frame is not None and frame.f_code is not stop:
        place = place_of(frame)
        if place:
            return place
        frame = frame.f_back
    return ""


def find_waiting(coro: Any) -> str:
    """The innermost line of user code that a coroutine waits at."""
    place = ""
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        place = place_of(frame) or place
        coro = getattr(coro, "cr_await", None)
    return place


def place_of(frame: FrameType) -> str:
    """The line that a frame is at, unless it is ours or the standard library's."""
    file = frame.f_code.co_filename
    is_library = file.startswith((_LIBRARY, "<frozen ")) and "site-packages" not in file
    if is_library or frame.f_globals.get("__name__", "").startswith(_OURS):
        return ""
    return f"{file}:{frame.f_lineno}"
