"""What activities raise, and what workflows catch from them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from holdfast.errors.arguments import InvalidArguments, InvalidDuration
from holdfast.errors.roots import StepError

LONGEST_PAUSE: Final = 100 * 366 * 24 * 3600
"""In seconds; as the longest duration elsewhere."""


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


class BpmnError(ApplicationFailure):
    """Raise it in an activity or a workflow: an error by its code, which a diagram catches with an error event.

    The activity ends at once and is not retried. `variables` are given to the process that catches the error. Code that
    awaits the activity or the child catches it as `BpmnError` again, with the same `code` and `variables`. Subclasses are
    recorded as `BpmnError` too.
    """

    code: str
    variables: dict[str, Any]
    non_retryable = True

    def __init__(self, code: str, message: str = "", variables: Mapping[str, Any] | None = None) -> None:
        if not isinstance(code, str) or not code.strip():
            raise InvalidArguments(
                f"Expected BpmnError(…) to get the code of an error, a text that is not empty, but it got {code!r}. "
                "Write the code that the error event of the diagram has, for instance BpmnError('card-declined')."
            )
        if not isinstance(message, str):
            raise InvalidArguments(
                f"Expected the message of BpmnError({code!r}) to be a text, but it is a {message.__class__.__name__}. "
                "Pass a text, or leave it out."
            )
        if variables is not None and not (isinstance(variables, Mapping) and all(isinstance(one, str) for one in variables)):
            raise InvalidArguments(
                f"Expected the variables of BpmnError({code!r}) to be a mapping from names to values, but they are "
                f"{variables!r:.100}. Pass for instance variables={{'reason': 'limit'}}."
            )
        given = {} if variables is None else dict(variables)
        text = message or f"BPMN error '{code}'"
        super().__init__(text, type="BpmnError", details={"code": code, "variables": given}, non_retryable=True)
        self.code = code
        self.variables = given

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_bpmn_error, (self.code, str(self), self.variables)


def _make_bpmn_error(code: str, message: str, variables: dict[str, Any]) -> BpmnError:
    return BpmnError(code, message, variables)


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
