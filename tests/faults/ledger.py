"""What activities did, noted by themselves beside the engine's tables: one row for each attempt that was begun.

So it can be told apart what happened more than once (attempts may) and what was recorded more than once (nothing may).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from psycopg import sql

from holdfast import ActivityInfo
from tests.postgres.access import connect

TABLE = """
CREATE TABLE effects (
    execution_id text, number bigint, attempt integer, node text, at timestamptz DEFAULT clock_timestamp()
)
"""


class Effect(NamedTuple):
    """An attempt that was begun."""

    execution_id: str
    number: int
    attempt: int
    node: str


# --- in a node's process ---


class _Pen:
    """How this process writes. Its connection is made anew whenever it breaks."""

    def __init__(self, url: str, schema: str, node: str) -> None:
        self._url = urlunsplit(urlsplit(url)._replace(query=""))
        self._schema = schema
        self._node = node
        self._connection: asyncpg.Connection[Any] | None = None
        self._lock = asyncio.Lock()

    async def write(self, info: ActivityInfo) -> None:
        async with self._lock:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self._url, timeout=2, command_timeout=2)
            try:
                await self._connection.execute(
                    f"INSERT INTO {self._schema}.effects VALUES ($1, $2, $3, $4)",
                    info.execution_id,
                    info.number,
                    info.attempt,
                    self._node,
                )
            except BaseException:
                self._connection.terminate()
                raise


class _FilePen:
    """How a process writes that has a SQLite database: a line in a file, which outlives the process."""

    def __init__(self, path: Path, node: str) -> None:
        self._file = path.open("ab", buffering=0)
        self._node = node

    async def write(self, info: ActivityInfo) -> None:
        effect = Effect(info.execution_id, info.number, info.attempt, self._node)
        self._file.write(json.dumps(effect).encode() + b"\n")


_pens: list[_Pen | _FilePen] = []


def open_ledger(url: str, schema: str, node: str) -> None:
    """Let activities of this process note what they do, in a table of a schema or in a file. Connects when that happens."""
    _pens[:] = [_Pen(url, schema, node) if schema else _FilePen(Path(url), node)]


async def note(info: ActivityInfo) -> None:
    """Note that an attempt was begun. Durable on return."""
    await _pens[0].write(info)


# --- in the tests ---


@contextmanager
def make_ledger(url: str, schema: str) -> Iterator[None]:
    """The table, in a schema of its own, for as long as a test runs."""
    with connect(url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        connection.execute(TABLE)
    yield
    with connect(url) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def read_ledger_file(path: Path) -> list[Effect]:
    """All of a file, in order of time."""
    return [Effect(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def read_ledger(url: str, schema: str) -> list[Effect]:
    """All of it, in order of time."""
    query = sql.SQL("SELECT execution_id, number, attempt, node FROM {}.effects ORDER BY at").format(sql.Identifier(schema))
    with connect(url) as connection:
        return [Effect(*row) for row in connection.execute(query)]
