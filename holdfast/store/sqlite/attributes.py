"""The attributes of executions: written when the execution is, and those of its state whenever they change."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from holdfast.store import attributes
from holdfast.store.attributes import STATE
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite.statements import SQL, WideStatement

_PUT: Final = WideStatement("put_attributes")


def list_attributes(row: ExecutionRow) -> list[Any]:
    """What a new execution is found by, as values for `put_attributes`, row after row."""
    found = attributes.list_attributes(row.workflow, row.code_version, row.details)
    return [part for kind, name, value in found for part in (row.org, kind, name, value, row.execution_id)]


def put_attributes(connection: sqlite3.Connection, values: list[Any]) -> None:
    """Write the attributes of new executions."""
    _PUT.run(connection, values)


def change_attributes(connection: sqlite3.Connection, turns: Sequence[TurnWrite]) -> None:
    """Write what turns changed in the searchable part of states."""
    changed = [(turn.row, change) for turn in turns if turn.attributes for change in turn.attributes]
    if not changed:
        return
    connection.executemany(SQL["end_state_attributes"], [(row.execution_id, row.org, one.name) for row, one in changed])
    put: list[Any] = []
    for row, one in changed:
        if one.value is not None:
            put += (row.org, STATE, one.name, one.value, row.execution_id)
    _PUT.run(connection, put)
