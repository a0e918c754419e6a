"""What waits to be handled, and what was: timers, inbox, dead letters, answered requests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from holdfast.core.instants import Instant
from holdfast.store.columns import from_timer_row
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.once import KeyedCall, NothingDone, read_answer
from holdfast.store.rows import DeadLetterRow, InboxRow, RequestRow, Route
from holdfast.store.sqlite.statements import SQL, WideStatement, as_json
from holdfast.store.sqlite.writer_cache import NEVER, Changes, CommitEvidence, WriterCache

_PUT_TIMERS: Final = WideStatement("put_timers")
_END_TIMERS: Final = WideStatement("end_timers")
_PUT_INBOX: Final = WideStatement("put_inbox")
_PUT_DEAD_LETTERS: Final = WideStatement("put_dead_letters")
_PUT_REQUESTS: Final = WideStatement("put_requests")


def write_timers(
    connection: sqlite3.Connection, writer_cache: WriterCache, turns: Iterable[TurnWrite], closed: Sequence[str]
) -> None:
    """Timers that begin, then those that end: one may do both in a turn. A closed execution leaves none behind."""
    begun: list[Any] = []
    ended: list[Any] = []
    for turn in turns:
        if not turn.timers and not turn.ended_timers:
            continue
        for timer in turn.timers:
            begun += from_timer_row(timer)
            writer_cache.no_timer_before = min(writer_cache.no_timer_before, timer.due)
        for number in turn.ended_timers:
            ended += (turn.row.execution_id, number)
    if begun:
        _PUT_TIMERS.run(connection, begun)
    if writer_cache.no_timer_before == NEVER:
        return
    if ended:
        _END_TIMERS.run(connection, ended)
    if closed:
        connection.execute(SQL["end_all_timers"], (as_json(closed),))


def write_envelopes(connection: sqlite3.Connection, changes: Changes, writes: Iterable[TurnWrite | UnroutedWrite]) -> None:
    """What was taken from the inbox goes, what was sent comes in, what failed is kept, what was answered is remembered."""
    consumed: list[int] = []
    outgoing: list[InboxRow] = []
    dead_letters: list[DeadLetterRow] = []
    requests: list[RequestRow] = []
    readdressed: list[InboxRow] = []
    now: Instant = 0
    for write in writes:
        if write.consumed:
            consumed += write.consumed
        if isinstance(write, TurnWrite) and write.adopted:
            adopted = (write.row.execution_id, write.row.route, as_json(write.adopted))
            connection.execute(SQL["adopt_inbox"], adopted)
        if write.outgoing:
            outgoing += write.outgoing
        if write.readdressed:
            readdressed += write.readdressed
        if write.dead_letters:
            dead_letters += write.dead_letters
        if write.requests:
            requests += write.requests
            now = now if isinstance(write, UnroutedWrite) else write.row.updated_at
    if consumed:
        take_inbox(connection, changes, consumed)
    if outgoing:
        put_inbox(connection, changes, outgoing)
    if readdressed:
        _readdress_inbox(connection, readdressed)
    if dead_letters:
        put_dead_letters(connection, changes, dead_letters)
    if requests:
        put_requests(connection, requests)
        connection.execute(SQL["forget_requests"], (now, 2 * len(requests)))


def take_inbox(connection: sqlite3.Connection, changes: Changes, ids: Sequence[int]) -> None:
    changes.inbox_rows -= connection.execute(SQL["consume_inbox"], (as_json(ids),)).rowcount
    changes.evidence = changes.evidence or CommitEvidence("has_arrival", (ids[0],), False)


def put_inbox(connection: sqlite3.Connection, changes: Changes, rows: Iterable[InboxRow]) -> None:
    values: list[Any] = []
    for row in rows:
        values += (row.org, row.execution_id, row.workflow_id, bytearray(row.body), row.attempts, row.route, row.at)
    if not values:
        return
    changes.inbox_rows += _PUT_INBOX.run(connection, values)
    changes.evidence = changes.evidence or CommitEvidence("has_arrival", (_last_id(connection),), True)


def fail_inbox(connection: sqlite3.Connection, ids: Collection[int]) -> None:
    connection.execute(SQL["fail_inbox"], (as_json(ids),))


def _readdress_inbox(connection: sqlite3.Connection, rows: Iterable[InboxRow]) -> None:
    """Let inbox rows wait for other receivers, in their place."""
    values = [(row.execution_id, row.workflow_id, row.body, row.route, row.id) for row in rows]
    connection.executemany(SQL["readdress_inbox"], values)


def reroute_inbox(connection: sqlite3.Connection, rerouted: Iterable[tuple[int, Route]]) -> None:
    connection.executemany(SQL["reroute_inbox"], [(route, row_id) for row_id, route in rerouted])


def put_dead_letters(connection: sqlite3.Connection, changes: Changes, rows: Iterable[DeadLetterRow]) -> None:
    values: list[Any] = []
    for row in rows:
        values += (row.org, row.execution_id, row.workflow_id, bytearray(row.body))
        values += (row.reason, row.node, row.at, row.attempts)
    _PUT_DEAD_LETTERS.run(connection, values)
    changes.evidence = changes.evidence or CommitEvidence("has_dead_letter", (_last_id(connection),), True)


def put_requests(connection: sqlite3.Connection, rows: Iterable[RequestRow]) -> None:
    values: list[Any] = []
    for row in rows:
        values += (row.org, row.kind, row.key, row.execution_id, row.sequence, row.expires_at, row.answer)
    _PUT_REQUESTS.run(connection, values)


def _last_id(connection: sqlite3.Connection) -> int:
    (row_id,) = connection.execute(SQL["read_last_id"]).fetchone()
    return int(row_id)


def do_once(
    call: KeyedCall,
    work: Callable[[sqlite3.Connection, Changes], int],
    connection: sqlite3.Connection,
    changes: Changes,
) -> int:
    """Do work and remember its answer, unless its call is remembered: what it returned, now or then."""
    found = connection.execute(SQL["read_request"], (*call.key, call.now)).fetchone()
    if found is not None:
        return read_answer(RequestRow(*found))
    answer = work(connection, changes)
    if not answer and not call.remembers_refusal:
        raise NothingDone
    put_requests(connection, [call.answered(answer)])
    connection.execute(SQL["forget_requests"], (call.now, 2))
    if changes.evidence is None:
        changes.evidence = CommitEvidence("has_request", call.key, True)
    return answer
