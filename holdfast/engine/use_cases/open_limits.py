"""How many executions an org may have open: places are taken before a start is sent, and given back if it opened none.

Theory of operation
-------------------
A start takes a place by what is known: the count of the store, not older than `FRESH`, and what this node has started since.
Where that leaves no room, the store is asked again at once: executions may have ended, and starts may have found one that is
open. So nobody is refused by an old count, and all who ask while one is under way share the next. To count exactly, those
starts are waited for that are under way: whether the store counts them cannot be told. Other nodes' starts are counted once
they are older than the count; so nodes that start at the same moment may go beyond the limit by what they start within
`FRESH`.

A start that needs no place, since an execution is open under its id, is sent beyond the limit. That execution may close
before the start is taken, which then opens a new one. So such a start is under way like the others, from before it is
looked whether the id is open: whoever counts meanwhile waits for it, and nobody is given the place of the one that closed.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from holdfast.engine.requests import Answer, Opened, Request
from holdfast.errors import LimitReached

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from holdfast.core.request_keys import RequestKey
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store
    from holdfast.store.rows import RequestRow

FRESH: Final = 1.0
"""Seconds for which a count of the store is used."""


class Place:
    """A place among the open executions of an org; `is_used` says whether the start opened one."""

    __slots__ = ("is_used",)

    def __init__(self) -> None:
        self.is_used = True


class _OrgCount:
    """What is known of the open executions of one org."""

    def __init__(self) -> None:
        self.known = 0
        self.counted_at = -FRESH
        self.counts = 0
        """How many counts have begun: one that begins after somebody asked holds for them, however soon after."""
        self.under_way = 0
        self.lock = asyncio.Lock()
        self.idle = asyncio.Event()
        self.idle.set()

    def has_room(self, limit: int) -> bool:
        return asyncio.get_running_loop().time() - self.counted_at < FRESH and self.known < limit

    def begin(self) -> None:
        self.known += 1
        self.under_way += 1
        self.idle.clear()

    def end(self, *, is_used: bool) -> None:
        self.under_way -= 1
        if not is_used:
            self.known -= 1
        if not self.under_way:
            self.idle.set()


class OpenLimits:
    """Keeps the number of open executions within the limits of their orgs, as far as this node starts them."""

    def __init__(
        self,
        store: Store,
        config: Config,
        send: Callable[[Request], Awaitable[Answer]],
        recall: Callable[[str, RequestKey], Awaitable[RequestRow | None]],
    ) -> None:
        self._store = store
        self._config = config
        self._send = send
        self._recall = recall
        self._orgs: dict[str, _OrgCount] = {}

    def send(self, request: Request) -> Awaitable[Answer]:
        """Submit a start, and wait for its answer. Raises LimitReached if the org has as many open executions as it may."""
        limits = self._config.limits_of(request.org)
        if limits is None or limits.open_executions is None:
            return self._send(request)
        return self._send_within(request, limits.open_executions)

    async def _send_within(self, request: Request, limit: int) -> Answer:
        async with self._take_place(request, limit) as place:
            answer = await self._send(request)
            place.is_used = not isinstance(answer, Opened) or answer.created
            return answer

    async def _opens_none(self, request: Request) -> bool:
        """Whether a start finds an execution that is open, or was answered before."""
        if request.key is not None and await self._recall(request.org, request.key) is not None:
            return True
        row = None if request.has_own_id else await self._store.find_latest(request.org, request.workflow_id)
        return row is not None and row.closed_at is None

    @asynccontextmanager
    async def _take_place(self, request: Request, limit: int) -> AsyncIterator[Place]:
        """A place for one start. Raises LimitReached if there is none, unless the start would open no execution."""
        org = request.org
        count = self._orgs.setdefault(org, _OrgCount())
        place = Place()
        has_room = await self._find_room(count, org, limit)
        if not has_room:
            count.begin()
        place.is_used = False
        try:
            if not has_room and not await self._opens_none(request):
                raise LimitReached(
                    f"Expected org '{org}' to have fewer than {limit} open executions, but it has as many, which is its "
                    "limit. Wait until some have ended, end some, or raise OrgLimits(open_executions=…).",
                    org=org,
                    what="open_executions",
                    limit=limit,
                )
            yield place
        finally:
            count.end(is_used=place.is_used)

    async def _find_room(self, count: _OrgCount, org: str, limit: int) -> bool:
        """Whether there is room for one more, which is taken then."""
        if not count.has_room(limit):
            counts_before = count.counts
            async with count.lock:
                if not count.has_room(limit) and count.counts == counts_before:
                    await self._count(count, org, limit)
                if not count.has_room(limit):
                    return False
                count.begin()
                return True
        count.begin()
        return True

    async def _count(self, count: _OrgCount, org: str, limit: int) -> None:
        count.counts += 1
        count.known = await self._store.count_open(org, limit) + count.under_way
        if count.known >= limit and count.under_way:
            await count.idle.wait()
            count.counts += 1
            count.known = await self._store.count_open(org, limit) + count.under_way
        count.counted_at = asyncio.get_running_loop().time()
