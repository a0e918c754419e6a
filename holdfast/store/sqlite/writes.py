"""How a batch of turns becomes rows: one statement per table, and only for the turns that are not lost.

Nobody else writes between the claim and here, so that which turns are lost is known before anything is written, and nothing
has to be taken back. Updates check the version all the same: if it is not as known, other hands were at the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.core.lifecycle import Status
from holdfast.store.columns import encode_nodes, from_execution_row
from holdfast.store.contract import TurnWrite, UnroutedWrite, find_taken
from holdfast.store.rows import ExecutionRow, HistoryRow
from holdfast.store.sqlite.attributes import change_attributes, list_attributes, put_attributes
from holdfast.store.sqlite.incidents import write_incidents, write_snapshots
from holdfast.store.sqlite.offers import write_offers
from holdfast.store.sqlite.pauses import read_number
from holdfast.store.sqlite.publications import write_publications, write_subscriptions
from holdfast.store.sqlite.queues import fail_inbox, reroute_inbox, write_envelopes, write_timers
from holdfast.store.sqlite.statements import SQL, WideStatement, as_json
from holdfast.store.sqlite.tasks import write_tasks
from holdfast.store.sqlite.writer_cache import Changes, CommitEvidence, RowPosition, WriterCache

_UPDATE: Final = WideStatement("update_executions")
_CLOSE: Final = WideStatement("close_executions")
_INSERT: Final = WideStatement("insert_executions")
_INSERT_CLOSED: Final = WideStatement("insert_closed_executions")
_APPEND: Final = WideStatement("append_events")

_PLAIN: Final[Mapping[str, str]] = {status: status.value for status in Status}
"""A status as plain text: for an enum, too, sqlite3 looks for an adapter first."""
_STATUS: Final = -10
"""Where it stands in a row, from the end."""


class BatchWriter:
    """Writes one batch within an open transaction."""

    def __init__(self, connection: sqlite3.Connection, writer_cache: WriterCache, changes: Changes) -> None:
        self._connection = connection
        self._writer_cache = writer_cache
        self._changes = changes
        self._lost: set[str] = set()
        self._starts: list[TurnWrite] = []
        self._closed: list[str] = []
        # What the statements take, row after row:
        self._updates: list[Any] = []
        self._closings: list[Any] = []
        self._events: list[Any] = []
        self._attributes: list[Any] = []

    def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        """Write everything but the lost turns; returns the executions of those."""
        if (
            unrouted.settings is not None
            and turns
            and unrouted.settings != read_number(self._connection, self._writer_cache)
        ):
            self._lost.update(turn.row.execution_id for turn in turns)
            turns = ()
        if self._writer_cache.inbox_rows + self._changes.inbox_rows > 0:
            self._lose_closings(turns, unrouted)
        unknown = self._gather(turns, self._writer_cache.positions.get)
        if unknown:
            missing = self._gather(unknown, self._look_up(unknown).get)
            self._lost.update(turn.row.execution_id for turn in missing)
        # Closings come before inserts, so that a workflow id is free for the execution that follows.
        if self._closings:
            _CLOSE.run_exactly(self._connection, self._closings)
        if self._updates:
            _UPDATE.run_exactly(self._connection, self._updates)
        if self._starts:
            self._insert()
        if self._events:
            _APPEND.run_exactly(self._connection, self._events)
        if self._attributes:
            put_attributes(self._connection, self._attributes)
        others = [turn for turn in turns if turn.row.execution_id not in self._lost] if self._lost else turns
        rare = [turn for turn in others if turn.has_rare]
        if rare:
            change_attributes(self._connection, rare)
            write_incidents(self._connection, rare)
            write_snapshots(self._connection, rare)
        write_timers(self._connection, self._writer_cache, others, self._closed)
        write_offers(self._connection, self._writer_cache, self._changes, others, self._closed)
        with_tasks = [turn for turn in rare if turn.tasks or turn.task_changes]
        if with_tasks:
            write_tasks(self._connection, with_tasks)
        if self._closed or rare:
            write_subscriptions(self._connection, self._writer_cache, self._changes, others, self._closed, unrouted)
        write_envelopes(self._connection, self._changes, [*others, unrouted])
        write_publications(self._connection, self._changes, [*rare, unrouted])
        if unrouted.failed:
            fail_inbox(self._connection, unrouted.failed)
        if unrouted.rerouted:
            reroute_inbox(self._connection, unrouted.rerouted)
        return self._lost

    # --- turns on stored executions ---

    def _lose_closings(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> None:
        """Those that leave something in their inbox, or under their workflow id."""
        closing = {turn.row.execution_id: turn.row for turn in turns if turn.row.closed_at is not None}
        if not closing:
            return
        taken = find_taken(turns, unrouted)
        waiting = self._connection.execute(SQL["read_inbox_ids"], (as_json(list(closing)),))
        self._lost.update(key for row_id, org, key in waiting if row_id not in taken and org == closing[key].org)
        by_id = {
            (turn.row.org, turn.row.workflow_id): turn.row.execution_id
            for turn in turns
            if turn.expected_version is not None and turn.row.closed_at is not None and turn.row.status != Status.TERMINATED
        }
        asked = as_json([workflow_id for _, workflow_id in by_id])
        for row_id, org, workflow_id in self._connection.execute(SQL["read_inbox_ids_by_workflow_id"], (asked,)):
            if row_id not in taken and (org, workflow_id) in by_id:
                self._lost.add(by_id[org, workflow_id])

    def _look_up(self, turns: Iterable[TurnWrite]) -> dict[str, RowPosition]:
        asked = as_json([turn.row.execution_id for turn in turns])
        rows = self._connection.execute(SQL["read_positions"], (asked,))
        return {execution_id: (number, last_turn, version, org) for execution_id, number, last_turn, version, org in rows}

    def _gather(self, turns: Iterable[TurnWrite], find_position: Callable[[str], RowPosition | None]) -> list[TurnWrite]:
        """Gather what is to be written; returns the turns whose execution's row position is not found."""
        writer_cache, lost, touched = self._writer_cache, self._lost, self._changes.touched
        put_position, to_plain = writer_cache.positions.put, _PLAIN.get
        unknown: list[TurnWrite] = []
        last: TurnWrite | None = None
        for turn in turns:
            row, expected = turn.row, turn.expected_version
            execution_id = row.execution_id
            if execution_id in lost:
                continue
            if expected is None:
                self._starts.append(turn)
                continue
            position = find_position(execution_id)
            if position is None:
                unknown.append(turn)
                continue
            number, last_turn, version, org = position
            if version != expected or org != row.org:
                lost.add(execution_id)
                continue
            if turn.history is not None:
                self._append(writer_cache.next_turn, number, last_turn, turn.history)
                last_turn = writer_cache.next_turn
                writer_cache.next_turn += 1
            # A bytearray is bound as it is; for bytes, sqlite3 looks for an adapter first, which takes twice as long.
            details = bytearray(row.details)
            values = (
                to_plain(row.status, row.status),
                row.state_version,
                row.sequence,
                encode_nodes(row.nodes),
                row.updated_at,
                row.code_version,
                details,
                row.route,
            )
            touched.append(execution_id)
            if row.closed_at is None:
                self._updates += values
                self._updates += (last_turn, number, expected)
                put_position(execution_id, (number, last_turn, row.state_version, org))
            else:
                self._closings += values
                self._closings += (last_turn, number, expected, row.closed_at)
                self._closed.append(execution_id)
                writer_cache.positions.drop(execution_id)
            last = turn
        if last is not None:
            self._changes.evidence = CommitEvidence("has_version", (last.row.execution_id, last.row.state_version), True)
        return unknown

    def _append(self, turn_id: int, number: int, previous: int, history: HistoryRow) -> None:
        """Gather the events of one turn."""
        body = bytearray(history.body)
        self._events += (turn_id, number, previous, history.first, history.count, history.at, history.schema, body)

    # --- turns that start an execution ---

    def _insert(self) -> None:
        """Insert, then see which starts are lost: their execution id is taken, or their workflow id is open."""
        writer_cache, starts = self._writer_cache, self._starts
        first = writer_cache.next_execution
        to_turn = writer_cache.next_turn - first
        writer_cache.next_execution += len(starts)
        writer_cache.next_turn += len(starts)
        opening: list[Any] = []
        closing: list[Any] = []
        for number, turn in enumerate(starts, first):
            values = opening if turn.row.closed_at is None else closing
            values += from_execution_row(turn.row)
            values[_STATUS] = _PLAIN.get(turn.row.status, turn.row.status)
            values += (0 if turn.history is None else number + to_turn, number)
        inserted: set[int] | range = range(first, writer_cache.next_execution)
        if self._insert_rows(opening, closing) != len(starts):
            inserted = {number for (number,) in self._connection.execute(SQL["read_inserted"], (first,))}
        for number, turn in enumerate(starts, first):
            if number in inserted:
                self._begin(number, 0 if turn.history is None else number + to_turn, turn)
            else:
                self._lost.add(turn.row.execution_id)

    def _insert_rows(self, opening: list[Any], closing: list[Any]) -> int:
        """Those that close as they begin, then the others; unless one follows an open one: then their order decides."""
        connection, rows = self._connection, [turn.row for turn in self._starts]
        if closing and opening and _follows_open(rows):
            inserted = 0
            for row in rows:
                statement, values = (_INSERT, opening) if row.closed_at is None else (_INSERT_CLOSED, closing)
                inserted += statement.run(connection, values[: statement.columns])
                del values[: statement.columns]
            return inserted
        return _INSERT_CLOSED.run(connection, closing) + _INSERT.run(connection, opening)

    def _begin(self, number: int, turn_id: int, turn: TurnWrite) -> None:
        """An execution is there: gather what else its first turn writes."""
        row = turn.row
        if turn.history is not None:
            self._append(turn_id, number, 0, turn.history)
        self._attributes += list_attributes(row)
        if row.closed_at is None:
            self._writer_cache.positions.put(row.execution_id, (number, turn_id, row.state_version, row.org))
            self._changes.touched.append(row.execution_id)
        else:
            self._closed.append(row.execution_id)
        self._changes.evidence = CommitEvidence("has_version", (row.execution_id, row.state_version), True)


def _follows_open(rows: Iterable[ExecutionRow]) -> bool:
    """Whether one of these comes after another that is open under the same workflow id."""
    opened: set[tuple[str, str]] = set()
    for row in rows:
        if (row.org, row.workflow_id) in opened:
            return True
        if row.closed_at is None:
            opened.add((row.org, row.workflow_id))
    return False
