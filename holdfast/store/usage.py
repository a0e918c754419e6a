"""What stores can tell about how much an org has."""

from __future__ import annotations

from typing import Protocol


class Usage(Protocol):
    """How much an org has, counted by an index; where there is more than `limit`, that many are counted."""

    async def count_open(self, org: str, limit: int) -> int:
        """How many executions of an org are open."""
        ...
