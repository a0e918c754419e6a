"""A failure as history keeps it, and how it becomes an exception again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.payloads import Payload
from holdfast.errors import ApplicationFailure, EncodingError, PayloadError, StepError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

LONGEST_MESSAGE = 4_000
PROCESS_LOST = "ProcessLost"
"""The type of the failure of what ended its process again and again."""
DEEPEST_TRACE = 30


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What went wrong: the exception's type by name, its message, details as JSON, where it was raised."""

    type: str
    message: str
    details: Payload | None = None
    non_retryable: bool = False
    trace: str = ""


def describe_exception(error: BaseException) -> Failure:
    """The failure that history records for an exception."""
    details: Any = getattr(error, "details", None) if isinstance(error, ApplicationFailure | StepError) else None
    kind = _storable(error.type) if isinstance(error, ApplicationFailure) else type(error).__name__
    try:
        encoded = None if details is None else payloads.encode(details, "the details of a failure")
    except PayloadError:
        encoded = payloads.encode(_storable(details, repr), "the details of a failure")
    return Failure(
        type=kind,
        message=_storable(error),
        details=encoded,
        non_retryable=bool(getattr(error, "non_retryable", False)) or isinstance(error, EncodingError),
        trace=_storable(_trace(error.__traceback__), most=None),
    )


def decode_details(failure: Failure) -> Any:
    """The details as plain JSON values."""
    return None if failure.details is None else payloads.decode(failure.details, Any, "the details of a failure")


def _trace(frame: TracebackType | None) -> str:
    """The innermost frames, one line each. Source lines are left out: reading them would touch files."""
    lines = []
    while frame is not None:
        code = frame.tb_frame.f_code
        lines.append(f"{code.co_filename}:{frame.tb_lineno} in {code.co_qualname}")
        frame = frame.tb_next
    return "\n".join(lines[-DEEPEST_TRACE:])


def _storable(value: object, describe: Callable[[object], str] = str, most: int | None = LONGEST_MESSAGE) -> str:
    """The value as text that can be stored, whatever its own methods do."""
    try:
        text = describe(value)
    except Exception as error:  # noqa: BLE001 - what cannot describe itself must still be recorded
        text = f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    return text[:most].encode("utf-8", "backslashreplace").decode("utf-8")
