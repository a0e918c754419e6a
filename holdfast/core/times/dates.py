"""Dates and times of ISO 8601, with an offset or in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from whenever import PlainDateTime

from holdfast.core.instants import LONGEST, Instant, from_datetime
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times.zones import to_instant
from holdfast.errors import InvalidSchedule, InvalidTime

LATEST: Final = 3 * LONGEST
"""Nothing is due after this instant, in 2270: later times are taken for a mistake."""
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2270


def parse_date(text: str, zone: str) -> Instant:
    """The instant of a date-time; one without an offset is local in `zone`. Raises InvalidSchedule."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            instant = to_instant(PlainDateTime(found), zone)
        else:
            instant = from_datetime(found.astimezone(UTC))
    except (ValueError, OverflowError, InvalidTime):
        raise InvalidSchedule(
            f"Expected a date and time of ISO 8601, but {show(text, repr, LONGEST_SHOWN)} is none. "
            "Write for instance '2030-01-31T09:00:00Z' or '2030-01-31T09:00:00'."
        ) from None
    return check_date(instant, text)


def check_date(instant: Instant, text: str) -> Instant:
    """An instant at which something may be due. Raises InvalidSchedule, which quotes the date as it was written."""
    if 0 <= instant <= LATEST:
        return instant
    raise InvalidSchedule(
        f"Expected a date between {FIRST_YEAR} and {LAST_YEAR}, but it is {show(text, repr, LONGEST_SHOWN)}. "
        "Correct the year."
    )
