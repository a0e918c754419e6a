"""What is published without naming a receiver, set by set: one statement per table, however many are published.

`holdfast.store.publications` tells the theory of operation, `holdfast.store.matching` makes the decisions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.core.codec import encode
from holdfast.core.instants import Instant
from holdfast.store import matching
from holdfast.store.matching import LockKey, Parsed, PublishingFacts, Waiter
from holdfast.store.postgres.presence import hold_workflow_ids, share_executions
from holdfast.store.postgres.queues import put_inbox
from holdfast.store.postgres.subscribing import lock_topics, name_topic, put_publications
from holdfast.store.publication_columns import (
    find_conditions,
    from_pending_row,
    from_start_row,
    read_pending_row,
    read_publication_row,
    to_publication_row,
    to_spread_head,
    to_subscription_row,
    write_start,
)
from holdfast.store.publications import (
    SPREAD_FROM,
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    SpreadHead,
    StartSubscriptionRow,
    SubscriptionRow,
)

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

_TRIGGERED = matching.make_triggered(0, b"{}").split(b"0")
"""The envelope of what was published, before and behind the number."""


class PostgresPublishing:
    """The part of a batch's transaction that publishes."""

    _sql: Mapping[str, str]
    _has_written: bool

    def statements(self, doing: str) -> AbstractAsyncContextManager[Connection]:
        """The connection; whatever is raised gives the transaction up."""
        raise NotImplementedError

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        if not names:
            return []
        asked = sorted((str(kind), name) for kind, name in names)
        async with self.statements("read") as connection:
            rows = await connection.fetch(self._sql["read_starts"], *zip(*asked, strict=True), org)
            return [StartSubscriptionRow(*row) for row in rows]

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        async with self.statements("read") as connection:
            return [read_publication_row(row) for row in await connection.fetch(self._sql["read_outbox"], limit, list(skip))]

    async def drop_publications(self, ids: Sequence[int]) -> None:
        async with self.statements("publish in") as connection:
            self._has_written = True
            await connection.fetch(self._sql["drop_publications"], list(ids))

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        parsed = matching.parse(items)
        async with self.statements("publish in") as connection:
            locks = dict.fromkeys(matching.list_publish_locks(parsed), True)
            facts = PublishingFacts(busy=await lock_topics(connection, self._sql, locks))
            await _FactReader(connection, self._sql, parsed, facts).read(now)
            plan = matching.plan_publishing(parsed, facts, now)
            self._has_written |= bool(
                plan.inbox or plan.ended or plan.kept or plan.spreads or plan.done or plan.taken or plan.starts
            )
            await _write_plan(connection, self._sql, plan)
            return plan.answers

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        async with self.statements("read") as connection:
            return [read_pending_row(row) for row in await connection.fetch(self._sql["read_kept_messages"], list(ids))]

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        async with self.statements("read") as connection:
            rows = await connection.fetch(self._sql["read_unstarted"], sorted(names), now, after, limit)
            return [read_pending_row(row) for row in rows]

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        async with self.statements("publish in") as connection:
            found = await connection.fetchrow(self._sql["read_spread"], list(skip))
            return None if found is None else to_spread_head(found)

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        async with self.statements("publish in") as connection:
            found = await connection.fetchrow(self._sql["read_spread"], list(skip))
            if found is None:
                return 0
            row = to_publication_row(found)
            first, rest = matching.cut_spread(row, limit)
            self._has_written = True
            before, behind = _TRIGGERED[0], _TRIGGERED[1].replace(b"{}", row.body)
            await connection.fetch(self._sql["put_triggered"], *zip(*first, strict=True), before, behind, now)
            if rest:
                await connection.fetch(self._sql["shorten_spread"], row.id, encode(rest).decode())
            else:
                await connection.fetch(self._sql["drop_publications"], [row.id])
            return len(first)


async def _write_plan(connection: Connection, sql: Mapping[str, str], plan: matching.PublishingPlan) -> None:
    if plan.ended:
        await connection.fetch(sql["end_subscriptions"], *zip(*plan.ended, strict=True))
    if plan.inbox:
        await put_inbox(connection, sql, plan.inbox)
    if plan.taken:
        await connection.fetch(sql["take_pending"], plan.taken)
    if plan.starts:
        starts = [(row_id, write_start(start), start.workflow_id) for row_id, start in plan.starts]
        await connection.fetch(sql["set_pending_starts"], *zip(*starts, strict=True))
    if plan.kept:
        await connection.fetch(sql["put_pending"], *zip(*map(from_pending_row, plan.kept), strict=True))
    if plan.spreads:
        await put_publications(connection, sql, plan.spreads)
    if plan.done:
        await connection.fetch(sql["drop_publications"], plan.done)


class _FactReader:
    """Reads what decides about publications, in statements after that of their locks."""

    def __init__(
        self, connection: Connection, sql: Mapping[str, str], parsed: Sequence[Parsed], facts: PublishingFacts
    ) -> None:
        self._connection = connection
        self._sql = sql
        self._parsed = parsed
        self._facts = facts

    async def _fetch(self, name: str, rows: Iterable[Sequence[Any]], *values: Any) -> Sequence[Any]:
        """One statement for all rows, given as one array per column; nothing if there are none."""
        columns = list(zip(*rows, strict=True))
        return await self._connection.fetch(self._sql[name], *columns, *values) if columns else []

    async def read(self, now: Instant) -> None:
        parsed, facts = self._parsed, self._facts
        await self._find_waiters()
        targets = matching.list_targets(parsed, facts.busy)
        if targets:
            facts.targets = await share_executions(self._connection, self._sql, targets)
            facts.waiters |= matching.select_waiters(parsed, await self._find_waits_of(targets))
        ids = matching.list_start_ids(parsed, facts)
        if ids:
            facts.workflow_ids = await hold_workflow_ids(self._connection, self._sql, ids)
        counts = await self._fetch("count_kept", matching.list_counted(parsed, now), now)
        facts.kept = {(org, kind, name): count for org, kind, name, count in counts}
        in_orgs = await self._fetch("count_kept_in_org", matching.list_counted_orgs(parsed, now), now)
        facts.kept_in_org = dict(in_orgs)
        await self._find_kept_messages(now)
        again = matching.list_kept_again(parsed)
        if again:
            facts.still_kept = {row[-1] for row in await self._connection.fetch(self._sql["read_kept_messages"], again)}

    async def _find_kept_messages(self, now: Instant) -> None:
        asked = [(*one, matching.shorten(one[2])) for one in matching.list_message_ids(self._parsed)]
        older: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        kept: set[tuple[str, str, str, str]] = set()
        for *topic, item, is_kept, place, row_id in await self._fetch("find_kept_messages", asked, now, matching.MOST_OLDER):
            org, name, key = topic
            if is_kept:
                kept.add((org, name, key, item))
            if row_id is not None:
                older.setdefault((org, name, key), []).append((place, row_id))
        self._facts.unstarted, self._facts.kept_ids = older, kept

    async def _find_waiters(self) -> None:
        shapes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for org, name, fields in await self._fetch("find_shapes", matching.list_event_names(self._parsed)):
            shapes[org, name].append(fields)
        probes = matching.list_probes(self._parsed, self._facts.busy, shapes)
        for place, *values in await self._fetch("find_waiters", probes):
            self._facts.waiters.setdefault(place, []).append(Waiter(*values))
        many = {place for place, waiters in self._facts.waiters.items() if len(waiters) > SPREAD_FROM}
        for waiters in self._facts.waiters.values():
            waiters.sort()
        # One statement fixes who gets it: another one than that which found them to be many.
        every = [probe._replace(limit=matching.EVER) for probe in probes if probe.place in many]
        for place, *values in await self._fetch("find_waiters", every):
            self._facts.everybody.setdefault(place, []).append(Waiter(*values))

    async def _find_waits_of(self, targets: Iterable[matching.Pair]) -> list[tuple[Waiter, str, Mapping[str, str], Instant]]:
        asked = [execution_id for _, execution_id in targets]
        rows = await self._connection.fetch(self._sql["find_waits_of"], asked)
        return [
            (Waiter(*waiter), name, where, since)
            for *waiter, name, conditions, since in rows
            if (where := find_conditions(conditions)) is not None
        ]


# --- outside of batches ---------------------------------------------------------------------------------------------------


class PostgresPublications:
    """What can be asked and done about publications outside of batches."""

    _connections: Connections
    _write: Callable[..., Any]

    async def list_pending(
        self, org: str, kind: str, name: str, now: Instant, limit: int = 100, after: int = 0
    ) -> list[PendingRow]:
        rows = await self._connections.fetch("read", "list_pending", org, str(kind), name, now, after, limit)
        return [read_pending_row(row) for row in rows]

    async def remove_pending(self, org: str, kind: str, name: str, item: str) -> bool:
        """Under the lock of whoever publishes, so that nobody who begins to wait has been given it meanwhile."""
        sql, values = self._connections.sql, (org, str(kind), name, item)

        async def work(connection: Connection) -> bool:
            for (key,) in await connection.fetch(sql["find_pending"], *values):
                await connection.fetch(sql["wait_for_topic"], name_topic(LockKey(org, str(kind), name, key)))
            return bool(await connection.fetch(sql["remove_pending"], *values))

        removed: bool = await self._write("remove a kept publication from", work)
        return removed

    async def list_subscriptions(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        rows = await self._connections.fetch("read", "list_subscriptions", org, execution_id)
        return [to_subscription_row(row) for row in rows]

    async def purge_pending(self, before: Instant, limit: int) -> int:
        return int(await self._connections.fetch_value("purge kept publications in", "purge_pending", before, limit))

    async def put_starts(self, node: str, rows: Sequence[StartSubscriptionRow]) -> None:
        sql, values = self._connections.sql, [from_start_row(replace(row, node=node)) for row in rows]

        async def work(connection: Connection) -> None:
            await connection.fetch(sql["remove_starts"], [node])
            if values:
                await connection.fetch(sql["put_starts"], *zip(*values, strict=True))

        await self._write("offer starts in", work)
