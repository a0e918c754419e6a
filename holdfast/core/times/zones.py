"""Local times and instants: what a clock on the wall of a time zone shows, and when that is.

A local time that a zone skips stands for the first one that it shows after the gap; one that it shows twice stands for the
first of the two. So each local time has exactly one instant, and the instants are in the order of the local times.
"""

from __future__ import annotations

from typing import Final

from whenever import Instant as Moment
from whenever import PlainDateTime, RepeatedTime, SkippedTime, TimeZoneNotFoundError, ZonedDateTime

from holdfast.core.instants import Instant
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.errors import InvalidSchedule

UTC: Final = "UTC"


def check_zone(zone: object) -> str:
    """The name of a time zone that is known here. Raises InvalidSchedule."""
    if isinstance(zone, str):
        try:
            Moment.from_timestamp(0).to_tz(zone)
        except (ValueError, OSError):
            pass
        else:
            return zone
    raise InvalidSchedule(
        f"Expected a time zone by its IANA name, but it is {show(zone, repr, LONGEST_SHOWN)}, which is not known here. "
        "Write for instance 'Europe/Berlin' or 'UTC'."
    )


def to_local(instant: Instant, zone: str) -> PlainDateTime:
    """What a clock in the zone shows at an instant. Raises InvalidSchedule if the zone is not known here."""
    try:
        return Moment.from_timestamp(instant, unit="microsecond").to_tz(zone).to_plain()
    except TimeZoneNotFoundError:
        raise _refuse_missing(zone) from None


def to_instant(local: PlainDateTime, zone: str) -> Instant:
    """When a clock in the zone shows a local time; see the module for those that it skips or shows twice.

    Raises InvalidSchedule if the zone is not known here.
    """
    try:
        found = local.assume_tz(zone, disambiguation="raise")
    except RepeatedTime:
        found = local.assume_tz(zone, disambiguation="earlier")
    except SkippedTime:
        behind = local.assume_tz(zone, disambiguation="earlier").next_transition()
        found = local.assume_tz(zone, disambiguation="later") if behind is None else behind
    except TimeZoneNotFoundError:  # a ValueError, which must not be taken for a time beyond the calendar
        raise _refuse_missing(zone) from None
    return _to_micros(found)


def _refuse_missing(zone: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"Expected to compute times in time zone {show(zone, repr, LONGEST_SHOWN)}, but this machine does not know it. "
        "Update its time zone data (the system's, or the package tzdata), or give the schedule another zone."
    )


def _to_micros(found: ZonedDateTime) -> Instant:
    return found.timestamp(unit="nanosecond") // 1000
