"""Points and lengths of time as whole microseconds; UTC only.

An instant is an `int`, microseconds since 1970-01-01T00:00:00Z. A length is an `int` of microseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.errors import InvalidDuration, InvalidTime

Instant: TypeAlias = int
Micros: TypeAlias = int
Duration: TypeAlias = timedelta | float
"""What users write for a length of time: a timedelta, or a number of seconds."""

SECOND: Final = 1_000_000
LONGEST: Final = 100 * 366 * 24 * 3600 * SECOND
"""A century: longer waits are taken for a mistake."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def from_datetime(value: datetime, what: str = "the time") -> Instant:
    """The instant of an aware date-time. Raises InvalidTime for a naive one, and beyond the years 1 to 9999 in UTC."""
    if not isinstance(value, datetime):
        raise InvalidTime(
            f"Expected {what} to be a datetime with a time zone, but it is {type(value).__name__} "
            f"{show(value, repr, LONGEST_SHOWN)}. Write for instance datetime(2030, 1, 31, 9, 0, tzinfo=UTC)."
        )
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidTime(
            f"Expected {what} to have a time zone, but {value.isoformat()} has none. "
            "Add one: datetime(..., tzinfo=UTC) or datetime(..., tzinfo=ZoneInfo('Europe/Sofia'))."
        )
    try:
        return (value - _EPOCH) // _MICROSECOND
    except OverflowError:
        raise InvalidTime(
            f"Expected {what} to be in the years 1 to 9999 of UTC, but {value.isoformat()} is not. Choose another."
        ) from None


def to_datetime(instant: Instant) -> datetime:
    """The date-time of an instant, in UTC."""
    return _EPOCH + timedelta(microseconds=instant)


def to_micros(value: Duration, what: str = "the duration") -> Micros:
    """A length of time in microseconds. Raises InvalidDuration if it is negative, absurd or no number."""
    if isinstance(value, timedelta):
        micros = value // _MICROSECOND
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not -1e15 < value < 1e15:  # also refuses NaN, which compares false
            raise _refused(value, what)
        micros = round(value * SECOND)
    else:
        raise _refused(value, what)
    if not 0 <= micros <= LONGEST:
        raise _refused(value, what)
    return micros


def _refused(value: object, what: str) -> InvalidDuration:
    remedy = "Write for instance timedelta(minutes=5) or 300."
    if isinstance(value, datetime):
        remedy = "Pass the length until then, in a workflow `when - ctx.now()`, or use ctx.sleep_until(when)."
    return InvalidDuration(
        f"Expected {what} to be a timedelta or a number of seconds between 0 and a hundred years, "
        f"but it is {show(value, repr, LONGEST_SHOWN)}. {remedy}"
    )
