"""Every error that Holdfast raises, in one tree.

    HoldfastError
    ├── InvalidRequest              what was asked for cannot be right; nothing was stored
    │   ├── InvalidIdentifier       a workflow id, name, org or queue
    │   ├── InvalidDuration         negative, absurd, not a number
    │   ├── InvalidTime             a date-time without a zone
    │   ├── InvalidArguments        arguments that do not fit the function's signature or hints
    │   ├── InvalidDefinition       a function that cannot be a workflow or an activity
    │   │   └── DuplicateName
    │   ├── InvalidConfiguration    an engine option
    │   │   └── NodeNameTaken       another process works under it
    │   ├── UnknownWorkflow
    │   ├── UnknownActivity
    │   ├── FeelError               an expression that cannot be evaluated at all
    │   │   ├── FeelSyntaxError     it cannot be parsed: line, column and what was expected
    │   │   └── FeelLimitExceeded   it would take too many steps, or too much memory
    │   ├── DmnError                a decision model that cannot be used; all that is wrong with it
    │   └── PayloadError
    │       ├── EncodingError       a value that JSON cannot hold, or that would not come back as it was
    │       │   └── InvalidResult   the result of a function does not fit its return hint
    │       ├── DecodingError       JSON that does not fit the type hint
    │       ├── CodecError          what a codec cannot encode or decode
    │       └── PayloadTooLarge
    ├── NotFound
    │   └── ExecutionNotFound
    ├── Conflict                    the request is fine, the moment is not; nothing was stored
    │   ├── ExecutionClosed
    │   ├── WorkflowAlreadyOpen
    │   ├── WorkflowAlreadyClosed
    │   ├── SignalLimitReached
    │   └── AlreadyDone             what may happen once has happened
    ├── StoreError
    │   ├── StoreOwned              another process owns the database
    │   ├── NotOurDatabase
    │   │   └── DatabaseNotFound    there is none at that place
    │   ├── NewerDatabase
    │   ├── OlderDatabase           and nobody asked for an upgrade
    │   ├── StoreMoved              to another database; or that is under way
    │   ├── CorruptStore            damaged, or contradicting itself
    │   ├── NewerFormat             sound, but only a newer Holdfast can read it
    │   │   └── CodecMissing        values that only the codec which encoded them can decode
    │   └── StoreUnavailable        read-only, disk full, connection lost, timed out
    │       └── OutcomeUnknown      the commit may or may not have happened
    ├── ExecutionBlocked            raised by `result()` if it is not to wait for a blocked execution
    ├── ResultTimedOut              raised by `result(timeout=…)`; also a TimeoutError
    ├── EngineClosed
    ├── ConnectionRefused           what takes calls for a database is another user's, or not what it should be
    ├── WrongEventLoop              an engine was awaited in another loop than its own
    ├── DeterminismError
    │   ├── NonDeterminismError     replay issued another command than history records
    │   ├── ForbiddenInWorkflow     the guard caught a clock, random source, file, socket, thread
    │   ├── TurnTooLong             a turn that does not come to rest
    │   └── TurnTooLarge            a turn that would write more history than one may
    ├── WorkflowError               how an execution ended, raised by `result()`
    │   ├── WorkflowFailed
    │   │   └── ExecutionTimedOut   its execution_timeout or run_timeout passed
    │   ├── WorkflowCancelled
    │   └── WorkflowTerminated
    └── StepError                   what a workflow's own code can catch
        ├── ActivityError
        │   ├── ActivityFailed
        │   ├── ActivityTimedOut
        │   ├── ActivityCancelled
        │   └── ActivityLost        it runs at most once, has begun, and nobody knows how it ended
        ├── ChildWorkflowFailed
        │   ├── ChildWorkflowCancelled
        │   └── ChildWorkflowTerminated
        ├── ExternalSignalFailed
        └── SideEffectFailed

    ApplicationFailure              raised by user code to name a failure's type, details and whether to retry
    RetryAfter                      raised by an activity to say when its next attempt is to begin
    SimulationFailed                a simulated run that did not end as the undisturbed one did

One formula for messages: "Expected to …, but …." and then what to do about it.
`STATUS_CODES` maps the tree to HTTP; the nearest class up the tree counts.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LONGEST_PAUSE: Final = 100 * 366 * 24 * 3600
"""In seconds; as the longest duration elsewhere."""


class HoldfastError(Exception):
    """The root of the tree; `message` says what was expected, what is the case, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(HoldfastError):
    """The request cannot be right, whenever it is made; nothing was stored."""


class InvalidIdentifier(InvalidRequest):
    """A workflow id, name, org or queue is empty, too long or has control characters."""


class InvalidDuration(InvalidRequest):
    """A duration is negative, longer than a century, or not a number."""


class InvalidTime(InvalidRequest):
    """A date-time has no zone or lies outside what can be stored."""


class InvalidArguments(InvalidRequest):
    """Arguments do not fit the function's signature or type hints."""

    unknown_keyword: str | None = None
    """The keyword that is no parameter, if that is what does not fit."""

    @classmethod
    def name_unknown(cls, keyword: str, what: str, parameters: str) -> InvalidArguments:
        """The error of a call that names a parameter which `what` does not have."""
        error = cls(f"Expected {what} to be called with {parameters}, but '{keyword}' is no parameter of it.")
        error.unknown_keyword = keyword
        return error


class InvalidDefinition(InvalidRequest):
    """A function cannot serve as a workflow or an activity."""


class DuplicateName(InvalidDefinition):
    """Two different functions claim one name."""


class InvalidConfiguration(InvalidRequest):
    """An option of the engine, the store or the command line has no such value."""


class NodeNameTaken(InvalidConfiguration):
    """Another process works under this node's name."""


class UnknownWorkflow(InvalidRequest):
    """No workflow of that name is registered here. `known` are the names that are, or the versions of `workflow`."""

    def __init__(self, message: str, *, workflow: str = "", version: str | None = None, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.workflow = workflow
        self.version = version
        """The version that was asked for, where the workflow has others."""
        self.known = tuple(known)


class UnknownActivity(InvalidRequest):
    """No activity of that name is registered here."""


class FeelError(InvalidRequest):
    """A FEEL expression cannot be evaluated at all. Most errors inside of one give null and a warning instead."""


class FeelSyntaxError(FeelError):
    """A FEEL expression cannot be parsed. `line` and `column` begin with 1; `shown` is the line with a caret below it.

    `hint` says what FEEL writes instead, where the text looks like another language; it is empty otherwise.
    """

    def __init__(
        self, message: str, *, line: int = 1, column: int = 1, shown: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.line = line
        self.column = column
        self.shown = shown
        self.expected = expected


class FeelLimitExceeded(FeelError):
    """A FEEL expression would take more steps, depth or memory than it may."""


class DmnError(InvalidRequest):
    """A decision model cannot be used. `problems` lists everything that is wrong with it."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class PayloadError(InvalidRequest):
    """A value cannot travel as a payload."""


class EncodingError(PayloadError):
    """A value cannot become a payload: JSON has no form for it, it is nested too deeply, or it would lose something."""


class InvalidResult(EncodingError):
    """What a workflow or an activity returned does not fit the return hint of its function."""


class DecodingError(PayloadError):
    """The JSON does not fit the type hint."""


class CodecError(PayloadError):
    """A payload that the engine's codec cannot encode or decode; raised by codecs, and for what they return."""


class PayloadTooLarge(PayloadError):
    """The encoded value is larger than the engine's limit."""


class NotFound(HoldfastError):
    """Nothing in the database has the id that was asked for."""


class ExecutionNotFound(NotFound):
    """No execution has that id in this org."""


class Conflict(HoldfastError):
    """The request is fine, the moment is not; nothing was stored."""


class ExecutionClosed(Conflict):
    """The execution has ended and takes no more signals; nothing was stored."""


class WorkflowAlreadyOpen(Conflict):
    """An open execution has that workflow id, and the start policy says `fail`."""


class WorkflowAlreadyClosed(Conflict):
    """A closed execution has that workflow id, and the policy for closed ones forbids another."""


class SignalLimitReached(Conflict):
    """The execution has received as many signals as one run may."""


class AlreadyDone(Conflict):
    """What may be done once was done before, or nobody waits for it any more; nothing was done now."""


class StoreError(HoldfastError):
    """The database cannot be used as asked."""


class StoreOwned(StoreError):
    """Another process owns the database file."""


class NotOurDatabase(StoreError):
    """The file is no Holdfast database."""


class DatabaseNotFound(NotOurDatabase):
    """There is no database at that place yet: no file, an empty one, or a database in which no engine made tables."""


class NewerDatabase(StoreError):
    """A newer Holdfast wrote the database."""


class OlderDatabase(StoreError):
    """An older Holdfast wrote the database, and it is not to be upgraded here."""


class StoreMoved(StoreError):
    """All that the database holds was moved elsewhere, or a transfer is under way."""


class CorruptStore(StoreError):
    """What is stored contradicts itself or cannot be decoded."""


class NewerFormat(StoreError):
    """A newer Holdfast wrote what is stored; this one cannot read it, and leaves it alone."""


class CodecMissing(NewerFormat):
    """Values of an execution are encoded, and this engine's codec cannot decode them: it leaves the execution alone."""


class StoreFault(Enum):
    """What a StoreUnavailable says about the work that was not taken."""

    OUT_OF_REACH = auto()
    """The connection broke, or the database takes no writes at all: mostly that has nothing to do with the work."""
    SHORTAGE = auto()
    """The disk is full, or memory is short. A smaller work may still fit."""
    TIMED_OUT = auto()
    """The database was there, and gave this very work up because it took too long."""
    CODEC = auto()
    """The codec raised or did not answer: nobody is to blame for that but the codec, whatever it was asked for."""


class StoreUnavailable(StoreError):
    """The database cannot take a write now: read-only, full, out of reach, too slow, or its codec is away (`fault`)."""

    def __init__(self, message: str, *, fault: StoreFault = StoreFault.OUT_OF_REACH) -> None:
        super().__init__(message)
        self.fault = fault


class OutcomeUnknown(StoreUnavailable):
    """The connection broke during a commit: it may or may not have happened."""


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


class EngineClosed(HoldfastError):
    """The engine was not opened yet, or is shut down; those who wait for a result then get this too."""


class ConnectionRefused(HoldfastError):
    """A client may not speak to the process that owns a database, or cannot: it is another user's, or of another version."""


class WrongEventLoop(HoldfastError):
    """A method of an engine was awaited in another event loop than the one in which the engine was opened."""


class DeterminismError(HoldfastError):
    """Workflow code did something that a replay could not repeat."""


class NonDeterminismError(DeterminismError):
    """Replay issued another command than history records."""


class ForbiddenInWorkflow(DeterminismError):
    """Workflow code reached for a clock, a random source, a file, a socket, a process or a thread."""


class TurnTooLong(DeterminismError):
    """Workflow code did not come to rest within the bound of one turn."""


class TurnTooLarge(DeterminismError):
    """A turn would write more history than the engine's `max_turn_bytes` allows."""


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


class StepError(HoldfastError):
    """Something that the workflow asked for did not succeed.

    Built from history alone, so that `except` matches on replay as it did at first.
    `type` is the name of the original exception's class, `message` what it said, `__cause__` the exception made again.
    """

    trace = ""
    """Where the original exception was raised, a line per frame, as recorded."""

    def __init__(self, message: str, *, name: str = "", type: str = "", details: Any = None, attempt: int = 0) -> None:
        super().__init__(message)
        self.name = name
        self.type = type
        self.details = details
        self.attempt = attempt


class ActivityError(StepError):
    """An activity has no result: it failed, timed out or was cancelled."""


class ActivityFailed(ActivityError):
    """The activity raised, and no attempt is left. It is of the class that was raised too, where that is known."""


class ActivityTimedOut(ActivityError):
    """A timeout of the activity passed; `type` names which."""


class ActivityCancelled(ActivityError):
    """An older Holdfast recorded that the activity raised CancelledError; by now that is a failure, and retried."""


class ActivityLost(ActivityError):
    """An activity that runs at most once has begun, and its process ended before it reported: what it did is not known."""


class ChildWorkflowFailed(StepError):
    """The child ended without a result. Raised, or given as a value where `propagate_child_failures` is False."""


class ChildWorkflowCancelled(ChildWorkflowFailed):
    """The child ended without a result, because it was cancelled."""


class ChildWorkflowTerminated(ChildWorkflowFailed):
    """The child ended without a result, because it was terminated; its code had no say."""


class ExternalSignalFailed(StepError):
    """The signal to another workflow was refused."""


class SideEffectFailed(StepError):
    """The function of a side effect raised."""


class ApplicationFailure(Exception):
    """Raise it in an activity or a workflow to control what is recorded.

    `type` is what a workflow compares (by default the name of the class); `details` is any JSON value; `non_retryable` ends
    the attempts at once.
    """

    def __init__(self, message: str, *, type: str | None = None, details: Any = None, non_retryable: bool = False) -> None:
        super().__init__(message)
        self.type = self.__class__.__name__ if type is None else type
        self.details = details
        self.non_retryable = non_retryable


class RetryAfter(Exception):
    """Raise it in an activity: its next attempt begins after that long (seconds or a timedelta), whatever its policy says.

    It counts as a failed attempt: if `max_attempts` allows no other, the activity fails with the type "RetryAfter" and these
    details. `Retry(only=…)` and `Retry(non_retryable=…)` do not apply to it.
    """

    def __init__(self, after: float | timedelta, message: str = "", *, details: Any = None) -> None:
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_PAUSE:
            raise InvalidDuration(
                f"Expected RetryAfter(…) to get a timedelta or a number of seconds, from 0 to a hundred years, but it got "
                f"{after!r}. Write for instance RetryAfter(10)."
            )
        super().__init__(message or f"the next attempt is to begin after {seconds:g} s")
        self.after = timedelta(seconds=seconds)
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_retry_after, (self.after, str(self), self.details)


def _make_retry_after(after: timedelta, message: str, details: Any) -> RetryAfter:
    return RetryAfter(after, message, details=details)


class SimulationFailed(HoldfastError):
    """A simulated run did not end as the undisturbed one did; the message names the seed."""


STATUS_CODES: Mapping[type[HoldfastError], int] = {
    InvalidRequest: 422,
    PayloadTooLarge: 413,
    UnknownWorkflow: 404,
    UnknownActivity: 404,
    NotFound: 404,
    Conflict: 409,
    ExecutionBlocked: 409,
    ResultTimedOut: 504,
    EngineClosed: 503,
    ConnectionRefused: 403,
    StoreError: 500,
    StoreUnavailable: 503,
    HoldfastError: 500,
}


def status_code(error: HoldfastError) -> int:
    """The HTTP status of an error: that of the nearest class up the tree."""
    for cls in type(error).__mro__:
        if cls in STATUS_CODES:
            return STATUS_CODES[cls]
    return 500
