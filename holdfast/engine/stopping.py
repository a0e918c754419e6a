"""How an engine that works until it is told to stop hears of it: by a signal to the process, or by a call."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from holdfast.log_events import LogEvent, tag

log = logging.getLogger("holdfast.engine")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stopper:
    """Waits to be told to stop. The second signal is left to the system, which ends the process at once."""

    def __init__(self) -> None:
        self._is_told = False
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None

    def stop(self) -> None:
        """Stop waiting. From any thread, any number of times, also before anybody waits."""
        self._is_told = True
        if self._loop is not None and self._event is not None:
            self._loop.call_soon_threadsafe(self._event.set)

    def fail(self, error: Exception) -> bool:
        """Let whoever waits raise this; False if nobody does."""
        if self._event is None:
            return False
        self._error = error
        self.stop()
        return True

    async def wait(self) -> None:
        """Wait until somebody says so. Raises what `fail` was given."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        if not self._is_told:
            await self._event.wait()
        if self._error is not None:
            raise self._error

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear signals meanwhile. Only the main thread can; elsewhere `stop` is the only way."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.getsignal(one) for one in SIGNALS}
        loop = asyncio.get_running_loop()

        def receive(number: int) -> None:
            for one in SIGNALS:
                _forget(loop, one)
                signal.signal(one, signal.SIG_DFL)
            log.warning(
                "received %s: shutting down; a second one ends the process at once",
                signal.Signals(number).name,
                extra=tag(LogEvent.STOP_SIGNAL),
            )
            self.stop()

        for one in SIGNALS:
            _listen(loop, one, receive)
        try:
            yield
        finally:
            for one, handler in before.items():
                _forget(loop, one)
                signal.signal(one, handler)


def _listen(loop: asyncio.AbstractEventLoop, number: signal.Signals, receive: Any) -> None:
    try:
        loop.add_signal_handler(number, receive, number)
    except NotImplementedError:  # Windows: the handler may run between any two instructions

        def handle(number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(receive, number)

        signal.signal(number, handle)


def _forget(loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
    try:
        loop.remove_signal_handler(number)
    except NotImplementedError:
        pass
