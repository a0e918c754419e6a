"""Damages single rows of a database behind the back of its engine, as a bad disk or a wrong hand does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.postgres.access import connect
from tests.rules.world import World

GARBAGE = "{garbage"


def damage(world: World, engine: TestEngine, row: str, column: str, found: str = GARBAGE) -> None:
    """Let a column hold something else. `row`: a table, and the condition of the rows: "tasks WHERE name = 'approve'".

    In memory only columns of bytes can be damaged, in all rows of a table: nothing else is bytes there.
    """
    table, _, condition = row.partition(" WHERE ")
    value: Any = found.encode() if column in ("body", "start", "answer", "details") else found
    if isinstance(engine.store, MemoryStore):
        _damage_memory(engine.store, table, column, value)
    elif world.url.startswith("postgresql"):
        with connect(world.url) as connection:
            changed = connection.execute(f"UPDATE {table} SET {column} = %s WHERE {condition or 'true'}", (value,))
            assert changed.rowcount
    else:
        with closing(sqlite3.connect(world.url.removeprefix("sqlite:///"), timeout=10)) as file, file:
            assert file.execute(f"UPDATE {table} SET {column} = ? WHERE {condition or 'true'}", (value,)).rowcount


def _damage_memory(store: MemoryStore, table: str, column: str, value: bytes) -> None:
    rows = getattr(store.database.tables, table)
    for key, row in rows.items():
        changed = (
            [replace(one, **{column: value}) for one in row] if isinstance(row, list) else replace(row, **{column: value})
        )
        rows[key] = changed
