"""Where in the user's code something happens, for messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

_OURS = ("holdfast.code", "holdfast.core", "asyncio")


def find_caller(stop: CodeType) -> str:
    """The innermost line of user code on the stack above `stop`, below which lies whoever replays."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not stop:
        place = _place_of(frame)
        if place:
            return place
        frame = frame.f_back
    return ""


def find_waiting(coro: Any) -> str:
    """The innermost line of user code that a coroutine waits at."""
    place = ""
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        place = _place_of(frame) or place
        coro = getattr(coro, "cr_await", None)
    return place


def _place_of(frame: FrameType) -> str:
    """The line that a frame is at, unless it is ours or asyncio's."""
    is_ours = frame.f_globals.get("__name__", "").startswith(_OURS)
    return "" if is_ours else f"{frame.f_code.co_filename}:{frame.f_lineno}"
