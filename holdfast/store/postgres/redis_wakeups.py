"""Wake-ups by Redis, where LISTEN cannot be had: behind a pooler, or with more notifications than a server likes to carry.

Redis holds nothing and decides nothing. While it is away, nodes hear of each other's work with their heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import InvalidConfiguration
from holdfast.log_events import LogEvent, tag
from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.wakeups import Coalescer, name_channel

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = logging.getLogger("holdfast.store")

_PATIENCE: Final = 2.0
"""Seconds for an answer; and for Redis to be there when the store is opened, which does not wait longer."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


class RedisWakeups:
    """Listens and sends by Redis at `url`. Whoever uses the same schema hears it; one too many costs a look."""

    def __init__(self, url: str, schema: str, on_wake_up: Callable[[WakeReason], None]) -> None:
        self._on_wake_up = on_wake_up
        self._subscriber, self._publisher, self._errors = _make_clients(url)
        self._coalescer = Coalescer(self._publish)
        self._channels = {why: name_channel(schema, why) for why in WakeReason}
        self._meanings = {channel.encode(): why for why, channel in self._channels.items()}
        self._own = os.urandom(8)
        """The name of this node in its messages, so that it does not wake itself."""
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._has_tried = asyncio.Event()

    async def open(self) -> None:
        """Begin to listen. If Redis is away, it is listened to when it comes."""
        self._task = asyncio.get_running_loop().create_task(self._keep_listening(), name="holdfast-listener")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_tried.wait(), 2 * _PATIENCE)

    async def _keep_listening(self) -> None:
        pause, is_first = _FIRST_PAUSE, True
        while True:
            try:
                async with self._subscriber.pubsub() as subscription:
                    await subscription.subscribe(*self._channels.values())
                    if not is_first:
                        log.info("wake-ups by Redis are back")
                        self._report_all()  # what was sent meanwhile is lost
                    pause = _FIRST_PAUSE
                    self._has_tried.set()
                    await self._listen(subscription)
            except self._errors as error:
                if pause == _FIRST_PAUSE:
                    log.warning(
                        "Redis is out of reach: until it is back, nodes learn of work by their heartbeats alone: %s",
                        error,
                        extra=tag(LogEvent.WAKE_UPS_LOST),
                    )
                is_first = False
                self._has_tried.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _listen(self, subscription: Any) -> None:
        async for message in subscription.listen():
            if message["type"] == "message" and message["data"] != self._own:
                self._on_wake_up(self._meanings[message["channel"]])

    def _report_all(self) -> None:
        for why in WakeReason:
            self._on_wake_up(why)

    def send(self, why: WakeReason) -> None:
        """Wake the other nodes soon: several calls in a short time become one message."""
        self._coalescer.request(why)

    async def _publish(self, why: WakeReason) -> None:
        try:
            await self._publisher.publish(self._channels[why], self._own)
        except self._errors as error:
            log.debug("a wake-up was lost: %s", error)

    async def close(self) -> None:
        """Stop sending and listening, and disconnect from Redis."""
        await self._coalescer.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._disconnect()

    def abandon(self) -> None:
        """Stop at once, as the end of the process would: nothing is waited for."""
        self._coalescer.abandon()
        if self._task is not None:
            self._task.cancel()
        self._closing = asyncio.get_running_loop().create_task(self._disconnect())

    async def _disconnect(self) -> None:
        await self._subscriber.aclose()
        await self._publisher.aclose()


def _make_clients(url: str) -> tuple[Redis, Redis, tuple[type[Exception], ...]]:
    """One that waits for messages for ever, one that sends and does not; and what they raise when Redis is away."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra: loaded only by those who want it
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import RedisError  # noqa: PLC0415
    except ImportError as error:
        raise InvalidConfiguration(
            "Expected to send wake-ups by Redis, but the package 'redis' is not installed. "
            "Run `pip install 'holdfast[redis]'`, or leave `wakeups=…` out of the URL."
        ) from error
    options: dict[str, Any] = {
        "socket_connect_timeout": _PATIENCE,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),  # we try again by ourselves
    }
    try:
        listening = Redis.from_url(url, **options)
        sending = Redis.from_url(url, socket_timeout=_PATIENCE, **options)
    except ValueError as error:
        raise InvalidConfiguration(
            f"Expected 'wakeups=…' in the URL to name a Redis like 'redis://host:6379/0', but {error}. Correct the URL."
        ) from None
    return listening, sending, (RedisError, OSError, asyncio.TimeoutError)
