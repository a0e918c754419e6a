"""How executions ended, for those who wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from holdfast.core import codec, events, payloads
from holdfast.core.events import AnyEvent
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, list_told
from holdfast.core.lifecycle import Status
from holdfast.core.rebuilt_errors import KnownErrors, find_no_errors, rebuild
from holdfast.core.signals import missing_error
from holdfast.engine.rows import from_row, to_turns
from holdfast.errors import (
    CorruptStore,
    ExecutionTimedOut,
    HoldfastError,
    NewerFormat,
    StoreError,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowTerminated,
)
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

log = logging.getLogger("holdfast.engine")

MOST_RECENT: Final = 10_000
LARGEST_KEPT: Final = 4_096


ExecutionKey: TypeAlias = tuple[str, str]
"""(org, execution id): an org never hears of another's executions."""


TellBlocked: TypeAlias = Callable[[Execution, Failure], HoldfastError | None]
"""Called once if the awaited execution is blocked, with the reason; the error that it returns ends the wait."""


class Ending(msgspec.Struct, frozen=True):
    """How an execution ended: the event that closed it, and whose event it is."""

    closing: AnyEvent
    workflow_id: str
    execution_id: str

    def to_value(self, hint: Any = Any, find_errors: Callable[[], KnownErrors] = find_no_errors) -> Any:
        """The result, decoded as `hint`. Raises a WorkflowError that says how it ended, if it has none."""
        return to_value(self.closing, hint, self.workflow_id, self.execution_id, find_errors)


class ResultWaiters:
    """Who waits for which execution's end, and the ends of the most recent ones."""

    def __init__(self) -> None:
        self._watchers: dict[ExecutionKey, list[asyncio.Future[AnyEvent]]] = {}
        self._untold: WeakKeyDictionary[asyncio.Future[AnyEvent], TellBlocked] = WeakKeyDictionary()
        """Whom to tell if the execution is blocked that they wait for."""
        self._recent: OrderedDict[ExecutionKey, AnyEvent] = OrderedDict()

    def note(self, key: ExecutionKey, closing: AnyEvent) -> None:
        """Give the closing event of an execution, once it is committed, to those who wait for it."""
        watchers = self._watchers.pop(key, None)
        if watchers is not None:
            for future in watchers:
                if not future.done():
                    future.set_result(closing)
        if _size(closing) <= LARGEST_KEPT:
            self._recent[key] = closing
            if len(self._recent) > MOST_RECENT:
                self._recent.popitem(last=False)

    def recall(self, key: ExecutionKey) -> AnyEvent | None:
        """The closing event of an execution that closed a short while ago; None if it is not kept."""
        return self._recent.get(key)

    def watch(self, key: ExecutionKey, tell_blocked: TellBlocked | None = None) -> asyncio.Future[AnyEvent]:
        """A future of the closing event of an execution. Call `forget` when nobody awaits it any more."""
        future: asyncio.Future[AnyEvent] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(key, []).append(future)
        if tell_blocked is not None:
            self._untold[future] = tell_blocked
        return future

    def wants_blocked(self, key: ExecutionKey) -> bool:
        """Whether somebody who waits for an execution has not been told yet that it is blocked."""
        return any(future in self._untold for future in self._watchers.get(key, ()))

    def note_blocked(self, execution: Execution, failure: Failure) -> None:
        """Tell those who wait for an execution that it is blocked, each of them once."""
        for future in self._watchers.get((execution.org, execution.execution_id), ()):
            tell = self._untold.pop(future, None)
            error = None if tell is None else tell(execution, failure)
            if error is not None and not future.done():
                future.set_exception(error)

    def forget(self, key: ExecutionKey, future: asyncio.Future[AnyEvent]) -> None:
        """Drop a future that `watch` gave out: nobody awaits it any more."""
        watchers = self._watchers.get(key)
        if watchers is not None and future in watchers:
            watchers.remove(future)
            if not watchers:
                del self._watchers[key]

    def forget_recent(self) -> None:
        """Forget how executions ended: the database went back, and they may end otherwise."""
        self._recent.clear()

    def fail(self, key: ExecutionKey, error: HoldfastError) -> None:
        """Fail those who wait for the end of an execution, which will not come."""
        for future in self._watchers.pop(key, ()):
            if not future.done():
                future.set_exception(error)

    def fail_all(self, error: HoldfastError) -> None:
        """Fail everybody who waits: the engine ends."""
        for watchers in self._watchers.values():
            for future in watchers:
                if not future.done():
                    future.set_exception(error)
        self._watchers.clear()

    @property
    def watched(self) -> list[ExecutionKey]:
        """The executions that somebody waits for."""
        return list(self._watchers)


async def read_closing(store: Store, execution_id: str) -> AnyEvent:
    """How a closed execution ended. Raises CorruptStore if its history does not say."""
    last = await store.load_last_turn(execution_id)
    if last is None:
        raise CorruptStore(f"Expected execution {execution_id} to have a history, but it has none. Run `holdfast check`.")
    closing = to_turns([last])[0].events[-1]
    # Decoded by itself: it is kept for a while, and what it holds would keep all that was decoded with it.
    return codec.decode_events(codec.encode([closing]), codec.SCHEMA)[0]


class RemoteResults:
    """Finds out about executions that other nodes closed, for those who wait here."""

    def __init__(self, store: Store, waiters: ResultWaiters) -> None:
        self._store = store
        self._waiters = waiters
        self._is_busy = False
        self._again = False

    async def look(self) -> None:
        """One query for all that somebody waits for, and none if nobody does. Many calls at once are at most two."""
        if self._is_busy:
            self._again = True
            return
        self._is_busy = True
        try:
            self._again = True
            while self._again and self._waiters.watched:
                self._again = False
                await self._look()
        except StoreError:
            return  # the next heartbeat looks again
        finally:
            self._is_busy = False

    async def look_for_missing(self) -> None:
        """Tell those who wait for executions that are gone, since the database went back or they were removed."""
        watched = self._waiters.watched
        if not watched:
            return
        try:
            transaction = await self._store.begin()
            try:
                rows = await transaction.read_rows(dict.fromkeys(execution_id for _, execution_id in watched))
            finally:
                await transaction.rollback()
        except StoreError:
            return  # the next heartbeat looks again
        for org, execution_id in watched:
            if execution_id not in rows:
                self._waiters.fail((org, execution_id), missing_error(org, execution_id, "wait for"))

    async def _look(self) -> None:
        orgs = {execution_id: org for org, execution_id in self._waiters.watched}
        for execution_id, is_closed in (await self._store.find_settled(list(orgs))).items():
            if not is_closed:
                await self._tell_blocked(orgs[execution_id], execution_id)
                continue
            try:
                closing = await read_closing(self._store, execution_id)
            except (CorruptStore, NewerFormat):
                if not (await self._store.find_settled([execution_id])).get(execution_id):
                    continue  # the database went back in between: it is not closed any more
                log.exception(
                    "execution %s closed, but its result cannot be read; run `holdfast check`",
                    execution_id,
                    extra=tag(LogEvent.RESULT_NOT_READ, org=orgs[execution_id], execution_id=execution_id),
                )
                continue
            self._waiters.note((orgs[execution_id], execution_id), closing)

    async def _tell_blocked(self, org: str, execution_id: str) -> None:
        if not self._waiters.wants_blocked((org, execution_id)):
            return
        row = await self._store.find_execution(org, execution_id)
        if row is None or row.status != Status.BLOCKED:
            return  # it was retried meanwhile
        try:
            self._waiters.note_blocked(*read_blocked(row))
        except (CorruptStore, NewerFormat):
            return  # a node that can read it tells of it


def read_blocked(row: ExecutionRow) -> tuple[Execution, Failure]:
    """A blocked execution, and why it is. Raises CorruptStore or NewerFormat."""
    execution = from_row(row)
    return execution, execution.details.last_error or Failure(type="unknown", message="")


def find_following(closing: AnyEvent) -> str | None:
    """The execution id of the run that follows one that ended: it continued, or it failed and is retried."""
    if isinstance(closing, events.ContinuedAs):
        return closing.execution_id
    return closing.retried_as if isinstance(closing, events.WorkflowFailed | events.WorkflowTimedOut) else None


def to_value(
    closing: AnyEvent,
    hint: Any,
    workflow_id: str,
    execution_id: str,
    find_errors: Callable[[], KnownErrors] = find_no_errors,
) -> Any:
    """The result of an execution. Raises the error that says how it ended.

    `find_errors`: where the classes of what it raised are looked for.
    """
    who = f"execution '{workflow_id}'" + ("" if workflow_id == execution_id else f" ({execution_id})")
    if isinstance(closing, events.WorkflowCompleted):
        return payloads.decode(closing.result, hint, f"the result of {who}")
    if isinstance(closing, events.WorkflowFailed):
        failure = closing.failure
        told = "; the first is ".join(f"{one.type}: {one.message}" for one in list_told(failure))
        text = f"Expected {who} to return a result, but it raised {told}"
        raise rebuild(WorkflowFailed, text, failure, find_errors(), workflow_id=workflow_id, execution_id=execution_id)
    if isinstance(closing, events.WorkflowTimedOut):
        raise ExecutionTimedOut(
            f"Expected {who} to return a result, but {closing.failure.message}.",
            timeout=str(closing.timeout),
            workflow_id=workflow_id,
            execution_id=execution_id,
        )
    if isinstance(closing, events.WorkflowCancelled):
        because = f": {closing.reason}" if closing.reason else ""
        raise WorkflowCancelled(
            f"Expected {who} to return a result, but it was cancelled{because}.",
            workflow_id=workflow_id,
            execution_id=execution_id,
        )
    reason = closing.reason if isinstance(closing, events.WorkflowTerminated) else ""
    raise WorkflowTerminated(
        f"Expected {who} to return a result, but it was terminated: {reason or 'no reason given'}.",
        workflow_id=workflow_id,
        execution_id=execution_id,
    )


def _size(closing: AnyEvent) -> int:
    payload = closing.result if isinstance(closing, events.WorkflowCompleted) else None
    return len(bytes(payload.data)) if payload is not None else 0
