"""Whether a KeyboardInterrupt was raised by the code that was running, or came to it from outside."""

from __future__ import annotations

import opcode
from typing import Final

_RAISE: Final = opcode.opmap["RAISE_VARARGS"]
"""The instruction of a `raise` statement; what comes from outside arrives at other ones."""


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is a KeyboardInterrupt that came from outside: Ctrl-C, or what ends a turn that takes too long.

    No `raise` statement raises those: they arrive between two instructions. asyncio's own handler of Ctrl-C says `raise`.
    """
    trace = error.__traceback__
    if trace is None or not issubclass(type(error), KeyboardInterrupt):  # the type: an object may disown its class
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    is_raised = trace.tb_lasti >= 0 and frame.f_code.co_code[trace.tb_lasti] == _RAISE
    return not is_raised or frame.f_globals.get("__name__") == "asyncio.runners"
