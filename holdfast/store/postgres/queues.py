"""What a batch writes beside its executions: timers, offers, envelopes, dead letters, answers to requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.core.instants import Instant
from holdfast.store.columns import from_timer_row
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.rows import DeadLetterRow, InboxRow, RequestRow

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]


async def _run(connection: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """One statement for all rows, given as one array per column."""
    await connection.fetch(statement, *zip(*rows, strict=True))


async def write_timers(connection: Connection, sql: Sql, turns: Iterable[TurnWrite]) -> bool:
    """Timers that begin, then those that end: one may do both in a turn."""
    begun: dict[tuple[str, int], tuple[Any, ...]] = {}
    ended: list[tuple[str, int]] = []
    for turn in turns:
        for timer in turn.timers:
            begun[timer.execution_id, timer.number] = from_timer_row(timer)
        ended.extend((turn.row.execution_id, number) for number in turn.ended_timers)
    if begun:
        await _run(connection, sql["put_timers"], begun.values())
    if ended:
        await _run(connection, sql["end_timers"], ended)
    return bool(begun or ended)


async def write_offers(connection: Connection, sql: Sql, turns: Iterable[TurnWrite]) -> bool:
    """Offers that end, then those that begin: an activity that is tried again is offered anew."""
    begun: dict[tuple[str, int], tuple[Any, ...]] = {}
    ended: list[tuple[str, int]] = []
    for turn in turns:
        ended.extend((turn.row.execution_id, number) for number in turn.withdrawn)
        for offer in turn.offered:
            values = (offer.org, offer.execution_id, offer.number, offer.attempt, offer.route, offer.body, offer.node)
            begun[offer.execution_id, offer.number] = values
    if ended:
        await _run(connection, sql["end_offers"], ended)
    if begun:
        await _run(connection, sql["put_offers"], begun.values())
    return bool(begun or ended)


async def change_attributes(connection: Connection, sql: Sql, turns: Iterable[TurnWrite]) -> None:
    """What turns changed in the searchable part of states. Their executions are locked: nobody else writes these rows."""
    changed = [(turn.row, change) for turn in turns if turn.attributes for change in turn.attributes]
    if changed:
        await _run(connection, sql["end_state_attributes"], [(row.execution_id, row.org, one.name) for row, one in changed])
        put = [(row.execution_id, row.org, one.name, one.value) for row, one in changed if one.value is not None]
        if put:
            await _run(connection, sql["put_state_attributes"], put)


async def write_envelopes(
    connection: Connection, sql: Sql, writes: Iterable[TurnWrite | UnroutedWrite], unrouted: UnroutedWrite
) -> bool:
    """What was taken from the inbox goes, what was sent comes in, what failed is kept, what was answered is remembered."""
    consumed: list[int] = []
    outgoing: list[InboxRow] = []
    dead_letters: list[DeadLetterRow] = []
    requests: list[RequestRow] = []
    readdressed: list[InboxRow] = []
    now: Instant = 0
    adopts = False
    for write in writes:
        consumed.extend(write.consumed)
        if isinstance(write, TurnWrite) and write.adopted:
            await connection.fetch(sql["adopt_inbox"], write.row.execution_id, write.row.route, write.adopted)
            adopts = True
        outgoing.extend(write.outgoing)
        readdressed.extend(write.readdressed)
        dead_letters.extend(write.dead_letters)
        if write.requests:
            requests.extend(write.requests)
            now = now if isinstance(write, UnroutedWrite) else write.row.updated_at
    if consumed:
        await connection.fetch(sql["consume_inbox"], consumed)
    if unrouted.failed:
        await connection.fetch(sql["fail_inbox"], unrouted.failed)
    if unrouted.rerouted:
        await _run(connection, sql["reroute_inbox"], unrouted.rerouted)
    if readdressed:
        rows = [(row.id, row.execution_id, row.workflow_id, row.body, row.route) for row in readdressed]
        await _run(connection, sql["readdress_inbox"], rows)
    if outgoing:
        await put_inbox(connection, sql, outgoing)
    if dead_letters:
        await put_dead_letters(connection, sql, dead_letters)
    if requests:
        await put_requests(connection, sql, requests, now)
    moved = adopts or unrouted.rerouted or readdressed
    return bool(consumed or outgoing or dead_letters or requests or unrouted.failed or moved)


async def put_inbox(connection: Connection, sql: Sql, rows: Iterable[InboxRow]) -> None:
    values = [(row.org, row.execution_id, row.workflow_id, row.body, row.attempts, row.route, row.at) for row in rows]
    await _run(connection, sql["put_inbox"], values)


async def put_dead_letters(connection: Connection, sql: Sql, rows: Iterable[DeadLetterRow]) -> None:
    values = [
        (
            row.org,
            row.execution_id,
            row.workflow_id,
            row.body,
            row.reason.replace("\0", "\ufffd"),  # whatever somebody's exception says; PostgreSQL's text has no NUL
            row.node,
            row.at,
            row.attempts,
        )
        for row in rows
    ]
    await _run(connection, sql["put_dead_letters"], values)


async def put_requests(connection: Connection, sql: Sql, rows: Sequence[RequestRow], now: Instant) -> None:
    """The last one counts where two have the same key. In the order of keys, so that two batches cannot block each other."""
    last = {(row.org, row.kind, row.key): row for row in rows}
    values = [
        (row.org, row.kind, row.key, row.execution_id, row.sequence, row.expires_at, row.answer)
        for row in (last[key] for key in sorted(last))
    ]
    await _run(connection, sql["put_requests"], values)
    await connection.fetch(sql["forget_requests"], now, 2 * len(values))
