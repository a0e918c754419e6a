"""The attributes of executions: written once, when the execution is."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from holdfast.store.attributes import read_metadata
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite.statements import WideStatement

_PUT: Final = WideStatement("put_attributes")


def list_attributes(row: ExecutionRow) -> list[Any]:
    """What a new execution is found by, as values for `put_attributes`, row after row."""
    return [part for name, value in read_metadata(row.details) for part in (row.org, name, value, row.execution_id)]


def put_attributes(connection: sqlite3.Connection, values: list[Any]) -> None:
    """Write the attributes of new executions."""
    _PUT.run(connection, values)
