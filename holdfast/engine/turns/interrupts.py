"""Tells exceptions that are to end this process from those that user code made up itself.

Ctrl-C arrives as KeyboardInterrupt wherever the main thread is, and a handler of a signal may raise what it likes there. A
workflow or an activity that happens to run then has nothing to do with it: nothing of it is recorded, and the process ends.
If on the other hand its own code says `raise KeyboardInterrupt` or `sys.exit()`, it fails, and the process goes on.
"""

from __future__ import annotations

import signal
from types import CodeType
from typing import Any

from holdfast.core.interrupts import is_interrupt


def ends_process(error: BaseException) -> bool:
    """Whether an exception that user code let through is to end the process: it did not come from that code."""
    return is_interrupt(error) or _was_raised_by_handler(error)


def _was_raised_by_handler(error: BaseException) -> bool:
    """Whether it passed a function that handles a signal."""
    handlers = {code for one in signal.valid_signals() if (code := _find_code(signal.getsignal(one))) is not None}
    trace = error.__traceback__
    while trace is not None and handlers:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _find_code(handler: Any) -> CodeType | None:
    function = getattr(handler, "func", handler)  # asyncio's is a partial of a method
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None
