"""A store that counts the calls it gets, for tests of what an engine asks for."""

from __future__ import annotations

from collections import Counter
from typing import Any

from holdfast.store.contract import Claim, Claimed, Store, Transaction


class CountingStore:
    """A real store that counts what it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **kwargs)

        return call

    @property
    def asked(self) -> dict[str, int]:
        """What was asked beside the heartbeats by which nodes on a shared store know of each other."""
        return {name: count for name, count in self.calls.items() if self._store.exclusive or name != "beat"}


class InboxReads(CountingStore):
    """A real store that counts the inbox rows which batches read, and the batches that look for work."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.rows = 0
        self.looks = 0

    async def begin(self) -> Any:
        """A transaction whose claims are counted."""
        return _CountedTransaction(await self._store.begin(), self)


class _CountedTransaction:
    def __init__(self, transaction: Transaction, reads: InboxReads) -> None:
        self._transaction = transaction
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    async def claim(self, claim: Claim) -> Claimed:
        claimed = await self._transaction.claim(claim)
        self._reads.rows += len(claimed.inbox)
        self._reads.looks += claim.limit > 0
        return claimed
