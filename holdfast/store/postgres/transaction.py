"""A batch's transaction on a connection of its own.

Theory of operation
-------------------
Many nodes work on one database, each with several batches at a time, in READ COMMITTED. No batch waits for another: what is
locked elsewhere is skipped. The statements are in `queries.sql`, `queries_writes.sql` and `queries_nodes.sql`, by the names
given here.

1. `lock_executions`: the executions for which this node has something, FOR NO KEY UPDATE SKIP LOCKED. Workflow ids, and keys
   of requests, are held by advisory locks of the transaction, which are tried and not waited for.
2. `find_work`, if the batch looks around: whose inbox or timers have something on this node's routes; then locks as above.
3. `read_waiting`: inbox and due timers of what is held, in a statement after the locks. In READ COMMITTED each statement
   sees what was committed before it began, so this one is as new as the locks: nothing of an earlier holder is missed.
   Whoever holds an execution reads also what waits under its workflow id, without the lock of that: while the execution is
   open, only its holder takes anything from there. So what came by one address is not overtaken by what comes by another.
4. `mark_in_flight`, on a connection of its own, so that it outlives the process: which turns are about to be taken. Before
   any code runs, since a replay may end the process too.
5. The engine brings programs to the rows: those in memory catch up with what other nodes did, others are replayed. Then the
   turns, in memory, with no statement in between.
6. `escalate`: executions that close exclude those who deliver to them (see below).
7. `update_executions`: rows whose version is the expected one, and closings that leave nothing in the inbox; with them their
   events. Whoever is not among what comes back is lost. Then `insert_executions` with ON CONFLICT DO NOTHING, and one
   statement for each other table, for the winners alone.
8. COMMIT. If the connection breaks there, the outcome is unknown; `pg_xact_status` tells it before anything is tried again
   or answered. A crash of the server may give a transaction's number anew, so a turn's events must be there too, or the
   mark of a commit without any (`outcomes`).
9. After the commit others are woken, by a transaction of its own, many wake-ups in one (`wakeups`).

How a delivery and a closing turn meet: the delivery shares the row (FOR KEY SHARE), sees it open, inserts and commits; the
turn makes its lock exclusive (FOR UPDATE SKIP LOCKED), looks into the inbox in a new statement, and closes. Whatever the
order, either the turn is lost or the delivery is refused. What other batches send shares nothing: if it comes too late, it
waits for a closed execution, and whoever claims it answers.

What fails. Any error gives the transaction up: its connection is cut rather than returned with a transaction open. A session
that dawdles is ended by the server (`connections` sets the limits), which frees its locks for the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Claim, Claimed, TurnWrite, UnroutedWrite
from holdfast.store.nodes import InFlightMark
from holdfast.store.postgres import schedules
from holdfast.store.postgres.claims import take_claim
from holdfast.store.postgres.failures import DRIVER_ERRORS, find_fault, is_cut, translate
from holdfast.store.postgres.incidents import read_snapshots
from holdfast.store.postgres.outcomes import Ask, CommitEvidence, choose_turn, find_outcome, make_commit_row
from holdfast.store.postgres.publications import PostgresPublishing
from holdfast.store.postgres.queues import put_requests
from holdfast.store.postgres.reads import to_histories
from holdfast.store.postgres.tasks import lock_tasks
from holdfast.store.postgres.writes import BatchWriter
from holdfast.store.rows import ExecutionRow, HistoryRow, RequestKeyId, RequestRow, Route
from holdfast.store.schedules import ScheduleKey, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.tasks import TaskKey, TaskRow

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection


class State(Enum):
    """Whether a transaction is open, or how it ended."""

    OPEN = auto()
    COMMITTED = auto()
    ROLLED_BACK = auto()
    DOUBTFUL = auto()
    """The connection broke during the commit."""


class PostgresTransaction(PostgresPublishing):
    """One transaction of a batch, on a connection that it has to itself from `begin` to its end."""

    def __init__(self, connections: Connections, connection: Connection, marks: Connections) -> None:
        self._connections = connections
        self._in_flight_connections = marks
        """For what is recorded beside the transaction, and stays when it is rolled back."""
        self._connection = connection
        self._sql = connections.sql
        self._state = State.OPEN
        self._has_written = False
        self._has_passed = False
        """Whether turns were written by the settings number."""
        self.transaction_id: str | None = None
        """PostgreSQL's id of it, once something was written."""
        self._server_start: str | None = None
        self._turn: TurnWrite | None = None
        """One of those that were written: evidence of the commit."""
        self._commit_row: RequestRow | None = None
        """A row that was written only to tell later that this commit took place."""

    @classmethod
    async def begin(cls, connections: Connections, marks: Connections) -> PostgresTransaction:
        """Begin a transaction; in-flight marks go by `marks`. Raises StoreUnavailable."""
        transaction = cls(connections, await connections.take(), marks)
        async with transaction.statements("begin a transaction on"):
            await connections.begin(transaction._connection)
        return transaction

    @asynccontextmanager
    async def statements(self, doing: str) -> AsyncIterator[Connection]:
        """The connection; whatever is raised gives the transaction up."""
        if self._state is not State.OPEN:
            raise StoreError("Expected an open transaction, but it has ended. Begin a new one.")
        try:
            yield self._connection
        except DRIVER_ERRORS as error:
            self._give_up()
            raise translate(error, doing, self._connections.address.shown) from error
        except BaseException:
            self._give_up()
            raise

    # --- what a batch does ---

    async def claim(self, claim: Claim) -> Claimed:
        async with self.statements("claim executions in") as connection:
            return await take_claim(connection, self._sql, claim)

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        async with self.statements("read histories in") as connection:
            rows = await connection.fetch(self._sql["read_events"], list(after), list(after.values()))
            return to_histories(after, rows)

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        async with self.statements("read snapshots in") as connection:
            return await read_snapshots(connection, self._sql, execution_ids)

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        async with self.statements("read") as connection:
            rows = await connection.fetch(self._sql["read_executions"], list(execution_ids))
            return {row[1]: to_execution_row(row) for row in rows}

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        async with self.statements("read") as connection:
            return dict(await connection.fetch(self._sql["count_waiting"], list(execution_ids), limit))

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        async with self.statements("read") as connection:
            row = await connection.fetchrow(self._sql["read_latest"], org, workflow_id)
            return None if row is None else to_execution_row(row)

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        async with self.statements("read") as connection:
            rows = await connection.fetch(self._sql["read_requests"], *zip(*keys, strict=True), now)
            return {(row[0], row[1], row[2]): RequestRow(*row) for row in rows}

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        async with self.statements("lock offers in") as connection:
            return {(row[0], row[1]) for row in await connection.fetch(self._sql["lock_offers"], *zip(*keys, strict=True))}

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        async with self.statements("lock tasks in") as connection:
            return await lock_tasks(connection, self._sql, keys)

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        doing = "mark executions as in flight in"
        found: dict[str, list[InFlightMark]] = {}
        async with self.statements(doing):
            ids, numbers = list(versions), list(versions.values())
            for row in await self._in_flight_connections.fetch(doing, "mark_in_flight", process, slot, ids, numbers):
                found.setdefault(row[0], []).append(InFlightMark(row[1], row[2]))
        return found

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        async with self.statements("write turns to") as connection:
            writer = BatchWriter(connection, self._sql, has_passed=self._has_passed)
            lost = await writer.write(turns, unrouted)
            self._has_passed = writer.has_passed
            self._has_written = self._has_written or writer.has_written
            self.transaction_id = self.transaction_id or writer.transaction_id
            self._turn = choose_turn(self._turn, turns, lost)
            return lost

    # --- schedules ---

    async def claim_schedules(
        self, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey], limit: int
    ) -> list[ScheduleRow]:
        async with self.statements("claim schedules in") as connection:
            return await schedules.claim(connection, self._sql, due_until, routes, skip, limit)

    async def claim_waiting_schedules(
        self, routes: Collection[Route] | None, after: ScheduleKey, limit: int
    ) -> list[ScheduleRow]:
        async with self.statements("claim schedules in") as connection:
            return await schedules.claim_waiting(connection, self._sql, routes, after, limit)

    async def find_open_ids(self, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        async with self.statements("read") as connection:
            return await schedules.find_open_ids(connection, self._sql, pairs)

    async def write_schedules(self, rows: Sequence[ScheduleRow]) -> None:
        async with self.statements("write schedules to") as connection:
            self._has_written = True
            await schedules.write(connection, self._sql, rows)

    # --- the end ---

    async def commit(self) -> None:
        if not self._has_written:  # locks alone: there is nothing to wait for the disk for
            async with self.statements("end a transaction on") as connection:
                await connection.execute("ROLLBACK")
            self._end(State.COMMITTED, is_sound=True)
            return
        if self.transaction_id is None:
            async with self.statements("commit to") as connection:
                found = await connection.fetchrow(self._sql["read_transaction_id"])
                self.transaction_id, self._server_start = found or (None, None)
        if self._turn is not None and self._turn.history is None:
            await self._leave_mark(self._turn.row)
        await self._commit()

    async def _leave_mark(self, row: ExecutionRow) -> None:
        """Nothing of the turns can be told from what others write who take them again: so the commit gets a mark."""
        mark = make_commit_row(row)
        async with self.statements("write turns to") as connection:
            await put_requests(connection, self._sql, [mark], row.updated_at)
        self._commit_row = mark

    async def _commit(self) -> None:
        if self._state is not State.OPEN:
            raise StoreError("Expected an open transaction, but it has ended. Begin a new one.")
        shown = self._connections.address.shown
        try:
            await self._connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            if not is_cut(error):
                self._give_up()
                raise translate(error, "commit to", shown) from error
            self._end(State.DOUBTFUL, is_sound=False)
            raise OutcomeUnknown(
                f"Expected to commit to {shown}, but the connection broke ({type(error).__name__}). "
                "Whether it was committed is found out before anything is tried again.",
                fault=find_fault(error),
            ) from error
        except BaseException:
            self._end(State.DOUBTFUL, is_sound=False)
            raise
        self._end(State.COMMITTED, is_sound=True)

    async def rollback(self) -> None:
        if self._state is not State.OPEN:
            return
        try:
            await self._connection.execute("ROLLBACK", timeout=2.0)
        except DRIVER_ERRORS:
            self._give_up()
        except BaseException:
            self._give_up()
            raise
        else:
            self._end(State.ROLLED_BACK, is_sound=True)

    def _give_up(self) -> None:
        """Cut the connection: the server rolls back, and nobody gets it with a transaction open."""
        if self._state is State.OPEN:
            self._end(State.ROLLED_BACK, is_sound=False)

    def _end(self, state: State, *, is_sound: bool) -> None:
        self._state = state
        self._connections.give_back(self._connection, is_sound=is_sound)

    async def was_committed(self, ask: Ask) -> bool | None:
        """Whether it took place; None as long as the server is still at it."""
        if self._state is State.OPEN:
            raise StoreError("Expected a transaction that has ended, but it is open. Commit it or roll it back first.")
        if self._state is State.DOUBTFUL:
            evidence = CommitEvidence(self.transaction_id, self._server_start, self._turn, self._commit_row)
            outcome = await find_outcome(evidence, ask)
            if outcome is None:
                return None
            self._state = State.COMMITTED if outcome else State.ROLLED_BACK
        return self._state is State.COMMITTED
