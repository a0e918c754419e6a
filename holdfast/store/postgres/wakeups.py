"""Wake-ups by LISTEN and NOTIFY. They are hints: late or lost ones cost time, never work.

A NOTIFY takes a lock on the whole server until its transaction has committed, so it never rides on a batch: it is a tiny
transaction of its own, and many wake-ups in a short time become one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from holdfast.errors import StoreError
from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.failures import DRIVER_ERRORS

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

log = logging.getLogger("holdfast.store")

PAUSE: Final = 0.005
"""Seconds between two wake-ups of a kind: what comes meanwhile shares the second."""
_LONGEST_PAUSE: Final = 5.0


def name_channel(schema: str, why: WakeReason) -> str:
    """What listeners of a schema listen to: a name of fixed length, since a schema's may be as long as a channel's."""
    return f"holdfast_{why.name.lower()}_{hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()}"


class Coalescer:
    """Sends wake-ups one kind at a time, never faster than `PAUSE`."""

    def __init__(self, send: Callable[[WakeReason], Any]) -> None:
        self._send = send
        self._pending: dict[WakeReason, asyncio.Task[None]] = {}
        self._again: set[WakeReason] = set()

    def request(self, why: WakeReason) -> None:
        """Send it soon; with those of its kind that are not sent yet."""
        if why in self._pending:
            self._again.add(why)
        else:
            self._pending[why] = asyncio.get_running_loop().create_task(self._run(why), name=f"holdfast-wake-{why.name}")

    async def _run(self, why: WakeReason) -> None:
        try:
            while True:
                self._again.discard(why)
                try:
                    await self._send(why)
                except StoreError as error:
                    log.debug("a wake-up was lost: %s", error)
                await asyncio.sleep(PAUSE)
                if why not in self._again:
                    return
        finally:
            del self._pending[why]

    async def close(self) -> None:
        """Send what was requested, and no more."""
        tasks = list(self._pending.values())
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        self.abandon()

    def abandon(self) -> None:
        """Drop what was not sent yet, and send nothing more."""
        for task in self._pending.values():
            task.cancel()


class Wakeups(Protocol):
    """A way to wake other nodes, and to hear them."""

    async def open(self) -> None:
        """Begin to listen for wake-ups of other nodes."""
        ...

    def send(self, why: WakeReason) -> None:
        """Wake the other nodes soon: several calls in a short time become one message."""
        ...

    async def close(self) -> None:
        """Stop sending and listening, and let go of the connection."""
        ...

    def abandon(self) -> None:
        """Stop at once, as the end of the process would: nothing is waited for."""
        ...


class PostgresWakeups:
    """Listens on a connection of its own, which is made anew whenever it breaks."""

    def __init__(self, connections: Connections, on_wake_up: Callable[[WakeReason], None]) -> None:
        self._connections = connections
        self._on_wake_up = on_wake_up
        self._coalescer = Coalescer(self._notify)
        self._channels = {why: name_channel(connections.address.schema, why) for why in WakeReason}
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._broken = asyncio.Event()
        self._notifier: int | None = None
        """The server process through which we notify: what comes from it we know."""

    async def open(self) -> None:
        """Begin to listen for wake-ups of other nodes."""
        await self._listen()
        self._task = asyncio.get_running_loop().create_task(self._keep_listening(), name="holdfast-listener")

    async def _listen(self) -> None:
        # Listening is idle by nature, and no statement is to be planned.
        self._connection = connection = await self._connections.connect(name="holdfast listener")
        try:
            self._broken = asyncio.Event()
            broken = self._broken
            connection.add_termination_listener(lambda _: broken.set())
            for why, channel in self._channels.items():
                await connection.add_listener(channel, self._make_listener(why))
        except DRIVER_ERRORS as error:
            connection.terminate()
            raise StoreError(f"Expected to listen for wake-ups, but {error}.") from error

    def _make_listener(self, why: WakeReason) -> Callable[..., None]:
        def receive(_connection: object, process: int, _channel: str, _payload: object) -> None:
            if process != self._notifier:
                self._on_wake_up(why)

        return receive

    async def _keep_listening(self) -> None:
        while True:
            await self._broken.wait()
            await self._listen_again()
            for why in WakeReason:  # what was sent meanwhile is lost
                self._on_wake_up(why)

    async def _listen_again(self) -> None:
        pause = 0.05
        while True:
            try:
                return await self._listen()
            except StoreError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def send(self, why: WakeReason) -> None:
        """Wake the other nodes soon: several calls in a short time become one message."""
        self._coalescer.request(why)

    async def _notify(self, why: WakeReason) -> None:
        async with self._connections.use("wake the nodes on") as connection:
            self._notifier = connection.get_server_pid()
            await connection.fetch(self._connections.sql["notify"], self._channels[why])

    async def close(self) -> None:
        """Stop sending and listening, and let go of the connection."""
        await self._coalescer.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None:  # here, not in the task: one that is cancelled before it began does nothing
            self._connection.terminate()

    def abandon(self) -> None:
        """Stop at once, as the end of the process would: nothing is waited for."""
        self._coalescer.abandon()
        if self._task is not None:
            self._task.cancel()
        if self._connection is not None:
            self._connection.terminate()
