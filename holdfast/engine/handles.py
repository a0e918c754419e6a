"""A handle on one execution: everything that can be done with it, without naming it again."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnBlocked
from holdfast.core.shown_values import ShownValue
from holdfast.engine.views import describe_wait
from holdfast.engine.wait_time import WaitTime
from holdfast.errors import AnswerTimedOut, ExecutionClosed, InvalidArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.code.definitions import Workflow
    from holdfast.engine.incident_views import IncidentList
    from holdfast.engine.views import ExecutionInfo, History

R = TypeVar("R")

FOLLOWING_PAUSE: Final = 0.05
"""Seconds between two looks for the next run of an execution whose last one has just closed."""


class SignalResponse(ShownValue, frozen=True):
    """A signal was accepted. The sequence is its position in the history; None while it waits in the inbox.

    If it is part of a transaction of the caller, its receiver is found after the commit: then the id is empty.
    """

    workflow_execution_id: str
    signal_event_sequence: int | None


class SignalWithStartResponse(ShownValue, frozen=True):
    """A signal was accepted by an execution that existed or was created for it.

    If it is part of a transaction of the caller, that is known only after the commit: then `workflow_created` is None, and
    the id is the one that the execution gets if it is created.
    """

    workflow_execution_id: str
    workflow_created: bool | None
    signal_event_sequence: int | None


class ExecutionVerbs(Protocol):
    """What a handle asks of an engine, or of whatever else reaches executions: each verb with the id of one."""

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str) -> str:
        """The id of the execution that a start in a caller's transaction led to. Raises ExecutionNotFound."""
        ...

    async def wait_for_result(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait until an execution ends and return its result, decoded as `hint`."""
        ...

    async def query_status(self, target: str, *, org: str) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        ...

    async def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status of an execution as soon as its version or its pauses are others than those seen, or sooner."""
        ...

    async def history(self, target: str, *, org: str) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        ...

    async def signal_workflow(
        self,
        target: str,
        signal_name: str,
        signal_value: Any = None,
        *,
        org: str,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Signal an open execution, once per `request_id`. Raises ExecutionNotFound or ExecutionClosed."""
        ...

    async def query(
        self, target: str, name: str, *args: Any, org: str, timeout: Duration | None = None, hint: Any = Any
    ) -> Any:
        """Ask a query handler of an execution; what it returns, read as `hint`."""
        ...

    async def update(
        self,
        target: str,
        name: str,
        value: Any = None,
        *,
        org: str,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of an open execution; what it returns, read as `hint`."""
        ...

    async def variables(
        self, target: str, *, scope: str | None = None, org: str, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """The variables of a process, or those of one of its elements."""
        ...

    async def set_variables(
        self,
        target: str,
        variables: Mapping[str, Any],
        *,
        scope: str | None = None,
        local: bool = False,
        org: str,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Set variables of an open process."""
        ...

    async def incidents(self, *, target: str | None = None, org: str, limit: int = 100) -> IncidentList:
        """List the open incidents of an execution."""
        ...

    async def resolve_incident(
        self,
        target: str,
        number: int | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        org: str,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Let an open process try again where something went wrong."""
        ...

    async def cancel(
        self, target: str, reason: str = "", *, org: str, request_id: str | None = None, connection: Any = None
    ) -> bool:
        """Ask an execution to cancel; False if it is closed."""
        ...

    async def terminate(self, target: str, reason: str = "", *, org: str, request_id: str | None = None) -> bool:
        """End an execution at once; False if it is closed."""
        ...

    async def pause(self, target: str, reason: str = "", by: str = "", *, org: str, request_id: str | None = None) -> bool:
        """Let an execution take no turns until it is resumed; False if it is closed, blocked, or paused already."""
        ...

    async def resume(self, target: str, *, org: str, request_id: str | None = None) -> bool:
        """Let a paused execution go on; False if it is not paused."""
        ...


class WorkflowHandle(Generic[R]):
    """A handle on one execution: by its execution id or, if that is not known, on the newest one of a workflow id.

    The handle of a start in a transaction of the caller can be used after the commit. Its `execution_id` is the one that the
    execution gets if it is created; `created` is None until the handle was first used.
    """

    def __init__(
        self,
        engine: ExecutionVerbs,
        org: str,
        workflow_id: str,
        execution_id: str | None = None,
        *,
        created: bool | None = False,
        hint: Any = Any,
    ) -> None:
        self._engine = engine
        self._hint = hint
        self.org = org
        self.workflow_id = workflow_id
        self.execution_id = execution_id
        self.created = created
        """Whether the start that gave this handle made the execution."""

    @property
    def _address(self) -> str:
        """The id by which it is reached as far as is known: one that is not created yet, by workflow id."""
        return self.workflow_id if self.created is None or self.execution_id is None else self.execution_id

    async def _find(self) -> str:
        """The id by which it is reached, certainly."""
        if self.created is None and self.execution_id is not None:
            started = await self._engine.find_started(self.workflow_id, self.execution_id, org=self.org)
            self.created, self.execution_id = started == self.execution_id, started
        return self._address

    async def result(
        self,
        *,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> R:
        """Wait for the result, through `continue_as` and retries.

        Raises WorkflowFailed (ExecutionTimedOut is one), WorkflowCancelled or WorkflowTerminated. After `timeout` (seconds
        or a timedelta) it raises ResultTimedOut, which is a TimeoutError, and says what the execution waits for; the
        execution goes on. If the execution is or becomes blocked, `on_blocked="raise"` raises ExecutionBlocked; `"wait"`
        logs it once and waits. That is the default, but for engines of `holdfast.testing`.
        """
        value: R = await self._engine.wait_for_result(
            await self._find(), self._hint, org=self.org, timeout=timeout, on_blocked=on_blocked
        )
        return value

    async def status(self) -> ExecutionInfo:
        """The present status of the execution, what it waits for, and its times."""
        return await self._engine.query_status(await self._find(), org=self.org)

    async def wait_for(
        self, predicate: Callable[[ExecutionInfo], object], *, timeout: Duration | None = None
    ) -> ExecutionInfo:
        """Wait until the status of the execution is as wanted, through `continue_as` and retries; that status.

        `predicate` gets an ExecutionInfo, now and after each change, whichever node makes it; nothing is polled. Watched
        are turns and pauses; what comes into `inbox` without a turn is not. Raises ExecutionClosed if the execution ends
        first, AnswerTimedOut after `timeout` (seconds or a timedelta).
        """
        return await _wait_for(self, predicate, timeout)

    async def history(self) -> History:
        """Every event of the execution so far, in order."""
        return await self._engine.history(await self._find(), org=self.org)

    async def signal(
        self,
        name: str,
        value: Any = None,
        *,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Send the execution a signal; with `connection`, as part of the caller's own transaction."""
        target = await self._find() if connection is None else self._address
        return await self._engine.signal_workflow(
            target, name, value, org=self.org, request_id=request_id, headers=headers, connection=connection
        )

    async def query(self, name: str, *args: Any, timeout: Duration | None = None, hint: Any = Any) -> Any:
        """Ask a query handler of the execution, open or closed; what it returns, read as `hint`. Changes nothing.

        A handle that `start` gave asks the run that it was made for, also after that continued as another; the handle of a
        workflow id, `engine.handle(…)`, asks the newest run.
        """
        return await self._engine.query(await self._find(), name, *args, org=self.org, timeout=timeout, hint=hint)

    async def update(
        self,
        name: str,
        value: Any = None,
        *,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of the execution; what it returns, read as `hint`, after what it did is durable."""
        return await self._engine.update(
            await self._find(),
            name,
            value,
            org=self.org,
            request_id=request_id,
            headers=headers,
            timeout=timeout,
            hint=hint,
        )

    async def variables(self, *, scope: str | None = None, timeout: Duration | None = None) -> dict[str, Any]:
        """The variables of the process, open or closed, or those of an element of it (`scope`)."""
        return await self._engine.variables(await self._find(), scope=scope, org=self.org, timeout=timeout)

    async def set_variables(
        self,
        variables: Mapping[str, Any],
        *,
        scope: str | None = None,
        local: bool = False,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Set variables of the process, as `engine.set_variables` does; it returns when that is durable."""
        target = await self._find()
        await self._engine.set_variables(
            target, variables, scope=scope, local=local, org=self.org, request_id=request_id, timeout=timeout
        )

    async def incidents(self, *, limit: int = 100) -> IncidentList:
        """List the open incidents of the process."""
        return await self._engine.incidents(target=await self._find(), org=self.org, limit=limit)

    async def resolve_incident(
        self,
        number: int | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Let the process try again where something went wrong, after `variables` were set; without a number, everywhere."""
        target = await self._find()
        await self._engine.resolve_incident(
            target, number, variables=variables, org=self.org, request_id=request_id, timeout=timeout
        )

    async def cancel(self, reason: str = "", *, request_id: str | None = None, connection: Any = None) -> bool:
        """Ask the execution to cancel; False if it is closed. With `connection`, as part of the caller's own transaction."""
        target = await self._find() if connection is None else self._address
        return await self._engine.cancel(target, reason, org=self.org, request_id=request_id, connection=connection)

    async def terminate(self, reason: str = "", *, request_id: str | None = None) -> bool:
        """End the execution at once, without running its code; False if it is closed."""
        return await self._engine.terminate(await self._find(), reason, org=self.org, request_id=request_id)

    async def pause(self, reason: str = "", by: str = "", *, request_id: str | None = None) -> bool:
        """Let the execution take no turns until it is resumed; False if it is closed, blocked, or paused already."""
        return await self._engine.pause(await self._find(), reason, by, org=self.org, request_id=request_id)

    async def resume(self, *, request_id: str | None = None) -> bool:
        """Let the execution go on after a pause; False if it is not paused."""
        return await self._engine.resume(await self._find(), org=self.org, request_id=request_id)

    def bind(self, verbs: ExecutionVerbs) -> WorkflowHandle[R]:
        """The same handle, which asks somebody else."""
        return WorkflowHandle(verbs, self.org, self.workflow_id, self.execution_id, created=self.created, hint=self._hint)

    def __repr__(self) -> str:
        return f"<handle of {self.workflow_id!r} ({self.execution_id or 'newest'})>"


async def _wait_for(
    handle: WorkflowHandle[Any], predicate: Callable[[ExecutionInfo], object], timeout: Duration | None
) -> ExecutionInfo:
    if not callable(predicate):
        raise InvalidArguments(f"Expected a function of the execution's status, but got {predicate!r}. Pass a function.")
    if inspect.iscoroutinefunction(predicate):
        raise _make_async_error()
    found = getattr(handle._engine, "_wait_time", None)
    time = found if isinstance(found, WaitTime) else WaitTime()  # a client of an engine waits in real time
    ends_at = None if timeout is None else time.read() + to_micros(timeout, "the timeout") / SECOND
    target, before = await handle._find(), ""
    info: ExecutionInfo | None = None
    seen: int | None = None
    seen_pauses: list[str] | None = None
    while True:
        left = None if ends_at is None else max(0.0, ends_at - time.read())
        try:
            info = await handle._engine.wait_for_change(target, seen, seen_pauses=seen_pauses, org=handle.org, timeout=left)
        except AnswerTimedOut as error:
            if info is None or timeout is None:
                raise
            raise _make_late(info, to_micros(timeout) / SECOND) from error
        fits = predicate(info)
        if inspect.isawaitable(fits):
            if inspect.iscoroutine(fits):
                fits.close()
            raise _make_async_error()
        if fits:
            return info
        target, seen, seen_pauses = info.execution_id, info.state_version, [str(one) for one in info.pauses]
        if info.closed_at is None:
            continue
        if info.status is not Status.CONTINUED and info.retried_as is None:
            raise ExecutionClosed(
                f"Expected execution '{info.workflow_id}' ({info.execution_id}) to come to the wanted status, but it is "
                f"{info.status}. Look at its history."
            )
        if before == info.execution_id:
            await asyncio.sleep(FOLLOWING_PAUSE)  # the run that follows is about to be there
        target, seen, seen_pauses, before = info.workflow_id, None, None, info.execution_id


def _make_async_error() -> InvalidArguments:
    return InvalidArguments(
        "Expected the predicate of wait_for to be a plain function, but it is async, so that its answer comes too late. "
        "Write for instance wait_for(lambda info: info.state == {'step': 'paid'}); what it needs is in the ExecutionInfo."
    )


def _make_late(info: ExecutionInfo, seconds: float) -> AnswerTimedOut:
    return AnswerTimedOut(
        f"Expected execution '{info.workflow_id}' ({info.execution_id}) to come to the wanted status within {seconds:g} s, "
        f"but it did not: {describe_wait(info).removesuffix('.')}. It goes on; wait again, or for longer."
    )


def make_handle(verbs: ExecutionVerbs, target: str, org: str, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
    """A handle on an execution, by workflow id or execution id; `workflow` types its result. Raises InvalidIdentifier."""
    check_identifier(target, "the id of an execution")
    return WorkflowHandle(verbs, org, target, hint=Any if workflow is None else workflow.result_hint)
