"""Heartbeats from a thread with a loop and a connection of its own, so that a busy engine does not look dead."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core.instants import SECOND, Micros
from holdfast.engine.nodes.heartbeat import Lease, OnBeat, RenewedLease
from holdfast.errors import StoreUnavailable
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.store.nodes import HeartbeatConnection

log = logging.getLogger("holdfast.engine")

FIRST_PAUSE: Final = 0.1
"""Seconds before the first retry after a failure; each further one waits twice as long, up to the usual interval."""
SECOND_BEAT: Final = 0.02
"""Seconds from the first heartbeat to the second."""
FIRST_TIMEOUT: Final = 10.0
"""Seconds for the first heartbeat, which has to connect; no lease depends on it yet."""
STOP_TIMEOUT: Final = 5.0
"""Seconds for which `stop` waits for the thread to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatThreadDeps:
    """What a heartbeat thread works with."""

    connection: HeartbeatConnection
    reconnect: Callable[[], HeartbeatConnection | None]
    """Makes another connection after a failure; None if the store has none to offer."""
    lease: Lease
    interval: Micros
    """From one heartbeat to the next."""
    timeout: Micros
    """How long one heartbeat may take."""
    on_beat: OnBeat
    """Called in the engine's loop with the newest heartbeat."""


class HeartbeatThread:
    """Sends heartbeats from its thread, however busy the engine's loop is. The loop is told of the newest one only."""

    def __init__(self, deps: HeartbeatThreadDeps) -> None:
        self._connection = deps.connection
        self._reconnect = deps.reconnect
        self._lease = deps.lease
        self._interval = deps.interval / SECOND
        self._timeout = deps.timeout / SECOND
        self._on_beat = deps.on_beat
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeat", daemon=True)
        self._engine_loop: asyncio.AbstractEventLoop | None = None
        self._first: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._newest: RenewedLease | None = None
        self._handing_over = threading.Lock()
        self._renewing = asyncio.Lock()
        """Held while a heartbeat is under way: one that ended after the lease was given up would renew it."""
        self.tasks: tuple[asyncio.Task[None], ...] = ()

    # --- in the engine's loop ---

    async def start(self) -> None:
        """Send the first heartbeat, then one per interval. Raises StoreError if the first one fails."""
        loop = self._engine_loop = asyncio.get_running_loop()
        self._first, self._ended = loop.create_future(), loop.create_future()
        self._thread.start()
        await self._first

    async def stop(self) -> None:
        """Stop the heartbeats. A thread that does not end in time is not waited for; it dies with the process."""
        self._is_stopped = True
        if self._ended is None:
            return
        if self._own_loop is not None and self._task is not None:
            try:
                self._own_loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                pass  # its loop has ended already
        await asyncio.wait([self._ended], timeout=STOP_TIMEOUT)
        if self._ended.done():
            self._thread.join()  # completing the future was the last thing that it did

    def _receive(self) -> None:
        """Pass the newest heartbeat on; those before it were superseded while the loop was busy."""
        with self._handing_over:
            beat, self._newest = self._newest, None
        if beat is not None and not self._is_stopped:
            self._on_beat(beat)

    def _receive_first(self, beat: RenewedLease | None, error: Exception | None) -> None:
        if self._first is None or self._first.done():
            return
        if error is not None or beat is None:
            self._first.set_exception(error or RuntimeError("the heartbeat thread ended before its first heartbeat"))
        else:
            self._on_beat(beat)
            self._first.set_result(None)

    def _receive_end(self) -> None:
        self._receive_first(None, None)
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    # --- in the watchdog's thread ---

    def give_up_lease(self, seconds: float) -> None:
        """Let the lease run out at once, and send no more heartbeats. The engine's loop is not needed for that."""
        loop = self._own_loop
        if loop is None or not self._thread.is_alive():
            return
        self._is_stopped = True
        try:
            asyncio.run_coroutine_threadsafe(self._give_up(), loop).result(seconds)
        except Exception as error:  # noqa: BLE001 - whatever it is: others take over when the lease has run out
            log.warning(
                "the node could not give up its lease, and others take over when it has run out: %s",
                str(error) or repr(error),
                extra=tag(LogEvent.NODE_NOT_LEFT),
            )

    # --- in the thread ---

    async def _give_up(self) -> None:
        await self._renewing.acquire()  # for good: the process ends
        await self._lease.give_up(self._connection)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_until_stopped())
        except asyncio.CancelledError:
            pass  # how `stop` ends it
        except Exception:
            log.exception(
                "the heartbeat thread failed, and sends no more heartbeats: other nodes take over when the lease has run "
                "out",
                extra=tag(LogEvent.HEARTBEAT_THREAD_FAILED),
            )
        finally:
            self._call_in_engine(self._receive_end)

    def _call_in_engine(self, call: Callable[..., None], *args: object) -> None:
        if self._engine_loop is None:
            return
        try:
            self._engine_loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self._is_stopped = True  # the engine's loop is closed, and the engine with it

    async def _beat_until_stopped(self) -> None:
        self._own_loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            beat = await self._beat_first()
            if beat is None:
                return
            pause = SECOND_BEAT  # the first one had to connect, so it tells the store's time less exactly
            while await self._sleep(pause or self._interval):
                try:
                    beat = await self._renew(self._timeout)
                except Exception as error:  # noqa: BLE001 - whatever it is: a node that stops beating is taken over
                    self._lease.miss(error)
                    await _close(self._connection)
                    self._connection = self._reconnect() or self._connection
                    pause = min(max(FIRST_PAUSE, 2 * pause), self._interval)
                else:
                    pause = 0.0
                    self._hand_over(beat)
        finally:
            await _close(self._connection)

    async def _sleep(self, seconds: float) -> bool:
        """Wait until the next heartbeat is due; whether one is still to be sent."""
        if not self._is_stopped:
            await asyncio.sleep(seconds)
        return not self._is_stopped

    def _hand_over(self, beat: RenewedLease) -> None:
        with self._handing_over:
            earlier = self._newest
            if earlier is not None and earlier.regress is not None and beat.regress is None:
                beat = msgspec.structs.replace(beat, regress=earlier.regress)
            self._newest = beat
        if earlier is None:
            self._call_in_engine(self._receive)

    async def _beat_first(self) -> RenewedLease | None:
        try:
            beat = await self._renew(max(self._timeout, FIRST_TIMEOUT))
        except Exception as error:  # noqa: BLE001 - raised where the engine is opened
            self._call_in_engine(self._receive_first, None, error)
            return None
        self._call_in_engine(self._receive_first, beat, None)
        return beat

    async def _renew(self, timeout: float) -> RenewedLease:
        try:
            async with self._renewing, asyncio.timeout(timeout):
                return await self._lease.renew(self._connection)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"Expected the database to take a heartbeat within {timeout:g} s, but it did not. Check its load "
                "and the network."
            ) from error


async def _close(connection: HeartbeatConnection) -> None:
    try:
        async with asyncio.timeout(1):
            await connection.close()
    except Exception as error:  # noqa: BLE001 - it is not used any more
        log.debug("the connection of the heartbeat thread did not close cleanly: %s", error)
