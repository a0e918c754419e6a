"""The store in one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.errors import InvalidArguments, OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.store.columns import from_execution_row, to_execution_row
from holdfast.store.contract import ExecutionFilter, Transaction, UserFunction
from holdfast.store.definitions import Definitions
from holdfast.store.endpoints import Endpoint
from holdfast.store.incidents import Incidents
from holdfast.store.nodes import HeartbeatConnection, HeartbeatReply, WakeReason
from holdfast.store.once import KeyedCall, NothingDone, Once
from holdfast.store.pauses import PauseRow, RowChange, Settings
from holdfast.store.publications import PendingRow, StartSubscriptionRow, SubscriptionRow
from holdfast.store.questions import Questions
from holdfast.store.rows import (
    ActivityRow,
    BacklogRow,
    Counts,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    NodeRow,
    Route,
    StatusCounts,
)
from holdfast.store.schedules import ScheduleChange, ScheduleKey, ScheduleOutlook, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.sqlite import nodes, offers, pauses, publications, purging, reads, schedules, user_transactions
from holdfast.store.sqlite.checks import check_database
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.definitions import SqliteDefinitions
from holdfast.store.sqlite.failures import translate
from holdfast.store.sqlite.in_flight import InFlightFile
from holdfast.store.sqlite.incidents import SqliteIncidents, read_snapshots
from holdfast.store.sqlite.nodes import remove_nodes
from holdfast.store.sqlite.opening import prepare_file, require_file
from holdfast.store.sqlite.ownership import Ownership
from holdfast.store.sqlite.questions import SqliteQuestions
from holdfast.store.sqlite.queues import do_once, put_inbox
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.taking_turns import take_for_good, take_in_passing
from holdfast.store.sqlite.tasks import SqliteTasks
from holdfast.store.sqlite.transaction import SqliteTransaction
from holdfast.store.sqlite.transfer import SqliteTransfer
from holdfast.store.sqlite.urls import parse_url
from holdfast.store.sqlite.writer import Writer
from holdfast.store.sqlite.writer_cache import NEVER, Changes, CommitEvidence, WriterCache
from holdfast.store.stale import StaleExecutions, StaleQuery, StaleTasks
from holdfast.store.tasks import Tasks
from holdfast.store.transfer import Transferable

T = TypeVar("T")

_LONGEST_PAUSE = 1.0


def read_system_clock() -> Instant:
    """The time, as this machine knows it."""
    return time.time_ns() // 1000


class SqliteStore:
    """Executions in one SQLite file, which this store owns while it is open. `clock` tells since when.

    Reads that take microseconds run in the loop's thread. Those that may go through many rows run in another one, on a
    connection of their own.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], Instant] | None = None) -> None:
        self.path = Path(path).expanduser().resolve()
        self._clock = clock or read_system_clock
        self._ownership = Ownership(self.path)
        self._connections = Connections(self.path)
        self._writer_cache = WriterCache()
        self._in_flight = InFlightFile(self.path)
        self._writer: Writer | None = None
        self._transaction: SqliteTransaction | None = None
        self._thread_reads = asyncio.Lock()

    @classmethod
    def from_url(cls, url: str, *, clock: Callable[[], Instant] | None = None) -> SqliteStore:
        """The store that a URL names: `sqlite:///relative.db` or `sqlite:////absolute/path.db`."""
        return cls(parse_url(url), clock=clock)

    @property
    def exclusive(self) -> bool:
        return True

    @property
    def max_transactions(self) -> int:
        return 1

    @property
    def tasks(self) -> Tasks:
        return SqliteTasks(self._read_in_thread, self._write)

    @property
    def definitions(self) -> Definitions:
        return SqliteDefinitions(self._read, self._read_in_thread, self._write, self._writer_cache)

    @property
    def incidents(self) -> Incidents:
        return SqliteIncidents(self._read_in_thread)

    @property
    def questions(self) -> Questions:
        return SqliteQuestions(self._read_in_thread, self._write)

    # --- opening and closing ---

    async def open(self) -> None:
        if self._writer is None:
            await take_for_good(self._ownership, self.path, self._clock())
            await self._open(upgrade=True)

    async def open_existing(self, *, upgrade: bool = False) -> None:
        """Open a database that is there; see `PersistentStore`."""
        require_file(self.path)
        if self._writer is None:
            if upgrade:
                await take_for_good(self._ownership, self.path, self._clock())
            else:
                take_in_passing(self._ownership, self.path, self._clock())
            await self._open(upgrade=upgrade)

    async def _open(self, *, upgrade: bool) -> None:
        self._thread_reads = asyncio.Lock()
        writer = Writer(self._connections, self._writer_cache, self._in_flight)
        try:
            prepare_file(self.path)
            self._connections.open(upgrade=upgrade)
            writer.learn()
        except BaseException as error:
            await writer.close()
            self._ownership.give_up()
            if isinstance(error, sqlite3.Error):
                raise translate(error, "open the database", self.path) from error
            raise
        self._in_flight.open()
        self._writer = writer

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            if self._transaction is not None:
                await self._transaction.rollback()
            async with self._thread_reads:
                await writer.close()
            self._in_flight.close()
        finally:
            self._in_flight.abandon()
            self._ownership.give_up()

    def abandon(self) -> None:
        """Let go at once, as the end of the process would: nothing is waited for. See `OwnedStore`."""
        self._writer = None
        try:
            self._connections.close()
            self._in_flight.abandon()
        finally:
            self._ownership.give_up()

    @property
    def is_owned(self) -> bool:
        """Whether this process owns the file by this store; see `OwnedStore`."""
        return self._ownership.is_held

    def announce(self, endpoint: Endpoint) -> None:
        """Write beside the file where this process takes calls; see `OwnedStore`."""
        self._require_writer()
        self._ownership.announce(endpoint)

    def keep_announced(self) -> None:
        """Write it again if somebody removed what was written; see `OwnedStore`."""
        self._ownership.restore()

    def find_left_endpoint(self) -> Endpoint | None:
        """Where the owner before this one took calls, if it ended without tidying up; see `OwnedStore`."""
        return None if self._ownership.before is None else self._ownership.before.endpoint

    def make_transferable(self) -> Transferable:
        """For taking everything elsewhere; see `PersistentStore`."""
        return SqliteTransfer(self._write, self._read_in_thread, self._writer_cache)

    def _require_writer(self) -> Writer:
        if self._writer is None:
            raise StoreUnavailable(
                f"Expected to reach the database '{self.path}', but it is not open. Open the store first."
            )
        return self._writer

    # --- batches ---

    async def begin(self) -> Transaction:
        self._transaction = await self._begin()
        return self._transaction

    async def _begin(self) -> SqliteTransaction:
        writer = self._require_writer()
        await writer.enter()
        return SqliteTransaction(writer)

    async def was_committed(self, transaction: Transaction) -> bool:
        if not isinstance(transaction, SqliteTransaction):
            raise StoreError("Expected a transaction of an SQLite store, but it is another's. Ask the store it is of.")
        pause = 0.01
        while transaction.was_committed is None:
            writer = self._require_writer()
            if not transaction.is_of(writer):
                raise StoreUnavailable(
                    f"Expected to tell whether a transaction on '{self.path}' took place, but the store was closed since. "
                    "Compare the versions of its executions."
                )
            try:
                await writer.settle()
            except StoreUnavailable:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return transaction.was_committed

    # --- writing outside of batches ---

    async def _write(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T]) -> T:
        transaction = await self._begin()
        result = transaction.run(doing, work)
        await transaction.commit()
        return result

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        def work(connection: sqlite3.Connection, changes: Changes) -> list[bool]:
            asked = as_json([row.execution_id for row in rows])
            opened = {(org, key): route for org, key, route in connection.execute(SQL["read_open_ids"], (asked,))}
            routes = [opened.get((row.org, row.execution_id)) for row in rows]
            pairs = zip(rows, routes, strict=True)
            put_inbox(connection, changes, [replace(row, route=route) for row, route in pairs if route is not None])
            return [route is not None for route in routes]

        return await self._write("deliver to", work)

    async def discard_dead_letters(self, org: str, ids: Collection[int], call: KeyedCall | None = None) -> int:
        return await self._change_once("discard dead letters in", call, lambda db, _: len(_take_dead_letters(db, org, ids)))

    async def requeue_dead_letters(
        self, org: str, ids: Collection[int], at: Instant = 0, call: KeyedCall | None = None
    ) -> int:
        def work(connection: sqlite3.Connection, changes: Changes) -> int:
            taken = _take_dead_letters(connection, org, ids)
            put_inbox(connection, changes, [replace(row, at=at) for row in taken])
            return len(taken)

        return await self._change_once("requeue dead letters in", call, work)

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        work = partial(self._replace, org, execution_id, expected_version, row)
        return await self._change_once("change the status of an execution in", call, work) == 1

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        def work(connection: sqlite3.Connection, changes: Changes) -> int:
            hold = SQL["hold_open_by_workflow_id"] if by_workflow_id else SQL["hold_open"]
            found = connection.execute(hold, (org, target)).fetchone()
            if found is None:
                return 0
            row = to_execution_row(found)
            changed = change(row)
            if changed is None:
                return 0
            return self._replace(org, row.execution_id, row.state_version, changed, connection, changes)

        return await self._change_once("change the status of an execution in", call, work) == 1

    def _replace(
        self,
        org: str,
        execution_id: str,
        expected_version: int,
        row: ExecutionRow,
        connection: sqlite3.Connection,
        changes: Changes,
    ) -> int:
        values = (*from_execution_row(row)[2:], org, execution_id, expected_version)
        is_replaced = connection.execute(SQL["replace_execution"], values).rowcount == 1
        if is_replaced:
            self._writer_cache.positions.drop(execution_id)
            changes.evidence = CommitEvidence("has_version", (execution_id, row.state_version), True)
        return int(is_replaced)

    async def remember(self, call: KeyedCall, answer: int) -> int:
        return await self._change_once("remember the answer to a call in", call, lambda _db, _changes: answer)

    async def _change_once(
        self, doing: str, call: KeyedCall | None, work: Callable[[sqlite3.Connection, Changes], int]
    ) -> int:
        """Some changes in a transaction of their own, unless their call is remembered; what they returned, now or then."""
        try:
            return await self._write(doing, work if call is None else partial(do_once, call, work))
        except NothingDone:
            return 0

    async def count_open(self, org: str, limit: int) -> int:
        return int(self._read(lambda db: db.execute(SQL["count_open_in_org"], (org, limit)).fetchone()[0]))

    async def read_settings(self) -> Settings:
        return await self._read_in_thread(pauses.read_settings)

    async def put_pause(self, row: PauseRow, call: KeyedCall | None = None) -> bool:
        return await self._change_once("pause in", call, pauses.make_put(self._writer_cache, row)) == 1

    async def end_pause(self, org: str, kind: str, name: str, at: Instant, call: KeyedCall | None = None) -> bool:
        work = pauses.make_end(self._writer_cache, org, kind, name, at)
        return await self._change_once("end a pause in", call, work) == 1

    async def put_input_schemas(self, schemas: Mapping[str, bytes]) -> None:
        if set(schemas) - set(await self.read_input_schemas(schemas)):
            rows = list(schemas.items())
            await self._write("announce input schemas in", lambda db, _: db.executemany(SQL["put_input_schemas"], rows))

    async def purge(self, closed_before: Instant, limit: int) -> int:
        return await purging.purge(self._write, closed_before, limit)

    async def purge_dead_letters(self, before: Instant, limit: int) -> int:
        return await purging.purge_dead_letters(self._write, before, limit)

    async def transact(self, work: UserFunction[T], once: Once | None = None) -> T:
        return await user_transactions.transact(self._require_writer(), work, once)

    async def enlist(self, connection: Any, rows: Sequence[InboxRow]) -> None:
        raise InvalidArguments(
            f"Expected a connection that may write to '{self.path}' beside Holdfast, but there is none: Holdfast owns that "
            "file. Leave the connection out, or do it all within engine.transaction(fn)."
        )

    # --- reading outside of batches ---

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._require_writer()
        try:
            return work(self._connections.reader)
        except sqlite3.Error as error:
            raise translate(error, "read", self.path) from error

    async def _read_in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with closing(self._connections.connect_for_thread()) as connection:
                return work(connection)

        async with self._thread_reads:
            writer = self._require_writer()
            try:
                return await asyncio.get_running_loop().run_in_executor(writer.threads, run)
            except sqlite3.Error as error:
                raise translate(error, "read", self.path) from error

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        return self._read(lambda db: reads.find_execution(db, org, execution_id))

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return self._read(lambda db: reads.find_latest(db, org, workflow_id))

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        return self._read(lambda db: reads.load_history(db, execution_id, after, limit))

    async def load_snapshot(self, execution_id: str) -> SnapshotRow | None:
        return self._read(lambda db: read_snapshots(db, [execution_id]).get(execution_id))

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        return self._read(lambda db: reads.load_last_turn(db, execution_id))

    async def find_next_due(self, skip: Collection[str], routes: Collection[Route] | None = None) -> Instant | None:
        self._require_writer()
        if self._writer_cache.no_timer_before == NEVER:
            return None
        return self._read(lambda db: reads.find_next_due(db, skip, routes))

    async def find_settled(self, execution_ids: Collection[str]) -> dict[str, bool]:
        return self._read(lambda db: reads.find_settled(db, execution_ids))

    async def find_oldest_closed(self) -> Instant | None:
        return self._read(reads.find_oldest_closed)

    async def find_oldest_dead_letter(self) -> Instant | None:
        return self._read(reads.find_oldest_dead_letter)

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        return await self._read_in_thread(lambda db: reads.list_executions(db, query))

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        return await self._read_in_thread(lambda db: reads.search_executions(db, query))

    async def count_executions(self, query: ExecutionFilter) -> StatusCounts:
        return await self._read_in_thread(lambda db: reads.count_executions(db, query))

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        return await self._read_in_thread(lambda db: reads.list_orphans(db, alive, limit, after))

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        return await self._read_in_thread(lambda db: reads.list_held(db, node, limit, after))

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        return await self._read_in_thread(lambda db: reads.list_blocked(db, limit, after))

    async def find_stale_executions(self, query: StaleQuery) -> StaleExecutions:
        return await self._read_in_thread(lambda db: reads.find_stale_executions(db, query))

    async def find_stale_tasks(self, query: StaleQuery) -> StaleTasks:
        return await self._read_in_thread(lambda db: reads.find_stale_tasks(db, query))

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        return await self._read_in_thread(lambda db: reads.list_inbox(db, org, execution_id, workflow_id, limit))

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        return await self._read_in_thread(lambda db: reads.list_dead_letters(db, org, limit, after))

    async def read_backlog(self, now: Instant, limit: int) -> list[BacklogRow]:
        return await self._read_in_thread(lambda db: reads.read_backlog(db, now, limit))

    async def read_input_schemas(self, digests: Collection[str]) -> dict[str, bytes]:
        asked = (as_json(list(digests)),)
        return await self._read_in_thread(lambda db: dict(db.execute(SQL["read_input_schemas"], asked).fetchall()))

    async def count(self) -> Counts:
        return await self._read_in_thread(reads.count)

    async def check(self) -> list[str]:
        return (await self._read_in_thread(check_database)).problems

    async def list_newer(self) -> list[str]:
        return (await self._read_in_thread(check_database)).newer

    # --- schedules ---

    async def find_schedule(self, org: str, schedule_id: str) -> ScheduleRow | None:
        return self._read(lambda db: schedules.find(db, org, schedule_id))

    async def list_schedules(
        self, org: str, limit: int = 100, after: str = "", owner: str | None = None
    ) -> list[ScheduleRow]:
        return await self._read_in_thread(lambda db: schedules.list_all(db, org, limit, after, owner))

    async def look_at_schedules(self, routes: Collection[Route] | None, skip: Collection[ScheduleKey]) -> ScheduleOutlook:
        return self._read(lambda db: schedules.look_at(db, routes, skip))

    async def change_schedule(self, change: ScheduleChange, call: KeyedCall | None = None) -> int:
        return await self._change_once("change a schedule in", call, lambda db, made: schedules.change(db, made, change))

    # --- offered activities ---

    async def take_offers(self, node: str, routes: Collection[Route], limit: int) -> list[ActivityRow]:
        self._require_writer()
        if self._writer_cache.offers == 0:
            return []
        transaction = await self._begin()
        taken = transaction.run(
            "take activities from", lambda db, changes: offers.take_offers(db, changes, node, routes, limit)
        )
        try:
            await transaction.commit()
        except OutcomeUnknown:  # what was taken and is not run would stay taken
            return taken if await self.was_committed(transaction) else []
        return taken

    async def list_lost_offers(self, alive: Collection[str], limit: int) -> list[ActivityRow]:
        return self._read(lambda db: offers.list_lost_offers(db, alive, limit))

    async def list_offers(self, execution_id: str) -> list[ActivityRow]:
        return self._read(lambda db: offers.list_offers(db, execution_id))

    async def find_withdrawn(self, node: str, taken: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        return self._read(lambda db: offers.find_withdrawn(db, node, taken))

    # --- subscriptions, and what is published ---

    async def list_pending(
        self, org: str, kind: str, name: str, now: Instant, limit: int = 100, after: int = 0
    ) -> list[PendingRow]:
        values = (org, str(kind), name, now, after, limit)
        return await self._read_in_thread(lambda db: publications.list_pending(db, values))

    async def remove_pending(self, org: str, kind: str, name: str, item: str) -> bool:
        values = (org, str(kind), name, item)
        return await self._write(
            "remove a kept publication from", lambda db, changes: publications.remove_pending(db, changes, values)
        )

    async def list_subscriptions(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        return self._read(lambda db: publications.list_subscriptions(db, org, execution_id))

    async def purge_pending(self, before: Instant, limit: int) -> int:
        return await self._write(
            "purge kept publications in", lambda db, changes: publications.purge_pending(db, changes, before, limit)
        )

    async def put_starts(self, node: str, rows: Sequence[StartSubscriptionRow]) -> None:
        await self._write("offer starts in", lambda db, _: publications.put_starts(db, node, rows))

    # --- nodes: this process, and nobody to wake ---

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        writer_cache = self._writer_cache
        return await self._write(
            "record a heartbeat in", lambda db, changes: nodes.beat(db, writer_cache, changes, node, routes, offers)
        )

    async def list_nodes(self) -> list[NodeRow]:
        return self._read(nodes.list_nodes)

    async def leave(self, node: str) -> None:
        await self._write("record the leaving of a node in", lambda db, _: nodes.leave(db, node))

    async def remove_nodes(self, nodes: Collection[str]) -> None:
        await self._write("remove nodes from", lambda db, _: remove_nodes(db, nodes))

    async def forget_processes(self, processes: Collection[str]) -> None:
        self._require_writer()
        self._in_flight.forget(processes)

    async def take_lock(self, name: str, node: str, now: Instant, until: Instant) -> bool:
        return await self._write("take a lock in", lambda db, _: nodes.take_lock(db, name, node, now, until))

    async def release_lock(self, name: str, node: str) -> None:
        await self._write("give a lock back in", lambda db, _: db.execute(SQL["release_lock"], (name, node)))

    def make_heartbeat_connection(self) -> HeartbeatConnection | None:
        return None

    def on_wake(self, callback: Callable[[WakeReason], None]) -> None:
        """Does nothing: no other node uses this file, so nobody sends a wake-up."""

    async def wake(self, why: WakeReason) -> None:
        """Does nothing: no other node uses this file."""


def _take_dead_letters(connection: sqlite3.Connection, org: str, ids: Collection[int]) -> list[InboxRow]:
    """Remove dead letters; what they were before they became that, in the order of their ids."""
    values = {"org": org, "ids": as_json(list(ids))}
    rows = sorted(connection.execute(SQL["take_dead_letters"], values).fetchall())
    return [InboxRow(org, execution_id, workflow_id, body) for _, org, execution_id, workflow_id, body in rows]
