"""What stores promise about activities that wait for a node which can run them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from holdfast.store.rows import ActivityRow, Route


class Offers(Protocol):
    """Activities that wait for a node which can run them."""

    async def take_offers(self, node: str, routes: Collection[Route], limit: int) -> list[ActivityRow]:
        """Take activities that nobody has, the oldest first; durable on return. May raise OutcomeUnknown.

        Waits for nobody: what another transaction holds is left out. Ends the timers that watched over their waiting, those
        of the kind `TimerKind.OFFER` under their numbers, and no others.
        """
        ...

    async def list_lost_offers(self, alive: Collection[str], limit: int) -> list[ActivityRow]:
        """Activities that were taken by nodes which are not alive, the oldest first."""
        ...

    async def list_offers(self, execution_id: str) -> list[ActivityRow]:
        """The activities of one execution that are offered or taken, by number."""
        ...

    async def find_withdrawn(self, node: str, taken: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        """Which of the activities that this node took, as (execution id, number, attempt), are no longer its own."""
        ...
