"""Executions that are not there, are in another state than a verb needs, or ended without a result."""

from __future__ import annotations

from typing import Any

from holdfast.errors.roots import Conflict, HoldfastError, NotFound


class ExecutionNotFound(NotFound):
    """No execution has that id in this org."""


class ExecutionClosed(Conflict):
    """The execution has ended and takes no more signals; nothing was stored."""


class WorkflowAlreadyOpen(Conflict):
    """An open execution has that workflow id, and the start policy says `fail`."""


class WorkflowAlreadyClosed(Conflict):
    """A closed execution has that workflow id, and the policy for closed ones forbids another."""


class SignalLimitReached(Conflict):
    """The execution has received as many signals as one run may."""


class LimitReached(Conflict):
    """An org has as many open executions, subscriptions or kept items as it may; nothing was stored.

    `org` names it, `what` is 'open_executions', 'subscriptions' or 'kept_items', `limit` says how many there may be.
    """

    def __init__(self, message: str, *, org: str = "", what: str = "", limit: int = 0) -> None:
        super().__init__(message)
        self.org = org
        self.what = what
        self.limit = limit


class AlreadyDone(Conflict):
    """What may be done once was done before, or nobody waits for it any more; nothing was done now."""


class ExecutionBlocked(HoldfastError):
    """The execution whose result is awaited is blocked: it takes no turns until its code was corrected and it is retried.

    `type` and `reason` are the type and the message of the error that blocked it.
    """

    def __init__(
        self, message: str, *, workflow_id: str = "", execution_id: str = "", type: str = "", reason: str = ""
    ) -> None:
        super().__init__(message)
        self.workflow_id = workflow_id
        self.execution_id = execution_id
        self.type = type
        self.reason = reason


class ResultTimedOut(HoldfastError, TimeoutError):
    """The execution did not end within the time that the caller gave it; it goes on. The message says what it waits for."""

    def __init__(self, message: str, *, workflow_id: str = "", execution_id: str = "") -> None:
        super().__init__(message)
        self.workflow_id = workflow_id
        self.execution_id = execution_id


class WorkflowError(HoldfastError):
    """An execution ended without a result."""

    def __init__(self, message: str, *, workflow_id: str = "", execution_id: str = "") -> None:
        super().__init__(message)
        self.workflow_id = workflow_id
        self.execution_id = execution_id


class WorkflowFailed(WorkflowError):
    """The workflow raised. `type`, `message`, `details` and `trace` say what, as recorded.

    `__cause__` is the exception itself, made again from the record, with the chain of those that led to it.
    """

    trace = ""
    """Where it was raised, a line per frame, as recorded."""

    def __init__(
        self, message: str, *, type: str = "", details: Any = None, workflow_id: str = "", execution_id: str = ""
    ) -> None:
        super().__init__(message, workflow_id=workflow_id, execution_id=execution_id)
        self.type = type
        self.details = details


class ExecutionTimedOut(WorkflowFailed):
    """A timeout of the workflow passed before it ended; `timeout` is 'execution' or 'run'. Its code had no say."""

    def __init__(
        self, message: str, *, timeout: str = "execution", details: Any = None, workflow_id: str = "", execution_id: str = ""
    ) -> None:
        super().__init__(
            message, type="ExecutionTimedOut", details=details, workflow_id=workflow_id, execution_id=execution_id
        )
        self.timeout = timeout


class WorkflowCancelled(WorkflowError):
    """The execution ended as cancelled: that was asked for, and its code let it happen."""


class WorkflowTerminated(WorkflowError):
    """The workflow was terminated; its code had no say."""
