"""The store in memory: one handle per node, any number of them on one database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.errors import InvalidArguments, StoreError, StoreUnavailable
from holdfast.store.contract import ExecutionFilter, Transaction, UserFunction
from holdfast.store.definitions import Definitions
from holdfast.store.incidents import Incidents
from holdfast.store.memory import (
    heartbeats,
    in_flight,
    offers,
    pauses,
    publications,
    purging,
    reads,
    schedules,
    stale,
    user_transactions,
)
from holdfast.store.memory.checks import check_tables
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.definitions import MemoryDefinitions
from holdfast.store.memory.faults import Faults, Point
from holdfast.store.memory.incidents import MemoryIncidents
from holdfast.store.memory.questions import MemoryQuestions
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Changes, Tables, View, is_closed
from holdfast.store.memory.tasks import MemoryTasks
from holdfast.store.memory.transaction import MemoryTransaction
from holdfast.store.nodes import HeartbeatConnection, HeartbeatReply, WakeReason
from holdfast.store.once import KeyedCall, Once, read_answer
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
from holdfast.store.stale import StaleExecutions, StaleQuery, StaleTasks
from holdfast.store.tasks import Tasks

T = TypeVar("T")


class MemoryStore:
    """A node's handle on a database in memory.

    Several on one database are several nodes on one PostgreSQL: the same locks, the same visibility, and waits in the same
    places. An `exclusive` one has its database to itself and waits at commits only.
    """

    def __init__(
        self,
        database: MemoryDatabase | None = None,
        *,
        node: str = "node",
        faults: Faults | None = None,
        exclusive: bool = False,
    ) -> None:
        self.database = database if database is not None else MemoryDatabase()
        self._connection = Connection(self.database, node, faults, is_exclusive=exclusive)
        self._exclusive = exclusive

    @property
    def exclusive(self) -> bool:
        return self._exclusive

    @property
    def max_transactions(self) -> int:
        return 1 if self._exclusive else 2

    @property
    def tasks(self) -> Tasks:
        return MemoryTasks(self._connection, self._change_once)

    @property
    def definitions(self) -> Definitions:
        return MemoryDefinitions(self._connection)

    @property
    def incidents(self) -> Incidents:
        return MemoryIncidents(self._connection)

    @property
    def questions(self) -> Questions:
        return MemoryQuestions(self._connection)

    async def open(self) -> None:
        self._connection.open()

    async def close(self) -> None:
        self._connection.close()

    # --- batches ---

    async def begin(self) -> Transaction:
        await self._connection.reach(Point.BEGIN)
        return MemoryTransaction(self._connection)

    async def was_committed(self, transaction: Transaction) -> bool:
        if not isinstance(transaction, MemoryTransaction):
            raise StoreError("Expected a transaction of a store in memory, but it is another's. Ask the store it is of.")
        while True:
            try:
                await self._connection.reach(Point.WAS_COMMITTED)
            except StoreUnavailable:
                self._connection.check_usable()  # a broken connection is replaced; a dead node asks no more
                continue
            return await transaction.was_committed()

    # --- writing outside of batches ---

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """Put envelopes into inboxes; `transaction` tells how that meets a closing turn."""
        session = Session(self._connection)
        tables, locks = self.database.tables, session.locks
        with session.statement():
            await session.reach(Point.DELIVER_LOCK)
            for org, execution_id in sorted({(row.org, row.execution_id) for row in rows}):
                if execution_id in tables.executions:
                    await session.wait_until(partial(locks.try_share, session, (org, execution_id)))
            receivers = [self._find_open(row.org, row.execution_id) for row in rows]
            await session.reach(Point.DELIVER_INSERT)
            pairs = zip(rows, receivers, strict=True)
            session.put_inbox(replace(row, route=receiver.route) for row, receiver in pairs if receiver is not None)
        await session.finish(Point.DELIVER_COMMIT, Point.DELIVERED)
        return [receiver is not None for receiver in receivers]

    def _find_open(self, org: str, execution_id: str) -> ExecutionRow | None:
        row = reads.find_execution(self.database.tables, org, execution_id)
        return None if row is None or is_closed(row) else row

    async def discard_dead_letters(self, org: str, ids: Collection[int], call: KeyedCall | None = None) -> int:
        return await self._change_once(call, lambda session: self._take_dead_letters(session, org, ids))

    async def requeue_dead_letters(
        self, org: str, ids: Collection[int], at: Instant = 0, call: KeyedCall | None = None
    ) -> int:
        return await self._change_once(call, lambda session: self._take_dead_letters(session, org, ids, requeued_at=at))

    async def _take_dead_letters(
        self, session: Session, org: str, ids: Collection[int], requeued_at: Instant | None = None
    ) -> int:
        """DELETE ... RETURNING: who comes second waits for the first and finds nothing."""
        stored = self.database.tables.dead_letters
        for row_id in sorted(set(ids)):
            await session.wait_until(partial(session.locks.try_key, session, ("dead letter", row_id)))
        taken = [stored[row_id] for row_id in sorted(set(ids)) if row_id in stored and stored[row_id].org == org]
        session.changes.discarded.update(row.id for row in taken)
        if requeued_at is not None:
            session.put_inbox(
                InboxRow(row.org, row.execution_id, row.workflow_id, row.body, at=requeued_at) for row in taken
            )
        return len(taken)

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        async def work(session: Session) -> int:
            await session.wait_until(lambda: session.locks.try_update(session, (org, execution_id)))
            stored = self.database.tables.executions.get(execution_id)
            is_expected = stored is not None and stored.org == org and stored.state_version == expected_version
            if is_expected:
                session.changes.put_execution(row)
            return int(is_expected)

        return await self._change_once(call, work) == 1

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        async def work(session: Session) -> int:
            while True:
                find = self._find_open_id if by_workflow_id else self._find_open
                row = find(org, target)
                if row is None:
                    return 0
                await session.wait_until(partial(session.locks.try_update, session, (org, row.execution_id)))
                row = self._find_open(org, row.execution_id)  # as it is after the lock
                if row is not None:
                    break
            changed = change(row)
            if changed is not None:
                session.changes.put_execution(changed)
            return int(changed is not None)

        return await self._change_once(call, work) == 1

    def _find_open_id(self, org: str, workflow_id: str) -> ExecutionRow | None:
        row = View(self.database.tables, Changes()).latest((org, workflow_id))
        return None if row is None or is_closed(row) else row

    async def count_open(self, org: str, limit: int) -> int:
        rows = (await self._committed()).executions.values()
        return min(limit, sum(row.org == org and not is_closed(row) for row in rows))

    async def read_settings(self) -> Settings:
        return pauses.read_settings(await self._committed())

    async def put_pause(self, row: PauseRow, call: KeyedCall | None = None) -> bool:
        work = pauses.make_change(self.database, row.org, row.kind, row.name, row.at, row)
        is_new = await self._change_once(call, work) == 1
        await pauses.wait_for_writers(self.database)
        return is_new

    async def end_pause(self, org: str, kind: str, name: str, at: Instant, call: KeyedCall | None = None) -> bool:
        return await self._change_once(call, pauses.make_change(self.database, org, kind, name, at, None)) == 1

    async def remember(self, call: KeyedCall, answer: int) -> int:
        async def work(_session: Session) -> int:
            return answer

        return await self._change_once(call, work)

    async def _change_once(self, call: KeyedCall | None, work: Callable[[Session], Awaitable[int]]) -> int:
        """Some changes in a transaction of their own, unless their call is remembered; what they returned, now or then."""
        session = Session(self._connection)
        with session.statement():
            await session.reach(Point.READ)
            if call is not None:
                await session.wait_until(partial(session.locks.try_key, session, ("request", *call.key)))
                known = session.view.request(call.key)
                if known is not None and known.expires_at > call.now:
                    session.give_up()
                    return read_answer(known)
            answer = await work(session)
            if call is not None and not answer and not call.remembers_refusal:
                session.give_up()
                return 0
            if call is not None:
                session.changes.requests[call.key] = call.answered(answer)
        await session.finish(Point.UPDATE, Point.UPDATED)
        return answer

    async def purge(self, closed_before: Instant, limit: int) -> int:
        return await purging.purge(self._connection, closed_before, limit)

    async def purge_dead_letters(self, before: Instant, limit: int) -> int:
        return await purging.purge_dead_letters(self._connection, before, limit)

    async def transact(self, work: UserFunction[T], once: Once | None = None) -> T:
        return await user_transactions.transact(self._connection, work, once)

    async def enlist(self, connection: Any, rows: Sequence[InboxRow]) -> None:
        raise InvalidArguments(
            f"Expected a connection that reaches this store, but it is in memory, where no {type(connection).__name__} "
            "leads. Leave the connection out, or use a store in a database."
        )

    # --- reading outside of batches ---

    async def _committed(self) -> Tables:
        await self._connection.reach(Point.READ)
        return self.database.tables

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        return reads.find_execution(await self._committed(), org, execution_id)

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return View(await self._committed(), Changes()).latest((org, workflow_id))

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        return reads.list_executions(await self._committed(), query)

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        return reads.search_executions(await self._committed(), query)

    async def count_executions(self, query: ExecutionFilter) -> StatusCounts:
        return reads.count_executions(await self._committed(), query)

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        return View(await self._committed(), Changes()).history(execution_id, after)[:limit]

    async def load_snapshot(self, execution_id: str) -> SnapshotRow | None:
        return (await self._committed()).snapshots.get(execution_id)

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        return reads.load_last_turn(await self._committed(), execution_id)

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        return reads.list_inbox(await self._committed(), org, execution_id, workflow_id)[:limit]

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        return reads.list_dead_letters(await self._committed(), org, limit, after)

    async def find_next_due(self, skip: Collection[str], routes: Collection[Route] | None = None) -> Instant | None:
        return reads.find_next_due(await self._committed(), skip, routes)

    async def find_settled(self, execution_ids: Collection[str]) -> dict[str, bool]:
        return reads.find_settled(await self._committed(), execution_ids)

    async def find_oldest_closed(self) -> Instant | None:
        closed = (await self._committed()).closed
        return closed[0][0] if closed else None

    async def find_oldest_dead_letter(self) -> Instant | None:
        letters = (await self._committed()).dead_letters
        return letters[min(letters)].at if letters else None

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        return reads.list_orphans(await self._committed(), alive, limit, after)

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        return reads.list_held(await self._committed(), node, limit, after)

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        return reads.list_blocked(await self._committed(), limit, after)

    async def find_stale_executions(self, query: StaleQuery) -> StaleExecutions:
        return stale.find_stale_executions(await self._committed(), query)

    async def find_stale_tasks(self, query: StaleQuery) -> StaleTasks:
        return stale.find_stale_tasks(await self._committed(), query)

    async def read_backlog(self, now: Instant, limit: int) -> list[BacklogRow]:
        return reads.read_backlog(await self._committed(), now, limit)

    async def read_input_schemas(self, digests: Collection[str]) -> dict[str, bytes]:
        found = (await self._committed()).input_schemas
        return {digest: found[digest] for digest in digests if digest in found}

    async def put_input_schemas(self, schemas: Mapping[str, bytes]) -> None:
        (await self._committed()).input_schemas.update(schemas)

    async def count(self) -> Counts:
        return reads.count(await self._committed())

    async def check(self) -> list[str]:
        return check_tables(await self._committed()).problems

    async def list_newer(self) -> list[str]:
        return check_tables(await self._committed()).newer

    # --- schedules ---

    async def find_schedule(self, org: str, schedule_id: str) -> ScheduleRow | None:
        return (await self._committed()).schedules.get((org, schedule_id))

    async def list_schedules(
        self, org: str, limit: int = 100, after: str = "", owner: str | None = None
    ) -> list[ScheduleRow]:
        return schedules.list_all(await self._committed(), org, limit, after, owner)

    async def look_at_schedules(self, routes: Collection[Route] | None, skip: Collection[ScheduleKey]) -> ScheduleOutlook:
        if not self.database.tables.schedules:
            return ScheduleOutlook()
        return schedules.look_at(await self._committed(), routes, skip)

    async def change_schedule(self, change: ScheduleChange, call: KeyedCall | None = None) -> int:
        return await self._change_once(call, lambda session: schedules.change(session, self.database.tables, change))

    # --- offered activities ---

    async def take_offers(self, node: str, routes: Collection[Route], limit: int) -> list[ActivityRow]:
        return await offers.take_offers(self._connection, node, routes, limit)

    async def list_lost_offers(self, alive: Collection[str], limit: int) -> list[ActivityRow]:
        return offers.list_lost_offers(await self._committed(), alive, limit)

    async def list_offers(self, execution_id: str) -> list[ActivityRow]:
        return offers.list_offers(await self._committed(), execution_id)

    async def find_withdrawn(self, node: str, taken: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        return offers.find_withdrawn(await self._committed(), node, taken)

    # --- subscriptions, and what is published ---

    async def list_pending(
        self, org: str, kind: str, name: str, now: Instant, limit: int = 100, after: int = 0
    ) -> list[PendingRow]:
        return publications.list_pending(await self._committed(), (org, kind, name), now, limit, after)

    async def remove_pending(self, org: str, kind: str, name: str, item: str) -> bool:
        return await publications.remove_pending(self._connection, (org, kind, name), item)

    async def list_subscriptions(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        return publications.list_subscriptions(await self._committed(), org, execution_id)

    async def purge_pending(self, before: Instant, limit: int) -> int:
        return await publications.purge_pending(self._connection, before, limit)

    async def put_starts(self, node: str, rows: Sequence[StartSubscriptionRow]) -> None:
        await self._connection.reach(Point.BEAT)
        self.database.tables.starts[node] = [replace(row, node=node) for row in rows]

    # --- nodes ---

    async def beat(self, node: NodeRow, routes: Collection[Route], offers: Collection[Route]) -> HeartbeatReply:
        await self._connection.reach(Point.BEAT)
        return heartbeats.beat(self.database.tables, node, routes, offers)

    async def list_nodes(self) -> list[NodeRow]:
        return heartbeats.list_nodes(await self._committed())

    async def leave(self, node: str) -> None:
        await self._connection.reach(Point.BEAT)
        heartbeats.leave(self.database.tables, node)

    async def remove_nodes(self, nodes: Collection[str]) -> None:
        await self._connection.reach(Point.BEAT)
        heartbeats.remove_nodes(self.database.tables, nodes)

    async def forget_processes(self, processes: Collection[str]) -> None:
        await self._connection.reach(Point.BEAT)
        in_flight.forget(self.database.tables, processes)

    async def take_lock(self, name: str, node: str, now: Instant, until: Instant) -> bool:
        await self._connection.reach(Point.HOST_LOCK)
        return heartbeats.take_lock(self.database.tables, name, node, now, until)

    async def release_lock(self, name: str, node: str) -> None:
        await self._connection.reach(Point.HOST_LOCK)
        heartbeats.release_lock(self.database.tables, name, node)

    def make_heartbeat_connection(self) -> HeartbeatConnection | None:
        return None

    # --- wake-ups ---

    def on_wake(self, callback: Callable[[WakeReason], None]) -> None:
        # Who is woken hears it by himself: what he does then is no part of whoever sent it, and does not die with him.
        context = copy_context()
        self._connection.listeners.append(lambda why: context.copy().run(callback, why))

    async def wake(self, why: WakeReason) -> None:
        await self._connection.linger(Point.WAKE)
        for other in self.database.others(self._connection):
            other.receive_wake_up(why)
