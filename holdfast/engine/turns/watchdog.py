"""Watches, from a thread of its own, whether workflow code comes to rest, and whether anything else blocks the loop.

Of the latter the log tells: see `blocked_loop`. Three things follow if workflow code does not come to rest:

- a batch that takes long is reported, with the place (`slow_turn`);
- user code that runs for longer than `turn_limit` is interrupted, and its execution blocked: see `turn_limit`;
- if that has no effect for as long again, and for a second at least, because the code waits inside of a C call or swallows
  the interruption again and again, nothing of this process gets on any more: the node gives up its lease, so that others
  take over, and the process ends. So it does if its thread computes for five times the limit between two calls of user
  code: the garbage collector may run finalizers of users' objects anywhere, and one of them may never end.

A noisy machine is no reason to interrupt anybody. Code counts as running for too long if its thread has used the processor
for half of the limit, or if three times the limit has passed, in case it sleeps. Time counts only while this thread gets to
look: not while the process stands still.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast.engine.turns.blocked_loop import BlockedLoop
from holdfast.engine.turns.turn_limit import CallToken, TurnLimit
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.turns.pump import Pump

log = logging.getLogger("holdfast.engine")

EXIT_CODE: Final = 70
"""With what a process ends whose workflow code cannot be interrupted: an internal software error, by sysexits.h."""
STUCK_FACTOR: Final = 5
"""After how many times the limit a thread counts as stuck that takes turns, and runs no user code."""
LOOKS: Final = 4
"""How often a turn is looked at within its limit."""
SLEEP_FACTOR: Final = 3
"""After how many times the limit code is interrupted that does not use the processor."""
SHORTEST_GRACE: Final = 1.0
"""Seconds that an interruption has at least to take effect: the thread may have to wait for a processor first."""
RETRIES: Final = 4
"""How many times more often it is looked at once it was interrupted."""
EXIT_STEP_SECONDS: Final = 1.0
"""Seconds for the last words in the log, and as many for giving up the lease."""


class _Sighting:
    """A call of user code, or a phase between two, that was found under way, and for how long it has been since."""

    __slots__ = ("age", "cpu", "interrupted_at", "token")

    def __init__(self, token: object, cpu: float | None) -> None:
        self.token = token
        self.cpu = cpu
        self.age = 0.0
        self.interrupted_at: float | None = None
        """Its age when it was to be interrupted for the first time."""


def _describe_nothing(_task: asyncio.Task[Any]) -> str | None:
    return None


class Watchdog:
    """Looks from its own thread whether the loop's thread is stuck, says where, and ends that.

    `give_up_lease` is called with a number of seconds before the process ends; it may take no longer. `describe_task` names
    the activity that a task runs; it is called in the watchdog's thread.
    """

    def __init__(
        self,
        pump: Pump,
        turn_limit: TurnLimit,
        slow_after: float,
        give_up_lease: Callable[[float], None] | None = None,
        describe_task: Callable[[asyncio.Task[Any]], str | None] = _describe_nothing,
    ) -> None:
        self._pump = pump
        self._limit = turn_limit
        self._slow_after = slow_after
        self._give_up_lease = give_up_lease
        self._tick = min(turn_limit.seconds / LOOKS, slow_after)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched_thread = 0
        self._seen: _Sighting | None = None
        self._stuck: _Sighting | None = None
        self._reported: float | None = None
        self._blocked_loop = BlockedLoop(slow_after, describe_task)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to watch the calling thread."""
        self._watched_thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._limit.open()
        self._thread = threading.Thread(target=self._watch, name="holdfast-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. To be called when no more workflow code runs, also none that is unloaded."""
        self._stop.set()
        self._limit.close()

    # --- in the watchdog's thread ---

    def _watch(self) -> None:
        pause, looked_at = self._tick, time.monotonic()
        while not self._stop.wait(pause):
            now = time.monotonic()
            self._limit.cpu_timer.renew()
            pause = self._look(min(now - looked_at, 2 * pause))
            looked_at = now
            self._report_slow_batch(now)
            self._look_at_loop(self._loop)
            if self._loop is not None and self._loop.is_closed():
                return  # nothing runs any more; who forgot to shut the engine down is told when it is collected

    def _look_at_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Look whether anything but turns blocks the loop; one that stands in a debugger does not count."""
        if loop is not None and self._limit.cpu_timer.phase is None and not self._limit.is_debugged():
            self._blocked_loop.look(loop, self._find_stack)

    def _look(self, elapsed: float) -> float:
        """Look at the user code that runs, `elapsed` seconds after the last look. How long to wait before the next one."""
        token, seen = self._limit.armed, self._seen
        self._look_between(elapsed)
        if token is None or self._limit.is_debugged():
            self._seen = None
            return self._tick
        if seen is None or seen.token is not token:
            self._seen = _Sighting(token, self._limit.read_cpu_seconds())
            return self._tick
        seen.age += elapsed
        if seen.interrupted_at is None:
            if not self._is_too_long(seen):
                return self._tick
            seen.interrupted_at = seen.age
        elif seen.age - seen.interrupted_at >= max(self._limit.seconds, SHORTEST_GRACE):
            self._end_process(self._explain_running(token))
        self._limit.interrupt(token)
        return self._tick / RETRIES

    def _is_too_long(self, seen: _Sighting) -> bool:
        limit = self._limit.seconds
        if seen.age < limit:
            return False
        cpu = self._limit.read_cpu_seconds()
        has_computed = cpu is None or seen.cpu is None or cpu - seen.cpu >= limit / 2
        return has_computed or seen.age >= SLEEP_FACTOR * limit

    def _look_between(self, elapsed: float) -> None:
        """Look whether turns are taken, and for how long no user code has been called in them."""
        limit, stuck = self._limit, self._stuck
        phase = limit.cpu_timer.phase
        if phase is None or limit.armed is not None or limit.is_debugged():
            self._stuck = None
            return
        token = (phase, limit.latest)
        if stuck is None or stuck.token != token:
            self._stuck = _Sighting(token, limit.read_cpu_seconds())
            return
        stuck.age += elapsed
        cpu = limit.read_cpu_seconds()
        has_computed = cpu is None or stuck.cpu is None or cpu - stuck.cpu >= STUCK_FACTOR * limit.seconds / 2
        if stuck.age >= STUCK_FACTOR * limit.seconds and has_computed:
            self._end_process(self._explain_stuck())

    def _explain_running(self, token: CallToken) -> str:
        workflow, execution_id = token
        return (
            f"Expected workflow '{workflow}' (execution {execution_id}) to come to rest within {self._limit.seconds:g} s, "
            f"but its code still runs{self._limit.find_place()} and cannot be interrupted: it waits in a C call or swallows "
            "every exception. This node gives up its lease and ends its process. Do in an activity whatever takes long, and "
            "write `except Exception` instead of a bare `except`."
        )

    def _explain_stuck(self) -> str:
        workflow, execution_id = self._limit.latest
        return (
            f"Expected to take turns, but for {STUCK_FACTOR * self._limit.seconds:g} s the thread has been stuck, not in "
            f"a call of workflow code; the last was of '{workflow}' (execution {execution_id}). This node gives up its "
            "lease and ends its process. Look for a finalizer (`__del__`) that does not end; the thread is at:\n"
            f"{self._find_stack()}"
        )

    def _end_process(self, message: str) -> None:
        # In a thread, since the code that is stuck may hold a lock of the log.
        extra = tag(LogEvent.PROCESS_ENDED)
        last_words = threading.Thread(target=lambda: log.critical("%s", message, extra=extra), daemon=True)
        last_words.start()
        last_words.join(EXIT_STEP_SECONDS)
        if self._give_up_lease is not None:
            self._give_up_lease(EXIT_STEP_SECONDS)
        os._exit(EXIT_CODE)

    def _report_slow_batch(self, now: float) -> None:
        since = self._pump.busy_since
        if since is None or since == self._reported or now - since < self._slow_after:
            return
        self._reported = since
        log.warning(
            "a batch has been running for %.1f s; the loop's thread is at:\n%s",
            now - since,
            self._find_stack(),
            extra=tag(LogEvent.BATCH_SLOW),
        )

    def _find_stack(self) -> str:
        frame = sys._current_frames().get(self._watched_thread)
        return "".join(traceback.format_stack(frame, 4)) if frame is not None else "unknown"
