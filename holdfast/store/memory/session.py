"""A transaction as the server sees it: locks, changes that nobody else sees, and one end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.store.matching import Waiter, make_triggered
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.tables import Changes, View
from holdfast.store.publications import PublicationRow
from holdfast.store.rows import DeadLetterRow, InboxRow


class State(Enum):
    """Whether a transaction is open, or how it ended."""

    OPEN = auto()
    IN_DOUBT = auto()
    """The server has been told to commit and has not done it yet."""
    COMMITTED = auto()
    ROLLED_BACK = auto()
    DROPPED = auto()
    """Rolled back by the server; its node does not know yet."""


class Session:
    """One transaction. It owns its locks by being itself."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.locks = connection.database.locks
        self.changes = Changes()
        self.view = View(connection.database.tables, self.changes)
        self._epoch = connection.database.epoch
        self._state = State.OPEN
        self._in_use = False
        self._settled: asyncio.Event | None = None
        connection.open_transactions.add(self)

    # --- statements ---

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Whatever is raised inside, the transaction is rolled back by it."""
        if self._in_use:
            raise StoreError("Expected one call on a transaction at a time, but there are two. Await the first.")
        if self._state not in (State.OPEN, State.DROPPED):
            raise StoreError("Expected an open transaction, but it has ended. Begin a new one.")
        self._in_use = True
        try:
            yield
        except BaseException:
            self.give_up()
            raise
        finally:
            self._in_use = False

    async def reach(self, point: Point) -> FaultAction:
        """Wait for the server, which may have given up on us meanwhile."""
        self._check()
        action = await self.connection.reach(point)
        self._check()
        return action

    async def wait_until(self, is_locked: Callable[[], bool]) -> None:
        """Wait for a lock. Only for transactions that hold nothing a claim would wait for."""
        while not is_locked():
            await self.locks.wait()
            self._check()

    def _check(self) -> None:
        self.connection.check_usable()
        if self._state is State.DROPPED:
            raise StoreUnavailable("Expected to go on with a transaction, but the server has given it up. Begin a new one.")

    # --- rows that take their id from a sequence ---

    def put_inbox(self, rows: Iterable[InboxRow]) -> None:
        for row in rows:
            row_id = self.connection.database.next_inbox_id()
            self.changes.inbox[row_id] = replace(row, id=row_id)

    def put_dead_letters(self, rows: Iterable[DeadLetterRow]) -> None:
        for row in rows:
            row_id = self.connection.database.next_dead_letter_id()
            self.changes.dead_letters[row_id] = replace(row, id=row_id)

    def put_publications(self, rows: Iterable[PublicationRow]) -> None:
        for row in rows:
            row_id = self.connection.database.next_publication_id()
            self.changes.publications[row_id] = replace(row, id=row_id)

    def put_triggered(self, waiter: Waiter, body: bytes, at: Instant) -> None:
        """What was published, for one of those who wait for it."""
        envelope = make_triggered(waiter.number, body)
        self.put_inbox([InboxRow(waiter.org, waiter.execution_id, "", envelope, route=waiter.route, at=at)])

    # --- the end ---

    async def finish(self, before: Point, after: Point) -> None:
        """Commit. Raises StoreUnavailable if it certainly did not happen, OutcomeUnknown if that cannot be told."""
        with self.statement():
            action = await self.reach(before)
        if action is FaultAction.LATE_UNKNOWN:
            self._state = State.IN_DOUBT
            self._settled = asyncio.Event()
            self.connection.open_transactions.discard(self)
            self.connection.schedule(self._apply)
            raise self._unknown()
        if action is FaultAction.LOST_UNKNOWN:
            self.give_up()
            raise self._unknown()
        self._apply()
        if action is FaultAction.APPLIED_UNKNOWN:
            raise self._unknown()
        try:
            await self.connection.reach(after)
        except StoreUnavailable as error:
            raise self._unknown() from error

    def give_up(self) -> None:
        """Roll back, unless it has ended or the server is about to commit it."""
        if self._state in (State.OPEN, State.DROPPED):
            self._end(State.ROLLED_BACK)

    def drop(self) -> None:
        """Roll back from the server's side."""
        if self._state is State.OPEN:
            self._end(State.DROPPED)

    async def was_committed(self) -> bool:
        """Whether it took place; waits for a server that is still at it."""
        if self._settled is not None:
            await self._settled.wait()
        if self._state is State.OPEN:
            raise StoreError("Expected a transaction that has ended, but it is open. Commit it or roll it back first.")
        return self._state is State.COMMITTED

    def _apply(self) -> None:
        if self._epoch == self.connection.database.epoch:
            self.connection.database.tables.apply(self.changes)
            self._end(State.COMMITTED)
        else:  # the database went back while this was in doubt
            self._end(State.ROLLED_BACK)
        if self._settled is not None:
            self._settled.set()

    def _end(self, state: State) -> None:
        self._state = state
        self.connection.open_transactions.discard(self)
        self.locks.release(self)

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            "Expected to hear of the commit, but the connection broke. Ask was_committed before trying again."
        )
