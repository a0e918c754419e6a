"""Subscriptions, and what is published without naming a receiver. Nobody else writes, so that nothing has to be locked.

`holdfast.store.publications` tells the theory of operation, `holdfast.store.matching` makes the decisions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from holdfast.core.codec import encode
from holdfast.core.instants import Instant
from holdfast.core.publications import SubscriptionKind
from holdfast.store import matching, wait_matching
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.matching import Parsed, Presence, PublishingFacts, Waiter
from holdfast.store.publication_columns import (
    find_conditions,
    from_pending_row,
    from_publication_row,
    from_start_row,
    from_subscription_row,
    list_pending_fields,
    list_topic,
    read_pending_row,
    read_publication_row,
    to_publication_row,
    to_spread_head,
    to_subscription_row,
    write_mapping,
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
from holdfast.store.rows import ExecutionRow, InboxRow
from holdfast.store.settling import plan_settling
from holdfast.store.sqlite.queues import put_dead_letters, put_inbox
from holdfast.store.sqlite.statements import SQL, WideStatement, as_json
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence, WriterCache
from holdfast.store.wait_matching import SubscribingFacts, Wait

_PUT_SUBSCRIPTIONS: Final = WideStatement("put_subscriptions")
_PUT_PUBLICATIONS: Final = WideStatement("put_publications")
_STANDING: Final = 7
"""Where it stands in the columns of a subscription."""

# --- turns ----------------------------------------------------------------------------------------------------------------


def write_subscriptions(
    connection: sqlite3.Connection,
    writer_cache: WriterCache,
    changes: Changes,
    turns: Sequence[TurnWrite],
    closed: Sequence[str],
    beside: UnroutedWrite,
) -> None:
    """What turns end and begin, and what becomes of what is kept for executions that end; nothing if there is nothing."""
    has_pending = writer_cache.pending + changes.pending > 0
    has_subscriptions = writer_cache.subscriptions + changes.subscriptions > 0
    if not (has_pending or has_subscriptions or any(turn.subscriptions for turn in turns)):
        return
    if has_subscriptions:
        _end_subscriptions(connection, changes, turns, closed)
    limits = beside.most_subscriptions
    facts = SubscribingFacts(limits=limits)
    for org in wait_matching.list_limited(turns, limits):
        (count,) = connection.execute(SQL["count_subscriptions"], (org, limits[org])).fetchone()
        facts.room[org] = limits[org] - count
    if has_pending:
        for wait in wait_matching.list_waits(turns):
            facts.kept[wait.row.execution_id, wait.row.number] = _find_kept(connection, wait)
    if has_subscriptions:
        _find_holders(connection, turns, facts)
    plan = wait_matching.plan_subscribing(turns, facts)
    if plan.begun:
        values = [value for row in plan.begun for value in from_subscription_row(row)]
        # For a bool, sqlite3 looks for an adapter first.
        values[_STANDING :: _PUT_SUBSCRIPTIONS.columns] = [int(row.standing) for row in plan.begun]
        changes.subscriptions += _PUT_SUBSCRIPTIONS.run(connection, values)
    if plan.taken:
        _take_pending(connection, changes, plan.taken)
    put_inbox(connection, changes, plan.inbox)
    if closed and has_pending:
        _settle(connection, changes, turns, beside)


def _end_subscriptions(
    connection: sqlite3.Connection, changes: Changes, turns: Sequence[TurnWrite], closed: Sequence[str]
) -> None:
    ended = [
        (row.execution_id, row.number)
        for turn in turns
        if turn.ended_subscriptions and turn.row.closed_at is None  # of those that close, all end
        for row in turn.ended_subscriptions
    ]
    if ended:
        changes.subscriptions -= connection.executemany(SQL["end_subscription"], ended).rowcount
    if closed:
        changes.subscriptions -= connection.execute(SQL["end_all_subscriptions"], (as_json(closed),)).rowcount


def _find_holders(connection: sqlite3.Connection, turns: Sequence[TurnWrite], facts: SubscribingFacts) -> None:
    """Add the subscriptions of open executions for the messages that turns begin to wait for."""
    asked = {
        (row.org, row.name, row.key): (row.org, row.name, matching.make_lookup(row))
        for turn in turns
        if turn.subscriptions and turn.row.closed_at is None
        for row in turn.subscriptions
        if row.kind == SubscriptionKind.MESSAGE
    }
    if asked:
        messages = list(asked)
        found = connection.execute(SQL["find_holders"], (as_json(list(asked.values())),))
        for place, execution_id, number in found:
            facts.holders.setdefault(messages[place], []).append((execution_id, number))


def write_publications(
    connection: sqlite3.Connection, changes: Changes, writes: Iterable[TurnWrite | UnroutedWrite]
) -> None:
    """What is to be published once this is committed."""
    rows = [row for write in writes if write.publications for row in write.publications]
    if rows:
        _put_publications(connection, changes, rows)


def _put_publications(connection: sqlite3.Connection, changes: Changes, rows: Iterable[PublicationRow]) -> None:
    values = [value for row in rows for value in from_publication_row(row)]
    changes.publications += _PUT_PUBLICATIONS.run(connection, values)
    if changes.evidence is None:
        (row_id,) = connection.execute(SQL["read_last_id"]).fetchone()
        changes.evidence = CommitEvidence("has_publication", (row_id,), True)


def _find_kept(connection: sqlite3.Connection, wait: Wait) -> list[PendingRow]:
    """For its own execution first, then for everybody."""
    row = wait.row
    values = {
        "org": row.org,
        "kind": str(row.kind),
        "name": row.name,
        "lookup": matching.shorten(row.key),
        "now": row.since,
        "created_at": row.created_at,
        "seen": as_json(list(row.seen)),
    }
    statement = SQL["read_kept"]
    if row.where:
        field, value = min(row.where.items())
        values |= {"field": field, "value": value, "conditions": write_mapping(row.where)}
        statement = SQL["read_kept_by_field"]
    found = [one for target in wait.targets for one in _read_kept(connection, statement, {**values, "target": target}, wait)]
    found.sort(key=lambda one: (one.place, one.id))
    found += _read_kept(connection, statement, {**values, "target": ""}, wait)
    return found[: wait.limit]


def _read_kept(connection: sqlite3.Connection, statement: str, values: dict[str, Any], wait: Wait) -> list[PendingRow]:
    """What a wait may get, those that cannot be read left out."""
    wider = wait
    while True:
        rows = [read_pending_row(one) for one in connection.execute(statement, {**values, "limit": wider.limit})]
        found = wait_matching.select_readable(rows, wait)
        if len(found) == wait.limit or len(rows) < wider.limit:
            return found
        wider = wait_matching.widen(wider)


def _take_pending(connection: sqlite3.Connection, changes: Changes, ids: Sequence[int]) -> None:
    asked = (as_json(ids),)
    changes.pending -= connection.execute(SQL["take_pending"], asked).rowcount
    connection.execute(SQL["take_pending_fields"], asked)
    changes.evidence = changes.evidence or CommitEvidence("has_pending", (ids[0],), False)


def _settle(connection: sqlite3.Connection, changes: Changes, turns: Sequence[TurnWrite], beside: UnroutedWrite) -> None:
    """What is kept for executions that end goes on to the next run, or is removed; what is to start then starts."""
    for turn in turns:
        if turn.takes_over:
            connection.execute(SQL["take_over_pending"], (turn.row.execution_id, turn.takes_over))
    closed: list[ExecutionRow] = [turn.row for turn in turns if turn.row.closed_at is not None]
    ended = as_json([row.execution_id for row in closed])
    freed = as_json(list({(row.org, row.workflow_id) for row in closed}))
    found = [*connection.execute(SQL["read_ended_kept"], (ended,)), *connection.execute(SQL["read_ended_starts"], (freed,))]
    plan = plan_settling(closed, map(read_pending_row, found), beside)
    if plan.removed:
        _take_pending(connection, changes, plan.removed)
    put_inbox(connection, changes, plan.inbox)
    if plan.dead_letters:
        put_dead_letters(connection, changes, plan.dead_letters)


# --- publishing -----------------------------------------------------------------------------------------------------------


def read_starts(connection: sqlite3.Connection, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
    asked = sorted((str(kind), name) for kind, name in names)
    return [StartSubscriptionRow(*values) for one in asked for values in connection.execute(SQL["read_starts"], (*one, org))]


def read_outbox(connection: sqlite3.Connection, limit: int, skip: Collection[int]) -> list[PublicationRow]:
    rows: list[PublicationRow] = []
    held_back: set[tuple[str, ...]] = set()
    for row in map(read_publication_row, connection.execute(SQL["read_outbox"])):
        if len(rows) >= limit:
            break
        if row.id in skip:
            held_back.add((row.org, *list_topic(row)))
        elif not held_back or (row.org, *list_topic(row)) not in held_back:
            rows.append(row)
    return rows


def read_kept_messages(connection: sqlite3.Connection, ids: Collection[int]) -> list[PendingRow]:
    return [read_pending_row(row) for row in connection.execute(SQL["read_kept_messages"], (as_json(list(ids)),))]


def read_unstarted(
    connection: sqlite3.Connection, names: Collection[str], now: Instant, limit: int, after: int
) -> list[PendingRow]:
    asked = as_json(sorted(names)), now, after, limit
    return [read_pending_row(row) for row in connection.execute(SQL["read_unstarted"], asked)]


def publish(connection: sqlite3.Connection, changes: Changes, items: Sequence[Publishable], now: Instant) -> list[Published]:
    parsed = matching.parse(items)
    plan = matching.plan_publishing(parsed, _read_facts(connection, parsed, now), now)
    put_inbox(connection, changes, plan.inbox)
    if plan.ended:
        changes.subscriptions -= connection.executemany(SQL["end_subscription"], plan.ended).rowcount
    if plan.taken:
        _take_pending(connection, changes, plan.taken)
    for row_id, start in plan.starts:
        connection.execute(SQL["set_pending_starts"], (write_start(start), start.workflow_id, row_id))
        changes.evidence = changes.evidence or CommitEvidence("has_pending_start", (row_id, start.workflow_id), True)
    for row in plan.kept:
        (row_id,) = connection.execute(SQL["put_pending"], from_pending_row(row)).fetchone()
        connection.executemany(SQL["put_pending_fields"], list_pending_fields(row, row_id))
        changes.pending += 1
        changes.evidence = changes.evidence or CommitEvidence("has_pending", (row_id,), True)
    if plan.spreads:
        _put_publications(connection, changes, plan.spreads)
    if plan.done:
        drop_publications(connection, changes, plan.done)
    return plan.answers


def drop_publications(connection: sqlite3.Connection, changes: Changes, ids: Sequence[int]) -> None:
    changes.publications -= connection.execute(SQL["drop_publications"], (as_json(ids),)).rowcount
    changes.evidence = changes.evidence or CommitEvidence("has_publication", (ids[0],), False)


def _read_facts(connection: sqlite3.Connection, parsed: Sequence[Parsed], now: Instant) -> PublishingFacts:
    facts = PublishingFacts()
    shapes = {
        (org, name): [fields for (fields,) in connection.execute(SQL["find_shapes"], {"org": org, "name": name})]
        for org, name in matching.list_event_names(parsed)
    }
    probes = matching.list_probes(parsed, (), shapes)
    for probe in probes:
        facts.waiters.setdefault(probe.place, []).extend(_find_waiters(connection, probe))
    for place, waiters in facts.waiters.items():
        waiters.sort()
        if len(waiters) > SPREAD_FROM:
            every = [_find_waiters(connection, probe._replace(limit=-1)) for probe in probes if probe.place == place]
            facts.everybody[place] = [one for found in every for one in found]
    targets = matching.list_targets(parsed, ())
    facts.targets = {pair: _find_target(connection, pair) for pair in targets}
    facts.waiters |= matching.select_waiters(parsed, _find_waits_of(connection, targets))
    facts.workflow_ids = {pair: _find_id(connection, pair) for pair in matching.list_start_ids(parsed, facts)}
    facts.kept = {
        (org, kind, name): connection.execute(SQL["count_kept"], (org, kind, name, now, limit)).fetchone()[0]
        for org, kind, name, limit in matching.list_counted(parsed, now)
    }
    facts.kept_in_org = {
        org: connection.execute(SQL["count_kept_in_org"], (org, now, limit)).fetchone()[0]
        for org, limit in matching.list_counted_orgs(parsed, now)
    }
    asked = matching.list_message_ids(parsed)
    facts.kept_ids = {one for one in asked if connection.execute(SQL["has_kept"], (*one, now)).fetchone()[0]}
    facts.unstarted = {
        (org, name, key): connection.execute(
            SQL["find_older_messages"], (org, name, matching.shorten(key), key, now, matching.MOST_OLDER)
        ).fetchall()
        for org, name, key, _ in asked
    }
    again = matching.list_kept_again(parsed)
    if again:
        facts.still_kept = {row.id for row in read_kept_messages(connection, again)}
    return facts


def _find_waiters(connection: sqlite3.Connection, probe: matching.Probe) -> list[Waiter]:
    return [_make_waiter(values) for values in connection.execute(SQL["find_waiters"], probe[1:])]


def _make_waiter(values: Sequence[Any]) -> Waiter:
    row_id, org, execution_id, number, standing, route = values
    return Waiter(row_id, org, execution_id, number, bool(standing), route)


def _find_waits_of(
    connection: sqlite3.Connection, targets: Iterable[matching.Pair]
) -> Iterable[tuple[Waiter, str, Mapping[str, str], Instant]]:
    for _, execution_id in targets:
        for *waiter, name, conditions, since in connection.execute(SQL["find_waits_of"], (execution_id,)):
            where = find_conditions(conditions)
            if where is not None:
                yield _make_waiter(waiter), name, where, since


def _find_target(connection: sqlite3.Connection, pair: matching.Pair) -> Presence:
    found = connection.execute(SQL["find_target"], pair).fetchone()
    if found is None:
        return Presence.FREE
    return Presence.OPEN if found[0] else Presence.CLOSED


def _find_id(connection: sqlite3.Connection, pair: matching.Pair) -> Presence:
    values = {"org": pair[0], "workflow_id": pair[1]}
    (is_taken,) = connection.execute(SQL["is_taken_id"], values).fetchone()
    return Presence.OPEN if is_taken else Presence.FREE


def find_spread(connection: sqlite3.Connection, skip: Collection[int]) -> SpreadHead | None:
    found = connection.execute(SQL["read_spread"], (as_json(list(skip)),)).fetchone()
    return None if found is None else to_spread_head(found)


def spread(connection: sqlite3.Connection, changes: Changes, limit: int, at: Instant, skip: Collection[int]) -> int:
    found = connection.execute(SQL["read_spread"], (as_json(list(skip)),)).fetchone()
    if found is None:
        return 0
    row = to_publication_row(found)
    now, rest = matching.cut_spread(row, limit)
    waiters = map(_make_waiter, connection.execute(SQL["find_subscribers"], (as_json(now),)).fetchall())
    put_inbox(connection, changes, [_make_triggered(waiter, row, at) for waiter in waiters])
    if rest:
        connection.execute(SQL["shorten_spread"], (encode(rest).decode(), row.id))
    else:
        drop_publications(connection, changes, [row.id])
    return len(now)


def _make_triggered(waiter: Waiter, row: PublicationRow, at: Instant) -> InboxRow:
    body = matching.make_triggered(waiter.number, row.body)
    return InboxRow(waiter.org, waiter.execution_id, "", body, route=waiter.route, at=at)


# --- outside of batches ---------------------------------------------------------------------------------------------------


def list_pending(connection: sqlite3.Connection, values: tuple[Any, ...]) -> list[PendingRow]:
    """What is kept, by (org, kind, name, now, after, limit)."""
    return [read_pending_row(row) for row in connection.execute(SQL["list_pending"], values)]


def remove_pending(connection: sqlite3.Connection, changes: Changes, values: tuple[str, str, str, str]) -> bool:
    """Remove what is kept by (org, kind, name, item); whether it was there."""
    ids = [row_id for (row_id,) in connection.execute(SQL["remove_pending"], values).fetchall()]
    _forget_pending(connection, changes, ids)
    return bool(ids)


def purge_pending(connection: sqlite3.Connection, changes: Changes, before: Instant, limit: int) -> int:
    ids = [row_id for (row_id,) in connection.execute(SQL["purge_pending"], (before, limit)).fetchall()]
    _forget_pending(connection, changes, ids)
    return len(ids)


def _forget_pending(connection: sqlite3.Connection, changes: Changes, ids: Sequence[int]) -> None:
    if ids:
        connection.execute(SQL["take_pending_fields"], (as_json(ids),))
        changes.pending -= len(ids)
        changes.evidence = CommitEvidence("has_pending", (ids[0],), False)


def list_subscriptions(connection: sqlite3.Connection, org: str, execution_id: str) -> list[SubscriptionRow]:
    return [to_subscription_row(row) for row in connection.execute(SQL["list_subscriptions"], (org, execution_id))]


def put_starts(connection: sqlite3.Connection, node: str, rows: Iterable[StartSubscriptionRow]) -> None:
    connection.execute(SQL["remove_starts"], (as_json([node]),))
    connection.executemany(SQL["put_starts"], [from_start_row(replace(row, node=node)) for row in rows])
