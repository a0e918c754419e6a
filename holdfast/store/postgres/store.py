"""The store in a PostgreSQL schema that many nodes share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.log_events import LogEvent, tag
from holdfast.store.columns import from_execution_row, to_execution_row
from holdfast.store.contract import Transaction, UserFunction
from holdfast.store.incidents import Incidents
from holdfast.store.nodes import HeartbeatConnection, WakeReason
from holdfast.store.once import KeyedCall, NothingDone, Once
from holdfast.store.pauses import PauseRow, RowChange, Settings
from holdfast.store.postgres import pauses, schedules
from holdfast.store.postgres.checks import check_database
from holdfast.store.postgres.connections import MARK_SETTINGS, Connections
from holdfast.store.postgres.definitions import PostgresDefinitions
from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.failures import DRIVER_ERRORS, is_cut
from holdfast.store.postgres.incidents import PostgresIncidents, SnapshotReads
from holdfast.store.postgres.keyed_calls import do_once
from holdfast.store.postgres.nodes import PostgresHeartbeatConnection, PostgresNodes
from holdfast.store.postgres.opening import prepare_schema
from holdfast.store.postgres.outcomes import CommitEvidence, find_outcome
from holdfast.store.postgres.publications import PostgresPublications
from holdfast.store.postgres.questions import PostgresQuestions
from holdfast.store.postgres.queues import put_inbox
from holdfast.store.postgres.reads import Reads
from holdfast.store.postgres.redis_wakeups import RedisWakeups
from holdfast.store.postgres.stale import StaleReads
from holdfast.store.postgres.tasks import PostgresTasks
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.postgres.transfer import PostgresTransfer
from holdfast.store.postgres.urls import DatabaseAddress, parse_url
from holdfast.store.postgres.user_transactions import MAX_USER_TRANSACTIONS, USER_SETTINGS, transact
from holdfast.store.postgres.wakeups import PostgresWakeups, Wakeups
from holdfast.store.questions import Questions
from holdfast.store.rows import ActivityRow, ExecutionRow, InboxRow, Route
from holdfast.store.schedules import ScheduleChange, ScheduleKey, ScheduleOutlook, ScheduleRow
from holdfast.store.tasks import Tasks
from holdfast.store.transfer import Transferable

log = logging.getLogger("holdfast.store")

T = TypeVar("T")

_READERS: Final = 4
_MOST_HOLDERS: Final = 2
"""How many of those connections may wait for rows that batches hold."""
_HOLD_PATIENTLY: Final = "SET LOCAL lock_timeout = '12s'"
"""Longer than anybody holds a row: a batch is ended after ten seconds, a node that stands still after eight."""
_LONGEST_PAUSE: Final = 1.0
_FORGOTTEN_AT_ONCE: Final = 2_000
_RUNS_HELD: Final = 3
"""How often to look for an open run under a workflow id: the one that was waited for may have closed, for the next."""
"""So many requests that expired, at most, are removed after a batch of executions."""


class PostgresStore(Reads, StaleReads, SnapshotReads, PostgresNodes, PostgresPublications):
    """Executions in a PostgreSQL database that many nodes share.

    A batch has a connection of its own, up to `max_transactions`; everything else shares a few more. Users' functions have
    theirs: however long they take, nobody else waits for a connection. `clock` tells the time instead of the server.
    """

    make_connections: Callable[..., Connections] = Connections

    def __init__(self, address: DatabaseAddress, *, clock: Callable[[], Instant] | None = None) -> None:
        self._address = address
        self._clock = clock
        self._make_connections()
        self._wakeups: Wakeups | None = None
        self._listeners: list[Callable[[WakeReason], None]] = []
        self._is_open = False
        self._holders = asyncio.Semaphore(_MOST_HOLDERS)
        """Who waits for a row keeps a connection that others read by."""

    def _make_connections(self) -> None:
        self._batches = self.make_connections(self._address, self._address.max_transactions)
        self._in_flight_connections = self.make_connections(self._address, self._address.max_transactions, MARK_SETTINGS)
        self._connections = self.make_connections(self._address, _READERS)
        self._user_connections = self.make_connections(self._address, MAX_USER_TRANSACTIONS, USER_SETTINGS)

    @classmethod
    def from_url(cls, url: str, *, clock: Callable[[], Instant] | None = None) -> PostgresStore:
        """The store that a URL names: `postgresql://user:password@host:port/database?schema=holdfast`."""
        return cls(parse_url(url), clock=clock)

    @property
    def exclusive(self) -> bool:
        return False

    @property
    def max_transactions(self) -> int:
        return self._address.max_transactions

    @property
    def tasks(self) -> Tasks:
        return PostgresTasks(self._connections, self._write)

    @property
    def definitions(self) -> PostgresDefinitions:
        return PostgresDefinitions(self._connections, self._write)

    @property
    def incidents(self) -> Incidents:
        return PostgresIncidents(self._connections)

    @property
    def questions(self) -> Questions:
        return PostgresQuestions(self._connections)

    # --- opening and closing ---

    async def open(self) -> None:
        await self._open(make=True, upgrade=True)

    async def open_existing(self, *, upgrade: bool = False) -> None:
        """Open a database that is there; see `PersistentStore`."""
        await self._open(make=False, upgrade=upgrade)

    def make_transferable(self) -> Transferable:
        """For taking everything elsewhere; see `PersistentStore`."""
        return PostgresTransfer(self._connections)

    async def _open(self, *, make: bool, upgrade: bool) -> None:
        if self._is_open:
            return
        self._make_connections()
        wakeups = self._make_wakeups()
        try:
            await prepare_schema(self._connections, make=make, upgrade=upgrade)
            if wakeups is not None:
                await wakeups.open()
        except BaseException:
            if wakeups is not None:
                await wakeups.close()
            await self._connections.close()
            raise
        self._wakeups = wakeups
        self._is_open = True

    def _make_wakeups(self) -> Wakeups | None:
        address = self._address
        if address.wakeups is not None:
            return RedisWakeups(address.wakeups, address.schema, self._receive_wake_up)
        if address.is_pooled:  # a session is nobody's for long: it cannot listen
            log.warning(
                "behind a pooler and without `wakeups=redis://…` in the URL, nodes hear of each other's work only by their "
                "heartbeats",
                extra=tag(LogEvent.NO_WAKE_UPS),
            )
            return None
        return PostgresWakeups(self._connections, self._receive_wake_up)

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._listeners.clear()
        if self._wakeups is not None:
            await self._wakeups.close()
            self._wakeups = None
        await self._batches.close()
        await self._in_flight_connections.close()
        await self._user_connections.close()
        await self._connections.close()

    def abandon(self) -> None:
        """Let go at once, as the end of the process would: nothing is waited for, nobody is told. For simulations."""
        self._is_open = False
        self._listeners.clear()
        if self._wakeups is not None:
            self._wakeups.abandon()
            self._wakeups = None
        for connections in (self._batches, self._in_flight_connections, self._user_connections, self._connections):
            connections.abandon()

    def make_heartbeat_connection(self) -> HeartbeatConnection | None:
        return PostgresHeartbeatConnection(self._address, self._clock)

    # --- batches ---

    async def begin(self) -> Transaction:
        return await PostgresTransaction.begin(self._batches, self._in_flight_connections)

    async def was_committed(self, transaction: Transaction) -> bool:
        if not isinstance(transaction, PostgresTransaction):
            raise StoreError("Expected a transaction of a PostgreSQL store, but it is another's. Ask the store it is of.")
        return await self._find_outcome(transaction.was_committed)

    async def _find_outcome(self, find: Callable[[Any], Any]) -> bool:
        """Ask until the server can tell, however long it is away."""
        pause = 0.01
        while True:
            try:
                outcome: bool | None = await find(self._ask)
            except OutcomeUnknown:
                raise
            except StoreUnavailable:
                if not self._is_open:
                    raise
                outcome = None
            if outcome is not None:
                return outcome
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _ask(self, name: str, *values: Any) -> Any:
        return await self._connections.fetch_value("find the outcome of a commit in", name, *values)

    # --- writing outside of batches ---

    async def _write(self, doing: str, work: Callable[[Connection], Any]) -> Any:
        """Some statements in one transaction. Raises OutcomeUnknown if the connection breaks in its commit."""
        async with self._connections.use(doing) as connection:
            await self._connections.begin(connection)
            try:
                result = await work(connection)
            except BaseException:
                if not connection.is_closed():
                    await connection.execute("ROLLBACK")
                raise
            try:
                await connection.execute("COMMIT")
            except DRIVER_ERRORS as error:
                if is_cut(error):
                    raise OutcomeUnknown(
                        f"Expected to {doing} {self._address.shown}, but the connection broke while it was committed. "
                        "Look whether it happened, then try again."
                    ) from error
                raise
            return result

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """Put envelopes into inboxes; `transaction` tells how that meets a closing turn."""
        sql = self._connections.sql

        async def work(connection: Connection) -> list[bool]:
            asked = sorted({row.execution_id for row in rows})
            shared = await connection.fetch(sql["share_executions"], asked)
            routes = {(org, execution_id): route for org, execution_id, route in shared}
            accepted = [(row.org, row.execution_id) in routes for row in rows]
            put = [
                InboxRow(
                    row.org,
                    row.execution_id,
                    row.workflow_id,
                    row.body,
                    attempts=row.attempts,
                    route=routes[row.org, row.execution_id],
                    at=row.at,
                )
                for row, is_open in zip(rows, accepted, strict=True)
                if is_open
            ]
            if put:
                await put_inbox(connection, sql, put)
            return accepted

        accepted: list[bool] = await self._write("deliver to", work)
        return accepted

    async def discard_dead_letters(self, org: str, ids: Collection[int], call: KeyedCall | None = None) -> int:
        take = self._connections.sql["take_dead_letters"]

        async def work(connection: Connection) -> int:
            return len(await connection.fetch(take, org, list(ids)))

        return await self._change_once("discard dead letters in", call, work)

    async def requeue_dead_letters(
        self, org: str, ids: Collection[int], at: Instant = 0, call: KeyedCall | None = None
    ) -> int:
        sql = self._connections.sql

        async def work(connection: Connection) -> int:
            taken = sorted(await connection.fetch(sql["take_dead_letters"], org, list(ids)))
            if taken:
                rows = [InboxRow(owner, target, workflow_id, body, at=at) for _, owner, target, workflow_id, body in taken]
                await put_inbox(connection, sql, rows)
            return len(taken)

        return await self._change_once("requeue dead letters in", call, work)

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        async def work(connection: Connection) -> int:
            return await self._replace(connection, org, execution_id, expected_version, row)

        return await self._change_once("change the status of an execution in", call, work) == 1

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        hold = self._connections.sql["hold_open_by_workflow_id" if by_workflow_id else "hold_open"]

        async def work(connection: Connection) -> int:
            await connection.execute(_HOLD_PATIENTLY)
            for _ in range(_RUNS_HELD if by_workflow_id else 1):
                found = await connection.fetch(hold, org, target)
                if found:
                    row = to_execution_row(found[0])
                    changed = change(row)
                    if changed is None:
                        return 0
                    return await self._replace(connection, org, row.execution_id, row.state_version, changed)
            return 0

        async with self._holders:
            return await self._change_once("change the status of an execution in", call, work) == 1

    async def _replace(
        self, connection: Connection, org: str, execution_id: str, expected_version: int, row: ExecutionRow
    ) -> int:
        values = from_execution_row(row)[2:]
        values[4] = str(values[4])
        replace = self._connections.sql["replace_execution"]
        return len(await connection.fetch(replace, org, execution_id, expected_version, *values))

    async def remember(self, call: KeyedCall, answer: int) -> int:
        async def work(_connection: Connection) -> int:
            return answer

        return await self._change_once("remember the answer to a call in", call, work)

    async def _change_once(self, doing: str, call: KeyedCall | None, work: Callable[[Connection], Awaitable[int]]) -> int:
        try:
            changed: int = await self._write(
                doing, lambda connection: do_once(connection, self._connections.sql, call, work)
            )
        except NothingDone:
            return 0
        return changed

    async def count_open(self, org: str, limit: int) -> int:
        return int(await self._connections.fetch_value("count in", "count_open_in_org", org, limit))

    async def read_settings(self) -> Settings:
        return await pauses.read_settings(self._connections)

    async def put_pause(self, row: PauseRow, call: KeyedCall | None = None) -> bool:
        is_new = await self._change_once("pause in", call, pauses.make_put(self._connections, row)) == 1
        await pauses.wait_for_writers(self._connections)
        return is_new

    async def end_pause(self, org: str, kind: str, name: str, at: Instant, call: KeyedCall | None = None) -> bool:
        work = pauses.make_end(self._connections, org, kind, name, at)
        return await self._change_once("end a pause in", call, work) == 1

    async def purge(self, closed_before: int, limit: int) -> int:
        removed = int(await self._connections.fetch_value("purge", "purge", closed_before, limit))
        if removed:
            await self._connections.fetch("forget requests in", "forget_requests", closed_before, _FORGOTTEN_AT_ONCE)
        await self.definitions.purge(closed_before)
        return removed

    async def purge_dead_letters(self, before: int, limit: int) -> int:
        return int(await self._connections.fetch_value("purge dead letters in", "purge_dead_letters", before, limit))

    # --- schedules ---

    async def find_schedule(self, org: str, schedule_id: str) -> ScheduleRow | None:
        rows = await self._connections.fetch("read", "find_schedule", org, schedule_id)
        return ScheduleRow(*rows[0]) if rows else None

    async def list_schedules(
        self, org: str, limit: int = 100, after: str = "", owner: str | None = None
    ) -> list[ScheduleRow]:
        rows = await self._connections.fetch("read", "list_schedules", org, after, owner, limit)
        return [ScheduleRow(*row) for row in rows]

    async def look_at_schedules(self, routes: Collection[Route] | None, skip: Collection[ScheduleKey]) -> ScheduleOutlook:
        asked = None if routes is None else list(routes)
        [found] = await self._connections.fetch("read", "look_at_schedules", asked, *schedules.list_parts(skip))
        return ScheduleOutlook(*found)

    async def change_schedule(self, change: ScheduleChange, call: KeyedCall | None = None) -> int:
        async def work(connection: Connection) -> int:
            return await schedules.change(connection, self._connections.sql, change)

        return await self._change_once("change a schedule in", call, work)

    # --- offers ---

    async def take_offers(self, node: str, routes: Collection[Route], limit: int) -> list[ActivityRow]:
        rows = await self._connections.fetch("take activities from", "take_offers", node, ["", *routes], limit)
        return [ActivityRow(*row) for row in rows]

    async def list_lost_offers(self, alive: Collection[str], limit: int) -> list[ActivityRow]:
        return [ActivityRow(*row) for row in await self._connections.fetch("read", "list_lost_offers", list(alive), limit)]

    async def list_offers(self, execution_id: str) -> list[ActivityRow]:
        return [ActivityRow(*row) for row in await self._connections.fetch("read", "list_offers", execution_id)]

    async def find_withdrawn(self, node: str, taken: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        if not taken:
            return set()
        asked = zip(*taken, strict=True)
        kept = await self._connections.fetch("read", "find_kept_offers", node, *asked)
        return set(taken) - {(execution_id, number, attempt) for execution_id, number, attempt in kept}

    # --- users' transactions ---

    async def transact(self, work: UserFunction[T], once: Once | None = None) -> T:
        return await transact(self._user_connections, work, once, self._was_committed)

    async def _was_committed(self, evidence: CommitEvidence) -> bool:
        return await self._find_outcome(partial(find_outcome, evidence))

    async def enlist(self, connection: Any, rows: Sequence[InboxRow]) -> None:
        from holdfast.store.postgres.transactional_outbox import enlist  # noqa: PLC0415 - users' drivers are loaded when they are used

        await enlist(connection, self._address, rows)

    # --- checking and waking ---

    async def check(self) -> list[str]:
        async with self._connections.use("check") as connection:
            return (await check_database(connection, self._connections.sql)).problems

    async def list_newer(self) -> list[str]:
        async with self._connections.use("check") as connection:
            return (await check_database(connection, self._connections.sql)).newer

    def on_wake(self, callback: Callable[[WakeReason], None]) -> None:
        self._listeners.append(callback)

    def _receive_wake_up(self, why: WakeReason) -> None:
        for listener in self._listeners:
            listener(why)

    async def wake(self, why: WakeReason) -> None:
        self._send(why)

    def _send(self, why: WakeReason) -> None:
        if self._wakeups is not None:
            self._wakeups.send(why)
