"""Whether an exception that ends processes was raised by the code that was running, or came to it from outside."""

from __future__ import annotations

import opcode
from typing import Final

_RAISE: Final = opcode.opmap["RAISE_VARARGS"]
"""The instruction of a `raise` statement; what comes from outside arrives at other ones."""


def was_raised_by_code(error: BaseException) -> bool:
    """Whether a `raise` statement raised an exception. Ctrl-C is not raised by any: it arrives between instructions."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lasti >= 0 and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
