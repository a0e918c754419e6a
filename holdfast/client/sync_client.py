"""The client for code without an event loop: Flask, Django, scripts."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable
from types import TracebackType
from typing import Final, Self, TypeVar
from weakref import WeakSet

from holdfast.client.client import Client
from holdfast.engine.loop_calls import call_in_loop, discard, refuse_running_loop
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.sync_verbs import SyncVerbs
from holdfast.errors import EngineClosed

T = TypeVar("T")

_OPEN: Final[WeakSet[SyncClient]] = WeakSet()
"""The clients whose threads run: they are closed when the program ends."""

_LAST_WAIT: Final = 5.0
"""Seconds within which calls have to notice that their client was closed."""


class SyncClient(SyncVerbs):
    """The verbs of `Client`, each of which blocks until it is done. Any number of threads may use one client.

        client = SyncClient("sqlite:///app.db")
        handle = client.start("order", {"id": 7}, workflow_id="order-7")
        print(handle.result())

    One thread with an event loop does the work; it is started by the first call, so that a client may be made before a
    server forks. It ends with `close`, or with the program.
    """

    def __init__(self, url: str, *, codec: PayloadCodec | None = None) -> None:
        self._client = Client(url, codec=codec)
        super().__init__(self._client, self._call)
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._is_closed = False

    def open(self) -> None:
        """Connect now, rather than with the first call. Raises a StoreError that says what is wrong."""
        self._call(asyncio.sleep(0))

    def close(self) -> None:
        """Finish what was asked, disconnect and end the thread. Idempotent; in a forked child it does nothing."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._is_closed = True
            if loop is None or thread is None or self._process != os.getpid():
                return
            self._loop = None
        _OPEN.discard(self)
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    async def _end(self) -> None:
        """Disconnect, and see that every thread that waits here is told."""
        await self._client.close()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            _, left = await asyncio.wait(others, timeout=_LAST_WAIT)
            for task in left:
                task.cancel()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sync {repr(self._client).strip('<>')}>"

    def _call(self, awaitable: Awaitable[T]) -> T:
        try:
            refuse_running_loop()
            loop = self._find_loop()
        except BaseException:
            discard(awaitable)
            raise
        return call_in_loop(loop, awaitable)

    def _find_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the background thread, which is started if it is not there. Raises EngineClosed."""
        with self._starting:
            if self._is_closed:
                raise EngineClosed("Expected the client to be open, but it was closed. Make another: SyncClient(...).")
            if self._loop is not None and self._process != os.getpid():
                raise EngineClosed(
                    "Expected to use a client in the process that opened it, but this process was forked from that one. "
                    "Make a client in each process, or make it before the fork and call it only afterwards."
                )
            if self._loop is None:
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run_loop, args=(loop,), name="holdfast-sync-client", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._client.open(), loop).result()
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            raise
        self._thread, self._process = thread, os.getpid()
        _OPEN.add(self)
        return loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


@atexit.register
def _close_all() -> None:
    for client in list(_OPEN):
        client.close()
