"""One node's way to the database: where it waits, and what goes wrong there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from holdfast.errors import StoreUnavailable
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import FaultAction, Faults, Point, SimulatedCrash, call_soon
from holdfast.store.nodes import WakeReason


class Droppable(Protocol):
    """A transaction, as the server sees it."""

    def drop(self) -> None:
        """Roll back from the server's side."""
        ...


class Connection:
    """Everything a node does passes through here, so that each wait is a point of the simulation."""

    def __init__(self, database: MemoryDatabase, node: str, faults: Faults | None, *, is_exclusive: bool) -> None:
        self.database = database
        self.node = node
        self.open_transactions: set[Droppable] = set()
        self.listeners: list[Callable[[WakeReason], None]] = []
        self._faults = faults
        self._is_alone = is_exclusive and faults is None
        self._trouble: str | None = "it is not open. Open the store first"

    # --- coming and going ---

    def open(self) -> None:
        self._trouble = None
        self.database.attach(self)

    def close(self) -> None:
        self.database.detach(self)
        self.drop_transactions()
        self.listeners.clear()
        self._trouble = "it is closed. Open the store again"
        self.database.locks.stir()

    def die(self) -> None:
        self._trouble = f"node '{self.node}' has died. Open a new store for it"

    def drop_transactions(self) -> None:
        for transaction in list(self.open_transactions):
            transaction.drop()

    def check_usable(self) -> None:
        if self._trouble is not None:
            raise StoreUnavailable(f"Expected to reach the database, but {self._trouble}.")

    # --- waiting ---

    async def reach(self, point: Point) -> FaultAction:
        """Wait as for a server, then meet what the faults have in store; only what the caller must carry out is returned."""
        self.check_usable()
        if self._is_alone and point is not Point.COMMIT:
            return FaultAction.NONE
        await self.database.interleave(point)
        self.check_usable()
        action = FaultAction.NONE if self._faults is None else self._faults.decide(point, self.node)
        if action is FaultAction.FAIL:
            raise StoreUnavailable(f"Expected to reach the database, but the connection broke at {point}. Try again.")
        if action is FaultAction.CRASH:
            self.database.crash(self.node)
            raise SimulatedCrash(self.node, point)
        return action

    async def linger(self, point: Point) -> None:
        """Wait as for a server, where nothing can go wrong."""
        if not self._is_alone:
            await self.database.interleave(point)

    def is_skipped(self) -> bool:
        """Whether the row that is being locked counts as locked by another."""
        return self._faults is not None and self._faults.decide(Point.CLAIM_ROW, self.node) is FaultAction.SKIP

    def schedule(self, callback: Callable[[], None]) -> None:
        """Some time later, as the simulation likes."""
        (call_soon if self._faults is None else self._faults.schedule)(callback)

    # --- wake-ups ---

    def receive_wake_up(self, why: WakeReason) -> None:
        action = FaultAction.NONE if self._faults is None else self._faults.decide(Point.WAKE, self.node)
        if action is FaultAction.DELAY:
            self.schedule(partial(self._call_listeners, why))
        elif action is FaultAction.NONE:
            self._call_listeners(why)

    def _call_listeners(self, why: WakeReason) -> None:
        if self._trouble is None:
            for listener in self.listeners:
                listener(why)
