"""Heartbeats from a thread with a loop and a connection of its own: a busy engine does not look dead."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.core.instants import SECOND, Micros
from holdfast.engine.nodes.heartbeat import Beat, Lease, OnBeat
from holdfast.errors import StoreUnavailable

if TYPE_CHECKING:
    from holdfast.store.contract import OwnLine

log = logging.getLogger("holdfast.engine")

FIRST_PAUSE: Final = 0.1
"""Seconds before the first attempt after a failure; each further one waits twice as long, up to the usual interval."""
SECOND_BEAT: Final = 0.02
"""Seconds from the first heartbeat to the second."""
LONGEST_ENDING: Final = 5.0
"""Seconds after which the thread is not waited for any more."""


class HeartbeatThread:
    """Beats on in its thread whatever the engine's loop is doing. The loop hears of the newest heartbeat only."""

    def __init__(
        self,
        line: OwnLine,
        make_line: Callable[[], OwnLine | None],
        lease: Lease,
        interval: Micros,
        patience: Micros,
        on_beat: OnBeat,
    ) -> None:
        self._line = line
        self._make_line = make_line
        """Another one, after a failure."""
        self._lease = lease
        self._interval = interval / SECOND
        self._patience = patience / SECOND
        """How long one heartbeat may take."""
        self._on_beat = on_beat
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeat", daemon=True)
        self._engine_loop: asyncio.AbstractEventLoop | None = None
        self._first: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._newest: Beat | None = None
        self._handing_over = threading.Lock()
        self.tasks: tuple[asyncio.Task[None], ...] = ()

    # --- in the engine's loop ---

    async def start(self) -> None:
        """Beat for the first time, then again and again. Raises StoreError if the first one fails."""
        loop = self._engine_loop = asyncio.get_running_loop()
        self._first, self._ended = loop.create_future(), loop.create_future()
        self._thread.start()
        await self._first

    async def stop(self) -> None:
        """No more heartbeats. A thread that does not end soon is left to itself; it dies with the process."""
        self._is_stopped = True
        if self._ended is None:
            return
        if self._own_loop is not None and self._task is not None:
            try:
                self._own_loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                pass  # it is ending already
        await asyncio.wait([self._ended], timeout=LONGEST_ENDING)
        if self._ended.done():
            self._thread.join()  # telling so was the last thing that it did

    def _hear(self) -> None:
        """Take the newest heartbeat; those before it were missed while the loop was busy."""
        with self._handing_over:
            beat, self._newest = self._newest, None
        if beat is not None and not self._is_stopped:
            self._on_beat(beat)

    def _hear_first(self, beat: Beat | None, error: Exception | None) -> None:
        if self._first is None or self._first.done():
            return
        if error is not None or beat is None:
            self._first.set_exception(error or RuntimeError("the thread of the heartbeat ended"))
        else:
            self._on_beat(beat)
            self._first.set_result(None)

    def _hear_end(self) -> None:
        self._hear_first(None, None)
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    # --- in the thread ---

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except asyncio.CancelledError:
            pass  # that is how it is stopped
        except Exception:
            log.exception("the heartbeat ended; others will take over from this node")
        finally:
            self._tell(self._hear_end)

    def _tell(self, call: Callable[..., None], *args: object) -> None:
        if self._engine_loop is None:
            return
        try:
            self._engine_loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self._is_stopped = True  # the engine's loop is gone, and the engine with it

    async def _live(self) -> None:
        self._own_loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            beat = await self._beat_first()
            if beat is None:
                return
            pause = SECOND_BEAT  # the first one had to connect, which tells the time less exactly
            while not self._is_stopped:
                await asyncio.sleep(pause or self._interval)
                try:
                    beat = await self._renew()
                except Exception as error:  # noqa: BLE001 - whatever it is: a node that gives up is robbed
                    self._lease.miss(error)
                    await _close(self._line)
                    self._line = self._make_line() or self._line
                    pause = min(max(FIRST_PAUSE, 2 * pause), self._interval)
                else:
                    pause = 0.0
                    self._hand_over(beat)
        finally:
            await _close(self._line)

    def _hand_over(self, beat: Beat) -> None:
        with self._handing_over:
            is_told, self._newest = self._newest is not None, beat
        if not is_told:
            self._tell(self._hear)

    async def _beat_first(self) -> Beat | None:
        try:
            beat = await self._renew()
        except Exception as error:  # noqa: BLE001 - told to who opens the engine
            self._tell(self._hear_first, None, error)
            return None
        self._tell(self._hear_first, beat, None)
        return beat

    async def _renew(self) -> Beat:
        try:
            async with asyncio.timeout(self._patience):
                return await self._lease.renew(self._line)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"Expected the database to take a heartbeat within {self._patience:g} s, but it did not. Check its load, "
                "and the way to it."
            ) from error


async def _close(line: OwnLine) -> None:
    try:
        async with asyncio.timeout(1):
            await line.close()
    except Exception as error:  # noqa: BLE001 - it is given up anyway
        log.debug("the heartbeat's connection did not close: %s", error)
