"""The verbs about one execution: a handle on it, what it does, its result, signals, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

from holdfast.code.definitions import Workflow
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.engine.handles import SignalResponse, WorkflowHandle
from holdfast.engine.views import ExecutionInfo, History

R = TypeVar("R")


class ExecutionVerbs(Protocol):
    """Signals, cancels and terminates an execution, and tells what became of it."""

    async def signal_workflow(
        self,
        target: str = "",
        signal_name: str = "",
        signal_value: Any = None,
        *,
        workflow_execution_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Signal an open execution, by workflow id or execution id. Calls with the same `request_id` deliver one signal.

        `workflow_execution_id` is another name for `target`. Its code finds the `headers` by `ctx.last_signal_headers`.
        Raises ExecutionNotFound or ExecutionClosed.
        """
        ...

    async def cancel(
        self,
        target: str,
        reason: str = "",
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Ask an execution to cancel: its code sees CancelledError and may clean up. Returns False if it is closed."""
        ...

    async def terminate(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """End an execution at once, without running its code. Returns False if it is closed."""
        ...

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution, after its code was fixed. Returns False if it is not blocked."""
        ...

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        ...

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to; for handles. Raises ExecutionNotFound."""
        ...

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for. Raises ExecutionNotFound."""
        ...

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open. Raises a WorkflowError if it has none."""
        ...

    async def wait_for_result(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait until an execution ends and return its result, decoded as `hint`; `handle(…).result()` calls this.

        Raises ResultTimedOut after `timeout`; ExecutionBlocked if `on_blocked` is "raise", and the execution is blocked.
        """
        ...

    async def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status of an execution as soon as its `state_version` is another than `seen`; `handle.wait_for` calls this.

        With `seen_pauses`, the pauses that were seen as texts, also as soon as it has others. It may return sooner, with
        what was seen. Raises ExecutionNotFound, or AnswerTimedOut after `timeout`.
        """
        ...

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution. Raises ExecutionNotFound."""
        ...
