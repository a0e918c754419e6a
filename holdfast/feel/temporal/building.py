"""How values are made from parts: Python's own type if it can hold them, else ours; and how they are taken apart.

A local time is counted in nanoseconds since midnight of day 0 of `calendar`, an instant likewise in UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.feel.running import Fail
from holdfast.feel.temporal.calendar import LAST_YEAR, count_days, from_ordinal, to_ordinal
from holdfast.feel.temporal.texts import DAY, HOUR, MINUTE, SECOND
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    ExactDate,
    ExactDateTime,
    ExactTime,
    TimeValue,
    YearsMonthsDuration,
)
from holdfast.feel.temporal.zones import find_local, find_offset

LONGEST_NANOSECONDS: Final = 10**28
"""Of a duration: more than lies between the first and the last date."""
LONGEST_MONTHS: Final = 24 * 10**9


def make_date(year: int, month: int, day: int) -> DateValue | None:
    """The date; None if there is none."""
    if 1 <= year <= 9999:
        try:
            return date(year, month, day)
        except ValueError:
            return None
    if abs(year) > LAST_YEAR or not 1 <= month <= 12 or not 1 <= day <= count_days(year, month):
        return None
    return ExactDate(year, month, day)


def make_time(nanoseconds: int, zone: tzinfo | None) -> TimeValue:
    """The time so long after midnight."""
    hour, rest = divmod(nanoseconds, HOUR)
    minute, rest = divmod(rest, MINUTE)
    second, fraction = divmod(rest, SECOND)
    if fraction % 1000:
        return ExactTime(hour, minute, second, fraction, zone)
    return time(hour, minute, second, fraction // 1000, zone)


def make_date_time(local: int, zone: tzinfo | None, fold: int = 0) -> DateTimeValue:
    """The date and time when clocks show this. Raises Fail if its year is too far away."""
    ordinal, rest = divmod(local, DAY)
    year, month, day = from_ordinal(ordinal)
    clock = make_time(rest, zone)
    if 1 <= year <= 9999 and type(clock) is time:
        return datetime.combine(date(year, month, day), clock.replace(fold=fold) if fold else clock)
    check_year(year)
    fraction = clock.microsecond * 1000 if isinstance(clock, time) else clock.nanosecond
    return ExactDateTime(year, month, day, clock.hour, clock.minute, clock.second, fraction, zone, fold)


def settle_date_time(local: int, zone: tzinfo | None, fold: int = 0) -> DateTimeValue:
    """The same; but a time that clocks skip when they are set forward is moved forward as they are."""
    if type(zone) is ZoneInfo:
        before, after = find_offset(zone, local, 0), find_offset(zone, local, 1)
        local += max(0, after - before)
    return make_date_time(local, zone, fold)


def make_date_time_at(instant: int, zone: tzinfo) -> DateTimeValue:
    """The date and time in a zone at an instant."""
    local, fold = find_local(instant, zone)
    return make_date_time(local, zone, fold)


def start_day(value: DateValue) -> DateTimeValue:
    """A date as a date and time. DMN 10.3.2.9.4: its midnight in UTC."""
    return make_date_time(count_day(value) * DAY, UTC)


def make_days_time(nanoseconds: int) -> DaysTimeDuration:
    """The duration. Raises Fail if it is longer than any can be."""
    if abs(nanoseconds) > LONGEST_NANOSECONDS:
        raise Fail("the duration is longer than from the first date to the last")
    return DaysTimeDuration(nanoseconds)


def make_years_months(months: int) -> YearsMonthsDuration:
    """The duration. Raises Fail if it is longer than any can be."""
    if abs(months) > LONGEST_MONTHS:
        raise Fail("the duration is longer than from the first date to the last")
    return YearsMonthsDuration(months)


def check_year(year: int) -> None:
    """Raises Fail if there is no date in a year, because it is too far away."""
    if abs(year) > LAST_YEAR:
        raise Fail(f"dates go from the year {-LAST_YEAR} to {LAST_YEAR}, and {year} is beyond")


def count_day(value: DateValue | DateTimeValue) -> int:
    """The number of its day, 1 for the first of the year 1."""
    if isinstance(value, date):
        return value.toordinal()
    return to_ordinal(value.year, value.month, value.day)


def count_clock(value: TimeValue | DateTimeValue) -> int:
    """Nanoseconds since midnight on its own clock."""
    fraction = value.microsecond * 1000 if isinstance(value, time | datetime) else value.nanosecond
    return (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + fraction


def count_local(value: DateTimeValue) -> int:
    """Nanoseconds since day 0 on its own clock."""
    return count_day(value) * DAY + count_clock(value)


def count_instant(value: DateTimeValue) -> int:
    """Nanoseconds since day 0 in UTC. It must have a zone."""
    if value.tzinfo is None:
        raise Fail("a date and time without a zone is at no known instant: give it a zone")
    local = count_local(value)
    return local - find_offset(value.tzinfo, local, value.fold)
