"""Queries: what the code of an execution answers about itself, from what is committed and without changing anything.

The history is replayed into a program of its own, which is thrown away: whatever a handler does to it, the execution does
not notice. Closed executions are asked like open ones. Where this process lacks the code, another node is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import payloads
from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.engine.questions import QuestionDesk, answer_here, has_code
from holdfast.engine.replies import check_reply
from holdfast.errors import AnswerTimedOut, HoldfastError, NobodyAnswers
from holdfast.store.questions import Question

if TYPE_CHECKING:
    from holdfast.core.payloads import Payload
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.changes import Changes
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.rows import ExecutionRow


LONGEST_START: Final = 5.0
"""Seconds for which a query waits for the first turn of an execution that was just started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramQueriesDeps:
    """What queries of an engine are asked with."""

    delivery: Delivery
    catalog: Catalog
    prefetch: HistoryPrefetch
    desk: QuestionDesk
    changes: Changes
    exclusive: bool
    """Whether no other process has the store: then nobody else could answer."""


class ProgramQueries:
    """Asks the handlers that workflow code has registered by `ctx.on_query`."""

    def __init__(self, deps: ProgramQueriesDeps) -> None:
        self._deps = deps

    async def ask(self, org: str, target: str, name: str, args: Sequence[Any], timeout: Duration | None) -> Payload:
        """What an execution answers to a query. Raises ExecutionNotFound, UnknownQuery, QueryFailed and their like."""
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        check_identifier(name, "the name of a query")
        seconds = None if timeout is None else to_micros(timeout, "the timeout of a query") / SECOND
        delivery = self._deps.delivery
        encoded = payloads.encode(list(args), f"the arguments of query '{name}'", delivery.payload_limit)
        row = await delivery.find_or_raise(org, target, "query")
        if row.sequence == 0 and row.closed_at is None:
            row = await self._wait_for_first_turn(row, seconds)
        question = Question(name, encoded)
        if has_code(self._deps.catalog, row):
            return await self._answer(row, question, seconds)
        if self._deps.exclusive:
            raise NobodyAnswers(
                f"Expected query '{name}' to be answered, but workflow '{row.workflow}' is not registered with the engine, "
                "which owns the database alone. Pass it in Engine(..., workflows=[...])."
            )
        reply = await self._deps.desk.ask(row, question, seconds)
        check_reply(reply)
        return reply.result or payloads.NULL

    async def _wait_for_first_turn(self, row: ExecutionRow, seconds: float | None) -> ExecutionRow:
        """The row once its code has begun and could register handlers, if a node takes that turn in time."""
        delivery, changes = self._deps.delivery, self._deps.changes
        watch = changes.watch(row.execution_id, row.state_version)
        try:
            async with asyncio.timeout(LONGEST_START if seconds is None else min(seconds, LONGEST_START)):
                row = await delivery.find_or_raise(row.org, row.execution_id, "query")
                if row.sequence == 0:
                    await watch.changed
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
        finally:
            changes.forget(watch)
        return await delivery.find_or_raise(row.org, row.execution_id, "query")

    async def _answer(self, row: ExecutionRow, question: Question, seconds: float | None) -> Payload:
        try:
            async with asyncio.timeout(seconds):
                return await answer_here(self._deps.prefetch, row, question)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise AnswerTimedOut(
                f"Expected query '{question.name}' to be answered within {seconds:g} seconds, but its execution was still "
                "replayed. Give it more time."
            ) from None
