"""Subscriptions, and what is published without naming a receiver, in the statements in which PostgreSQL would do it.

`holdfast.store.publications` tells the theory of operation, `holdfast.store.matching` makes the decisions. Rows that are
kept and are about to be removed are locked by their ids, as a row lock would do it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.store import matching, wait_matching
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.matching import LockKey, Parsed, Presence, Probe, PublishingFacts, Waiter
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.spreading import MemorySpreading
from holdfast.store.memory.tables import StoredSubscription, Tables, View, is_closed
from holdfast.store.publication_columns import list_topic
from holdfast.store.publications import (
    SPREAD_FROM,
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    StartSubscriptionRow,
    SubscriptionRow,
)
from holdfast.store.rows import ExecutionRow
from holdfast.store.settling import plan_settling
from holdfast.store.wait_matching import SubscribingFacts


class MemoryPublishing(MemorySpreading):
    """The part of a batch's transaction that is about subscriptions and publications."""

    _session: Session

    # --- turns ---

    async def _prepare_waits(self, turns: Sequence[TurnWrite], lost: set[str]) -> SubscribingFacts:
        """Lock what begins and ends, then read what is kept for those who begin to wait; turns without locks are lost."""
        facts, given = SubscribingFacts(), turns
        turns = [turn for turn in turns if turn.row.execution_id not in lost and wait_matching.has_subscriptions(turn)]
        if not turns:
            return facts
        is_skipped = await self._session.reach(Point.WRITE_SUBSCRIBE) is FaultAction.SKIP
        consumed = self._guess_consumed(turns)
        for turn in turns:
            locks = wait_matching.list_turn_locks(turn).items()
            if locks and (
                is_skipped or not all(self._try_topic(key, alone=alone or key in consumed) for key, alone in locks)
            ):
                lost.add(turn.row.execution_id)
        await self._session.reach(Point.WRITE_MATCH)
        turns = [turn for turn in turns if turn.row.execution_id not in lost]
        waits = wait_matching.list_waits(turns)
        for wait in waits:
            kept = list(self._find_kept(wait))
            facts.kept[wait.row.execution_id, wait.row.number] = kept
            message = wait.row.org, wait.row.name, wait.row.key
            if wait.row.kind == "message" and message not in facts.holders:
                facts.holders[message] = self._find_holders(wait.row)
        refused = {key for key in wait_matching.list_consumed(waits, facts) if not self._try_topic(key, alone=True)}
        lost.update(turn.row.execution_id for turn in turns if refused.intersection(wait_matching.list_turn_locks(turn)))
        for key, pairs in wait_matching.list_start_ids(facts).items():
            if any(self._hold_id(pair) is Presence.BUSY for pair in pairs):
                lost.add(key[0])
        if lost:
            wait_matching.lose_chains(given, lost)
        return facts

    def _guess_consumed(self, turns: Sequence[TurnWrite]) -> set[LockKey]:
        """What to lock alone from the start, by what is kept before anything is locked."""
        waits = wait_matching.list_waits(turns)
        kept = {(wait.row.execution_id, wait.row.number): list(self._find_kept(wait)) for wait in waits}
        return wait_matching.list_consumed(waits, SubscribingFacts(kept=kept))

    def _try_topic(self, key: LockKey, *, alone: bool) -> bool:
        return self._session.locks.try_topic(self._session, key, alone=alone)

    def _find_kept(self, wait: wait_matching.Wait) -> Iterator[PendingRow]:
        row = wait.row
        targets, seen = (*wait.targets, ""), frozenset(row.seen)
        found = [
            kept
            for kept in self._session.view.pending_named(row.org, row.kind, row.name)
            if kept.key == row.key and kept.item not in seen and wait_matching.may_begin_under(row.since, kept, row, targets)
        ]
        found.sort(key=lambda kept: (not kept.target, kept.place, kept.id))
        return iter(found[: wait.limit])

    def _find_holders(self, row: SubscriptionRow) -> list[matching.NumberKey]:
        found = self._session.view.subscriptions_under(row.org, row.kind, row.name, "", matching.make_lookup(row))
        return [(one.row.execution_id, one.row.number) for one in found if self._find_open(one.row) is not None]

    def _write_subscriptions(self, turns: Sequence[TurnWrite], facts: SubscribingFacts, beside: UnroutedWrite) -> None:
        """What turns that are not lost end and begin; what is kept for executions that end is settled."""
        changes, view = self._session.changes, self._session.view
        for turn in turns:
            for row in turn.ended_subscriptions:
                changes.subscriptions[row.execution_id, row.number] = None
            if is_closed(turn.row):
                for key in view.subscription_keys(turn.row.execution_id):
                    changes.subscriptions[key] = None
        limits = beside.most_subscriptions
        orgs = wait_matching.list_limited(turns, limits)
        if orgs:
            facts.limits, facts.room = limits, {org: limits[org] - view.count_of_org(org)[0] for org in orgs}
        plan = wait_matching.plan_subscribing(turns, facts)
        for row in plan.begun:
            number = self._session.connection.database.next_subscription_id()
            changes.subscriptions[row.execution_id, row.number] = StoredSubscription(number, replace(row, seen=()))
        for row_id in plan.taken:
            changes.pending[row_id] = None
        self._session.put_inbox(plan.inbox)
        self._take_over(turns)
        self._settle([turn.row for turn in turns if is_closed(turn.row)], beside)

    def _take_over(self, turns: Sequence[TurnWrite]) -> None:
        followed = {turn.takes_over: turn.row.execution_id for turn in turns if turn.takes_over}
        for row in self._find_kept_for(followed):
            self._session.changes.pending[row.id] = replace(row, target=followed[row.target])

    def _settle(self, closed: Sequence[ExecutionRow], beside: UnroutedWrite) -> None:
        if not closed:
            return
        view = self._session.view
        free = [pair for pair in dict.fromkeys((row.org, row.workflow_id) for row in closed) if view.open_id(pair) is None]
        kept = [*self._find_kept_for([row.execution_id for row in closed]), *self._find_kept_starts(free)]
        plan = plan_settling(closed, sorted(kept, key=lambda row: (row.place, row.id)), beside)
        for row_id in plan.removed:
            self._session.changes.pending[row_id] = None
        self._session.put_inbox(plan.inbox)
        self._session.put_dead_letters(plan.dead_letters)

    def _find_kept_for(self, execution_ids: Collection[str]) -> list[PendingRow]:
        """What is kept for these executions alone."""
        own = [row for row in self._session.changes.pending.values() if row is not None and row.target in execution_ids]
        return own + self._read_committed(self._session.connection.database.tables.kept_for, execution_ids)

    def _find_kept_starts(self, pairs: Collection[matching.Pair]) -> list[PendingRow]:
        """What is to start under these workflow ids."""
        rows = [row for row in self._session.changes.pending.values() if row is not None and row.start is not None]
        own = [row for row in rows if row.start is not None and (row.org, row.start.workflow_id) in pairs]
        return own + self._read_committed(self._session.connection.database.tables.kept_starts, pairs)

    def _read_committed(self, index: Mapping[Any, Iterable[int]], keys: Iterable[Any]) -> list[PendingRow]:
        """Kept rows that an index leads to, but for those that this transaction has changed."""
        ids = (row_id for key in keys for row_id in index.get(key, ()))
        changed, pending = self._session.changes.pending, self._session.connection.database.tables.pending
        return [pending[row_id] for row_id in ids if row_id not in changed]

    # --- publishing ---

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            rows = (row for rows in self._session.connection.database.tables.starts.values() for row in rows)
            return sorted_starts(row for row in rows if (row.kind, row.name) in names and row.org in ("", org))

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        with self._session.statement():
            await self._session.reach(Point.PUBLISH_LOCK)
            rows: list[PublicationRow] = []
            held_back: set[tuple[str, str, str, str]] = set()
            for row in self._session.view.all_publications():
                if len(rows) >= limit:
                    break
                if row.subscribers:
                    continue
                stream = (row.org, *list_topic(row))
                if (
                    row.id not in skip
                    and stream not in held_back
                    and self._session.locks.try_key(self._session, ("publication", row.id))
                ):
                    rows.append(row)
                else:
                    held_back.add(stream)
            return rows

    async def drop_publications(self, ids: Sequence[int]) -> None:
        with self._session.statement():
            await self._session.reach(Point.PUBLISH_WRITE)
            for row_id in ids:
                self._session.changes.publications[row_id] = None

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        with self._session.statement():
            parsed = matching.parse(items)
            action = await self._session.reach(Point.PUBLISH_LOCK)
            locks = matching.list_publish_locks(parsed)
            is_skipped = action is FaultAction.SKIP
            facts = PublishingFacts(busy={key for key in locks if is_skipped or not self._try_topic(key, alone=True)})
            await self._session.reach(Point.PUBLISH_READ)
            self._read_facts(parsed, facts, now)
            await self._session.reach(Point.PUBLISH_WRITE)
            plan = matching.plan_publishing(parsed, facts, now)
            changes = self._session.changes
            self._session.put_inbox(plan.inbox)
            for key in plan.ended:
                changes.subscriptions[key] = None
            for row_id in plan.taken:
                changes.pending[row_id] = None
            for row_id, start in plan.starts:
                stored = changes.pending.get(row_id) or self._session.connection.database.tables.pending[row_id]
                changes.pending[row_id] = replace(stored, start=start)
            for row in plan.kept:
                row_id = self._session.connection.database.next_pending_id()
                changes.pending[row_id] = replace(row, id=row_id)
            self._session.put_publications(plan.spreads)
            for row_id in plan.done:
                changes.publications[row_id] = None
            return plan.answers

    def _read_facts(self, parsed: Sequence[Parsed], facts: PublishingFacts, now: Instant) -> None:
        view = self._session.view
        shapes = {(org, name): view.shapes(org, name) for org, name in matching.list_event_names(parsed)}
        for probe in matching.list_probes(parsed, facts.busy, shapes):
            facts.waiters.setdefault(probe.place, []).extend(self._probe(probe))
        for place, waiters in facts.waiters.items():
            waiters.sort()
            if len(waiters) > SPREAD_FROM:
                facts.everybody[place] = waiters
        targets = matching.list_targets(parsed, facts.busy)
        facts.targets = {pair: self._share(pair) for pair in targets}
        facts.waiters |= matching.select_waiters(parsed, self._find_waits_of(targets))
        facts.workflow_ids = {pair: self._hold_id(pair) for pair in matching.list_start_ids(parsed, facts)}
        facts.kept = {
            (org, kind, name): sum(row.expires_at > now for row in view.pending_named(org, kind, name))
            for org, kind, name, _ in matching.list_counted(parsed, now)
        }
        facts.kept_in_org = {org: view.count_of_org(org, now)[1] for org, _ in matching.list_counted_orgs(parsed, now)}
        self._find_kept_messages(parsed, facts, now)

    def _find_kept_messages(self, parsed: Sequence[Parsed], facts: PublishingFacts, now: Instant) -> None:
        asked, view = set(matching.list_message_ids(parsed)), self._session.view
        kept: dict[tuple[str, str, str], list[PendingRow]] = {(org, name, key): [] for org, name, key, _ in asked}
        for org, name in {(org, name) for org, name, _ in kept}:
            for row in view.pending_named(org, "message", name):
                if row.expires_at > now and (org, name, row.key) in kept:
                    kept[org, name, row.key].append(row)
        facts.kept_ids = asked & {(*topic, row.item) for topic, rows in kept.items() for row in rows}
        firsts = {
            topic: sorted(rows, key=lambda row: (row.place, row.id))[: matching.MOST_OLDER] for topic, rows in kept.items()
        }
        facts.unstarted = {
            topic: [(row.place, row.id) for row in rows if row.start is None] for topic, rows in firsts.items()
        }
        facts.still_kept = {
            row_id for row_id in matching.list_kept_again(parsed) if _find_kept_row(self._session, row_id) is not None
        }

    def _probe(self, probe: Probe) -> list[Waiter]:
        """One statement finds everybody: the first ones, or all of them where there are many."""
        found = self._session.view.subscriptions_under(probe.org, probe.kind, probe.name, probe.fields, probe.lookup)
        waiters = [
            waiter
            for one in found
            if one.row.since <= probe.since and one.row.created_at <= probe.created and one.row.execution_id != probe.origin
            for waiter in self._make_waiter(one)
        ]
        return waiters if probe.limit > SPREAD_FROM else waiters[: probe.limit]

    def _find_waits_of(self, targets: Iterable[matching.Pair]) -> Iterator[tuple[Waiter, str, dict[str, str], Instant]]:
        for org, execution_id in targets:
            for one in self._session.view.subscriptions_of(execution_id):
                for waiter in self._make_waiter(one):
                    if waiter.org == org and one.row.kind == "event":
                        yield waiter, one.row.name, dict(one.row.where), one.row.since

    def _share(self, pair: matching.Pair) -> Presence:
        row = self._session.view.execution(pair[1])
        if row is None or row.org != pair[0]:
            return Presence.FREE
        if not self._session.locks.try_share(self._session, pair):
            return Presence.BUSY
        return Presence.CLOSED if is_closed(row) else Presence.OPEN

    def _hold_id(self, pair: matching.Pair) -> Presence:
        if not self._session.locks.try_id(self._session, pair):
            return Presence.BUSY
        execution_id = self._session.view.open_id(pair)
        if execution_id is not None:
            return self._share((pair[0], execution_id))
        waiting = self._session.view.inbox_for([(pair[0], "", pair[1])])
        return Presence.OPEN if any(matching.is_start(row.body) for row in waiting) else Presence.FREE

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            found = (_find_kept_row(self._session, row_id) for row_id in ids)
            return [row for row in found if row is not None and row.kind == "message"]

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        with self._session.statement():
            await self._session.reach(Point.READ)
            rows = self._session.connection.database.tables.pending.values()
            found = [
                row
                for row in rows
                if row.kind == "message"
                and row.name in names
                and row.start is None
                and row.expires_at > now
                and row.id > after
            ]
            return sorted(found, key=lambda row: row.id)[:limit]


def _find_kept_row(session: Session, row_id: int) -> PendingRow | None:
    committed = session.connection.database.tables.pending
    return session.changes.pending.get(row_id, committed.get(row_id))


def sorted_starts(rows: Iterable[StartSubscriptionRow]) -> list[StartSubscriptionRow]:
    """In one order on every store."""
    return sorted(rows, key=lambda row: (row.kind, row.name, row.org, row.workflow, row.queue, row.version, row.node))


# --- outside of batches ---------------------------------------------------------------------------------------------------


def list_pending(tables: Tables, name: tuple[str, str, str], now: Instant, limit: int, after: int) -> list[PendingRow]:
    ids = sorted(row_id for row_id in tables.kept_under.get(name, ()) if row_id > after)
    return [tables.pending[row_id] for row_id in ids if tables.pending[row_id].expires_at > now][: max(limit, 0)]


async def remove_pending(connection: Connection, name: tuple[str, str, str], item: str) -> bool:
    """DELETE under the lock of whoever publishes, which is waited for."""
    session = Session(connection)
    with session.statement():
        await session.reach(Point.READ)
        tables = connection.database.tables

        def find() -> list[PendingRow]:
            rows = (tables.pending[row_id] for row_id in sorted(tables.kept_under.get(name, ())))
            return [row for row in rows if row.item == item]

        for key in sorted({row.key for row in find()}):
            await session.wait_until(partial(session.locks.try_topic, session, LockKey(*name, key), alone=True))
        found = [row.id for row in find() if session.locks.try_key(session, ("pending", row.id))]
        session.changes.pending.update(dict.fromkeys(found))
    await session.finish(Point.UPDATE, Point.UPDATED)
    return bool(found)


async def purge_pending(connection: Connection, before: Instant, limit: int) -> int:
    session = Session(connection)
    with session.statement():
        await session.reach(Point.PURGE_LOCK)
        rows = sorted(connection.database.tables.pending.values(), key=lambda row: (row.expires_at, row.id))
        old = [row.id for row in rows if row.expires_at < before][: max(limit, 0)]
        removed = [row_id for row_id in old if session.locks.try_key(session, ("pending", row_id))]
        session.changes.pending.update(dict.fromkeys(removed))
    await session.finish(Point.PURGE_COMMIT, Point.PURGED)
    return len(removed)


def list_subscriptions(tables: Tables, org: str, execution_id: str) -> list[SubscriptionRow]:
    rows = (one.row for one in View(tables, tables.no_changes()).subscriptions_of(execution_id))
    return sorted((row for row in rows if row.org == org), key=lambda row: row.number)
