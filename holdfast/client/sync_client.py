"""The client for code without an event loop: Flask, Django, scripts.

Theory of operation
-------------------
The first call starts a thread with an event loop. No lock is held for that: a signal handler may make a call in the middle
of another, and a process may fork while one of its threads makes the first call. So a loop is started first and then put in
its place by one step that nothing comes between; whoever comes second gives up its own. The client connects in the loop.

The thread does not know its `SyncClient`: one that nobody has any more is disconnected, and its thread ends.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Awaitable
from types import TracebackType
from typing import Final, Self, TypeVar

from holdfast.client.client import Client
from holdfast.engine.loop_calls import call_in_loop, discard, refuse_running_loop
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.sync_verbs import SyncVerbs
from holdfast.errors import EngineClosed

T = TypeVar("T")

_OPEN: Final[weakref.WeakSet[SyncClient]] = weakref.WeakSet()
"""The clients whose threads run: they are closed when the program ends."""

_LAST_WAIT: Final = 5.0
"""Seconds within which calls have to notice that their client was closed."""


class _Background:
    """A thread with an event loop, and the client that is opened there. It ends with `end`."""

    def __init__(self, client: Client) -> None:
        self.loop = asyncio.new_event_loop()
        self._client = client
        self._opening = asyncio.Lock()
        self._process = os.getpid()
        self._was_called = False
        """Whether the client is this loop's: one that was given up before any call leaves it to another."""
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="holdfast-sync-client", daemon=True)
        self._thread.start()

    async def call(self, awaitable: Awaitable[T]) -> T:
        """Await something in the loop, when the client is open. Raises what opening it raises."""
        self._was_called = True
        try:
            async with self._opening:
                await self._client.open()
        except BaseException:
            discard(awaitable)
            raise
        return await awaitable

    def end(self) -> None:
        """Let what was asked be finished, and the thread end then. Does not wait for that.

        Only the first call counts, and none of a forked child.
        """
        if self._is_ending or self._process != os.getpid():
            return
        self._is_ending = True
        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._end()))

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    async def _end(self) -> None:
        """Disconnect, and see that every thread that waits here is told."""
        try:
            if self._was_called:
                async with self._opening:
                    await self._client.close()
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                _, left = await asyncio.wait(others, timeout=_LAST_WAIT)
                for task in left:
                    task.cancel()
        finally:
            self.loop.call_soon(self.loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class SyncClient(SyncVerbs):
    """The verbs of `Client`, each of which blocks until it is done. Any number of threads may use one client.

        client = SyncClient("sqlite:///app.db")
        handle = client.start("order", {"id": 7}, workflow_id="order-7")
        print(handle.result())

    One thread with an event loop does the work; it is started by the first call, so that a client may be made before a
    server forks. It ends with `close`, with the program, or when nobody has the client or a handle of it any more.
    """

    def __init__(self, url: str, *, codec: PayloadCodec | None = None) -> None:
        self._client = Client(url, codec=codec)
        super().__init__(self._client, self._call)
        self._backgrounds: dict[int, _Background] = {}
        """By the process that started it: a forked child finds that of its parent, which does not run in it."""
        self._is_closed = False

    def open(self) -> None:
        """Connect now, rather than with the first call. Raises a StoreError that says what is wrong."""
        self._call(asyncio.sleep(0))

    def close(self) -> None:
        """Finish what was asked, disconnect and end the thread. Idempotent; in a forked child it does nothing."""
        self._is_closed = True
        _OPEN.discard(self)
        if (background := self._backgrounds.pop(os.getpid(), None)) is not None:
            background.end()
            background.join()

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
            background = self._find_background()
        except BaseException:
            discard(awaitable)
            raise
        return call_in_loop(background.loop, background.call(awaitable))

    def _find_background(self) -> _Background:
        """The background thread of this process, which is started if it is not there. Raises EngineClosed."""
        found = self._backgrounds.get(os.getpid())
        if found is None:
            if self._backgrounds:
                raise EngineClosed(
                    "Expected to use a client in the process that opened it, but this process was forked from that one. "
                    "Make a client in each process, or make it before the fork and call it only afterwards."
                )
            found = self._start()
        if self._is_closed:
            self.close()
            raise EngineClosed("Expected the client to be open, but it was closed. Make another: SyncClient(...).")
        return found

    def _start(self) -> _Background:
        made = _Background(self._client)
        found = self._backgrounds.setdefault(os.getpid(), made)
        if found is made:
            weakref.finalize(self, made.end).atexit = False
            _OPEN.add(self)
        else:
            made.end()  # another thread was first, or a signal handler that came in between
        return found


@atexit.register
def _close_all() -> None:
    for client in list(_OPEN):
        client.close()
