"""Notices that something blocks the event loop, such as an async activity that calls `time.sleep`, and says who and where.

The watchdog looks from its own thread. If it finds a task running, it asks the loop for a sign of life, which the loop gives
as soon as it gets round to it. So a loop that waits is never woken for this, and one that is busy with many short things is
not taken for one that is blocked. What turns do has limits of its own, and is left out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from holdfast.log_events import LogEvent, tag

log = logging.getLogger("holdfast.engine")


class _Probe:
    """A sign of life that the loop was asked for while a task ran."""

    __slots__ = ("answered_at", "asked_at", "reported_as", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.asked_at = time.monotonic()
        self.answered_at: float | None = None
        self.reported_as = ""
        """What the log calls it; empty if it was not reported."""

    def answer(self) -> None:
        """Give the sign of life: the loop gets round to its callbacks."""
        self.answered_at = time.monotonic()


class BlockedLoop:
    """Watches one loop, from another thread. `describe` names what a task runs for; None if it is not known."""

    def __init__(self, slow_after: float, describe: Callable[[asyncio.Task[Any]], str | None]) -> None:
        self._slow_after = slow_after
        self._describe = describe
        self._probe: _Probe | None = None

    def look(self, loop: asyncio.AbstractEventLoop, find_stack: Callable[[], str]) -> None:
        """Look whether a task blocks the loop, and report it once; and again, when it is over."""
        probe = self._probe
        if probe is None:
            task = asyncio.current_task(loop)
            if task is not None:
                self._ask(loop, _Probe(task))
        elif probe.answered_at is not None:
            if probe.reported_as:
                spent = probe.answered_at - probe.asked_at
                log.warning(
                    "%s has let the event loop go on, after %.1f s at least",
                    probe.reported_as,
                    spent,
                    extra=tag(LogEvent.LOOP_FREE_AGAIN),
                )
            self._probe = None
        elif (
            not probe.reported_as
            and time.monotonic() - probe.asked_at >= self._slow_after
            and asyncio.current_task(loop) is probe.task  # else the loop is free, and has to wait for a processor
        ):
            probe.reported_as = self._name(probe.task)
            log.warning(
                "%s has blocked the event loop for %.1f s at least, and nothing else of this engine gets on meanwhile. Call "
                "what blocks in a plain function, which runs in a thread, or by asyncio.to_thread. It is at:\n%s",
                probe.reported_as,
                time.monotonic() - probe.asked_at,
                find_stack(),
                extra=tag(LogEvent.LOOP_BLOCKED),
            )

    def _ask(self, loop: asyncio.AbstractEventLoop, probe: _Probe) -> None:
        try:
            loop.call_soon_threadsafe(probe.answer)
        except RuntimeError:
            return  # the loop is closed
        self._probe = probe

    def _name(self, task: asyncio.Task[Any]) -> str:
        return self._describe(task) or f"task '{task.get_name()}', which is none of an activity,"
