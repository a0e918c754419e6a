"""A batch's transaction: lock, read, write, in the statements in which PostgreSQL would do it.

How a delivery and a closing turn meet. The delivery shares the row (KEY SHARE), sees it open, inserts and commits; the turn
makes its lock exclusive (FOR UPDATE SKIP LOCKED), reads the inbox in a new statement, and closes. Whatever the order, either
the turn is lost or the delivery is refused:

1. The delivery has committed before the turn escalates: the inbox read finds its row. The turn is lost.
2. The delivery shares the row and has not committed: the turn does not get its lock. The turn is lost.
3. The turn has escalated: the delivery waits for its end, and only then looks whether the execution is open. Committed: it
   is closed, the delivery is refused. Rolled back: it is open, the delivery goes on.

What other batches send (outgoing rows) shares nothing. Committed before the inbox is read: the turn is lost. Later: the row
waits for a closed execution, is claimed like any other, and whoever claims it answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, zip_longest

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.errors import StoreUnavailable
from holdfast.store.contract import LONGEST_ORDER, Claim, Claimed, TurnWrite, UnroutedWrite, find_taken
from holdfast.store.memory import in_flight, schedules
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.incidents import find_snapshot, write_repairs
from holdfast.store.memory.publications import MemoryPublishing
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Pair, Recipient, is_closed
from holdfast.store.memory.tasks import find_busy, lock_tasks, write_tasks
from holdfast.store.nodes import InFlightMark
from holdfast.store.rows import ExecutionRow, HistoryRow, InboxRow, RequestKeyId, RequestRow, Route
from holdfast.store.schedules import ScheduleKey, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.tasks import TaskKey, TaskRow
from holdfast.store.withholding import find_examined, find_withheld


class MemoryTransaction(MemoryPublishing):
    """One transaction of a batch on a database in memory."""

    def __init__(self, connection: Connection) -> None:
        self._session = Session(connection)
        self._locks = self._session.locks
        self._view = self._session.view
        self._changes = self._session.changes
        self._has_passed = False
        """Whether turns were written by the settings number: what the transaction writes next belongs to them."""

    # --- claiming ---

    async def claim(self, claim: Claim) -> Claimed:
        with self._session.statement():
            found: list[Recipient] = []
            if claim.limit > 0:
                await self._session.reach(Point.CLAIM_FIND)
                # Enough of them, even if every lock there is lies on the first.
                found = list(
                    islice(
                        self._find(claim), claim.limit + len(claim.wanted) + len(claim.workflow_ids) + self._locks.count()
                    )
                )
            await self._session.reach(Point.CLAIM_LOCK)
            claimed = Claimed()
            # In the order of asking, not as sets: a simulation must take the same way for the same seed.
            addresses = self._lock_wanted(claim, claimed)
            self._lock_asked(claim, addresses)
            claimed.held_keys = {key for key in dict.fromkeys(claim.request_keys) if self._try_request_key(key)}
            claimed.skipped = self._lock_found(found, claim.limit, addresses)
            pairs = [(org, workflow_id) for org, execution_id, workflow_id in addresses if not execution_id]
            if pairs:
                await self._session.reach(Point.CLAIM_RESOLVE)
                self._lock_resolved(pairs, claimed, addresses)
            for org, execution_id, _ in addresses:
                if execution_id in claim.closing:
                    self._locks.try_escalate(self._session, (org, execution_id))
            await self._session.reach(Point.CLAIM_READ)
            self._read(claim, claimed, addresses, pairs)
            return claimed

    def _find(self, claim: Claim) -> Iterator[Recipient]:
        """Who has work, a turn each for those with envelopes and those with due timers, so that neither starves."""
        skip = frozenset(claim.skip)
        routes = None if claim.routes is None else frozenset(claim.routes)
        seen: set[Recipient] = {(org, "", workflow_id) for org, workflow_id in claim.skip_workflow_ids}
        pairs = zip_longest(self._view.waiting_addresses(routes), self._view.due_addresses(claim.due_until, routes))
        for address in chain.from_iterable(pairs):
            if address is not None and address not in seen and address[1] not in skip:
                seen.add(address)
                yield address

    def _lock_wanted(self, claim: Claim, claimed: Claimed) -> dict[Recipient, None]:
        addresses: dict[Recipient, None] = {}
        for one in claim.wanted:
            row = self._view.execution(one.execution_id)
            if row is None or row.org != one.org:
                continue
            if self._try_row(one.org, one.execution_id):
                addresses[one.org, one.execution_id, ""] = None
            else:
                claimed.busy.add(one.execution_id)
        return addresses

    def _lock_asked(self, claim: Claim, addresses: dict[Recipient, None]) -> None:
        for org, workflow_id in claim.workflow_ids:
            if self._try_id(org, workflow_id):
                addresses[org, "", workflow_id] = None

    def _lock_found(self, found: Sequence[Recipient], limit: int, addresses: dict[Recipient, None]) -> bool:
        """Up to `limit` of those that nobody else holds; whether others hold some.

        What was found may be gone by now: then nothing is read for it.
        """
        most, is_skipped = len(addresses) + limit, False
        for address in found:
            if len(addresses) >= most:
                break
            org, execution_id, workflow_id = address
            if self._try_row(org, execution_id) if execution_id else self._try_id(org, workflow_id):
                addresses[address] = None
            else:
                is_skipped = True
        return is_skipped

    def _lock_resolved(self, pairs: Sequence[Pair], claimed: Claimed, addresses: dict[Recipient, None]) -> None:
        """The open executions of these workflow ids, claimed like wanted ones. No other can be started: the ids are ours."""
        for pair in pairs:
            execution_id = self._view.open_id(pair)
            if execution_id is None:
                continue
            if self._try_row(pair[0], execution_id):
                addresses[pair[0], execution_id, ""] = None
            else:
                claimed.busy.add(execution_id)

    def _try_row(self, org: str, execution_id: str) -> bool:
        row = (org, execution_id)
        if self._locks.holds(self._session, row):
            return True
        return not self._session.connection.is_skipped() and self._locks.try_update(self._session, row)

    def _try_id(self, org: str, workflow_id: str) -> bool:
        workflow_key = (org, workflow_id)
        if self._locks.holds_id(self._session, workflow_key):
            return True
        return not self._session.connection.is_skipped() and self._locks.try_id(self._session, workflow_key)

    def _try_request_key(self, key: RequestKeyId) -> bool:
        name = ("request key", *key)
        if self._locks.holds_key(self._session, name):
            return True
        return not self._session.connection.is_skipped() and self._locks.try_key(self._session, name)

    def _read(self, claim: Claim, claimed: Claimed, addresses: Collection[Recipient], pairs: Sequence[Pair]) -> None:
        """A statement after that of the locks, so that it sees what the holders before us have committed.

        What waits for executions that are closed, or are not there, is ours too: nobody else can get it meanwhile.
        """
        known = {one.execution_id: one for one in claim.wanted}
        named: list[Recipient] = []
        claimed.open_ids = {pair: self._view.open_id(pair) for pair in pairs}
        for org, execution_id, _ in addresses:
            row = self._view.execution(execution_id) if execution_id else None
            if row is None or row.org != org or is_closed(row):
                continue
            claimed.held.add(execution_id)
            wanted = known.get(execution_id)
            if wanted is None or not wanted.is_known(row.state_version, row.updated_at):
                claimed.rows[execution_id] = row
            claimed.open_ids[org, row.workflow_id] = execution_id
        claimed.withheld = find_withheld(claim, claimed.rows)
        for (org, workflow_id), open_id in claimed.open_ids.items():
            if open_id in claimed.held and open_id not in claimed.withheld:
                # To send something, one need not know whether an id that may be either is a workflow id.
                named += [(org, "", workflow_id), (org, workflow_id, "")]
        read = chain((address for address in addresses if address[1] not in claimed.withheld), named)
        claimed.inbox = self._view.inbox_for(read)
        if claimed.withheld:
            self._examine(claim, claimed)
        claimed.due = self._view.due_timers(claimed.held, claim.due_until)

    def _examine(self, claim: Claim, claimed: Claimed) -> None:
        """Read of the inboxes that are not read what concerns their executions nonetheless."""

        def concerns(row: InboxRow) -> bool:
            route, prefix = examined[row.execution_id], claim.order_prefix
            is_order = bool(prefix) and len(row.body) <= LONGEST_ORDER and row.body.startswith(prefix)
            return is_order or (route is not None and row.route != route)

        examined = find_examined(claim, claimed.withheld, claimed.rows)
        found = self._view.inbox_for((claimed.rows[execution_id].org, execution_id, "") for execution_id in examined)
        claimed.inbox += [row for row in found if concerns(row)]
        claimed.inbox.sort(key=lambda row: row.id)

    # --- reading ---

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            return {execution_id: self._view.history(execution_id, sequence) for execution_id, sequence in after.items()}

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            found = ((execution_id, find_snapshot(self._session, execution_id)) for execution_id in execution_ids)
            return {execution_id: row for execution_id, row in found if row is not None}

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            rows = ((execution_id, self._view.execution(execution_id)) for execution_id in execution_ids)
            return {execution_id: row for execution_id, row in rows if row is not None}

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            rows = ((execution_id, self._view.execution(execution_id)) for execution_id in execution_ids)
            held = {execution_id: (row.org, execution_id, "") for execution_id, row in rows if row is not None}
            return {key: min(limit, len(self._view.inbox_for([address]))) for key, address in held.items()}

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        with self._session.statement():
            await self._session.reach(Point.READ)
            return self._view.latest((org, workflow_id))

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            rows = ((key, self._view.request(key)) for key in keys)
            return {key: row for key, row in rows if row is not None and row.expires_at > now}

    # --- marking ---

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            return {key for key in keys if self._locks.try_key(self._session, ("offer", *key)) and self._view.is_free(key)}

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            return lock_tasks(self._session, keys)

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        """Beside the transaction: not among its changes, so neither its rollback nor its end touches it."""
        with self._session.statement():
            await self._session.reach(Point.MARK_IN_FLIGHT)
            return in_flight.mark(self._session.connection.database.tables, process, slot, versions)

    # --- writing ---

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        with self._session.statement():
            lost = await self._drop_closings(turns, unrouted)
            facts = await self._prepare_waits(turns, lost)
            lost |= find_busy(self._session, turns)
            settings = self._session.connection.database.tables.settings[0]
            if unrouted.settings not in (None, settings) and not self._has_passed:
                lost = {turn.row.execution_id for turn in turns}
            await self._session.reach(Point.WRITE_VERSIONS)
            for turn in turns:
                if turn.expected_version is not None and turn.row.execution_id not in lost:
                    self._update(turn, lost)
            await self._session.reach(Point.WRITE_INSERTS)
            for turn in turns:
                if turn.expected_version is None and turn.row.execution_id not in lost:
                    self._insert(turn, lost)
            await self._session.reach(Point.WRITE_ROWS)
            await self._lock_offers([turn for turn in turns if turn.row.execution_id not in lost])
            written = [turn for turn in turns if turn.row.execution_id not in lost]
            self._has_passed |= bool(written) and unrouted.settings is not None
            for turn in written:
                self._write_turn(turn)
                if turn.tasks or turn.task_changes:
                    write_tasks(self._session, turn)
            self._write_subscriptions(written, facts, unrouted)
            self._write_unrouted(unrouted)
            return lost

    async def _drop_closings(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        """The closings that may not be: those whose lock is shared, and those that leave something in the inbox."""
        closings = [turn for turn in turns if is_closed(turn.row)]
        lost: set[str] = set()
        if not closings:
            return lost
        is_skipped = await self._session.reach(Point.WRITE_ESCALATE) is FaultAction.SKIP
        for turn in closings:
            row = (turn.row.org, turn.row.execution_id)
            is_stored = turn.expected_version is not None
            if is_stored and (is_skipped or not self._locks.try_escalate(self._session, row)):
                lost.add(turn.row.execution_id)
        await self._session.reach(Point.WRITE_RECHECK)
        taken = find_taken(turns, unrouted)
        for turn in closings:
            waiting = self._view.inbox_for([(turn.row.org, turn.row.execution_id, "")])
            if turn.expected_version is not None and turn.row.status != Status.TERMINATED:
                under_id = self._view.inbox_for([(turn.row.org, "", turn.row.workflow_id)])
                waiting = [*waiting, *(row for row in under_id if not row.route)]
            if any(row.id not in taken for row in waiting):
                lost.add(turn.row.execution_id)
        return lost

    def _update(self, turn: TurnWrite, lost: set[str]) -> None:
        """UPDATE ... WHERE state_version = expected RETURNING."""
        row = turn.row
        stored = self._view.execution(row.execution_id)
        if stored is None or stored.org != row.org or stored.state_version != turn.expected_version:
            lost.add(row.execution_id)
            return
        self._require_no_wait(self._locks.try_update(self._session, (row.org, row.execution_id)), row)
        self._changes.put_execution(row)

    def _insert(self, turn: TurnWrite, lost: set[str]) -> None:
        """INSERT ... ON CONFLICT DO NOTHING."""
        row, pair = turn.row, (turn.row.org, turn.row.workflow_id)
        if self._view.execution(row.execution_id) is not None or self._view.open_id(pair) is not None:
            lost.add(row.execution_id)
            return
        for key in (row.execution_id, pair):
            self._require_no_wait(self._locks.try_key(self._session, key), row)
        self._changes.put_execution(row)

    def _require_no_wait(self, is_free: bool, row: ExecutionRow) -> None:
        """A batch that claims before it writes never gets here; PostgreSQL would let it wait until lock_timeout."""
        if not is_free:
            raise StoreUnavailable(
                f"Expected to write execution '{row.execution_id}' at once, but another transaction holds it or its "
                "workflow id. Claim both before writing."
            )

    async def _lock_offers(self, turns: Sequence[TurnWrite]) -> None:
        """Who is taking one of these offers goes first. It waits for nobody, so nobody waits in a circle."""
        for turn in turns:
            execution_id = turn.row.execution_id
            for number in sorted({*self._offers_ended_by(turn), *(offer.number for offer in turn.offered)}):
                await self._session.wait_until(partial(self._locks.try_key, self._session, ("offer", execution_id, number)))

    def _offers_ended_by(self, turn: TurnWrite) -> Sequence[int]:
        return self._view.offer_numbers(turn.row.execution_id) if is_closed(turn.row) else turn.withdrawn

    def _write_turn(self, turn: TurnWrite) -> None:
        execution_id = turn.row.execution_id
        if turn.history is not None:
            self._changes.histories.setdefault(execution_id, []).append(turn.history)
        for timer in turn.timers:
            self._changes.timers[execution_id, timer.number] = timer
        ended = self._view.timer_numbers(execution_id) if is_closed(turn.row) else turn.ended_timers
        for number in ended:
            self._changes.timers[execution_id, number] = None
        for number in self._offers_ended_by(turn):
            self._changes.offers[execution_id, number] = None
        if turn.has_rare:
            write_repairs(self._session, turn)
        if not is_closed(turn.row):
            for offer in turn.offered:
                self._changes.offers.pop((execution_id, offer.number), None)  # so that it goes to the end
                self._changes.offers[execution_id, offer.number] = offer
        self._adopt(turn)
        self._write_common(turn)

    def _adopt(self, turn: TurnWrite) -> None:
        for row in self._view.inbox_rows(turn.adopted):
            self._changes.consumed.add(row.id)
            address = {"execution_id": turn.row.execution_id, "workflow_id": "", "route": turn.row.route}
            self._changes.inbox[row.id] = replace(row, **address)

    def _write_unrouted(self, unrouted: UnroutedWrite) -> None:
        self._write_common(unrouted)
        for row_id in unrouted.failed:
            self._changes.failed[row_id] = self._changes.failed.get(row_id, 0) + 1
        for row_id, route in unrouted.rerouted:
            if row_id in self._changes.inbox:
                self._changes.inbox[row_id] = replace(self._changes.inbox[row_id], route=route)
            else:
                self._changes.rerouted[row_id] = route

    def _write_common(self, write: TurnWrite | UnroutedWrite) -> None:
        self._changes.consumed.update(write.consumed)
        self._session.put_inbox(write.outgoing)
        for row in write.readdressed:
            self._changes.consumed.add(row.id)
            self._changes.inbox[row.id] = row
        self._session.put_dead_letters(write.dead_letters)
        self._session.put_publications(write.publications)
        for request in write.requests:
            self._changes.requests[request.org, request.kind, request.key] = request

    # --- schedules ---

    async def claim_schedules(
        self, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey], limit: int
    ) -> list[ScheduleRow]:
        with self._session.statement():
            await self._session.reach(Point.CLAIM_LOCK)
            tables = self._session.connection.database.tables
            return schedules.lock(self._session, schedules.list_due(tables, due_until, routes, skip), limit)

    async def claim_waiting_schedules(
        self, routes: Collection[Route] | None, after: ScheduleKey, limit: int
    ) -> list[ScheduleRow]:
        with self._session.statement():
            await self._session.reach(Point.CLAIM_LOCK)
            tables = self._session.connection.database.tables
            return schedules.lock(self._session, schedules.list_waiting(tables, routes, after), limit)

    async def find_open_ids(self, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            return schedules.find_open_ids(self._session, self._session.connection.database.tables, pairs)

    async def write_schedules(self, rows: Sequence[ScheduleRow]) -> None:
        with self._session.statement():
            await self._session.reach(Point.WRITE_ROWS)
            self._changes.schedules.update((row.key, row) for row in rows)

    # --- the end ---

    async def commit(self) -> None:
        await self._session.finish(Point.COMMIT, Point.COMMITTED)

    async def rollback(self) -> None:
        try:
            await self._session.connection.linger(Point.ROLLBACK)
        finally:
            self._session.give_up()

    async def was_committed(self) -> bool:
        """For the store that is asked: the truth."""
        return await self._session.was_committed()
