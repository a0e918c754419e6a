"""How a batch of turns becomes rows: one statement per table, and only for the turns that are not lost.

Nobody else writes between the claim and here, so that which turns are lost is known before anything is written, and nothing
has to be taken back. Updates check the version all the same: if it is not as known, other hands were at the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import astuple

from holdfast.store.contract import HistoryRow, LooseWrite, TurnWrite
from holdfast.store.sqlite.known import Changes, Known
from holdfast.store.sqlite.queues import fail_inbox, write_envelopes, write_timers
from holdfast.store.sqlite.statements import SQL, WideStatement, as_json

_UPDATE: Final = WideStatement("update_executions")
_CLOSE: Final = WideStatement("close_executions")
_INSERT: Final = WideStatement("insert_executions")
_APPEND: Final = WideStatement("append_events")


class BatchWriter:
    """Writes one batch within an open transaction."""

    def __init__(self, connection: sqlite3.Connection, known: Known, changes: Changes) -> None:
        self._connection = connection
        self._known = known
        self._changes = changes
        self._lost: set[str] = set()
        self._starts: list[TurnWrite] = []
        self._with_more: list[TurnWrite] = []
        """Turns that are not lost and write more than a row and its events."""
        self._closed: list[str] = []
        # What the statements take, row after row:
        self._updates: list[Any] = []
        self._closings: list[Any] = []
        self._events: list[Any] = []

    def write(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> set[str]:
        """Write everything but the lost turns; returns the executions of those."""
        if self._known.inbox_rows + self._changes.inbox_rows > 0:
            self._lose_closings(turns, loose)
        unknown = self._gather(turns)
        if unknown:
            self._look_up(unknown)
            self._lost.update(turn.row.execution_id for turn in self._gather(unknown))
        # Closings come before inserts, so that a workflow id is free for the execution that follows.
        if self._closings:
            _CLOSE.run_exactly(self._connection, self._closings)
        if self._updates:
            _UPDATE.run_exactly(self._connection, self._updates)
        if self._starts:
            self._insert()
        if self._events:
            _APPEND.run_exactly(self._connection, self._events)
        write_timers(self._connection, self._known, self._with_more, self._closed)
        now = turns[-1].row.updated_at if turns else 0
        write_envelopes(self._connection, self._changes, [*self._with_more, loose], now)
        if loose.failed:
            fail_inbox(self._connection, loose.failed)
        return self._lost

    # --- turns on stored executions ---

    def _lose_closings(self, turns: Sequence[TurnWrite], loose: LooseWrite) -> None:
        """Those that leave something in their inbox."""
        closing = [turn.row.execution_id for turn in turns if turn.row.closed_at is not None]
        if closing:
            taken = set(loose.consumed).union(*(turn.consumed for turn in turns))
            waiting = self._connection.execute(SQL["read_inbox_ids"], (as_json(closing),))
            self._lost.update(execution_id for row_id, execution_id in waiting if row_id not in taken)

    def _look_up(self, turns: Iterable[TurnWrite]) -> None:
        asked = as_json([turn.row.execution_id for turn in turns])
        for execution_id, number, last_turn, version, org in self._connection.execute(SQL["read_places"], (asked,)):
            self._known.places.put(execution_id, (number, last_turn, version, org))

    def _gather(self, turns: Iterable[TurnWrite]) -> list[TurnWrite]:
        """Gather what is to be written; returns the turns whose execution's place is not known."""
        known, lost, touched = self._known, self._lost, self._changes.touched
        find_place, put_place = known.places.get, known.places.put
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
            place = find_place(execution_id)
            if place is None:
                unknown.append(turn)
                continue
            number, last_turn, version, org = place
            if version != expected or org != row.org:
                lost.add(execution_id)
                continue
            if turn.history is not None:
                self._append(known.next_turn, number, last_turn, turn.history)
                last_turn = known.next_turn
                known.next_turn += 1
            # A bytearray is bound as it is; for bytes, sqlite3 looks for an adapter first, which takes twice as long.
            details = bytearray(row.details)
            values = (row.status, row.state_version, row.sequence, row.node, row.updated_at, row.code_version, details)
            touched.append(execution_id)
            if row.closed_at is None:
                self._updates += values
                self._updates += (last_turn, number, expected)
                put_place(execution_id, (number, last_turn, row.state_version, org))
            else:
                self._closings += values
                self._closings += (last_turn, number, expected, row.closed_at)
                self._closed.append(execution_id)
                known.places.drop(execution_id)
            if _has_more(turn):
                self._with_more.append(turn)
            last = turn
        if last is not None:
            self._changes.witness = ("has_version", (last.row.execution_id, last.row.state_version), True)
        return unknown

    def _append(self, turn_id: int, number: int, previous: int, history: HistoryRow) -> None:
        """Gather the events of one turn."""
        body = bytearray(history.body)
        self._events += (turn_id, number, previous, history.first, history.count, history.at, history.schema, body)

    # --- turns that start an execution ---

    def _insert(self) -> None:
        """Insert, then see which starts are lost: their execution id is taken, or their workflow id is open."""
        known, starts = self._known, self._starts
        first = known.next_execution
        to_turn = known.next_turn - first
        known.next_execution += len(starts)
        known.next_turn += len(starts)
        values: list[Any] = []
        for number, turn in enumerate(starts, first):
            values += astuple(turn.row)
            values += (0 if turn.history is None else number + to_turn, number)
        inserted: set[int] | range = range(first, known.next_execution)
        if _INSERT.run(self._connection, values) != len(starts):
            inserted = {number for (number,) in self._connection.execute(SQL["read_inserted"], (first,))}
        for number, turn in enumerate(starts, first):
            if number in inserted:
                self._begin(number, 0 if turn.history is None else number + to_turn, turn)
            else:
                self._lost.add(turn.row.execution_id)

    def _begin(self, number: int, turn_id: int, turn: TurnWrite) -> None:
        """An execution is there: gather what else its first turn writes."""
        row = turn.row
        if turn.history is not None:
            self._append(turn_id, number, 0, turn.history)
        if row.closed_at is None:
            self._known.places.put(row.execution_id, (number, turn_id, row.state_version, row.org))
            self._changes.touched.append(row.execution_id)
        else:
            self._closed.append(row.execution_id)
        if _has_more(turn):
            self._with_more.append(turn)
        self._changes.witness = ("has_version", (row.execution_id, row.state_version), True)


def _has_more(turn: TurnWrite) -> bool:
    return bool(turn.timers or turn.ended_timers or turn.consumed or turn.outgoing or turn.dead_letters or turn.requests)
