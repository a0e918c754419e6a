"""Reports turns that do not come to rest: code that loops without awaiting holds up the whole node."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.engine.batches.pump import Pump

log = logging.getLogger("holdfast.engine")


class Watchdog:
    """Looks from its own thread whether the loop's thread is stuck in a batch, and logs where."""

    def __init__(self, pump: Pump, slow_after: float) -> None:
        self._pump = pump
        self._slow_after = slow_after
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched_thread = 0

    def start(self) -> None:
        """Begin to watch the calling thread."""
        self._watched_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="holdfast-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()

    def _watch(self) -> None:
        reported: float | None = None
        while not self._stop.wait(self._slow_after):
            since = self._pump.busy_since
            if since is None or since == reported or time.monotonic() - since < self._slow_after:
                continue
            reported = since
            frame = sys._current_frames().get(self._watched_thread)
            where = "".join(traceback.format_stack(frame)[-4:]) if frame is not None else "unknown"
            log.warning("a batch has been running for %.1f s; the loop's thread is at:\n%s", time.monotonic() - since, where)
