"""A failure as history keeps it, and how it becomes an exception again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.instants import SECOND, Micros
from holdfast.core.interrupts import is_interrupt
from holdfast.core.payloads import Payload
from holdfast.core.safe_texts import name_type, show
from holdfast.errors import ApplicationFailure, EncodingError, PayloadError, RetryAfter, StepError

if TYPE_CHECKING:
    from types import TracebackType

LONGEST_MESSAGE = 4_000
PROCESS_LOST = "ProcessLost"
"""The type of the failure of what ended its process again and again."""
TIMED_OUT = "ExecutionTimedOut"
"""The type of the failure of a workflow whose timeout passed."""
NOT_COMMITTED = "NotCommitted"
"""The type of the failure of a turn that the store does not take for now: it is out of reach, short of room or too slow."""
DEEPEST_TRACE = 30
LONGEST_ROW_TRACE = 2_000
"""How many characters of a stack trace a row keeps while an activity is tried again: it is written with each turn."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """What went wrong: the exception's type by name, its message, details as JSON, where it was raised."""

    type: str
    message: str
    details: Payload | None = None
    non_retryable: bool = False
    trace: str = ""


def describe_exception(error: BaseException) -> Failure:
    """The failure that history records for an exception. Raises nothing but Ctrl-C, whatever it is."""
    try:
        return _describe(error)
    except BaseException as second:  # what cannot describe itself must still be recorded
        if is_interrupt(second):
            raise
        message = f"<{name_type(error)} that cannot be described: {name_type(second)}>"
        return Failure(type=name_type(error), message=message)


def _describe(error: BaseException) -> Failure:
    carries = isinstance(error, ApplicationFailure | StepError | RetryAfter)
    details: Any = getattr(error, "details", None) if carries else None
    kind = show(error.type, most=LONGEST_MESSAGE) if isinstance(error, ApplicationFailure) else name_type(error)
    try:
        encoded = None if details is None else payloads.encode(details, "the details of a failure")
    except PayloadError:
        encoded = payloads.encode(show(details, repr, LONGEST_MESSAGE), "the details of a failure")
    return Failure(
        type=kind,
        message=show(error, most=LONGEST_MESSAGE),
        details=encoded,
        non_retryable=_is_non_retryable(error),
        trace=show(_trace(error.__traceback__)),
    )


def _is_non_retryable(error: BaseException) -> bool:
    try:
        return bool(getattr(error, "non_retryable", False)) or isinstance(error, EncodingError)
    except BaseException as second:  # an exception that answers every name in its own way
        if is_interrupt(second):
            raise
        return False


def list_kinds(error: BaseException) -> tuple[str, ...]:
    """The names of an exception's type and of its base types, by which a retry policy knows it."""
    classes: tuple[type, ...] = type.__dict__["__mro__"].__get__(type(error))
    names = (type.__dict__["__name__"].__get__(one) for one in classes)
    return tuple(name.encode("utf-8", "backslashreplace").decode("utf-8") for name in names)


def find_retry_after(error: BaseException) -> Micros | None:
    """After how long the next attempt is to begin, if the exception says so."""
    if not issubclass(type(error), RetryAfter):  # `isinstance` would ask the exception itself
        return None
    after = getattr(error, "after", None)
    return round(after.total_seconds() * SECOND) if type(after) is timedelta else None


def shorten_trace(failure: Failure) -> Failure:
    """The failure with the innermost lines of its trace, as many as a row may keep."""
    trace = failure.trace
    if len(trace) <= LONGEST_ROW_TRACE:
        return failure
    return msgspec.structs.replace(failure, trace=trace[-LONGEST_ROW_TRACE:].partition("\n")[2])


def decode_failure_details(failure: Failure) -> Any:
    """The details of a failure as plain JSON values."""
    return None if failure.details is None else payloads.show_value(failure.details)


def _trace(frame: TracebackType | None) -> str:
    """The innermost frames, one line each. Source lines are left out: reading them would touch files."""
    lines = []
    while frame is not None:
        code = frame.tb_frame.f_code
        lines.append(f"{code.co_filename}:{frame.tb_lineno} in {code.co_qualname}")
        frame = frame.tb_next
    return "\n".join(lines[-DEEPEST_TRACE:])
