"""A store that counts the calls it gets, for tests of what an engine asks for."""

from __future__ import annotations

from collections import Counter
from typing import Any

from holdfast.store.contract import Store


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
