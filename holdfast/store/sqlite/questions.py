"""Questions to nodes that have the code of an execution: see `holdfast.store.questions`."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol, TypeVar

from holdfast.core.instants import Instant
from holdfast.store.questions import MOST_TRIES, AnswerRow, QuestionRow
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.sqlite.writer_cache import Changes

T = TypeVar("T")


class Write(Protocol):
    """Runs some work in a transaction of its own."""

    def __call__(self, doing: str, work: Callable[[sqlite3.Connection, Changes], T], /) -> Awaitable[T]:
        """The result of the work."""
        ...


class SqliteQuestions:
    """The questions of a database file."""

    def __init__(self, read: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]], write: Write) -> None:
        self._read = read
        self._write = write

    async def put(self, row: QuestionRow, now: Instant) -> None:
        values = (row.id, row.org, row.execution_id, row.body, row.expires_at)

        def work(connection: sqlite3.Connection, _changes: Changes) -> None:
            connection.execute(SQL["remove_expired_questions"], (now,))
            connection.execute(SQL["put_question"], values)

        await self._write("ask a question in", work)

    async def list_open(
        self, now: Instant, workflows: Collection[str], after: QuestionRow | None = None, limit: int = 100
    ) -> list[QuestionRow]:
        at, key = (now, "") if after is None else (after.expires_at, after.id)
        asked = (now, now, MOST_TRIES, at, at, key, as_json(list(workflows)), limit)
        rows = await self._read(lambda db: db.execute(SQL["list_questions"], asked).fetchall())
        return [QuestionRow(*row) for row in rows]

    async def take(self, ids: Collection[str], now: Instant, until: Instant) -> set[str]:
        asked = (until, as_json(list(ids)), now, now, MOST_TRIES)
        taken = await self._write("take questions in", lambda db, _: db.execute(SQL["take_questions"], asked).fetchall())
        return {found for (found,) in taken}

    async def answer(self, row: AnswerRow) -> None:
        await self._write("answer in", lambda db, _: db.execute(SQL["answer_question"], (row.answer, row.id)))

    async def read_answers(self, ids: Collection[str]) -> list[AnswerRow]:
        asked = (as_json(list(ids)),)
        rows = await self._read(lambda db: db.execute(SQL["read_answers"], asked).fetchall())
        return [AnswerRow(*row) for row in rows]

    async def remove(self, ids: Collection[str]) -> None:
        await self._write("remove questions in", lambda db, _: db.execute(SQL["remove_questions"], (as_json(list(ids)),)))
