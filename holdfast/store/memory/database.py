"""One database in memory, shared by the handles of many simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from itertools import count
from typing import Protocol, TypeAlias

from holdfast.store.memory.locks import Locks
from holdfast.store.memory.tables import SavedTables, Tables
from holdfast.store.nodes import WakeReason

Interleave: TypeAlias = Callable[[str], Awaitable[None]]
"""Called at each point where a node waits for the database: whoever is let go first goes on first."""


class Handle(Protocol):
    """One node's connection to the database."""

    @property
    def node(self) -> str:
        """The node that the handle belongs to."""
        ...

    @property
    def open_transactions(self) -> Collection[object]:
        """The transactions that are under way."""
        ...

    def receive_wake_up(self, why: WakeReason) -> None:
        """A wake-up is on its way to the node."""
        ...

    def drop_transactions(self) -> None:
        """The server rolls back whatever this handle has open."""
        ...

    def die(self) -> None:
        """The node is gone: nothing works on this handle any more."""
        ...


async def take_turns(_point: str) -> None:
    """The plain way to interleave: everybody else goes once."""
    await asyncio.sleep(0)


class MemoryDatabase:
    """What nodes share. It knows no faults; those belong to the handles.

    A statement runs at one moment, between two waits, and sees what is committed then and its own transaction's writes:
    READ COMMITTED. Nothing of a transaction is seen by others before its commit, which is one moment too.
    """

    def __init__(self, interleave: Interleave = take_turns) -> None:
        self.interleave = interleave
        self.tables = Tables()
        self.locks = Locks()
        self.epoch = 0
        """How often the database went back to an earlier state."""
        self._handles: list[Handle] = []
        self._inbox_ids = count(1)
        self._dead_letter_ids = count(1)
        self._subscription_ids = count(1)
        self._pending_ids = count(1)
        self._publication_ids = count(1)

    def next_inbox_id(self) -> int:
        """From a sequence: taken when the row is written, so commits may show rows in another order, and with gaps."""
        return next(self._inbox_ids)

    def next_dead_letter_id(self) -> int:
        return next(self._dead_letter_ids)

    def next_subscription_id(self) -> int:
        return next(self._subscription_ids)

    def next_pending_id(self) -> int:
        return next(self._pending_ids)

    def next_publication_id(self) -> int:
        return next(self._publication_ids)

    # --- backups ---

    def save(self) -> SavedTables:
        """Everything that is committed now, for `restore`."""
        return self.tables.save()

    def restore(self, saved: SavedTables) -> None:
        """Go back to an earlier state, under living nodes: what is under way is rolled back, what is in doubt never was."""
        self.epoch += 1
        for handle in self._handles:
            handle.drop_transactions()
        self.tables.restore(saved)
        self.locks.stir()

    # --- nodes come and go ---

    def attach(self, handle: Handle) -> None:
        if handle not in self._handles:
            self._handles.append(handle)

    def detach(self, handle: Handle) -> None:
        if handle in self._handles:
            self._handles.remove(handle)

    def others(self, handle: Handle) -> list[Handle]:
        """The handles of the database other than this one."""
        return [other for other in self._handles if other is not handle]

    def list_transactions(self) -> set[object]:
        """The transactions of all nodes that are under way."""
        return {one for handle in self._handles for one in handle.open_transactions}

    def crash(self, node: str) -> None:
        """A node dies: its transactions are rolled back, its locks are free, its handles raise StoreUnavailable.

        A commit that had reached the server by then still happens. A node that comes back opens a new handle.
        """
        for handle in [handle for handle in self._handles if handle.node == node]:
            self.detach(handle)
            handle.drop_transactions()
            handle.die()
        self.locks.stir()

    def drop_transactions(self, node: str) -> None:
        """The server gives up on a node that was silent for too long; the node finds out when it goes on."""
        for handle in self._handles:
            if handle.node == node:
                handle.drop_transactions()
