"""Questions between nodes: who lacks the code of an execution asks one that has it, and is answered by a row.

A question is put into the store, and all nodes are woken. A node that has the code takes it, replays the execution, and
writes the answer; who asked is woken and reads it. A lost wake-up costs at most a heartbeat: while questions are there,
heartbeats say so, and who waits looks with each of its own. While nobody asks, nothing is asked of the store.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import codec
from holdfast.core.instants import SECOND
from holdfast.core.replies import Replied, read_replied
from holdfast.engine.turns.request_keys import describe_refusal
from holdfast.errors import (
    AnswerTimedOut,
    ExecutionNotFound,
    HoldfastError,
    NewerFormat,
    StoreError,
)
from holdfast.store.nodes import WakeReason
from holdfast.store.questions import AnswerRow, Question, QuestionRow, read_question

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.query_answers import QueryAnswers
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

log = logging.getLogger("holdfast.engine")

LONGEST_WAIT: Final = 30.0
"""Seconds for which an answer is waited for if the caller does not say how long."""
TAKEN_FOR: Final = 10 * SECOND
"""How long a node has for an answer before another may try."""
PAGE: Final = 100
"""How many questions are read and taken at once."""


@dataclass(frozen=True, slots=True)
class QuestionDeskDeps:
    """What a node asks and answers with."""

    store: Store
    clock: Clock
    catalog: Catalog
    answers: QueryAnswers
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    wake: Callable[[WakeReason], None]
    """Wakes all other nodes and clients."""


class QuestionDesk:
    """Asks other nodes, and answers those that ask."""

    def __init__(self, deps: QuestionDeskDeps) -> None:
        self._deps = deps
        self._asked: dict[str, asyncio.Future[Replied]] = {}
        self._is_serving = self._serves_again = False

    @property
    def has_any(self) -> bool:
        """Whether somebody on this node waits for an answer."""
        return bool(self._asked)

    # --- asking ---

    async def ask(self, row: ExecutionRow, question: Question, seconds: float | None) -> Replied:
        """What a node that has the code answers. Raises AnswerTimedOut."""
        deps, limit = self._deps, LONGEST_WAIT if seconds is None else seconds
        expires_at = deps.clock.now() + round(limit * SECOND) + SECOND
        asked = QuestionRow(secrets.token_hex(16), row.org, row.execution_id, codec.encode(question), expires_at)
        future: asyncio.Future[Replied] = asyncio.get_running_loop().create_future()
        self._asked[asked.id] = future
        try:
            await deps.store.questions.put(asked, deps.clock.now())
            deps.wake(WakeReason.QUESTIONS)
            async with asyncio.timeout(limit):
                return await future
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise AnswerTimedOut(
                f"Expected query '{question.name}' to be answered within {limit:g} seconds, but no node that has workflow "
                f"'{row.workflow}' did so. See that one runs, and ask again."
            ) from None
        finally:
            del self._asked[asked.id]
            deps.spawn(self._remove(asked.id))

    async def look(self) -> None:
        """Read the answers that are awaited here."""
        if not self._asked:
            return
        try:
            answers = await self._deps.store.questions.read_answers(list(self._asked))
        except StoreError as error:
            log.debug("answers could not be looked for, which is tried again with the next heartbeat: %s", error)
            return
        for one in answers:
            future, reply = self._asked.get(one.id), read_replied(one.answer)
            if future is None or future.done():
                continue
            if reply is None:
                future.set_exception(NewerFormat("Expected to read an answer, but only a newer Holdfast can. Upgrade."))
            else:
                future.set_result(reply)

    def fail_all(self, error: HoldfastError) -> None:
        """Fail all who wait: no answer will come any more."""
        for future in self._asked.values():
            if not future.done():
                future.set_exception(error)

    async def _remove(self, question_id: str) -> None:
        try:
            await self._deps.store.questions.remove([question_id])
        except StoreError as error:
            log.debug("a question stays until it has expired: %s", error)

    # --- answering ---

    async def serve(self) -> None:
        """Answer the questions whose code is here; if that is under way, look once more after it."""
        self._serves_again = True
        if self._is_serving:
            return
        self._is_serving = True
        try:
            while self._serves_again:
                self._serves_again = False
                await self._serve_once()
        except StoreError as error:
            log.debug("questions could not be looked for, which is tried again with the next heartbeat: %s", error)
        finally:
            self._is_serving = False

    async def _serve_once(self) -> None:
        """Go through all open questions about workflows that are here, a page at a time.

        Those of a version that is not here are passed over: they hold up no others.
        """
        deps, after = self._deps, None
        workflows = deps.catalog.list_names()
        while page := await deps.store.questions.list_open(deps.clock.now(), workflows, after, PAGE):
            await self._take(page)
            if len(page) < PAGE:
                return
            after = page[-1]

    async def _take(self, page: Sequence[QuestionRow]) -> None:
        """Begin to answer those questions of a page whose code is here, and which no other node has taken."""
        deps = self._deps
        keys = dict.fromkeys((one.org, one.execution_id) for one in page)
        rows = {key: await deps.store.find_execution(*key) for key in keys}
        found: dict[str, tuple[QuestionRow, ExecutionRow | None]] = {}
        for one in page:
            row = rows[one.org, one.execution_id]
            if row is None or deps.answers.has_code(row):
                found[one.id] = one, row
        if found:
            now = deps.clock.now()
            for taken in await deps.store.questions.take(found.keys(), now, now + TAKEN_FOR):
                deps.spawn(self._answer(*found[taken]))

    async def _answer(self, asked: QuestionRow, row: ExecutionRow | None) -> None:
        try:
            if row is None:
                raise ExecutionNotFound(
                    f"Expected to query execution '{asked.execution_id}', but there is none in org '{asked.org}'."
                )
            question = read_question(asked)
            if question is None:
                return  # a newer node can read it
            reply = Replied(row.execution_id, await self._deps.answers.answer(row, question))
        except HoldfastError as error:
            reply = Replied(asked.execution_id, failure=describe_refusal(error))
        try:
            await self._deps.store.questions.answer(AnswerRow(asked.id, asked.org, codec.encode(reply)))
        except StoreError as error:
            log.debug("an answer could not be written: another node may try: %s", error)
            return
        self._deps.wake(WakeReason.REPLIES)
