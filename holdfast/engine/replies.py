"""Who waits for what comes of an update, or of another envelope that is answered later, perhaps by another node.

The turn in which it is decided keeps the reply under the key of the request, as a row, in its commit. Callers of the node
that took the turn get it from there. All others are woken, and read the row; a lost wake-up costs at most a heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast import errors
from holdfast.core import codec, payloads
from holdfast.core.replies import Replied
from holdfast.engine.requests import Success
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, StoreError, UpdateFailed

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store
    from holdfast.store.rows import RequestKeyId, RequestRow

log = logging.getLogger("holdfast.engine")

_DECODER: Final[msgspec.json.Decoder[Success]] = msgspec.json.Decoder(Success)
_MARK: Final = b'"replied"'


class ReplyWaiters:
    """Gives replies to those of this node who wait for them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[RequestKeyId, list[asyncio.Future[Replied]]] = {}

    @property
    def has_any(self) -> bool:
        """Whether somebody on this node waits for a reply."""
        return bool(self._waiting)

    def wait(self, key: RequestKeyId) -> asyncio.Future[Replied]:
        """A future of the reply that is kept under a key. Call `forget` when nobody awaits it any more."""
        future: asyncio.Future[Replied] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        return future

    def forget(self, key: RequestKeyId, future: asyncio.Future[Replied]) -> None:
        """Drop a future that `wait` gave out."""
        futures = self._waiting.get(key)
        if futures is not None and future in futures:
            futures.remove(future)
            if not futures:
                del self._waiting[key]
        if future.done() and not future.cancelled():
            future.exception()  # nobody will look at it

    def note(self, rows: Sequence[RequestRow]) -> bool:
        """Give replies that were committed to who waits for them; whether others may wait for some on another node."""
        is_wanted_elsewhere = False
        for row in rows:
            if row.answer is not None and _MARK in row.answer and not self._settle(row):
                is_wanted_elsewhere = True
        return is_wanted_elsewhere

    async def look(self) -> None:
        """Read the replies that are awaited here and were kept by other nodes."""
        keys = list(self._waiting)
        if not keys:
            return
        try:
            transaction = await self._store.begin()
            try:
                found = await transaction.read_requests(keys, self._clock.now())
            finally:
                await transaction.rollback()
        except StoreError as error:
            log.debug("replies could not be looked for, which is tried again with the next heartbeat: %s", error)
            return
        for row in found.values():
            self._settle(row)

    def fail_all(self, error: HoldfastError) -> None:
        """Fail all who wait: no reply will come any more."""
        waiting, self._waiting = self._waiting, {}
        for futures in waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)

    def _settle(self, row: RequestRow) -> bool:
        futures = self._waiting.pop((row.org, row.kind, row.key), None)
        for future in futures or ():
            if future.done():
                continue
            try:
                reply = codec.decode_with(_DECODER, row.answer or b"", "a reply")
            except (CorruptStore, NewerFormat) as error:
                future.set_exception(error)
                continue
            if type(reply) is Replied:
                future.set_result(reply)
        return bool(futures)


def read_reply(reply: Replied, hint: Any, what: str) -> Any:
    """The value of a reply, decoded as `hint`. Raises the error that it tells of, if it has none."""
    check_reply(reply)
    return payloads.decode(reply.result or payloads.NULL, hint, what)


def check_reply(reply: Replied) -> None:
    """Raises the error that a reply tells of, if it has no value."""
    failure = reply.failure
    if failure is None:
        return
    kind = getattr(errors, failure.type, None)
    if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
        raise UpdateFailed(failure.message, type=failure.type)
    error = HoldfastError.__new__(kind, failure.message)
    HoldfastError.__init__(error, failure.message)
    details = {} if failure.details is None else payloads.decode(failure.details, dict[str, Any], "the details of a failure")
    vars(error).update({name: tuple(one) if isinstance(one, list) else one for name, one in details.items()})
    raise error
