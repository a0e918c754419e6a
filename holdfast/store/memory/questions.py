"""Questions to nodes that have the code of an execution: see `holdfast.store.questions`."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from holdfast.core.instants import Instant
from holdfast.store.memory import reads
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.tables import Tables
from holdfast.store.questions import MOST_TRIES, AnswerRow, QuestionRow


class StoredQuestion(msgspec.Struct, frozen=True):
    """A question with what became of it."""

    row: QuestionRow
    taken_until: Instant = 0
    tries: int = 0
    answer: bytes | None = None


class MemoryQuestions:
    """The questions of a database in memory. Each call is one statement that commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _tables(self) -> Tables:
        await self._connection.reach(Point.READ)
        return self._connection.database.tables

    async def put(self, row: QuestionRow, now: Instant) -> None:
        questions = (await self._tables()).questions
        for key in [key for key, one in questions.items() if one.row.expires_at <= now]:
            del questions[key]
        questions[row.id] = StoredQuestion(row)

    async def list_open(
        self, now: Instant, workflows: Collection[str], after: QuestionRow | None = None, limit: int = 100
    ) -> list[QuestionRow]:
        tables = await self._tables()

        def is_wanted(one: QuestionRow) -> bool:
            found = reads.find_execution(tables, one.org, one.execution_id)
            is_behind = after is None or _place_of(one) > _place_of(after)
            return is_behind and (found is None or found.workflow in workflows)

        rows = [one.row for one in tables.questions.values() if _is_open(one, now) and is_wanted(one.row)]
        return sorted(rows, key=_place_of)[:limit]

    async def take(self, ids: Collection[str], now: Instant, until: Instant) -> set[str]:
        questions = (await self._tables()).questions
        taken = {key for key in ids if key in questions and _is_open(questions[key], now)}
        for key in taken:
            stored = questions[key]
            questions[key] = msgspec.structs.replace(stored, taken_until=until, tries=stored.tries + 1)
        return taken

    async def answer(self, row: AnswerRow) -> None:
        questions = (await self._tables()).questions
        stored = questions.get(row.id)
        if stored is not None and stored.answer is None:
            questions[row.id] = msgspec.structs.replace(stored, answer=row.answer)

    async def read_answers(self, ids: Collection[str]) -> list[AnswerRow]:
        questions = (await self._tables()).questions
        found = [questions[key] for key in ids if key in questions]
        return [AnswerRow(one.row.id, one.row.org, one.answer) for one in found if one.answer is not None]

    async def remove(self, ids: Collection[str]) -> None:
        questions = (await self._tables()).questions
        for key in ids:
            questions.pop(key, None)


def _place_of(row: QuestionRow) -> tuple[Instant, str]:
    return row.expires_at, row.id


def _is_open(one: StoredQuestion, now: Instant) -> bool:
    is_free = one.answer is None and one.taken_until <= now and one.tries < MOST_TRIES
    return is_free and one.row.expires_at > now
