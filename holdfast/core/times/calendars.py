"""Calendars: at which times of which days something is due."""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any, Final

import msgspec
from whenever import PlainDateTime

from holdfast.core.instants import Instant
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times.dates import FIRST_YEAR, LAST_YEAR, LATEST
from holdfast.core.times.zones import to_instant, to_local
from holdfast.errors import InvalidSchedule

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MOST_ITEMS: Final = 1_000
_FAR: Final = 41
"""For how many years a calendar is searched: 29 February on a given weekday comes every 28 years, or after 40."""


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


def list_times(calendar: Calendar, zone: str, after: Instant) -> Iterator[Instant]:
    """When the calendar is due, later than `after`, in order; ends if it never is again, or beyond the years that count.

    A local time up to the one that a clock shows at `after` is never later than that: so the search begins there.
    """
    if after >= LATEST:
        return
    times = [time.fromisoformat(one) for one in calendar.times]
    local = to_local(after, zone).to_stdlib()
    begin = bisect_right(times, local.time())
    for day in _list_days(calendar, local.date()):
        for one in times[begin:] if day == local.date() else times:
            instant = to_instant(PlainDateTime(day.year, day.month, day.day, one.hour, one.minute, one.second), zone)
            if instant > after:
                yield instant
                after = instant


def _list_days(calendar: Calendar, first: date) -> Iterator[date]:
    """The days that count, from `first` on. Months of which none can count are passed over."""
    has_rules = bool(calendar.weekdays or calendar.days or calendar.months)
    except_dates = frozenset(calendar.except_dates)
    dates = [date.fromisoformat(one) for one in calendar.dates if one >= first.isoformat() and one not in except_dates]
    if calendar.dates and not has_rules:
        yield from (day for day in dates if day.year <= LAST_YEAR)
        return
    singles: dict[tuple[int, int], set[int]] = {}
    for day in dates:
        singles.setdefault((day.year, day.month), set()).add(day.day)
    months, weekdays = frozenset(calendar.months), frozenset(map(WEEKDAYS.index, calendar.weekdays))
    year, last_year = first.year, max([first.year + _FAR, *(year for year, _ in singles)])
    while year <= min(last_year, LAST_YEAR):
        for month in range(first.month if year == first.year else 1, 13):
            found = set(singles.get((year, month), ()))
            if not months or month in months:
                found |= _list_ruled(calendar.days, weekdays, year, month)
            for number in sorted(found):
                day = date(year, month, number)
                if day >= first and day.isoformat() not in except_dates:
                    yield day
                    last_year = max(last_year, year + _FAR)
        year += 1


def _list_ruled(days: Sequence[int], weekdays: Collection[int], year: int, month: int) -> set[int]:
    """The days of a month that the lists of days and weekdays hold."""
    begins_with, length = monthrange(year, month)
    numbers = (one if one > 0 else length + 1 + one for one in days) if days else range(1, length + 1)
    return {one for one in numbers if 1 <= one <= length and (not weekdays or (begins_with + one - 1) % 7 in weekdays)}


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
        found = date.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(
            f"Expected a date in a calendar, but it is {show(text, repr, LONGEST_SHOWN)}. Write for instance '2030-12-24'."
        ) from None
    if FIRST_YEAR <= found.year <= LAST_YEAR:
        return found.isoformat()
    raise InvalidSchedule(
        f"Expected a date in a calendar between {FIRST_YEAR} and {LAST_YEAR}, but it is "
        f"{show(text, repr, LONGEST_SHOWN)}. Correct the year."
    )


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
