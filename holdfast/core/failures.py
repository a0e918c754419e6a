"""A failure as history keeps it: an exception by name, with the chain of those that led to it.

`core.rebuilt_errors` makes exceptions of failures again.
"""

from __future__ import annotations

import builtins
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast import errors
from holdfast.core import payloads
from holdfast.core.instants import LONGEST, Micros
from holdfast.core.interrupts import is_interrupt
from holdfast.core.payloads import Payload
from holdfast.core.safe_texts import name_type, show
from holdfast.errors import ApplicationFailure, BpmnError, EncodingError, PayloadError, RetryAfter, StepError

if TYPE_CHECKING:
    from types import TracebackType

_MICROSECOND: Final = timedelta(microseconds=1)
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
DEEPEST_CHAIN: Final = 10
"""How many exceptions of a chain are recorded beside the one that was raised."""
LONGEST_CAUSE: Final = 1_000
"""Characters of the message of each of them, and frames of a third of the trace: one failure stays a few kilobytes."""
DEEPEST_CAUSE_TRACE: Final = 10
LARGEST_ATTRIBUTE: Final = 4_000
"""Bytes of `details` that are taken from an exception which is none of Holdfast's."""
_OWN_FOLDER: Final = __file__.removesuffix("failures.py").rstrip("/\\").removesuffix("core")
"""Where the files of this package lie."""
_GROUP_MESSAGE: Final = re.compile(r"\([0-9]+ sub-exceptions?\)\Z")
"""How the text of every group ends, whatever its class is called."""
RECORDED_FOREIGN: Final = "__holdfast_foreign__"
"""Where it notes that its class was foreign."""
RECORDED_TRACE: Final = "__holdfast_trace__"
"""Where an exception that was made of a failure keeps the trace that is recorded there."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """What went wrong: the exception's type by name, its message, details as JSON, where it was raised.

    `cause` is the exception that led to it. Histories of older versions have none.
    """

    type: str
    message: str
    details: Payload | None = None
    non_retryable: bool = False
    trace: str = ""
    cause: Failure | None = None
    foreign: bool = False
    """Whether the class has the name of one of Python's or Holdfast's own, which it is not."""


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
    if issubclass(type(error), BpmnError):
        fault = _find_unreadable(error)
        if fault is not None:
            error = fault
    failure = _describe_alone(error, LONGEST_MESSAGE, DEEPEST_TRACE)
    chain = [_describe_alone(one, LONGEST_CAUSE, DEEPEST_CAUSE_TRACE) for one in _find_causes(error)]
    cause: Failure | None = None
    for one in reversed(chain):
        cause = msgspec.structs.replace(one, cause=cause)
    return failure if cause is None else msgspec.structs.replace(failure, cause=cause)


def _describe_alone(error: BaseException, longest: int, deepest: int) -> Failure:
    """The failure of one exception, without those that led to it."""
    is_named = isinstance(error, ApplicationFailure) and not isinstance(error, StepError)
    told = getattr(error, "type", None) if is_named else None  # a subclass may not call our `__init__`, which sets it
    kind = name_type(error) if told is None else show(told, most=longest)
    members = vars(BaseException)  # a class may have its own idea of them
    own: dict[str, Any] = members["__dict__"].__get__(error)
    return Failure(
        type=kind,
        message=show(error, most=longest),
        details=_encode_details(error, own),
        non_retryable=_is_non_retryable(error),
        trace=own[RECORDED_TRACE]
        if RECORDED_TRACE in own
        else show(_trace(members["__traceback__"].__get__(error), deepest)),
        foreign=RECORDED_FOREIGN in own or not (is_named or RECORDED_TRACE in own or _is_what_it_says(error, kind)),
    )


def _find_unreadable(error: BaseException) -> EncodingError | None:
    """Why the variables of a BPMN error cannot be recorded: that is the failure then, since they would be missing."""
    try:
        payloads.encode(getattr(error, "details", None), "the variables of a BpmnError")
    except PayloadError as fault:
        code = show(getattr(error, "code", ""), repr)
        made = EncodingError(
            f"Expected the variables of BpmnError({code}) to be values that JSON can hold, but: {fault.message} "
            "Pass plain values."
        )
        made.__cause__ = error
        return made
    return None


def find_original(failure: Failure) -> Failure:
    """The failure that counts: below those that only say that an activity or a child failed."""
    while failure.cause is not None and _is_step(failure.type):
        failure = failure.cause
    return failure


def _is_step(name: str) -> bool:
    found = vars(errors).get(name)
    return isinstance(found, type) and issubclass(found, StepError)


def _is_what_it_says(error: BaseException, kind: str) -> bool:
    """Whether an exception whose class has the name of one of Python's or Holdfast's is of that class."""
    known = vars(builtins).get(kind) or vars(errors).get(kind)
    return not isinstance(known, type) or isinstance(error, known)


def _encode_details(error: BaseException, own: dict[str, Any]) -> Payload | None:
    if isinstance(error, ApplicationFailure | StepError | RetryAfter):
        details: Any = getattr(error, "details", None)
        try:
            return None if details is None else payloads.encode(details, "the details of a failure")
        except PayloadError:
            return payloads.encode(show(details, repr, LONGEST_MESSAGE), "the details of a failure")
    details = own.get("details")
    try:
        return None if details is None else payloads.encode(details, "the details of a failure", LARGEST_ATTRIBUTE)
    except PayloadError:
        return None  # whatever it is, it was not meant for us


def _find_causes(error: BaseException) -> list[BaseException]:
    """The exceptions that led to this one, the nearest first, as a traceback shows them; each once, and not too many.

    The cause of a group that has no other is the first exception in it.
    """
    found: list[BaseException] = []
    seen = {id(error)}
    one: BaseException | None = error
    while one is not None and len(found) < DEEPEST_CHAIN:
        one = _find_cause(one)
        if one is None or id(one) in seen:
            break
        seen.add(id(one))
        found.append(one)
    return found


def _find_cause(error: BaseException) -> BaseException | None:
    # By the members of BaseException itself: a class may have its own idea of them.
    members = vars(BaseException)
    cause: BaseException | None = members["__cause__"].__get__(error)
    if cause is None and not members["__suppress_context__"].__get__(error):
        cause = members["__context__"].__get__(error)
    if cause is None and isinstance(error, BaseExceptionGroup):
        cause = vars(BaseExceptionGroup)["exceptions"].__get__(error)[0]
    return cause


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
    """After how long the next attempt is to begin, if the exception says so; from nothing to a century, whatever it says."""
    if not issubclass(type(error), RetryAfter):  # `isinstance` would ask the exception itself
        return None
    try:
        after = getattr(error, "after", None)
    except BaseException as second:  # an exception of the user's own, which may raise wherever it is asked
        if is_interrupt(second):
            raise
        return None
    return min(max(0, round(after / _MICROSECOND)), LONGEST) if type(after) is timedelta else None


def shorten_trace(failure: Failure) -> Failure:
    """The failure with the innermost lines of its trace, as many as a row may keep, and without those of its causes."""
    trace = failure.trace
    if failure.cause is not None:
        failure = msgspec.structs.replace(failure, cause=_drop_cause_traces(failure.cause))
    if len(trace) <= LONGEST_ROW_TRACE:
        return failure
    return msgspec.structs.replace(failure, trace=trace[-LONGEST_ROW_TRACE:].partition("\n")[2])


def list_told(failure: Failure) -> list[Failure]:
    """What a line about a failure tells of: the failure; of a group, which says only how many, also the first one in it."""
    told = [failure]
    while told[-1].cause is not None and _GROUP_MESSAGE.search(told[-1].message):
        told.append(told[-1].cause)
    return told


def decode_failure_details(failure: Failure) -> Any:
    """The details of a failure as plain JSON values."""
    return None if failure.details is None else payloads.show_value(failure.details)


def _drop_cause_traces(cause: Failure) -> Failure:
    deeper = None if cause.cause is None else _drop_cause_traces(cause.cause)
    return msgspec.structs.replace(cause, trace="", cause=deeper)


def drop_traces(failure: Any) -> None:
    """Take the traces out of a failure in plain JSON and out of its causes: they name files of one machine."""
    while isinstance(failure, dict):
        failure.pop("trace", None)
        failure = failure.get("cause")


def _trace(frame: TracebackType | None, deepest: int) -> str:
    """The innermost frames, one line each. Source lines are left out: reading them would touch files."""
    lines = []
    frame = _skip_own(frame)
    while frame is not None:
        code = frame.tb_frame.f_code
        lines.append(f"{code.co_filename}:{frame.tb_lineno} in {code.co_qualname}")
        frame = frame.tb_next
    return "\n".join(lines[-deepest:])


def _skip_own(frame: TracebackType | None) -> TracebackType | None:
    """The first frame that is not Holdfast's: those before it only called the user's code. The first of all if none is."""
    first = frame
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        first = first.tb_next
    return first or frame
