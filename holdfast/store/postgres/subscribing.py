"""What a batch writes about subscriptions: those that begin and end, and what is kept for executions that end.

Everything that a turn may be lost for comes before the first write: the locks, and what is kept for those who begin to wait.
Nobody changes what was read then, since that needs the locks. The decisions are made when it is known which turns are
written.

*Shared or alone.* Who begins to wait shares the lock of an event's type; who takes something that one consumer gets has it
alone. Batches never wait for each other, so of two that share a lock neither gets it alone: each would be lost, and again
the next time. So the statement that locks guesses who will consume something, and asks for the lock alone there from the
start: who does not get it then holds nothing of that topic, and whoever was first gets through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.codec import encode
from holdfast.store import matching, wait_matching
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.matching import LockKey, Presence
from holdfast.store.postgres.presence import hold_workflow_ids
from holdfast.store.postgres.queues import put_dead_letters, put_inbox
from holdfast.store.publication_columns import (
    from_publication_row,
    from_subscription_row,
    list_topic,
    read_pending_row,
    write_mapping,
)
from holdfast.store.publications import PendingRow, PublicationRow
from holdfast.store.rows import ExecutionRow
from holdfast.store.settling import find_end, plan_settling
from holdfast.store.wait_matching import SubscribingFacts, Wait

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]

_TRIES: Final = 5
_PAUSE: Final = 0.004
"""Seconds between two tries for a lock: whoever has it is about to commit. To take a turn again costs more."""
_MOST_GUESSED: Final = 100
"""So many kept events are looked at to find out whether a wait that stays needs its lock alone."""


def name_topic(key: LockKey) -> str:
    """What the advisory lock of a topic is made of."""
    return "\n".join(key)


async def lock_topics(connection: Connection, sql: Sql, wanted: Mapping[LockKey, bool]) -> set[LockKey]:
    """Lock topics, alone where it says so; which were not to be had."""
    if not wanted:
        return set()
    topics = sorted(wanted)
    values = list(map(name_topic, topics)), [wanted[key] for key in topics]
    had = {topics[place - 1] for (place,) in await connection.fetch(sql["lock_topics"], *values)}
    return wanted.keys() - had


class Subscriber:
    """The subscriptions of one batch within an open transaction."""

    def __init__(self, connection: Connection, sql: Sql) -> None:
        self._connection = connection
        self._sql = sql
        self._facts = SubscribingFacts()

    # --- before anything is written ---

    async def prepare(self, turns: Sequence[TurnWrite]) -> set[str]:
        """Lock what begins and ends, then read what is kept for those who begin to wait; whose turns are lost."""
        wanted: dict[LockKey, bool] = {}
        for turn in turns:
            wanted |= wait_matching.list_turn_locks(turn)
        held = await self._lock(wanted, wait_matching.list_waits(turns))
        lost = _find_losers(turns, wanted.keys() - held.keys())
        waits = wait_matching.list_waits([turn for turn in turns if turn.row.execution_id not in lost])
        if not waits:
            return lost
        await self._read_kept([wait for wait in waits if not wait.row.where], self._ask_plain)
        await self._read_kept([wait for wait in waits if wait.row.where], self._ask_by_field)
        await self._find_holders([wait for wait in waits if wait.row.kind == "message"])
        # What was kept since the locks were asked for. Tried once: others who share the lock may want it alone as well, and
        # get nowhere while this batch has it. Who is lost asks for it alone the next time.
        upgraded = {key: True for key in wait_matching.list_consumed(waits, self._facts) if not held[key]}
        lost |= _find_losers(turns, await lock_topics(self._connection, self._sql, upgraded))
        return lost | await self._hold_starts()

    async def _lock(self, wanted: Mapping[LockKey, bool], waits: Sequence[Wait]) -> dict[LockKey, bool]:
        """Lock topics, alone where that is wanted or a wait may consume something; those had, and whether alone."""
        held: dict[LockKey, bool] = {}
        for attempt in range(_TRIES):
            missing = sorted(wanted.keys() - held.keys())
            if not missing:
                break
            if attempt:
                await asyncio.sleep(_PAUSE)
            asked = [(key, wanted[key]) for key in missing]
            held |= {missing[place - 1]: alone for place, alone in await self._try_topics(asked, waits)}
        return held

    async def _try_topics(self, asked: Sequence[tuple[LockKey, bool]], waits: Iterable[Wait]) -> Sequence[Any]:
        places = {key: place for place, (key, alone) in enumerate(asked, 1) if not alone}
        values = [
            (
                places[key],
                row.org,
                row.name,
                *(min(row.where.items()) if row.where else ("", "")),
                write_mapping(row.where),
                target,
                row.since,
                row.created_at,
                _as_json(row.seen),
                min(wait.limit, _MOST_GUESSED),
            )
            for wait in waits
            for row in [wait.row]
            if (key := LockKey(row.org, row.kind, row.name, row.key)) in places
            for target in (*wait.targets, "")
        ]
        columns = zip(*values, strict=True) if values else [()] * 11
        names = [name_topic(key) for key, _ in asked]
        return await self._connection.fetch(self._sql["lock_topics_to_wait"], names, [alone for _, alone in asked], *columns)

    async def _read_kept(self, waits: Sequence[Wait], ask: Any) -> None:
        """For its own execution first, then for everybody."""
        asked = [(wait, wait, target) for wait in waits for target in (*wait.targets, "")]
        while asked:
            rows: list[list[PendingRow]] = [[] for _ in asked]
            for place, *values in await ask([(wider, target) for _, wider, target in asked]):
                rows[place - 1].append(read_pending_row(values))
            hidden = []
            for (wait, wider, target), found in zip(asked, rows, strict=True):
                readable = wait_matching.select_readable(found, wait)
                if len(readable) < wait.limit and len(found) == wider.limit:
                    hidden.append((wait, wait_matching.widen(wider), target))
                else:
                    self._facts.kept.setdefault((wait.row.execution_id, wait.row.number), []).extend(readable)
            asked = hidden
        for wait in waits:
            kept = self._facts.kept.get((wait.row.execution_id, wait.row.number), [])
            kept.sort(key=lambda row: (not row.target, row.place, row.id))
            del kept[wait.limit :]

    async def _ask_plain(self, asked: Sequence[tuple[Wait, str]]) -> Sequence[Any]:
        values = [
            (
                row.org,
                str(row.kind),
                row.name,
                matching.shorten(row.key),
                target,
                row.since,
                row.created_at,
                _as_json(row.seen),
                wait.limit,
            )
            for wait, target in asked
            for row in [wait.row]
        ]
        return await self._connection.fetch(self._sql["read_kept"], *zip(*values, strict=True))

    async def _ask_by_field(self, asked: Sequence[tuple[Wait, str]]) -> Sequence[Any]:
        values = [
            (
                row.org,
                row.name,
                *min(row.where.items()),
                write_mapping(row.where),
                target,
                row.since,
                row.created_at,
                _as_json(row.seen),
                wait.limit,
            )
            for wait, target in asked
            for row in [wait.row]
        ]
        return await self._connection.fetch(self._sql["read_kept_by_field"], *zip(*values, strict=True))

    async def _find_holders(self, waits: Sequence[Wait]) -> None:
        if not waits:
            return
        rows = [wait.row for wait in waits]
        asked = [(row.org, row.name, matching.make_lookup(row)) for row in rows]
        for place, execution_id, number in await self._connection.fetch(
            self._sql["find_holders"], *zip(*asked, strict=True)
        ):
            row = rows[place - 1]
            self._facts.holders.setdefault((row.org, row.name, row.key), []).append((execution_id, number))

    async def _hold_starts(self) -> set[str]:
        """Keep closing turns from starting what a wait gets; whose turns are lost since one is at it."""
        wanted = wait_matching.list_start_ids(self._facts)
        if not wanted:
            return set()
        pairs = sorted({pair for listed in wanted.values() for pair in listed})
        found = await hold_workflow_ids(self._connection, self._sql, pairs)
        return {key[0] for key, listed in wanted.items() if any(found[pair] is Presence.BUSY for pair in listed)}

    # --- for the turns that are written ---

    async def write(self, turns: Sequence[TurnWrite], limits: Mapping[str, int]) -> None:
        """End and begin what turns that are not lost say, with `limits` for how many subscriptions orgs may have."""
        ended = [(row.execution_id, row.number) for turn in turns for row in turn.ended_subscriptions]
        if ended:
            await self._connection.fetch(self._sql["end_subscriptions"], *zip(*ended, strict=True))
        orgs = wait_matching.list_limited(turns, limits)
        if orgs:
            self._facts.limits = limits
            asked = orgs, [limits[org] for org in orgs]
            for org, count in await self._connection.fetch(self._sql["count_subscriptions"], *asked):
                self._facts.room[org] = limits[org] - count
        plan = wait_matching.plan_subscribing(turns, self._facts)
        if plan.begun:
            values = map(from_subscription_row, plan.begun)
            await self._connection.fetch(self._sql["put_subscriptions"], *zip(*values, strict=True))
        if plan.taken:
            await self._connection.fetch(self._sql["take_pending"], plan.taken)
        if plan.inbox:
            await put_inbox(self._connection, self._sql, plan.inbox)


def _find_losers(turns: Iterable[TurnWrite], missing: Collection[LockKey]) -> set[str]:
    if not missing:
        return set()
    return {turn.row.execution_id for turn in turns if not wait_matching.list_turn_locks(turn).keys().isdisjoint(missing)}


def _as_json(texts: Sequence[str]) -> str:
    return encode(list(texts)).decode() if texts else "[]"


async def settle(connection: Connection, sql: Sql, turns: Sequence[TurnWrite], beside: UnroutedWrite) -> None:
    """What is kept for executions that end goes on to the next run, or is removed; what is to start then starts."""
    followed = [(turn.row.execution_id, turn.takes_over) for turn in turns if turn.takes_over]
    if followed:
        await connection.fetch(sql["take_over_pending"], *zip(*followed, strict=True))
    closed = [turn.row for turn in turns if turn.row.closed_at is not None]
    found = await connection.fetch(sql["read_ended_kept"], [row.execution_id for row in closed])
    plan = plan_settling(closed, [*map(read_pending_row, found), *await _read_starts(connection, sql, closed)], beside)
    if plan.removed:
        await connection.fetch(sql["take_pending"], plan.removed)
    if plan.inbox:
        await put_inbox(connection, sql, plan.inbox)
    if plan.dead_letters:
        await put_dead_letters(connection, sql, plan.dead_letters)


async def _read_starts(connection: Connection, sql: Sql, closed: Sequence[ExecutionRow]) -> list[PendingRow]:
    """The first of what is to start under each workflow id; behind those that cannot be read, if there are such."""
    pairs = sorted({(row.org, row.workflow_id) for row in closed})
    limit = 1
    while True:
        values = (*zip(*pairs, strict=True), find_end(closed), limit)
        rows = list(map(read_pending_row, await connection.fetch(sql["read_ended_starts"], *values)))
        if not any(row.damage for row in rows) or len(rows) < limit:
            return rows
        limit *= wait_matching.WIDER


async def write_publications(connection: Connection, sql: Sql, writes: Iterable[TurnWrite | UnroutedWrite]) -> bool:
    """What is to be published once this is committed; whether there is any."""
    rows = [row for write in writes if write.publications for row in write.publications]
    if rows:
        await put_publications(connection, sql, rows)
    return bool(rows)


async def put_publications(connection: Connection, sql: Sql, rows: Iterable[PublicationRow]) -> None:
    """Rows of the outbox, or of what has yet to reach subscribers."""
    values = [(*from_publication_row(row), *list_topic(row)) for row in rows]
    await connection.fetch(sql["put_publications"], *zip(*values, strict=True))
