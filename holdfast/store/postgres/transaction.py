"""A batch's transaction on a connection of its own.

How a delivery and a closing turn meet: the delivery shares the row (FOR KEY SHARE), sees it open, inserts and commits; the
turn makes its lock exclusive (FOR UPDATE SKIP LOCKED), looks into the inbox in a new statement, and closes. Whatever the
order, either the turn is lost or the delivery is refused. What other batches send shares nothing: if it comes too late, it
waits for a closed execution, and whoever claims it answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.store.contract import Claim, Claimed, ExecutionRow, HistoryRow, LooseWrite, RequestRow, TurnWrite
from holdfast.store.postgres.claims import take_claim
from holdfast.store.postgres.failures import DRIVER_ERRORS, is_cut, translate
from holdfast.store.postgres.outcomes import Ask, Trace, choose_turn, find_outcome, make_mark
from holdfast.store.postgres.queues import put_requests
from holdfast.store.postgres.reads import to_histories
from holdfast.store.postgres.writes import BatchWriter

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection


class State(Enum):
    """Where a transaction stands."""

    OPEN = auto()
    COMMITTED = auto()
    ROLLED_BACK = auto()
    DOUBTFUL = auto()
    """The connection broke during the commit."""


class PostgresTransaction:
    """One transaction, begun by `begin`."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection
        self._sql = connections.sql
        self._state = State.OPEN
        self._has_written = False
        self.transaction_id: str | None = None
        """PostgreSQL's id of it, once something was written."""
        self._server_start: str | None = None
        self._turn: TurnWrite | None = None
        """One of those that were written: a trace of the commit."""
        self._mark: RequestRow | None = None
        """What was written to be one."""

    @classmethod
    async def begin(cls, connections: Connections) -> PostgresTransaction:
        """A new one. Raises StoreUnavailable."""
        transaction = cls(connections, await connections.take())
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

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        async with self.statements("read") as connection:
            rows = await connection.fetch(self._sql["read_executions"], list(execution_ids))
            return {row[1]: ExecutionRow(*row) for row in rows}

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        async with self.statements("read") as connection:
            row = await connection.fetchrow(self._sql["read_latest"], org, workflow_id)
            return None if row is None else ExecutionRow(*row)

    async def read_request(self, org: str, kind: str, key: str, now: Instant) -> RequestRow | None:
        async with self.statements("read") as connection:
            row = await connection.fetchrow(self._sql["read_request"], org, kind, key, now)
            return None if row is None else RequestRow(*row)

    async def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        async with self.statements("write turns to") as connection:
            writer = BatchWriter(connection, self._sql)
            lost = await writer.write(turns, loose)
            self._has_written = self._has_written or writer.has_written
            self.transaction_id = self.transaction_id or writer.transaction_id
            self._turn = choose_turn(self._turn, turns, lost)
            return lost

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
        mark = make_mark(row)
        async with self.statements("write turns to") as connection:
            await put_requests(connection, self._sql, [mark], row.updated_at)
        self._mark = mark

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
                "Whether it was committed is found out before anything is tried again."
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
            trace = Trace(self.transaction_id, self._server_start, self._turn, self._mark)
            outcome = await find_outcome(trace, ask)
            if outcome is None:
                return None
            self._state = State.COMMITTED if outcome else State.ROLLED_BACK
        return self._state is State.COMMITTED
