"""What a batch gets to hold. One process writes, one transaction at a time: whatever is asked for is had at once.

What waits for executions that are closed, or are not there, is given out too, and counts against the limit: whoever claims
it must consume it, as an answer or a dead letter, or it is found again each time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from holdfast.store.columns import to_execution_row, to_timer_row
from holdfast.store.contract import LONGEST_ORDER, Claim, Claimed
from holdfast.store.rows import ExecutionRow, InboxRow
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import NEVER, Changes, WriterCache
from holdfast.store.withholding import find_examined, find_withheld

Recipient: TypeAlias = tuple[str, str, str]
"""To whom an inbox row goes: (org, execution id, ""), or (org, "", workflow id)."""
Pair: TypeAlias = tuple[str, str]
"""(org, execution id) or (org, workflow id)."""

_COLUMNS = 16
_ID_LENGTH = 36
"""How many characters an execution id has."""


def take_claim(connection: sqlite3.Connection, writer_cache: WriterCache, changes: Changes, claim: Claim) -> Claimed:
    """Hold and read everything that `claim` asks for: nobody else writes, so all of it is free."""
    claimed = Claimed(held_keys=set(claim.request_keys))
    has_inbox = writer_cache.inbox_rows + changes.inbox_rows > 0
    has_due = writer_cache.no_timer_before <= claim.due_until
    unread = _hold_known(writer_cache, claim, claimed)
    workflow_ids = list(claim.workflow_ids)
    if claim.limit > 0 and (has_inbox or has_due):
        for org, execution_id, workflow_id in _find(connection, claim, has_inbox=has_inbox, has_due=has_due):
            if execution_id:
                unread.add((org, execution_id))
            else:
                workflow_ids.append((org, workflow_id))
    if workflow_ids:
        unread |= _resolve(connection, workflow_ids, claimed)
    if unread:
        _hold(claimed, unread, read_executions(connection, writer_cache, {execution_id for _, execution_id in unread}))
    claimed.withheld = find_withheld(claim, claimed.rows)
    _name_held(claim, claimed)
    if has_inbox:
        asked = unread.union((one.org, one.execution_id) for one in claim.wanted)
        if claimed.withheld:
            asked = {pair for pair in asked if pair[1] not in claimed.withheld}
        named = [pair for pair, open_id in claimed.open_ids.items() if open_id in claimed.held - claimed.withheld.keys()]
        # To send something, one need not know whether an id that may be either is a workflow id.
        asked.update(pair for pair in named if len(pair[1]) == _ID_LENGTH)
        claimed.inbox = _read_inbox(connection, asked, {*workflow_ids, *named})
        if claimed.withheld:
            _examine(connection, claim, claimed)
    if has_due:
        rows = connection.execute(SQL["read_due"], {"execution_ids": as_json(claimed.held), "due_until": claim.due_until})
        claimed.due = [to_timer_row(row) for row in rows]
        if not claimed.due and changes.evidence is None:
            _raise_bound(connection, writer_cache)
    return claimed


def read_executions(
    connection: sqlite3.Connection, writer_cache: WriterCache, execution_ids: Iterable[str]
) -> list[ExecutionRow]:
    """The rows of these executions; where the open ones are is remembered."""
    rows = []
    for values in connection.execute(SQL["read_executions"], (as_json(list(execution_ids)),)):
        row = to_execution_row(values[:_COLUMNS])
        rows.append(row)
        if row.closed_at is None:
            position = (values[_COLUMNS], values[_COLUMNS + 1], row.state_version, row.org)
            writer_cache.positions.put(row.execution_id, position)
    return rows


def _hold_known(writer_cache: WriterCache, claim: Claim, claimed: Claimed) -> set[Pair]:
    """Hold what the caller knows at its present version; returns the rest of what it wants."""
    unread = set()
    held, find_position = claimed.held, writer_cache.positions.get
    for one in claim.wanted:
        execution_id = one.execution_id
        position = find_position(execution_id)
        if position is not None and position[2:] == (one.known_version, one.org):
            held.add(execution_id)
        else:
            unread.add((one.org, execution_id))
    return unread


def _name_held(claim: Claim, claimed: Claimed) -> None:
    """Add the workflow ids of the held executions to those that are known to be open."""
    open_ids, held = claimed.open_ids, claimed.held
    for one in claim.wanted:
        if one.workflow_id and one.execution_id in held:
            open_ids[one.org, one.workflow_id] = one.execution_id
    for row in claimed.rows.values():
        open_ids[row.org, row.workflow_id] = row.execution_id


def _hold(claimed: Claimed, asked: Collection[Pair], rows: Iterable[ExecutionRow]) -> None:
    for row in rows:
        if row.closed_at is None and (row.org, row.execution_id) in asked:
            claimed.held.add(row.execution_id)
            claimed.rows[row.execution_id] = row


def _find(connection: sqlite3.Connection, claim: Claim, *, has_inbox: bool, has_due: bool) -> list[Recipient]:
    """Who has work, a turn each for those with envelopes and those with due timers, so that neither starves."""
    values: dict[str, Any] = {"due_until": claim.due_until, "skip": as_json(list(claim.skip))}
    if claim.routes is None:
        find_waiting, find_due = SQL["find_waiting"], SQL["find_due"]
    else:
        find_waiting, find_due = SQL["find_waiting_on_routes"], SQL["find_due_on_routes"]
        values["routes"] = as_json(list(claim.routes))
    waiting = connection.execute(find_waiting, values) if has_inbox else None
    due = connection.execute(find_due, values) if has_due else None
    seen = {(one.org, one.execution_id, "") for one in claim.wanted}
    seen.update((org, "", workflow_id) for org, workflow_id in claim.skip_workflow_ids)
    found: list[Recipient] = []
    for address in chain.from_iterable(zip_longest(_addresses(waiting), _addresses(due))):
        if address is not None and address not in seen:
            seen.add(address)
            found.append(address)
            if len(found) >= claim.limit:
                break
    for cursor in (waiting, due):
        if cursor is not None:
            cursor.close()  # it may not have come to its end
    return found


def _addresses(cursor: sqlite3.Cursor | None) -> Iterator[Recipient]:
    for org, execution_id, *workflow_id in cursor or ():
        yield (org, execution_id, "" if execution_id else workflow_id[0])


def _resolve(connection: sqlite3.Connection, workflow_ids: Collection[Pair], claimed: Claimed) -> set[Pair]:
    """The open executions of these workflow ids."""
    claimed.open_ids = dict.fromkeys(workflow_ids)
    opened = set()
    for org, workflow_id, execution_id in connection.execute(SQL["resolve_workflow_ids"], (as_json(workflow_ids),)):
        claimed.open_ids[org, workflow_id] = execution_id
        opened.add((org, execution_id))
    return opened


def _read_inbox(connection: sqlite3.Connection, asked: Collection[Pair], workflow_ids: Collection[Pair]) -> list[InboxRow]:
    execution_ids = as_json([execution_id for _, execution_id in asked])
    values = {"execution_ids": execution_ids, "workflow_ids": as_json(list(workflow_ids))}
    rows = [InboxRow(*row) for row in connection.execute(SQL["read_inbox"], values)]
    return [row for row in rows if not row.execution_id or (row.org, row.execution_id) in asked]


def _examine(connection: sqlite3.Connection, claim: Claim, claimed: Claimed) -> None:
    """Read of the inboxes that are not read what concerns their executions nonetheless."""
    examined = find_examined(claim, claimed.withheld, claimed.rows)
    if not examined:
        return
    values = {"routes": as_json(examined), "prefix": claim.order_prefix, "longest": LONGEST_ORDER}
    rows = [InboxRow(*row) for row in connection.execute(SQL["read_withheld"], values)]
    claimed.inbox += [row for row in rows if row.org == claimed.rows[row.execution_id].org]
    claimed.inbox.sort(key=lambda row: row.id)


def _raise_bound(connection: sqlite3.Connection, writer_cache: WriterCache) -> None:
    """Nothing that may be taken is due: look when the next timer is, so that until then nobody looks again."""
    (due,) = connection.execute(SQL["read_earliest_due"]).fetchone()
    writer_cache.no_timer_before = NEVER if due is None else due
