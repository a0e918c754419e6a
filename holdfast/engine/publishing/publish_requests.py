"""What this node's own callers want to be published, and how each of them is answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from holdfast.core.publications import Publication
from holdfast.core.request_keys import RequestKey
from holdfast.errors import HoldfastError
from holdfast.store.publications import PublicationRow, Published

PublishAnswer: TypeAlias = Published | HoldfastError
"""What a caller is told after the commit; an error: nothing was stored."""


class RememberedAnswer(msgspec.Struct, frozen=True, gc=False, tag="published"):
    """What is remembered of a publication whose call carries a request id."""

    delivered: int = 0
    started: int = 0
    kept: bool = False


class PublishRequest(msgspec.Struct, eq=False):
    """A publication of a caller, and a future that is resolved after the commit."""

    row: PublicationRow
    publication: Publication
    future: asyncio.Future[PublishAnswer]
    key: RequestKey | None = None
    """What makes a repeated call safe."""
    attempts: int = 0
    """How many transactions with it failed because the store was out of reach."""

    def resolve(self, answer: PublishAnswer) -> None:
        """Answer the caller, if it still waits."""
        if self.future.done():
            return
        if isinstance(answer, HoldfastError):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


class PublishQueue:
    """The requests that wait for their transaction, in order.

    One whose lock another transaction has is put off. What must not overtake it waits behind it: requests of the same name
    and key, or for the same target. All others go on.
    """

    def __init__(self) -> None:
        self._ready: deque[PublishRequest] = deque()
        self._put_off: deque[PublishRequest] = deque()

    def __bool__(self) -> bool:
        return bool(self._ready or self._put_off)

    @property
    def has_ready(self) -> bool:
        """Whether there are requests that nobody has put off."""
        return bool(self._ready)

    @property
    def has_put_off(self) -> bool:
        """Whether requests wait until the lock of the first of them may be free."""
        return bool(self._put_off)

    def append(self, request: PublishRequest) -> None:
        """Add a request behind all others."""
        self._ready.append(request)

    def put_back(self, requests: Sequence[PublishRequest]) -> None:
        """Put requests that were taken in front of all others."""
        self._ready.extendleft(reversed(requests))

    def put_off(self, requests: Sequence[PublishRequest]) -> None:
        """Put requests aside whose locks were not had."""
        self._put_off.extendleft(reversed(requests))

    def resume(self) -> None:
        """Let those that were put off be taken again, before all others."""
        self._ready.extendleft(reversed(self._put_off))
        self._put_off.clear()

    def take(self, limit: int) -> list[PublishRequest]:
        """Take the next requests, but for those behind one that is put off."""
        topics = {_find_topic(one) for one in self._put_off}
        taken: list[PublishRequest] = []
        while self._ready and len(taken) < limit:
            request = self._ready.popleft()
            if topics and _find_topic(request) in topics:
                self._put_off.append(request)
            else:
                taken.append(request)
        return taken

    def drain(self) -> Iterator[PublishRequest]:
        """Take all requests, those that were put off first."""
        for queue in (self._put_off, self._ready):
            while queue:
                yield queue.popleft()


def _find_topic(request: PublishRequest) -> tuple[str, ...]:
    """What requests share that are published in order."""
    one = request.publication
    return request.row.org, one.kind.value, one.name, one.key, one.target
