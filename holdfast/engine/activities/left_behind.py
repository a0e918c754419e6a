"""Tasks that an engine leaves behind: async functions that go on though they were cancelled.

Two things would keep the process from ending. At the end of a loop, asyncio cancels all tasks and waits until they have
ended. And when nothing refers to a task any more, or the interpreter ends, Python closes its coroutine by GeneratorExit: a
function that swallows that too, and calls asyncio again, is told that no loop runs, and swallows that, for ever. So nobody
waits for such tasks, and they are kept for as long as the process lives, in the frame of a thread: all else is cleared at
the end of the interpreter.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

_kept: Final[list[asyncio.Task[None]]] = []


def leave_behind(task: asyncio.Task[None]) -> None:
    """Let nobody wait for a task, nor close its coroutine."""
    asyncio.tasks._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is in the log already
    _kept.append(task)
    if len(_kept) == 1:
        threading.Thread(target=_keep, args=(_kept,), name="holdfast-left-behind", daemon=True).start()


def _keep(_tasks: list[asyncio.Task[None]]) -> None:
    threading.Event().wait()
