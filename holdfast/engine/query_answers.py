"""Answers to queries of executions whose code is here: the history is replayed, its handler asked, the program thrown away.

A handler runs on the loop, up to the `turn_limit`. So that one which does not return holds up others no longer than that:

- After one that took long, no handler is asked for a moment (`REST`), in which everybody else's work goes on. Queries
  whose replay ends in that moment are asked after it, in their order.
- A question whose handler was interrupted is refused at once for a while (`REFUSED_FOR`): as long as the execution takes no
  turn and has the same code, the handler would not return either. Other questions to the execution are asked.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core.instants import to_datetime
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import from_row
from holdfast.errors import ExecutionNotBegun, HoldfastError, QueryFailed, TurnTooLong, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.payloads import Payload
    from holdfast.core.program import Program
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.store.questions import Question
    from holdfast.store.rows import ExecutionRow

LONG: Final = 0.5
"""Seconds after which a handler took long."""
REST: Final = 0.1
"""Seconds for which no handler is asked after one that took long."""
REFUSED_FOR: Final = 60.0
"""Seconds for which a question is refused whose handler was interrupted."""
MOST_REFUSED: Final = 1_000
"""How many questions are remembered whose handlers were interrupted."""


class QueryAnswers:
    """Answers queries, from this node's callers and from other nodes."""

    def __init__(self, prefetch: HistoryPrefetch, catalog: Catalog) -> None:
        self._prefetch = prefetch
        self._catalog = catalog
        self._interrupted: dict[_Asked, _Interruption] = {}
        """Questions whose handlers were interrupted, the oldest first."""
        self._rest: asyncio.Event | None = None
        """Set at the end of the moment in which no handler is asked; None: it is none."""

    def has_code(self, row: ExecutionRow) -> bool:
        """Whether the code that takes the turns of an execution is here, whichever queues this node takes from."""
        return self._find_definition(row) is not None

    async def answer(self, row: ExecutionRow, question: Question) -> Payload:
        """What an execution answers whose code is here. Raises ExecutionNotBegun, QueryFailed and their like."""
        if not has_begun(row):
            raise make_not_begun(row, question.name)
        asked = _Asked(row.execution_id, question.name, bytes(question.args.data))
        await self._wait_for_rest()
        self._check_interrupted(asked, row)
        try:
            return await self._prefetch.replay_to_ask(
                row, lambda program: self._ask(program, asked, row, question), self._wait_for_rest
            )
        except UnknownWorkflow as error:
            raise QueryFailed(error.message, type="UnknownWorkflow") from None

    def _ask(self, program: Program, asked: _Asked, row: ExecutionRow, question: Question) -> Payload:
        self._check_interrupted(asked, row)
        began = time.monotonic()
        try:
            return program.answer_query(question.name, question.args)
        except QueryFailed as error:
            if error.type == TurnTooLong.__name__:
                self._note_interrupted(asked, row)
                self._begin_rest()
            raise
        finally:
            if time.monotonic() - began > LONG:
                self._begin_rest()

    # --- rests ---

    async def _wait_for_rest(self) -> None:
        """Wait until handlers may be asked. Those who wait come in their order, and before those who begin to wait."""
        while self._rest is not None:
            await self._rest.wait()

    def _begin_rest(self) -> None:
        if self._rest is not None:
            return
        self._rest = asyncio.Event()
        asyncio.get_running_loop().call_later(REST, self._end_rest)

    def _end_rest(self) -> None:
        if self._rest is not None:
            self._rest.set()
        self._rest = None

    # --- handlers that did not return ---

    def _note_interrupted(self, asked: _Asked, row: ExecutionRow) -> None:
        self._interrupted.pop(asked, None)
        at, definition = time.monotonic(), self._find_definition(row)
        self._interrupted[asked] = _Interruption(row.state_version, definition, at)
        while len(self._interrupted) > MOST_REFUSED or at - next(iter(self._interrupted.values())).at > REFUSED_FOR:
            del self._interrupted[next(iter(self._interrupted))]

    def _check_interrupted(self, asked: _Asked, row: ExecutionRow) -> None:
        """Raises QueryFailed if the handler was interrupted with the same arguments at this version, by the same code."""
        known = self._interrupted.get(asked)
        if known is None:
            return
        passed = time.monotonic() - known.at
        is_same = known.version == row.state_version and known.definition is self._find_definition(row)
        if not is_same or passed > REFUSED_FOR:
            del self._interrupted[asked]
            return
        raise QueryFailed(
            f"Expected query '{asked.query}' of execution '{row.workflow_id}' ({row.execution_id}) to be answered, but "
            f"{passed:.0f} seconds ago its handler did not return within the turn_limit, and the execution and its code are "
            f"as they were. Let the handler do less; it is asked again after {REFUSED_FOR:g} seconds, a turn or a change "
            "of the code.",
            type=TurnTooLong.__name__,
        )

    def _find_definition(self, row: ExecutionRow) -> Definition | None:
        try:
            return self._catalog.find_for(from_row(row))
        except HoldfastError:
            return None  # a newer Holdfast wrote it


class _Asked(msgspec.Struct, frozen=True):
    """A question to one execution."""

    execution_id: str
    query: str
    args: bytes


class _Interruption(msgspec.Struct, frozen=True):
    """When a handler was interrupted, at which version of the execution and in which code."""

    version: int
    definition: Definition | None
    at: float


def has_begun(row: ExecutionRow) -> bool:
    """Whether the code of an execution has run, so that it could register handlers; or never will."""
    if row.closed_at is not None:
        return True
    try:
        return row.sequence > 0 and from_row(row).details.start_at is None
    except HoldfastError:
        return True  # a newer Holdfast wrote it


def make_not_begun(row: ExecutionRow, query: str, why: str = "") -> ExecutionNotBegun:
    """The error of a query before the first step of the code, with what is known of the reason."""
    known = why or describe_delay(row) or "no node has taken its first turn yet"
    return ExecutionNotBegun(
        f"Expected query '{query}' to be answered, but the code of execution '{row.workflow_id}' ({row.execution_id}) has "
        f"not begun, so that it has no handlers yet: {known}. "
        "Ask again after its first turn, for which handle.wait_for can wait."
    )


def describe_delay(row: ExecutionRow) -> str:
    """Why the row says that an execution has not begun: its start is delayed, or it is blocked; empty if it does not."""
    details = from_row(row).details
    if row.status == Status.BLOCKED:
        return "it is blocked" + (f" ({details.last_error.message})" if details.last_error is not None else "")
    if details.start_at is not None:
        return f"its start is delayed until {to_datetime(details.start_at):%Y-%m-%d %H:%M:%S} UTC"
    return ""
