"""Waiting for the result of an execution: through `continue_as`, within a time, and not in silence if it is blocked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, get_args

from holdfast.core import events
from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, Micros, to_micros
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnBlocked
from holdfast.engine.clock import Clock, call_after
from holdfast.engine.encoded_store import show_encoded
from holdfast.engine.results import Ending, find_following, read_blocked, read_closing
from holdfast.engine.views import describe_wait
from holdfast.errors import ExecutionBlocked, HoldfastError, InvalidArguments, ResultTimedOut
from holdfast.log_events import LogEvent, tag_execution

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.failures import Failure
    from holdfast.engine.pending import FailureInfo
    from holdfast.engine.routes import Routes
    from holdfast.engine.runtime import Runtime
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.engine.views import ExecutionInfo
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

_WAYS: Final = get_args(OnBlocked)
LONGEST_LOOK: Final = 5.0
"""Real seconds for finding out what an execution waits for, once the time of its caller is over."""


class QueryStatus(Protocol):
    """Asks for the status of an execution."""

    def __call__(self, target: str, *, org: str) -> Awaitable[ExecutionInfo]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWaitsDeps:
    """What waiting for results needs of an engine."""

    node: str
    store: Store
    clock: Clock
    delivery: Delivery
    runtime: Runtime
    routes: Routes
    query_status: QueryStatus
    await_end: Callable[[asyncio.Future[events.AnyEvent]], Awaitable[events.AnyEvent]]


class ResultWaits:
    """Waits for results, for any number of callers."""

    def __init__(self, deps: ResultWaitsDeps) -> None:
        self._deps = deps
        self._store = deps.store
        self._runtime = deps.runtime

    async def wait(
        self,
        org: str,
        target: str,
        *,
        timeout: Duration | None,
        on_blocked: OnBlocked,
    ) -> Ending:
        """How an execution, or the last run of its chain, ended, once it has. Raises ResultTimedOut or ExecutionBlocked."""
        check_on_blocked(on_blocked)
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        wait = _Wait(org, target, self._deps.node, raises=on_blocked == "raise")
        if timeout is None:
            return await self._follow(wait)
        limit = to_micros(timeout, "the timeout of a result")
        loop, scope = asyncio.get_running_loop(), asyncio.timeout(None)
        try:
            async with scope:
                alarm = call_after(self._deps.clock, limit, lambda: scope.reschedule(loop.time()))
                try:
                    return await self._follow(wait)
                finally:
                    alarm.cancel()
        except TimeoutError:
            if not scope.expired():
                raise
        return await self._expire(wait, limit)

    async def _follow(self, wait: _Wait) -> Ending:
        org, target = wait.org, wait.target
        closing = self._runtime.result_waiters.recall((org, target))
        live = self._runtime.cache.get(target)
        if closing is not None and type(closing) is not events.WorkflowCompleted:
            row = await show_encoded(self._store).find_execution(org, target)  # an error names the execution as people do
            wait.workflow_id = target if row is None else row.workflow_id
        elif closing is None and live is not None and live.execution.org == org:
            wait.workflow_id, wait.execution_id = live.execution.workflow_id, target
            closing = await self._wait_for_end(wait, target, is_open=self._store.exclusive)
        following: str | None = target
        while closing is None or (following := find_following(closing)) is not None:
            row = await self._deps.delivery.find_or_raise(org, following or target, "wait for")
            wait.workflow_id, wait.execution_id = row.workflow_id, row.execution_id
            routes = self._deps.routes
            if row.closed_at is None and not (routes.has_code(row) and routes.serves(row.queue)):
                await self._log_missing(wait)
            closing = await self._wait_for_end(wait, row.execution_id, is_open=False)
        return Ending(closing, wait.workflow_id, wait.execution_id)

    async def _wait_for_end(self, wait: _Wait, execution_id: str, *, is_open: bool) -> events.AnyEvent:
        key, waiters = (wait.org, execution_id), self._runtime.result_waiters
        watcher = waiters.watch(key, wait.tell_blocked)
        try:
            # Only now that it is watched: what closed before is in the store, what closes later reaches the watcher.
            if not is_open and not self._store.exclusive:
                self._runtime.spawn(self._runtime.remote_results.look())  # one query for all who begin at the same time
            elif not is_open:
                row = await show_encoded(self._store).find_execution(wait.org, execution_id)
                if row is not None and row.closed_at is not None:
                    return waiters.recall(key) or await read_closing(self._store, execution_id)
                if row is not None and row.status == Status.BLOCKED:
                    waiters.note_blocked(*read_blocked(row))
            return await self._deps.await_end(watcher)
        finally:
            waiters.forget(key, watcher)

    async def _log_missing(self, wait: _Wait) -> None:
        info = await self._deps.query_status(wait.execution_id, org=wait.org)
        if info.missing_definition is not None:
            log.warning(
                "the result of %s is awaited, but %s; it goes on once a node has it",
                wait.shown,
                info.missing_definition,
                extra=tag_execution(LogEvent.RESULT_WAITS_FOR_CODE, info, node=self._deps.node),
            )

    async def _expire(self, wait: _Wait, limit: Micros) -> Ending:
        """The time is over: the result if it is there after all, else the error that says what is waited for."""
        what, advice = "what it waits for could not be read in time", "It goes on; wait again, or for longer."
        try:
            async with asyncio.timeout(LONGEST_LOOK):
                target = wait.execution_id
                row = await self._deps.delivery.find_or_raise(wait.org, target, "wait for")
                while row.closed_at is not None:
                    closing = await read_closing(self._store, row.execution_id)
                    if (following := find_following(closing)) is None:
                        return Ending(closing, row.workflow_id, row.execution_id)
                    row = await self._deps.delivery.find_or_raise(wait.org, following, "wait for")
                wait.workflow_id, wait.execution_id = row.workflow_id, row.execution_id
                info = await self._deps.query_status(row.execution_id, org=wait.org)
                what = describe_wait(info)
                if info.status is Status.BLOCKED:
                    advice = "It goes on once its code was corrected and retry_blocked was called."
                elif info.pauses:
                    advice = "It goes on once it is resumed."
        except TimeoutError:
            pass
        raise ResultTimedOut(
            f"Expected {wait.shown} to end within {round(limit / SECOND, 3):g} s, but {what.removesuffix('.')}. {advice}",
            workflow_id=wait.workflow_id,
            execution_id=wait.execution_id,
        )


class _Wait:
    """One call of `result()`: whom it waits for at present, and what it does if that is blocked."""

    def __init__(self, org: str, target: str, node: str, *, raises: bool) -> None:
        self.org = org
        self.target = target
        self._node = node
        self.workflow_id = self.execution_id = target
        self._raises = raises

    @property
    def shown(self) -> str:
        """The execution as messages name it."""
        return f"execution '{self.workflow_id}' ({self.execution_id})"

    def tell_blocked(self, execution: Execution, failure: Failure) -> HoldfastError | None:
        """The error that ends the wait for a blocked execution; None, and a record in the log, if it goes on."""
        return tell_blocked(execution, failure, self._node, raises=self._raises)


def check_on_blocked(on_blocked: OnBlocked) -> None:
    """Raises InvalidArguments if it is no way to treat blocked executions."""
    if on_blocked not in _WAYS:
        raise InvalidArguments(f"Expected on_blocked to be 'wait' or 'raise', but it is {on_blocked!r}.")


def tell_blocked(
    execution: Execution | ExecutionInfo, failure: Failure | FailureInfo, node: str | None = None, *, raises: bool
) -> ExecutionBlocked | None:
    """The error that ends a wait for a blocked execution; None, and a record in the log, if the wait goes on."""
    shown = f"execution '{execution.workflow_id}' ({execution.execution_id})"
    if raises:
        return ExecutionBlocked(
            f"Expected {shown} to return a result, but it is blocked by {failure.type}: {failure.message} "
            "Correct the code, then call retry_blocked.",
            workflow_id=execution.workflow_id,
            execution_id=execution.execution_id,
            type=failure.type,
            reason=failure.message,
        )
    log.warning(
        "the result of %s is awaited, but it is blocked by %s; it goes on once its code was corrected and it is retried",
        shown,
        failure.type,
        extra=tag_execution(LogEvent.RESULT_WAITS_FOR_BLOCKED, execution, node=node),
    )
    return None
