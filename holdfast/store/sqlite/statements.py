"""The statements of `queries.sql` and the files of other topics beside it, and how many rows are written by one of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, Final

import msgspec

from holdfast.errors import CorruptStore
from holdfast.store.listing import add_counts
from holdfast.store.queries import load_queries, widen

SQL: Final = add_counts(load_queries("holdfast.store.sqlite"))

_WIDEST: Final = 128
_ENCODER: Final = msgspec.json.Encoder()


def as_json(values: Collection[Any]) -> str:
    """Ids for a statement that takes a list of them."""
    return _ENCODER.encode(values).decode()


class WideStatement:
    """A statement for any number of rows, run in few steps: each step gives Python's lock away.

    It exists in widths that are powers of two, so that each is prepared once and kept.
    """

    def __init__(self, name: str) -> None:
        statement = SQL[name]
        self._name = name
        self.columns = statement.count("?")
        widths = [1 << power for power in range(_WIDEST.bit_length() - 1, -1, -1)]
        self._widths = [(width, width * self.columns, widen(statement, width)) for width in widths]
        self._single = self._widths[-1][2]

    def run(self, connection: sqlite3.Connection, values: list[Any]) -> int:
        """Run it for all rows, whose values stand in one flat list; returns how many rows changed."""
        if not values:
            return 0
        before = connection.total_changes
        if len(values) == self.columns:  # a batch of one turn has one row for each table
            connection.execute(self._single, values)
            return connection.total_changes - before
        start, rows = 0, len(values) // self.columns
        for width, length, statement in self._widths:
            while rows >= width:
                connection.execute(statement, values[start : start + length])
                start += length
                rows -= width
        return connection.total_changes - before

    def run_exactly(self, connection: sqlite3.Connection, values: list[Any]) -> None:
        """Run it for rows of which each must change one. Raises CorruptStore if they do not."""
        changed, rows = self.run(connection, values), len(values) // self.columns
        if changed != rows:
            raise CorruptStore(
                f"Expected {self._name} to change {rows} rows, but {changed} changed. "
                "The database was written by other hands: let no other program write to it, and run `holdfast check`."
            )
