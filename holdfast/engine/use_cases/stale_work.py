"""Stale work: lists of it, and its end.

A walk goes through the open human tasks first, then through the open executions. What it finds is ended by the roads that
calls take: a task is cancelled in a turn of its execution, which decides what follows, and an execution is terminated. Both
orders count only if nobody has touched the thing since the look: see `Request.judged` and `TaskCancelled.version`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from holdfast.core.envelopes import TaskCancelled, Terminate
from holdfast.core.ids import DEFAULT_ORG, check_identifier, check_person
from holdfast.core.instants import LONGEST, SECOND, Duration, Instant, Micros, to_micros
from holdfast.engine.replies import read_reply
from holdfast.engine.requests import Handled, Judged, Request
from holdfast.engine.stale_views import StaleItem, StaleList, show_length, to_stale_item
from holdfast.engine.use_cases.delivery import check_reason
from holdfast.errors import (
    AnswerTimedOut,
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    InvalidDuration,
    TaskConflict,
)
from holdfast.store.stale import StaleExecution, StaleQuery, StaleTask, StaleWork

if TYPE_CHECKING:
    from holdfast.engine.turns.pauses import KnownPauses
    from holdfast.engine.use_cases.answered_calls import AnsweredCalls
    from holdfast.engine.use_cases.delivery import Delivery

MOST_PER_PAGE: Final = 10_000
SCAN: Final = 200
"""How many rows one question to the store looks at."""
MOST_SCANS: Final = 50
"""How many such questions one page asks at most."""
AT_ONCE: Final = 50
"""How many are ended at once: they share few commits, and nobody waits longer than for one of these."""
LONGEST_ANSWER: Final = 5.0
"""Seconds for which the answer to cancelling a task is waited for: it may be that no node has the code."""
VALID: Final = 60 * SECOND
"""For how long the order to cancel a stale task counts."""
_CURSOR: Final = re.compile(r"s1\.([et])\.([0-9a-f-]{36})?")

Found: TypeAlias = StaleExecution | StaleTask


class StalePlace(msgspec.Struct, frozen=True, gc=False):
    """How far a walk has come: behind which task or execution it goes on."""

    is_task: bool = True
    id: str = ""
    org: str = ""
    """Of a task."""


class StaleScope(msgspec.Struct, frozen=True, gc=False):
    """What a walk looks for: what nobody touched for so long, in one org or in all."""

    length: Micros
    org: str | None = None


async def find_page(store: StaleWork, scope: StaleScope, place: StalePlace, now: Instant) -> _Page:
    """What is stale among the next rows behind a place."""
    query = StaleQuery(now - scope.length, now, scope.org, place.id, place.org, SCAN)
    if place.is_task:
        tasks = await store.find_stale_tasks(query)
        if tasks.last is None:
            return _Page(tasks.found, StalePlace(is_task=False))
        org, task_id = tasks.last
        return _Page(tasks.found, StalePlace(id=task_id, org=org))
    executions = await store.find_stale_executions(query)
    return _Page(executions.found, None if executions.last is None else StalePlace(is_task=False, id=executions.last))


class _Page(msgspec.Struct, frozen=True):
    found: Sequence[Found]
    following: StalePlace | None
    """None: that was all."""


class StaleOptions(msgspec.Struct, frozen=True):
    """What a caller asks for, checked."""

    scope: StaleScope
    limit: int
    place: StalePlace


def check_options(older_than: Duration, org: str, limit: int, cursor: str | None) -> StaleOptions:
    """What a caller asks for. Raises InvalidArguments or InvalidIdentifier that says what is wrong."""
    if type(limit) is not int or not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidArguments(f"Expected limit to be between 1 and {MOST_PER_PAGE:,}, but it is {limit!r}.")
    place = StalePlace()
    if cursor is not None:
        found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
        if found is None:
            raise InvalidArguments(
                f"Expected a cursor that a list of stale work returned, but it is {cursor!r}. Pass `page.cursor` unchanged."
            )
        place = StalePlace(is_task=found[1] == "t", id=found[2] or "", org=org if found[1] == "t" else "")
    return StaleOptions(StaleScope(check_length(older_than), check_identifier(org, "the org")), limit, place)


def check_length(older_than: Any) -> Micros:
    """For how long nobody may have touched what is stale. Raises InvalidArguments."""
    try:
        micros = to_micros(older_than)
    except (InvalidDuration, ValueError):
        micros = 0
    if not 0 < micros <= LONGEST:
        raise InvalidArguments(
            "Expected older_than=… to be a timedelta or a positive number of seconds, at most a hundred years, but it is "
            f"{older_than!r}. Write for instance timedelta(days=30)."
        )
    return micros


async def list_stale(store: StaleWork, options: StaleOptions, now: Instant) -> StaleList:
    """A page of what is stale."""
    found: list[Found] = []
    place: StalePlace | None = options.place
    for _ in range(MOST_SCANS):
        if place is None or len(found) >= options.limit:
            break
        page = await find_page(store, options.scope, place, now)
        room = options.limit - len(found)
        found += page.found[:room]
        place = page.following if len(page.found) <= room else _place_of(found[-1])
    return _show(found, place)


class StaleCalls:
    """Lists and ends what nobody has touched for a long time."""

    def __init__(self, store: StaleWork, delivery: Delivery, answered: AnsweredCalls, pauses: KnownPauses) -> None:
        self._store = store
        self._delivery = delivery
        self._answered = answered
        self._pauses = pauses

    async def list(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """A page of what is stale. Raises InvalidArguments."""
        return await list_stale(self._store, check_options(older_than, org, limit, cursor), self._delivery.now)

    async def end(self, options: StaleOptions, reason: str, by: str) -> StaleList:
        """End a page of what is stale; what was ended. Raises InvalidArguments."""
        check_reason(reason)
        if by:
            check_person(by)
        await self._pauses.refresh()
        settings, now = self._pauses.present.number, self._delivery.now
        ended: list[Found] = []
        place: StalePlace | None = options.place
        for _ in range(MOST_SCANS):
            if place is None or len(ended) >= options.limit:
                break
            page = await find_page(self._store, options.scope, place, now)
            room = options.limit - len(ended)
            chosen = page.found[:room]
            ended += await self._end_all(chosen, settings, reason or _describe_length(options.scope.length), by)
            place = page.following if len(chosen) == len(page.found) else _place_of(chosen[-1])
        return _show(ended, place)

    async def look(self, scope: StaleScope, place: StalePlace) -> tuple[Sequence[StaleItem], StalePlace | None]:
        """What is stale behind a place, and where to go on."""
        page = await find_page(self._store, scope, place, self._delivery.now)
        return [to_stale_item(one) for one in page.found], page.following

    async def end_found(self, scope: StaleScope, place: StalePlace) -> tuple[Sequence[StaleItem], StalePlace | None]:
        """End what is stale behind a place; what was ended, and where to go on."""
        await self._pauses.refresh()
        settings = self._pauses.present.number
        page = await find_page(self._store, scope, place, self._delivery.now)
        ended = await self._end_all(page.found, settings, _describe_length(scope.length), "")
        return [to_stale_item(one) for one in ended], page.following

    async def _end_all(self, found: Sequence[Found], settings: int | None, reason: str, by: str) -> Sequence[Found]:
        ended: list[Found] = []
        for begin in range(0, len(found), AT_ONCE):
            chosen = found[begin : begin + AT_ONCE]
            done = await asyncio.gather(
                *(
                    self._cancel(one, reason, by) if isinstance(one, StaleTask) else self._terminate(one, settings, reason)
                    for one in chosen
                )
            )
            ended += [one for one, is_done in zip(chosen, done, strict=True) if is_done]
        return ended

    async def _terminate(self, found: StaleExecution, settings: int | None, reason: str) -> bool:
        judged = Judged(found.state_version, settings)
        order = Request(found.org, Terminate(reason=reason), execution_id=found.execution_id, judged=judged)
        try:
            answer = await self._delivery.send(order)
        except (ExecutionClosed, ExecutionNotFound):
            return False
        return isinstance(answer, Handled) and answer.is_done

    async def _cancel(self, found: StaleTask, reason: str, by: str) -> bool:
        envelope = TaskCancelled(
            number=found.number,
            task_id=found.task_id,
            by=by,
            reason=reason,
            request=self._delivery.make_reply_key("task_cancel", None, found.task_id),
            version=found.version,
            until=self._delivery.now + VALID,
        )
        try:
            reply = await self._answered.reach(found.org, found.execution_id, envelope, LONGEST_ANSWER)
            read_reply(reply, Any, "the answer to cancelling a task")
        except (ExecutionClosed, ExecutionNotFound, TaskConflict, AnswerTimedOut):
            return False
        return True


def _describe_length(length: Micros) -> str:
    return f"nobody has touched it for {show_length(length)}"


def _show(found: Sequence[Found], place: StalePlace | None) -> StaleList:
    shown = StaleList(map(to_stale_item, found))
    if place is not None:
        shown.cursor = f"s1.{'t' if place.is_task else 'e'}.{place.id}"
    return shown


def _place_of(found: Found) -> StalePlace:
    if isinstance(found, StaleTask):
        return StalePlace(id=found.task_id, org=found.org)
    return StalePlace(is_task=False, id=found.execution_id)
