"""A batch's transaction. Its statements run at once, in the loop's thread; only the commit may take place in another."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import TypeVar

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.store.contract import Claim, Claimed, ExecutionRow, HistoryRow, LooseWrite, RequestRow, TurnWrite
from holdfast.store.sqlite import reads
from holdfast.store.sqlite.claims import read_executions, take_claim
from holdfast.store.sqlite.failures import CERTAINLY_NOT_COMMITTED, primary_code, translate
from holdfast.store.sqlite.known import Changes
from holdfast.store.sqlite.lane import Lane
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.writes import BatchWriter

T = TypeVar("T")


class State(Enum):
    """Where a transaction stands."""

    OPEN = auto()
    COMMITTING = auto()
    COMMITTED = auto()
    ROLLED_BACK = auto()
    DOUBTFUL = auto()
    """Its commit failed in a way that leaves open whether it took place."""


class SqliteTransaction:
    """One transaction, begun by whoever makes it."""

    def __init__(self, lane: Lane, guest: sqlite3.Connection | None = None) -> None:
        self._lane = lane
        self._guest = guest
        """The connection on which it was begun, if that is not the writer's; closed when it ends."""
        self._changes = Changes()
        self._state = State.OPEN
        self._error: StoreError | None = None
        self._commit: asyncio.Future[sqlite3.Error | None] | None = None

    # --- statements ---

    def run(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T:
        """Do some work within the transaction, which is rolled back by whatever is raised."""
        if self._state is not State.OPEN:
            raise StoreError("Expected an open transaction, but it has ended. Begin a new one.")
        try:
            return work(self._guest or self._lane.connections.writer, self._changes)
        except sqlite3.Error as error:
            self._give_up()
            raise translate(error, doing, self._lane.connections.path) from error
        except BaseException:
            self._give_up()
            raise

    async def claim(self, claim: Claim) -> Claimed:
        return self.run("claim executions in", lambda db, changes: take_claim(db, self._lane.known, changes, claim))

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        return self.run("read histories in", lambda db, _: reads.read_histories(db, after))

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        rows = self.run("read", lambda db, _: read_executions(db, self._lane.known, execution_ids))
        return {row.execution_id: row for row in rows}

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return self.run("read", lambda db, _: reads.find_latest(db, org, workflow_id))

    async def read_request(self, org: str, kind: str, key: str, now: Instant) -> RequestRow | None:
        return self.run("read", lambda db, _: reads.find_request(db, org, kind, key, now))

    async def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        known = self._lane.known
        return self.run("write turns to", lambda db, changes: BatchWriter(db, known, changes).write(turns, loose))

    # --- the end ---

    async def commit(self) -> None:
        if self._state is not State.OPEN:
            raise StoreError("Expected an open transaction, but it has ended. Begin a new one.")
        self._state = State.COMMITTING
        if self._lane.is_quick:
            self._end(self._lane.commit(self._guest))
        else:
            self._commit = asyncio.get_running_loop().run_in_executor(self._lane.threads, self._lane.commit, self._guest)
            # Whoever waits may be cancelled, the commit may not: it ends here in any case, before its waiter goes on.
            self._commit.add_done_callback(lambda done: self._end(done.result()))
            await asyncio.shield(self._commit)
        if self._error is not None:
            raise self._error

    async def rollback(self) -> None:
        if self._commit is not None:
            await asyncio.wait([self._commit])
        if self._state is State.OPEN:
            self._give_up()

    def _give_up(self) -> None:
        self._roll_back()
        self._lane.known.forget(self._changes)
        self._state = State.ROLLED_BACK
        self._lane.leave()

    def _roll_back(self) -> None:
        if self._guest is None:
            self._lane.roll_back()
        else:
            self._guest.close()

    def _end(self, error: sqlite3.Error | None) -> None:
        if error is None:
            self._state = State.COMMITTED
            self._lane.known.accept(self._changes)
            self._lane.note_commit(self._guest)
            if self._guest is not None:
                self._guest.close()
            self._lane.leave()
        elif primary_code(error) in CERTAINLY_NOT_COMMITTED:
            self._error = translate(error, "commit to", self._lane.connections.path)
            self._give_up()
        else:
            self._error = OutcomeUnknown(
                f"Expected to commit to '{self._lane.connections.path}', but SQLite says: {error}. "
                "Look at the disk and its free space; whether it was committed is found out before anything else is written."
            )
            self._roll_back()
            self._state = State.DOUBTFUL
            self._lane.leave(doubtful=self)

    # --- how it ended ---

    def is_of(self, lane: Lane) -> bool:
        """Whether it was begun there; a store that is opened again has another lane."""
        return self._lane is lane

    @property
    def was_committed(self) -> bool | None:
        """Whether it took place; None as long as nobody can tell."""
        if self._state is State.OPEN:
            raise StoreError("Expected a transaction that has ended, but it is open. Commit it or roll it back first.")
        return None if self._state in (State.COMMITTING, State.DOUBTFUL) else self._state is State.COMMITTED

    def find_outcome(self, connection: sqlite3.Connection) -> None:
        """Look for a trace of itself in the database, which has been opened anew."""
        took_place = False
        if self._changes.witness is not None:
            query, values, expected = self._changes.witness
            (answer,) = connection.execute(SQL[query], values).fetchone()
            took_place = bool(answer) is expected
        self._state = State.COMMITTED if took_place else State.ROLLED_BACK
