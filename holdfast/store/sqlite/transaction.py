"""A batch's transaction. Its statements run at once, in the loop's thread; only the commit may take place in another."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import TypeVar

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError, StoreFault
from holdfast.store.contract import Claim, Claimed, TurnWrite, UnroutedWrite
from holdfast.store.nodes import InFlightMark
from holdfast.store.rows import ExecutionRow, HistoryRow, RequestKeyId, RequestRow, Route
from holdfast.store.schedules import ScheduleKey, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.sqlite import reads, schedules
from holdfast.store.sqlite.claims import read_executions, take_claim
from holdfast.store.sqlite.failures import CERTAINLY_NOT_COMMITTED, primary_code, translate
from holdfast.store.sqlite.incidents import read_snapshots
from holdfast.store.sqlite.offers import find_free_offers
from holdfast.store.sqlite.publishing import SqlitePublishing
from holdfast.store.sqlite.statements import SQL
from holdfast.store.sqlite.tasks import read_open_tasks
from holdfast.store.sqlite.writer import Writer
from holdfast.store.sqlite.writer_cache import Changes
from holdfast.store.sqlite.writes import BatchWriter
from holdfast.store.tasks import TaskKey, TaskRow

T = TypeVar("T")


class State(Enum):
    """Whether a transaction is open, or how it ended."""

    OPEN = auto()
    COMMITTING = auto()
    COMMITTED = auto()
    ROLLED_BACK = auto()
    DOUBTFUL = auto()
    """Its commit failed in a way that leaves open whether it took place."""


class SqliteTransaction(SqlitePublishing):
    """One transaction. Whoever makes it has entered the writer and begun it."""

    def __init__(self, writer: Writer, user_connection: sqlite3.Connection | None = None) -> None:
        self._writer = writer
        self._user_connection = user_connection
        """The connection on which it was begun, if that is not the writer's; closed when it ends."""
        self._changes = Changes()
        self._state = State.OPEN
        self._error: StoreError | None = None
        self._commit: asyncio.Future[sqlite3.Error | None] | None = None

    # --- statements ---

    def run(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T:
        """Do some work within the transaction, which is rolled back by whatever is raised."""
        if self._state is not State.OPEN:
            raise _ended()
        try:
            return work(self._user_connection or self._writer.connections.writer, self._changes)
        except sqlite3.Error as error:
            self._writer.note_failure(error)
            self._give_up()
            raise translate(error, doing, self._writer.connections.path) from error
        except BaseException:
            self._give_up()
            raise

    async def claim(self, claim: Claim) -> Claimed:
        return self.run("claim executions in", lambda db, changes: take_claim(db, self._writer.writer_cache, changes, claim))

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        return self.run("read histories in", lambda db, _: reads.read_histories(db, after))

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        return self.run("read snapshots in", lambda db, _: read_snapshots(db, execution_ids))

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        rows = self.run("read", lambda db, _: read_executions(db, self._writer.writer_cache, execution_ids))
        return {row.execution_id: row for row in rows}

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        return self.run("read", lambda db, _: reads.count_waiting(db, execution_ids, limit))

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return self.run("read", lambda db, _: reads.find_latest(db, org, workflow_id))

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        return self.run("read", lambda db, _: reads.find_requests(db, keys, now))

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        return self.run("read", lambda db, _: find_free_offers(db, keys))

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        return self.run("read", lambda db, _: read_open_tasks(db, keys))

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        if self._state is not State.OPEN:
            raise _ended()
        return self._writer.in_flight.mark(process, slot, versions)

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        writer_cache = self._writer.writer_cache
        return self.run("write turns to", lambda db, changes: BatchWriter(db, writer_cache, changes).write(turns, unrouted))

    # --- schedules ---

    async def claim_schedules(
        self, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey], limit: int
    ) -> list[ScheduleRow]:
        return self.run("claim schedules in", lambda db, _: schedules.claim(db, due_until, routes, skip, limit))

    async def claim_waiting_schedules(
        self, routes: Collection[Route] | None, after: ScheduleKey, limit: int
    ) -> list[ScheduleRow]:
        return self.run("claim schedules in", lambda db, _: schedules.claim_waiting(db, routes, after, limit))

    async def find_open_ids(self, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        return self.run("read", lambda db, _: schedules.find_open_ids(db, pairs))

    async def write_schedules(self, rows: Sequence[ScheduleRow]) -> None:
        self.run("write schedules to", lambda db, changes: schedules.write(db, changes, rows))

    # --- the end ---

    async def commit(self) -> None:
        if self._state is not State.OPEN:
            raise _ended()
        self._state = State.COMMITTING
        if self._writer.is_quick:
            self._end(self._writer.commit(self._user_connection))
        else:
            self._commit = asyncio.get_running_loop().run_in_executor(
                self._writer.threads, self._writer.commit, self._user_connection
            )
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
        self._writer.writer_cache.forget(self._changes)
        self._state = State.ROLLED_BACK
        self._writer.leave()

    def _roll_back(self) -> None:
        if self._user_connection is None:
            self._writer.roll_back()
        else:
            self._user_connection.close()

    def _end(self, error: sqlite3.Error | None) -> None:
        if error is None:
            self._state = State.COMMITTED
            self._writer.writer_cache.accept(self._changes)
            self._writer.note_commit()
            if self._user_connection is not None:
                self._user_connection.close()
            self._writer.leave()
        elif primary_code(error) in CERTAINLY_NOT_COMMITTED:
            self._error = translate(error, "commit to", self._writer.connections.path)
            self._writer.note_failure(error)
            self._give_up()
        else:
            self._error = OutcomeUnknown(
                f"Expected to commit to '{self._writer.connections.path}', but SQLite says: {error}. "
                "Look at the disk and its free space; whether it was committed is found out before anything else is "
                "written.",
                fault=StoreFault.SHORTAGE,
            )
            self._roll_back()
            self._state = State.DOUBTFUL
            self._writer.leave(doubtful=self)

    # --- how it ended ---

    def is_of(self, writer: Writer) -> bool:
        """Whether it was begun there; a store that is opened again has another writer."""
        return self._writer is writer

    @property
    def was_committed(self) -> bool | None:
        """Whether it took place; None as long as nobody can tell."""
        if self._state is State.OPEN:
            raise StoreError("Expected a transaction that has ended, but it is open. Commit it or roll it back first.")
        return None if self._state in (State.COMMITTING, State.DOUBTFUL) else self._state is State.COMMITTED

    def find_outcome(self, connection: sqlite3.Connection) -> None:
        """Look in the database, which has been opened anew, for evidence that this transaction was committed."""
        took_place = False
        if self._changes.evidence is not None:
            evidence = self._changes.evidence
            (answer,) = connection.execute(SQL[evidence.query], evidence.values).fetchone()
            took_place = bool(answer) is evidence.expected
        self._state = State.COMMITTED if took_place else State.ROLLED_BACK


def _ended() -> StoreError:
    return StoreError("Expected an open transaction, but it has ended. Begin a new one.")
