"""Calendars: at which times of which days something is due."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any, Final

import msgspec
from whenever import PlainDateTime

from holdfast.core.instants import Instant
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times.zones import to_instant, to_local
from holdfast.errors import InvalidSchedule

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MOST_ITEMS: Final = 1_000
_FAR: Final = 366 * 41
"""For how many days a calendar is searched: 29 February on a given weekday comes every 28 years, or after 40."""


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The times of a schedule, as lists. A day counts if every list that is given holds it; `dates` are days for themselves.

    Calendar(times=["09:00", "17:30"], weekdays=["mon", "fri"])
    Calendar(times=["06:00"], days=[1, -1])  # the first and the last of each month
    """

    times: Sequence[str]
    """Times of day, such as '09:00' or '09:00:30'."""
    weekdays: Sequence[str] = ()
    """Of 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun', or their full names; empty: all."""
    days: Sequence[int] = ()
    """Days of the month from 1 to 31, or from the end, -1 for the last one; empty: all."""
    months: Sequence[int] = ()
    """Months from 1 to 12; empty: all."""
    dates: Sequence[str] = ()
    """Single days, such as '2030-12-24'; where there are some, only they count, unless other lists are given too."""
    except_dates: Sequence[str] = ()
    """Days that never count, such as holidays."""


def check_calendar(given: Calendar | Mapping[str, Any]) -> Calendar:
    """A calendar whose lists hold what is allowed, in order. Raises InvalidSchedule."""
    try:
        value = msgspec.convert(msgspec.to_builtins(given), Calendar)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidSchedule(
            f"Expected a calendar with times, weekdays, days, months, dates and except_dates, but {error}. "
            "Write for instance Calendar(times=['09:00'], weekdays=['mon'])."
        ) from None
    if not value.times:
        raise InvalidSchedule("Expected a calendar with at least one time of day, but it has none. Add times=['09:00'].")
    days = [_check_number(one, "days", (*range(1, 32), *range(-31, 0)), "1 to 31, or -1 to -31") for one in value.days]
    return Calendar(
        sorted({_check_time(one) for one in _limit(value.times, "times")}),
        sorted({_check_weekday(one) for one in value.weekdays}, key=WEEKDAYS.index),
        sorted(set(days)),
        sorted({_check_number(one, "months", range(1, 13), "1 to 12") for one in value.months}),
        sorted({_check_date(one) for one in _limit(value.dates, "dates")}),
        sorted({_check_date(one) for one in _limit(value.except_dates, "except_dates")}),
    )


def find_next(calendar: Calendar, zone: str, after: Instant) -> Instant | None:
    """When the calendar is due next, later than `after`; None if it never is again."""
    times = [time.fromisoformat(one) for one in calendar.times]
    first = to_local(after, zone).to_stdlib().date() - timedelta(days=1)
    for day in _list_days(calendar, first):
        for one in times:
            instant = to_instant(PlainDateTime(day.year, day.month, day.day, one.hour, one.minute, one.second), zone)
            if instant > after:
                return instant
    return None


def _list_days(calendar: Calendar, first: date) -> Iterable[date]:
    except_dates, weekdays = frozenset(calendar.except_dates), frozenset(map(WEEKDAYS.index, calendar.weekdays))
    days, months = frozenset(calendar.days), frozenset(calendar.months)
    has_rules = bool(weekdays or days or months)
    dates = frozenset(calendar.dates)
    if dates and not has_rules:
        yield from (
            date.fromisoformat(one) for one in calendar.dates if one >= first.isoformat() and one not in except_dates
        )
        return
    for offset in range(_FAR):
        day = first + timedelta(days=offset)
        text = day.isoformat()
        if text in except_dates:
            continue
        from_end = day.day - monthrange(day.year, day.month)[1] - 1
        is_ruled = (
            (not weekdays or day.weekday() in weekdays)
            and (not months or day.month in months)
            and (not days or day.day in days or from_end in days)
        )
        if is_ruled or text in dates:
            yield day


def _limit(items: Sequence[str], name: str) -> Sequence[str]:
    if len(items) > MOST_ITEMS:
        raise InvalidSchedule(
            f"Expected at most {MOST_ITEMS} {name} in a calendar, but there are {len(items)}. Use several schedules."
        )
    return items


def _check_time(text: str) -> str:
    try:
        found = time.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None or found.microsecond:
        raise InvalidSchedule(
            f"Expected a time of day in a calendar, but it is {show(text, repr, LONGEST_SHOWN)}. Write for instance '09:00'."
        )
    return found.isoformat()


def _check_date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InvalidSchedule(
            f"Expected a date in a calendar, but it is {show(text, repr, LONGEST_SHOWN)}. Write for instance '2030-12-24'."
        ) from None


def _check_weekday(text: str) -> str:
    if (found := text.lower()) in (*WEEKDAYS, *_FULL_NAMES):
        return found[:3]
    raise InvalidSchedule(
        f"Expected a weekday in a calendar, but it is {show(text, repr, LONGEST_SHOWN)}. Use one of {', '.join(WEEKDAYS)}, "
        "or a full name."
    )


def _check_number(value: int, name: str, allowed: Iterable[int], words: str) -> int:
    if value in allowed:
        return value
    raise InvalidSchedule(f"Expected {name} of a calendar to be {words}, but one is {value}. Correct it.")
