"""Requests that carry a key: the first of them counts, whether it came by a call or by the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.engine.batches.requests import Accepted, Opened, Request
from holdfast.store.contract import RequestRow

if TYPE_CHECKING:
    from holdfast.core.envelopes import RequestKey
    from holdfast.core.instants import Instant
    from holdfast.store.contract import Transaction


class Keys:
    """What a batch knows about keys: those of the batch itself, and those that the store remembers."""

    def __init__(self, transaction: Transaction, now: Instant) -> None:
        self._transaction = transaction
        self._now = now
        self._first: dict[tuple[str, str, str], Request | str] = {}
        """What came first under a key in this batch: a request, or the execution for which the inbox holds it."""

    def claim(self, org: str, key: RequestKey, request: Request) -> Request | str:
        """What came first under the key: this request, if nothing did before."""
        return self._first.setdefault((org, key.kind, key.key), request)

    async def find(self, org: str, key: RequestKey) -> RequestRow | None:
        """What was answered to a request with the key that has not expired."""
        return await self._transaction.read_request(org, key.kind, key.key, self._now)

    async def is_used(self, org: str, key: RequestKey | None, execution_id: str) -> bool:
        """Whether what the inbox holds for an execution was taken before, or is there twice."""
        if key is None:
            return False
        place = (org, key.kind, key.key)
        if place in self._first:
            return True
        known = await self.find(org, key)
        # Who comes next with the key gets the answer of the first of all: if that was another, this one leads to nothing.
        self._first[place] = execution_id if known is None else known.execution_id
        return known is not None


def key_lock(org: str, key: RequestKey) -> tuple[str, str]:
    """What a start with a key holds against other nodes: a workflow id that nobody can have."""
    return org, f"\n{key.kind}\n{key.key}"


def answer_from(request: Request, execution_id: str, sequence: int | None) -> Opened | Accepted:
    """The answer to a repeated request, from what was remembered of the first."""
    if request.is_start:
        return Opened(execution_id, created=False, signal_sequence=sequence)
    return Accepted(execution_id, sequence)


def make_request_row(org: str, key: RequestKey, execution_id: str, sequence: int | None) -> RequestRow:
    """What is remembered of a request with a key."""
    return RequestRow(org, key.kind, key.key, execution_id, sequence, key.expires_at)
