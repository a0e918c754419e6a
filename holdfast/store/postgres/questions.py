"""Questions to nodes that have the code of an execution: see `holdfast.store.questions`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.core.instants import Instant
from holdfast.store.questions import MOST_TRIES, AnswerRow, QuestionRow

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections


class PostgresQuestions:
    """The questions in a schema of PostgreSQL."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, row: QuestionRow, now: Instant) -> None:
        values = (row.id, row.org, row.execution_id, row.body, row.expires_at)
        await self._connections.fetch("remove questions in", "remove_expired_questions", now)
        await self._connections.fetch("ask a question in", "put_question", *values)

    async def list_open(
        self, now: Instant, workflows: Collection[str], after: QuestionRow | None = None, limit: int = 100
    ) -> list[QuestionRow]:
        place = (now, "") if after is None else (after.expires_at, after.id)
        asked = (now, MOST_TRIES, list(workflows), *place, limit)
        rows = await self._connections.fetch("read questions in", "list_questions", *asked)
        return [QuestionRow(*row) for row in rows]

    async def take(self, ids: Collection[str], now: Instant, until: Instant) -> set[str]:
        rows = await self._connections.fetch("take questions in", "take_questions", list(ids), now, until, MOST_TRIES)
        return {row[0] for row in rows}

    async def answer(self, row: AnswerRow) -> None:
        await self._connections.fetch("answer in", "answer_question", row.id, row.answer)

    async def read_answers(self, ids: Collection[str]) -> list[AnswerRow]:
        rows = await self._connections.fetch("read answers in", "read_answers", list(ids))
        return [AnswerRow(*row) for row in rows]

    async def remove(self, ids: Collection[str]) -> None:
        await self._connections.fetch("remove questions in", "remove_questions", list(ids))
