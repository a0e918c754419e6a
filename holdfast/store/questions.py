"""What stores promise about questions: short-lived requests for nodes that have the code of an execution.

Who asks puts a row, wakes the nodes, and waits for the answer. A node that has the code takes the question, so that no other
answers it meanwhile, and writes the answer into the row; who asked removes it. Rows of those who are gone are removed after
they have expired, with the next question. Nothing of it is part of an execution: questions are not moved or
exported.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload

MOST_TRIES: Final = 2
"""How many nodes try to answer a question: one that ends its process must not end one after the other."""


class Question(msgspec.Struct, frozen=True, gc=False):
    """A query and its arguments, as they are kept."""

    name: str
    args: Payload


class QuestionRow(msgspec.Struct, frozen=True, gc=False):
    """A question about an execution. Never changes."""

    id: str
    org: str
    execution_id: str
    body: bytes
    """A `Question`, as JSON."""
    expires_at: Instant


class AnswerRow(msgspec.Struct, frozen=True, gc=False):
    """The answer that a node gave to a question."""

    id: str
    org: str
    answer: bytes
    """A `core.replies.Replied`, as JSON."""


class Questions(Protocol):
    """Questions, outside of batches. Each call is a transaction of its own."""

    async def put(self, row: QuestionRow, now: Instant) -> None:
        """Ask something, and remove what has expired."""
        ...

    async def list_open(
        self, now: Instant, workflows: Collection[str], after: QuestionRow | None = None, limit: int = 100
    ) -> list[QuestionRow]:
        """A page of the questions that nobody has answered and nobody is answering, those that expire first first.

        Only questions about executions of these workflows, and about executions that are gone. `after`: the last question of
        the page before.
        """
        ...

    async def take(self, ids: Collection[str], now: Instant, until: Instant) -> set[str]:
        """Keep others from answering questions until then; those that nobody else has taken, nor too many have tried."""
        ...

    async def answer(self, row: AnswerRow) -> None:
        """Answer a question, if it is still there and nobody has."""
        ...

    async def read_answers(self, ids: Collection[str]) -> list[AnswerRow]:
        """The answers to some questions, of those that have one."""
        ...

    async def remove(self, ids: Collection[str]) -> None:
        """Remove questions, whether they are answered or not."""
        ...


_DECODER: Final = msgspec.json.Decoder(Question)


def read_question(row: QuestionRow) -> Question | None:
    """What is asked; None if only a newer Holdfast can tell."""
    try:
        return _DECODER.decode(row.body)
    except msgspec.MsgspecError:
        return None
