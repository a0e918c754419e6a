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
from holdfast.core.lifecycle import Status
from holdfast.engine.query_answers import describe_delay, has_begun, make_not_begun
from holdfast.engine.questions import QuestionDesk
from holdfast.engine.replies import check_reply
from holdfast.engine.rows import from_row
from holdfast.errors import AnswerTimedOut, HoldfastError, NobodyAnswers
from holdfast.store.questions import Question

if TYPE_CHECKING:
    from holdfast.core.payloads import Payload
    from holdfast.engine.changes import Changes
    from holdfast.engine.query_answers import QueryAnswers
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.engine.use_cases.queries import Queries
    from holdfast.engine.views import ExecutionInfo
    from holdfast.store.rows import ExecutionRow


LONGEST_START: Final = 5.0
"""Seconds for which a query waits for the first turn of an execution that was just started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramQueriesDeps:
    """What queries of an engine are asked with."""

    delivery: Delivery
    queries: Queries
    answers: QueryAnswers
    desk: QuestionDesk
    changes: Changes
    exclusive: bool
    """Whether no other process has the store: then nobody else could answer."""


class ProgramQueries:
    """Asks the handlers that workflow code has registered by `ctx.on_query`."""

    def __init__(self, deps: ProgramQueriesDeps) -> None:
        self._deps = deps

    async def ask(self, org: str, target: str, name: str, args: Sequence[Any], timeout: Duration | None) -> Payload:
        """What an execution answers to a query.

        Raises ExecutionNotFound, ExecutionNotBegun, UnknownQuery, QueryFailed and their like.
        """
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        check_identifier(name, "the name of a query")
        seconds = None if timeout is None else to_micros(timeout, "the timeout of a query") / SECOND
        delivery = self._deps.delivery
        encoded = payloads.encode(list(args), f"the arguments of query '{name}'", delivery.payload_limit)
        row = await delivery.find_or_raise(org, target, "query")
        if not has_begun(row):
            row = await self._wait_for_beginning(
                row, name, LONGEST_START if seconds is None else min(seconds, LONGEST_START)
            )
        question = Question(name, encoded)
        if self._deps.answers.has_code(row):
            return await self._answer(row, question, seconds)
        if self._deps.exclusive:
            raise NobodyAnswers(
                f"Expected query '{name}' to be answered, but workflow '{row.workflow}' is not registered with the engine, "
                "which owns the database alone. Pass it in Engine(..., workflows=[...])."
            )
        reply = await self._deps.desk.ask(row, question, seconds)
        check_reply(reply)
        return reply.result or payloads.NULL

    async def _wait_for_beginning(self, row: ExecutionRow, query: str, limit: float) -> ExecutionRow:
        """The row once its code has begun and could register handlers.

        Raises ExecutionNotBegun, after `limit` seconds or at once if something holds it up for longer.
        """
        delivery, changes = self._deps.delivery, self._deps.changes
        try:
            async with asyncio.timeout(limit):
                while True:
                    watch = changes.watch(row.execution_id, row.state_version)
                    try:
                        row = await delivery.find_or_raise(row.org, row.execution_id, "query")
                        if has_begun(row):
                            return row
                        if not self._begins_by_itself(row, limit) or (await self._find_status(row)).pauses:
                            break
                        await watch.changed
                    finally:
                        changes.forget(watch)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            row = await delivery.find_or_raise(row.org, row.execution_id, "query")
            if has_begun(row):
                return row
        raise make_not_begun(row, query, await self._find_obstacle(row))

    def _begins_by_itself(self, row: ExecutionRow, limit: float) -> bool:
        """Whether the row says that an execution may begin within so many seconds."""
        start_at = from_row(row).details.start_at
        return row.status != Status.BLOCKED and (start_at is None or start_at <= self._deps.delivery.now + limit * SECOND)

    async def _find_obstacle(self, row: ExecutionRow) -> str:
        """Why an execution has not begun, in words; empty if nothing is known to hold it up."""
        info = await self._find_status(row)
        paused = " and ".join(str(one) for one in info.pauses)
        return describe_delay(row) or paused or info.missing_definition or ""

    async def _find_status(self, row: ExecutionRow) -> ExecutionInfo:
        return await self._deps.queries.status(row.org, row.execution_id)

    async def _answer(self, row: ExecutionRow, question: Question, seconds: float | None) -> Payload:
        try:
            async with asyncio.timeout(seconds):
                return await self._deps.answers.answer(row, question)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise AnswerTimedOut(
                f"Expected query '{question.name}' to be answered within {seconds:g} seconds, but its execution was still "
                "replayed. Give it more time."
            ) from None
